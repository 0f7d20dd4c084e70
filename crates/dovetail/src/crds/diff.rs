//! `dovetail crds --diff`: what of a cluster's CRDs, or a dump's, is not as this program has it, and whom that concerns.

use std::collections::BTreeMap;

use api::{crds::installation, provider::Provider};
use http::Method;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use runtime::{Api, ApiError, Clock, Resource};
use serde::Serialize;
use serde_json::Value;
use simulator::Admission;

use super::compare::{Change, Effect, changes};
use crate::{
    failure::Failure,
    raw::{self, Frame, Raw, text},
};

/// Where the API server keeps definitions.
pub(crate) const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What differs.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    #[serde(skip)]
    pub(super) frame: Frame,
    /// Whose rules on labels ours have.
    pub(super) providers: Vec<&'static str>,
    pub(super) definitions: Vec<Compared>,
    /// What could not be read, a sentence each.
    #[serde(skip)]
    pub(super) assumed: Vec<String>,
}

/// A definition beside ours.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    pub(super) name: String,
    /// The versions that ours serves.
    pub(super) versions: Vec<String>,
    pub(super) state: State,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) changes: Vec<Change>,
    /// Objects of the kind.
    pub(super) objects: usize,
    /// Those that ours refuses, as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) refused: Vec<Refused>,
    /// Versions that objects are stored in and ours does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) stranded: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Same,
    Differs,
    Missing,
}

/// An object that ours refuses.
#[derive(Debug, Serialize)]
pub(super) struct Refused {
    pub(super) object: String,
    pub(super) why: String,
}

impl Report {
    pub(super) fn differing(&self) -> impl Iterator<Item = &Compared> {
        self.definitions.iter().filter(|one| one.state != State::Same)
    }
}

impl Compared {
    pub(super) fn count(&self, effect: Effect) -> usize {
        self.changes.iter().filter(|change| change.effect == effect).count()
    }
}

/// Definitions and objects, as they are.
#[derive(Debug)]
pub(super) struct There {
    frame: Frame,
    definitions: BTreeMap<String, Value>,
    objects: Vec<Value>,
    gaps: Vec<String>,
}

fn name(definition: &CustomResourceDefinition) -> &str {
    definition.metadata.name.as_deref().unwrap_or_default()
}

/// Names of all definitions that an installation may have.
pub(crate) fn names() -> Vec<String> {
    let all = installation(&Provider::ALL);
    all.iter().map(|definition| name(definition).to_owned()).collect()
}

impl There {
    /// What a dump holds.
    pub(super) fn of_dump(raw: &Raw) -> Result<Self, Failure> {
        let definitions: BTreeMap<String, Value> = raw
            .of_kind("CustomResourceDefinition")
            .map(|one| (text(one, "metadata.name").to_owned(), one.clone()))
            .collect();
        let wanted = names();
        if !definitions.keys().any(|name| wanted.contains(name)) {
            return Err(Failure::new(
                format!("no CRD of Karpenter's in {}", raw.name),
                "a dump of kubectl has CustomResourceDefinitions only if they were asked for",
                format!(
                    "kubectl get crd {} --ignore-not-found -o yaml > crds.yaml",
                    wanted.join(" ")
                ),
            ));
        }
        let objects = raw.documents.iter().map(|document| document.value.clone());
        Ok(Self {
            frame: raw.frame(raw.now),
            objects: objects.filter(|one| text(one, "apiVersion").contains('.')).collect(),
            definitions,
            gaps: raw.gaps.clone(),
        })
    }

    /// What a cluster holds.
    pub(super) async fn of_cluster(api: &Api, source: String) -> Result<Self, Failure> {
        let mut there = Self {
            frame: Frame {
                name: source,
                of: "live",
                as_of: Clock::system().now(),
            },
            definitions: BTreeMap::new(),
            objects: Vec::new(),
            gaps: Vec::new(),
        };
        for definition in installation(&Provider::ALL) {
            let name = name(&definition).to_owned();
            match api
                .call(Method::GET, &format!("{PATH}/{name}"), None, "application/json")
                .await
            {
                Ok(bytes) => {
                    let found = serde_json::from_slice(&bytes).unwrap_or_default();
                    there.definitions.insert(name, found);
                    there.list(api, &definition).await?;
                }
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(unreadable(&there.frame.name, &error)),
            }
        }
        Ok(there)
    }

    async fn list(&mut self, api: &Api, definition: &CustomResourceDefinition) -> Result<(), Failure> {
        let served = definition.spec.versions.iter().find(|version| version.storage);
        let Some(version) = served else { return Ok(()) };
        let (group, kind) = (&definition.spec.group, &definition.spec.names.kind);
        let api_version = format!("{group}/{}", version.name);
        match api.pages(&Resource::new(&api_version, kind)).await {
            Ok(pages) => {
                let items = pages.iter().flat_map(|page| raw::items(page, &api_version, kind));
                self.objects.extend(items);
            }
            // Another version is served: nothing that ours could be asked about.
            Err(error) if error.is_not_found() || error.is_missing_kind() => {}
            Err(error) if error.is_forbidden() => {
                self.gaps
                    .push(format!("may not list {kind}: whether ours refuses one is not known"));
            }
            Err(error) => return Err(raw::unreachable(&self.frame.name, &error)),
        }
        Ok(())
    }

    /// The providers that are meant: those asked for, those installed, or all.
    fn providers(&self, asked: Option<&'static [Provider]>) -> Vec<Provider> {
        if let Some(asked) = asked {
            return asked.to_vec();
        }
        let core: Vec<String> = installation(&[]).iter().map(|one| name(one).to_owned()).collect();
        let is_there = |provider: &Provider| {
            let own = installation(&[*provider]);
            let mut own = own.iter().map(name).filter(|name| !core.iter().any(|one| one == name));
            own.any(|name| self.definitions.contains_key(name))
        };
        let there: Vec<Provider> = Provider::ALL.into_iter().filter(is_there).collect();
        if there.is_empty() {
            Provider::ALL.to_vec()
        } else {
            there
        }
    }

    /// What is there beside what we have.
    pub(super) fn compared(self, asked: Option<&'static [Provider]>) -> Report {
        let providers = self.providers(asked);
        let ours = installation(&providers);
        let values = ours.iter().filter_map(|one| serde_json::to_value(one).ok());
        let admission = Admission::new(values);
        let definitions = ours.iter().map(|definition| self.one(definition, &admission));
        Report {
            definitions: definitions.collect(),
            providers: providers.iter().map(|provider| word(*provider)).collect(),
            frame: self.frame,
            assumed: self.gaps,
        }
    }

    fn one(&self, definition: &CustomResourceDefinition, admission: &Admission) -> Compared {
        let ours = serde_json::to_value(definition).unwrap_or_default();
        let theirs = self.definitions.get(name(definition));
        let changes = theirs.map(|theirs| changes(theirs, &ours)).unwrap_or_default();
        let state = match (theirs, changes.is_empty()) {
            (None, _) => State::Missing,
            (_, true) => State::Same,
            _ => State::Differs,
        };
        let of_kind = |object: &&Value| {
            object["kind"] == *definition.spec.names.kind
                && text(object, "apiVersion").starts_with(&definition.spec.group)
        };
        let objects: Vec<&Value> = self.objects.iter().filter(of_kind).collect();
        let refused = objects.iter().filter_map(|object| {
            let objection = admission.objections(object).into_iter().next()?;
            Some(Refused {
                object: text(object, "metadata.name").to_owned(),
                why: format!("{}: {}", objection.field, objection.text),
            })
        });
        let known = |version: &&str| definition.spec.versions.iter().any(|one| one.name == *version);
        let stored = theirs.and_then(|theirs| theirs["status"]["storedVersions"].as_array());
        let stored = stored.into_iter().flatten().filter_map(Value::as_str);
        Compared {
            name: name(definition).to_owned(),
            versions: definition.spec.versions.iter().map(|one| one.name.clone()).collect(),
            refused: if state == State::Differs {
                refused.collect()
            } else {
                Vec::new()
            },
            stranded: stored.filter(|version| !known(version)).map(str::to_owned).collect(),
            state,
            changes,
            objects: objects.len(),
        }
    }
}

/// As the command line calls it.
pub(super) fn word(provider: Provider) -> &'static str {
    match provider {
        Provider::Aws => "aws",
        Provider::Azure => "azure",
        Provider::Kwok => "kwok",
    }
}

fn unreadable(cluster: &str, error: &ApiError) -> Failure {
    Failure::unreachable(
        format!("cannot read the CRDs of {cluster}"),
        error.to_string(),
        "ask for the right to get customresourcedefinitions, or compare a dump: kubectl get crd -o yaml > crds.yaml, then --from crds.yaml",
    )
}
