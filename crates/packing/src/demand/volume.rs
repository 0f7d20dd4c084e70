//! What a pod's volumes ask of a node: where they are or may be, and which CSI driver attaches them.

use std::sync::Arc;

use api::labels::HOSTNAME;
use model::{
    object::{
        NodeSelectorRequirement, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Text, TopologySelectorTerm,
    },
    requirement::{Operator, RequirementSpec, Requirements},
    snapshot::Objects,
    vocabulary::Vocabulary,
    volume::{EBS_DRIVER, Volumes, driver_of_provisioner},
};

use super::PodVolumes;

/// One way in which volumes can be reached: requirements on the node, all of which must hold.
type Alternative = Vec<RequirementSpec>;

/// The storage objects of a snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storage<'a>(pub(crate) &'a Objects);

/// An object that something names and that is not there, in the API's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} \"{name}\" not found")]
pub(crate) struct NotFound {
    kind: &'static str,
    name: Text,
}

impl<'a> Storage<'a> {
    /// What the pod's volumes ask for; none for a pod without claims.
    pub(crate) fn volumes_of(self, pod: &Pod) -> Option<PodVolumes> {
        if pod.spec.volumes.is_empty() {
            return None;
        }
        let alternatives = self.alternatives(pod);
        Some(PodVolumes {
            is_unresolved: alternatives.is_err(),
            alternatives: alternatives.unwrap_or_default(),
            attachments: self.attachments(pod).map_err(|error| error.to_string()),
        })
    }

    /// The claims of the pod by driver. A claim that is gone, or that no driver attaches, does not count.
    pub(crate) fn attachments(self, pod: &Pod) -> Result<Volumes, NotFound> {
        let mut volumes = Volumes::default();
        for name in claim_names(pod) {
            let Ok(claim) = self.claim(pod, &name) else { continue };
            if let Some(driver) = self.driver(claim)? {
                volumes.insert(driver, claim.metadata.key().to_string());
            }
        }
        Ok(volumes)
    }

    /// The driver of a bound claim is its volume's, that of an unbound one its class's if there is such a class.
    fn driver(self, claim: &PersistentVolumeClaim) -> Result<Option<&'a str>, NotFound> {
        if !claim.spec.volume_name.is_empty() {
            return Ok(driver_of_volume(self.volume(&claim.spec.volume_name)?));
        }
        let class = self.class_of(claim).transpose().ok().flatten();
        let driver = class.map(|class| driver_of_provisioner(&class.provisioner));
        Ok(driver.filter(|driver| !driver.is_empty()))
    }

    /// Every combination of one alternative of each volume, the first volume outermost. Combinations that contradict
    /// themselves are left out, unless all of them do: then the pod must fail for it.
    fn alternatives(self, pod: &Pod) -> Result<Vec<Alternative>, NotFound> {
        let mut combined: Vec<Alternative> = Vec::new();
        for name in claim_names(pod) {
            let of_volume = self.alternatives_of(self.claim(pod, &name)?)?;
            if combined.is_empty() {
                combined = of_volume;
            } else if !of_volume.is_empty() {
                combined = combinations(&combined, &of_volume);
            }
        }
        Ok(combined)
    }

    fn alternatives_of(self, claim: &PersistentVolumeClaim) -> Result<Vec<Alternative>, NotFound> {
        if !claim.spec.volume_name.is_empty() {
            return Ok(places_of_volume(self.volume(&claim.spec.volume_name)?));
        }
        let class = self.class_of(claim).transpose()?;
        let terms = class.into_iter().flat_map(|class| &class.allowed_topologies);
        Ok(terms.map(place_of_term).filter(|place| !place.is_empty()).collect())
    }

    pub(super) fn claim(self, pod: &Pod, name: &Text) -> Result<&'a Arc<PersistentVolumeClaim>, NotFound> {
        let claims = &self.0.persistent_volume_claims;
        let claim = claims.find(&pod.metadata.namespace, name);
        claim.ok_or_else(|| NotFound::new("PersistentVolumeClaim", name))
    }

    pub(crate) fn volume(self, name: &Text) -> Result<&'a Arc<PersistentVolume>, NotFound> {
        let volume = self.0.persistent_volumes.find("", name);
        volume.ok_or_else(|| NotFound::new("PersistentVolume", name))
    }

    /// The class of a claim that names one.
    pub(super) fn class_of(self, claim: &PersistentVolumeClaim) -> Option<Result<&'a Arc<StorageClass>, NotFound>> {
        let name = claim.spec.storage_class_name.as_ref().filter(|name| !name.is_empty())?;
        let class = self.0.storage_classes.find("", name);
        Some(class.ok_or_else(|| NotFound::new("StorageClass.storage.k8s.io", name)))
    }
}

impl NotFound {
    fn new(kind: &'static str, name: &Text) -> Self {
        let name = name.clone();
        Self { kind, name }
    }
}

/// The claims behind the pod's volumes, in the order of the volumes.
pub(super) fn claim_names(pod: &Pod) -> impl Iterator<Item = Text> {
    let volumes = pod.spec.volumes.iter();
    volumes.filter_map(|volume| volume.claim_name(&pod.metadata.name))
}

fn driver_of_volume(volume: &PersistentVolume) -> Option<&str> {
    let csi = volume.spec.csi.as_ref().map(|csi| &*csi.driver);
    let in_tree = volume.spec.aws_elastic_block_store.as_ref().map(|_| EBS_DRIVER);
    csi.or(in_tree).filter(|driver| !driver.is_empty())
}

/// A disk or directory of one node goes where the pod goes, so its host name does not count; a term that says nothing
/// else leaves the pod free.
fn places_of_volume(volume: &PersistentVolume) -> Vec<Alternative> {
    let is_node_path = volume.spec.local.is_some() || volume.spec.host_path.is_some();
    let affinity = volume.spec.node_affinity.as_ref();
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    let terms = required.into_iter().flat_map(|required| &required.node_selector_terms);
    let place = |expressions: &[NodeSelectorRequirement]| -> Alternative {
        let kept = expressions
            .iter()
            .filter(|expression| !(is_node_path && *expression.key == *HOSTNAME));
        kept.map(spec_of).collect()
    };
    terms
        .filter(|term| !term.match_expressions.is_empty())
        .map(|term| place(&term.match_expressions))
        .collect()
}

fn place_of_term(term: &TopologySelectorTerm) -> Alternative {
    let expressions = term.match_label_expressions.iter();
    expressions
        .map(|expression| spec(&expression.key, Operator::In, &expression.values))
        .collect()
}

fn spec_of(expression: &NodeSelectorRequirement) -> RequirementSpec {
    // What is no operator admits any value upstream.
    let operator = expression.operator.parse().unwrap_or(Operator::Exists);
    spec(&expression.key, operator, &expression.values)
}

fn spec(key: &str, operator: Operator, values: &[Text]) -> RequirementSpec {
    let values: Vec<_> = values.iter().map(AsRef::as_ref).collect();
    RequirementSpec::new(key, operator, &values)
}

fn combinations(outer: &[Alternative], inner: &[Alternative]) -> Vec<Alternative> {
    let pairs = || {
        outer
            .iter()
            .flat_map(|first| inner.iter().map(move |second| (first, second)))
    };
    let joined = |(first, second): (&Alternative, &Alternative)| first.iter().chain(second).cloned().collect();
    let consistent: Vec<_> = pairs()
        .filter(|(first, second)| get_along(first, second))
        .map(joined)
        .collect();
    if consistent.is_empty() {
        pairs().map(joined).collect()
    } else {
        consistent
    }
}

fn get_along(first: &Alternative, second: &Alternative) -> bool {
    let mut vocabulary = Vocabulary::new();
    let first = Requirements::from_specs(first, &mut vocabulary);
    let second = Requirements::from_specs(second, &mut vocabulary);
    first.intersects(&second, &vocabulary)
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::demand::fixture::{object, pending, pod, snapshot};

    fn claim(name: &str, spec: Value) -> Value {
        object("v1", "PersistentVolumeClaim", "ns", name, json!({ "spec": spec }))
    }

    fn volume(name: &str, parts: Value) -> Value {
        object("v1", "PersistentVolume", "", name, json!({ "spec": parts }))
    }

    fn class(name: &str, zones: &[&[&str]]) -> Value {
        let term = |zones: &&[&str]| json!({ "matchLabelExpressions": [{ "key": "zone", "values": zones }] });
        let terms: Vec<_> = zones.iter().map(term).collect();
        let parts = json!({ "provisioner": "kubernetes.io/aws-ebs", "allowedTopologies": terms });
        object("storage.k8s.io/v1", "StorageClass", "", name, parts)
    }

    fn in_class(name: &str) -> Value {
        json!({ "storageClassName": name })
    }

    /// What the volumes of a pod with these claims ask for beside these objects.
    fn volumes(claims: &[&str], mut objects: Vec<Value>) -> PodVolumes {
        let volume = |name: &&str| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } });
        let volumes: Vec<_> = claims.iter().map(volume).collect();
        objects.push(pending("p", json!({ "spec": { "volumes": volumes } })));
        let snapshot = snapshot(objects);
        Storage(snapshot.objects()).volumes_of(pod(&snapshot, "p")).unwrap()
    }

    /// The zones of each alternative.
    fn zones(volumes: &PodVolumes) -> Vec<String> {
        let zones = |place: &Alternative| {
            place
                .iter()
                .map(|it| it.values.join(" "))
                .collect::<Vec<_>>()
                .join(" & ")
        };
        volumes.alternatives.iter().map(zones).collect()
    }

    fn pinned(terms: &[Value]) -> Value {
        let terms: Vec<_> = terms.iter().map(|term| json!({ "matchExpressions": term })).collect();
        json!({ "nodeSelectorTerms": terms })
    }

    #[test]
    fn terms_of_a_class_are_alternatives_and_volumes_combine_in_order() {
        let objects = vec![
            claim("a", in_class("wide")),
            claim("b", in_class("narrow")),
            class("wide", &[&["1", "2"], &["3"]]),
            class("narrow", &[&["2"], &["3"], &[]]),
        ];
        let volumes = volumes(&["a", "b"], objects);
        assert_eq!(zones(&volumes), ["1 2 & 2", "3 & 3"]);
        assert!(!volumes.is_unresolved);
    }

    #[test]
    fn contradicting_volumes_keep_all_combinations_so_that_the_pod_fails_for_them() {
        let objects = vec![
            claim("a", in_class("east")),
            claim("b", in_class("west")),
            class("east", &[&["1"], &["2"]]),
            class("west", &[&["3"]]),
        ];
        assert_eq!(zones(&volumes(&["a", "b"], objects)), ["1 & 3", "2 & 3"]);
    }

    #[test]
    fn host_name_of_a_node_path_is_ignored_and_leaves_the_pod_free() {
        let host = json!({ "key": HOSTNAME, "operator": "In", "values": ["n"] });
        let zone = json!({ "key": "zone", "operator": "In", "values": ["1"] });
        let required = pinned(&[json!([host, zone]), json!([host]), json!([])]);
        let local = json!({ "local": { "path": "/d" }, "nodeAffinity": { "required": required } });
        let remote = json!({ "nodeAffinity": { "required": required } });
        for (spec, expected) in [(local, vec!["1", ""]), (remote, vec!["n & 1", "n"])] {
            let objects = vec![claim("a", json!({ "volumeName": "pv" })), volume("pv", spec)];
            assert_eq!(zones(&volumes(&["a"], objects)), expected);
        }
    }

    #[test]
    fn lookup_that_fails_leaves_the_pod_without_alternatives() {
        let cases = [
            (vec![], Ok(Volumes::default())),
            (vec![claim("a", in_class("gone"))], Ok(Volumes::default())),
            (
                vec![claim("a", json!({ "volumeName": "pv" }))],
                Err("PersistentVolume \"pv\" not found".to_owned()),
            ),
        ];
        for (objects, attachments) in cases {
            let expected = PodVolumes {
                alternatives: vec![],
                is_unresolved: true,
                attachments,
            };
            assert_eq!(volumes(&["a"], objects), expected);
        }
    }

    #[test]
    fn claims_count_under_the_driver_that_attaches_them() {
        let objects = vec![
            claim("a", json!({ "volumeName": "csi" })),
            volume("csi", json!({ "csi": { "driver": "d", "volumeHandle": "h" } })),
            claim("b", json!({ "volumeName": "ebs" })),
            volume("ebs", json!({ "awsElasticBlockStore": { "volumeID": "v" } })),
            claim("c", json!({ "volumeName": "nfs" })),
            volume("nfs", json!({})),
            claim("d", in_class("ebs")),
            class("ebs", &[]),
            claim("e", json!({})),
        ];
        let mut expected = Volumes::default();
        expected.insert("d", "ns/a");
        expected.insert(EBS_DRIVER, "ns/b");
        expected.insert(EBS_DRIVER, "ns/d");
        assert_eq!(volumes(&["a", "b", "c", "d", "e"], objects).attachments, Ok(expected));
    }
}
