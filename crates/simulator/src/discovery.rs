//! What does the server tell of itself? Its version, its health, its groups and the resources in them.

use serde_json::{Value, json};

use crate::{
    Resource,
    kind::{Facts, Kinds},
    openapi,
};

/// The version of Kubernetes whose API this is.
const MINOR: u32 = 36;

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Kinds that are asked and never stored: group, version, plural, kind.
pub(crate) const REVIEWS: &[(&str, &str, &str, &str)] = &[
    ("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview"),
    (
        "authorization.k8s.io",
        "v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
    ),
    (
        "authorization.k8s.io",
        "v1",
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
    ),
    (
        "authorization.k8s.io",
        "v1",
        "subjectaccessreviews",
        "SubjectAccessReview",
    ),
];

/// A page that is none of a resource, and its media type.
pub(crate) enum Page {
    Json(Value, &'static str),
    Text(&'static str),
}

const JSON: &str = "application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The page at a path, if there is one.
pub(crate) fn page(kinds: &Kinds, path: &str, accept: &str) -> Option<Page> {
    let aggregated = accept.contains("g=apidiscovery.k8s.io") && accept.contains("v=v2;");
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let json = |value: Value| Some(Page::Json(value, JSON));
    match segments.as_slice() {
        ["version"] => json(version()),
        ["healthz" | "readyz" | "livez", ..] => Some(Page::Text("ok")),
        [] => json(json!({"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]})),
        ["api"] if aggregated => Some(Page::Json(aggregate(kinds, true), AGGREGATED)),
        ["api"] => json(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        ["apis"] if aggregated => Some(Page::Json(aggregate(kinds, false), AGGREGATED)),
        ["apis"] => {
            let groups: Vec<Value> = groups(kinds).iter().map(group).collect();
            json(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["api", version] => resources(kinds, "", version).and_then(json),
        ["apis", name] => {
            let known = groups(kinds);
            let found = known.iter().find(|known| known.name == *name)?;
            let mut page = group(found);
            page["kind"] = json!("APIGroup");
            page["apiVersion"] = json!("v1");
            json(page)
        }
        ["apis", group, version] => resources(kinds, group, version).and_then(json),
        ["openapi", "v3"] => json(openapi::index(kinds)),
        ["openapi", "v3", "api", version] => openapi::document(kinds, "", version).and_then(json),
        ["openapi", "v3", "apis", group, version] => openapi::document(kinds, group, version).and_then(json),
        _ => None,
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR.to_string(), "gitVersion": format!("v1.{MINOR}.0+dovetail"),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc", "platform": "simulator",
    })
}

/// A group with its versions, the preferred one first.
struct Group {
    name: String,
    versions: Vec<String>,
}

/// All groups but the core one.
fn groups(kinds: &Kinds) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut add = |name: &str, version: &str| {
        let at = groups.iter().position(|group| group.name == name);
        let at = at.unwrap_or_else(|| {
            groups.push(Group {
                name: name.to_owned(),
                versions: Vec::new(),
            });
            groups.len() - 1
        });
        if !groups[at].versions.iter().any(|known| known == version) {
            groups[at].versions.push(version.to_owned());
        }
    };
    for (resource, facts) in kinds.all().filter(|(resource, _)| !resource.group.is_empty()) {
        for version in &facts.versions {
            add(&resource.group, version);
        }
    }
    for (group, version, ..) in REVIEWS {
        add(group, version);
    }
    // Built-in groups first: clients take the first group that has a name.
    groups.sort_by_key(|group| {
        (
            group.name.contains('.') && !group.name.ends_with(".k8s.io"),
            group.name.clone(),
        )
    });
    groups
}

fn group(group: &Group) -> Value {
    let version = |version: &String| json!({"groupVersion": format!("{}/{version}", group.name), "version": version});
    let versions: Vec<Value> = group.versions.iter().map(version).collect();
    json!({"name": group.name, "versions": versions, "preferredVersion": versions.first()})
}

/// A resource or subresource as the lists show it.
struct Shown<'a> {
    plural: &'a str,
    kind: &'a str,
    is_namespaced: bool,
    verbs: &'a [&'a str],
    facts: Option<&'a Facts>,
    parts: Vec<Part>,
}

/// A subresource: its name, group, version and kind if they are not the resource's, and verbs.
struct Part {
    name: &'static str,
    kind: Option<(&'static str, &'static str, &'static str)>,
    verbs: &'static [&'static str],
}

fn shown<'a>(kinds: &'a Kinds, group: &str, version: &str) -> Vec<Shown<'a>> {
    let is_here = |resource: &Resource, facts: &Facts| {
        resource.group == group && facts.versions.iter().any(|known| known == version)
    };
    let mut all: Vec<Shown<'a>> = kinds
        .all()
        .filter(|(resource, facts)| is_here(resource, facts))
        .map(|(resource, facts)| Shown {
            plural: &resource.plural,
            kind: &facts.kind,
            is_namespaced: facts.is_namespaced,
            verbs: &VERBS,
            facts: Some(facts),
            parts: parts(resource, facts, version),
        })
        .collect();
    let reviews = REVIEWS.iter().filter(|review| (review.0, review.1) == (group, version));
    all.extend(reviews.map(|(_, _, plural, kind)| Shown {
        plural,
        kind,
        is_namespaced: false,
        verbs: &["create"],
        facts: None,
        parts: Vec::new(),
    }));
    all
}

fn parts(resource: &Resource, facts: &Facts, version: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |name, kind, verbs| parts.push(Part { name, kind, verbs });
    if *resource == Resource::new("", "pods") {
        add("binding", Some(("", "v1", "Binding")), &["create"]);
        add("eviction", Some(("policy", "v1", "Eviction")), &["create"]);
        add("log", None, &["get"]);
    }
    let defined = facts
        .definition
        .as_ref()
        .and_then(|definition| definition.version(version));
    let (has_scale, has_status) = match defined {
        Some(version) => (version.scale.is_some(), version.has_status),
        None => (facts.has_scale, facts.has_status),
    };
    if has_scale {
        add(
            "scale",
            Some(("autoscaling", "v1", "Scale")),
            &["get", "patch", "update"],
        );
    }
    if has_status {
        add("status", None, &["get", "patch", "update"]);
    }
    parts
}

/// The resources of a version, in the list that every client understands.
fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for shown in shown(kinds, group, version) {
        let singular = shown.facts.map(|facts| facts.singular.clone());
        let mut one = json!({
            "name": shown.plural, "singularName": singular.unwrap_or_else(|| shown.kind.to_lowercase()),
            "namespaced": shown.is_namespaced, "kind": shown.kind, "verbs": shown.verbs,
        });
        names(&mut one, shown.facts);
        list.push(one);
        for part in &shown.parts {
            let mut one = json!({
                "name": format!("{}/{}", shown.plural, part.name), "singularName": "",
                "namespaced": shown.is_namespaced, "kind": shown.kind, "verbs": part.verbs,
            });
            if let Some((group, version, kind)) = part.kind {
                one["kind"] = json!(kind);
                if !group.is_empty() {
                    one["group"] = json!(group);
                    one["version"] = json!(version);
                }
            }
            list.push(one);
        }
    }
    let named = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    (!list.is_empty())
        .then(|| json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": named, "resources": list}))
}

fn names(one: &mut Value, facts: Option<&Facts>) {
    let Some(facts) = facts else { return };
    if !facts.short_names.is_empty() {
        one["shortNames"] = json!(facts.short_names);
    }
    if !facts.categories.is_empty() {
        one["categories"] = json!(facts.categories);
    }
}

/// Everything at once, as newer clients ask for it.
fn aggregate(kinds: &Kinds, is_core: bool) -> Value {
    let groups = if is_core {
        vec![Group {
            name: String::new(),
            versions: vec!["v1".to_owned()],
        }]
    } else {
        groups(kinds)
    };
    let items: Vec<Value> = groups
        .iter()
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let all: Vec<Value> = shown(kinds, &group.name, version)
                        .iter()
                        .map(|shown| aggregated(shown, &group.name, version))
                        .collect();
                    json!({"version": version, "freshness": "Current", "resources": all})
                })
                .collect();
            json!({"metadata": {"name": group.name}, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated(shown: &Shown<'_>, group: &str, version: &str) -> Value {
    let singular = shown.facts.map(|facts| facts.singular.clone());
    let mut one = json!({
        "resource": shown.plural, "singularResource": singular.unwrap_or_else(|| shown.kind.to_lowercase()),
        "scope": if shown.is_namespaced { "Namespaced" } else { "Cluster" },
        "responseKind": {"group": group, "version": version, "kind": shown.kind},
        "verbs": shown.verbs,
    });
    names(&mut one, shown.facts);
    let parts: Vec<Value> = shown
        .parts
        .iter()
        .map(|part| {
            let (group, version, kind) = part.kind.unwrap_or((group, version, shown.kind));
            json!({"subresource": part.name, "verbs": part.verbs,
                "responseKind": {"group": group, "version": version, "kind": kind}})
        })
        .collect();
    if !parts.is_empty() {
        one["subresources"] = json!(parts);
    }
    one
}
