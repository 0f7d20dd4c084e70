//! What do the schemas look like to those who ask for them? OpenAPI v3, a document per group and version.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{
    Resource, builtin,
    kind::{Facts, Kinds},
};

/// The list of documents.
pub(crate) fn index(kinds: &Kinds) -> Value {
    let served: BTreeSet<(&str, &str)> = kinds
        .all()
        .flat_map(|(resource, facts)| {
            facts
                .versions
                .iter()
                .map(|version| (resource.group.as_str(), version.as_str()))
        })
        .collect();
    let mut paths = Map::new();
    for (group, version) in served {
        let at = folder(group, version);
        // Clients keep a document as long as its address stays, so the address tells of every change.
        let mark = fingerprint(&document(kinds, group, version).unwrap_or_default().to_string());
        let address = format!("/openapi/v3/{at}?hash={mark:016X}");
        paths.insert(at, json!({"serverRelativeURL": address}));
    }
    json!({"paths": paths})
}

fn folder(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

fn fingerprint(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    text.bytes().fold(0xCBF2_9CE4_8422_2325, step)
}

/// The document of a group and version; none if it has no resources.
pub(crate) fn document(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let mut schemas = BTreeMap::new();
    let mut paths = Map::new();
    for (resource, facts) in kinds.all() {
        if resource.group == group && facts.versions.iter().any(|known| known == version) {
            let named = describe(resource, facts, version, &mut schemas)?;
            serve(resource, facts, version, &named, &mut paths);
        }
    }
    (!paths.is_empty()).then(|| {
        json!({
            "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.36.0+dovetail"},
            "paths": paths, "components": {"schemas": schemas},
        })
    })
}

/// Adds the schema of a kind and all it refers to, and tells its name.
fn describe(
    resource: &Resource,
    facts: &Facts,
    version: &str,
    schemas: &mut BTreeMap<String, Value>,
) -> Option<String> {
    let (name, mut schema) = if let Some(definition) = &facts.definition {
        let mut reversed: Vec<&str> = resource.group.split('.').collect();
        reversed.reverse();
        let name = format!("{}.{version}.{}", reversed.join("."), facts.kind);
        (name, defined(&definition.version(version)?.text))
    } else {
        let name = builtin::type_name(resource)?;
        (name.to_owned(), builtin::shown(name)?)
    };
    schema["x-kubernetes-group-version-kind"] = json!([identity(resource, facts, version)]);
    let mut wanted = references(&schema);
    schemas.insert(name.clone(), schema);
    while let Some(next) = wanted.pop_first() {
        if schemas.contains_key(&next) {
            continue;
        }
        if let Some(schema) = builtin::shown(&next) {
            wanted.extend(references(&schema));
            schemas.insert(next, schema);
        }
    }
    Some(name)
}

/// The schema of a definition with what every object has.
fn defined(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let about = [
        (
            "apiVersion",
            json!({"type": "string", "description": "APIVersion defines the versioned schema of this representation of an object."}),
        ),
        (
            "kind",
            json!({"type": "string", "description": "Kind is a string value representing the REST resource this object represents."}),
        ),
        (
            "metadata",
            json!({"description": "Standard object's metadata.",
                "allOf": [{"$ref": format!("#/components/schemas/{}", builtin::metadata_name())}]}),
        ),
    ];
    if !schema.is_object() {
        schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    for (field, property) in about {
        crate::write::fields(&mut schema["properties"]).insert(field.to_owned(), property);
    }
    schema
}

fn identity(resource: &Resource, facts: &Facts, version: &str) -> Value {
    json!({"group": resource.group, "version": version, "kind": facts.kind})
}

/// The names of the types that a schema refers to.
fn references(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    gather(schema, &mut found);
    found
}

fn gather(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                found.insert(name.rsplit('/').next().unwrap_or_default().to_owned());
            }
            fields.values().for_each(|value| gather(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, found)),
        _ => {}
    }
}

/// Adds the paths of a kind. Clients look there for what a verb understands.
fn serve(resource: &Resource, facts: &Facts, version: &str, name: &str, paths: &mut Map<String, Value>) {
    let scope = if facts.is_namespaced {
        "namespaces/{namespace}/"
    } else {
        ""
    };
    let collection = format!("/{}/{scope}{}", folder(&resource.group, version), resource.plural);
    let schema = json!({"$ref": format!("#/components/schemas/{name}")});
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let options = [
        parameter("dryRun"),
        parameter("fieldManager"),
        parameter("fieldValidation"),
        json!({"name": "force", "in": "query", "schema": {"type": "boolean", "uniqueItems": true}}),
    ];
    let verb = |action: &str, media: &[&str]| {
        let content: Map<String, Value> = media
            .iter()
            .map(|media| ((*media).to_owned(), json!({"schema": schema})))
            .collect();
        let mut verb = json!({
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": identity(resource, facts, version),
        });
        if !content.is_empty() {
            verb["parameters"] = json!(options);
            verb["requestBody"] = json!({"content": content});
        }
        verb
    };
    let mut patches = vec![
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ];
    if facts.is_built_in {
        patches.push("application/strategic-merge-patch+json");
    }
    paths.insert(
        collection.clone(),
        json!({"get": verb("list", &[]), "post": verb("post", &["application/json"]),
            "delete": verb("deletecollection", &[])}),
    );
    paths.insert(
        format!("{collection}/{{name}}"),
        json!({"get": verb("get", &[]), "put": verb("put", &["application/json"]),
            "patch": verb("patch", &patches), "delete": verb("delete", &[])}),
    );
}
