//! Would the API server accept an object? What definitions say of it, without a server.

use serde_json::Value;

use crate::{
    definition::{Definition, Version},
    schema::Problem,
};

/// Definitions to hold objects to.
#[derive(Debug)]
pub struct Admission {
    definitions: Vec<Definition>,
}

/// Something the API server would refuse an object for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// The field; empty for the object as a whole.
    pub field: String,
    /// What is wrong with it, in the API server's words.
    pub text: String,
}

/// What a problem says of a field when it is about all of them.
const NO_FIELD: &str = "<nil>";

impl Admission {
    /// Holds objects to CustomResourceDefinitions.
    pub fn new(definitions: impl IntoIterator<Item = Value>) -> Self {
        let definitions = definitions.into_iter().map(|definition| Definition::read(&definition));
        Self {
            definitions: definitions.collect(),
        }
    }

    /// An object with what its schema says by default; as it is where no definition is of its kind and version.
    pub fn completed(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if let Some(version) = self.version(&object) {
            version.schema.complete(&mut object);
        }
        object
    }

    fn version(&self, object: &Value) -> Option<&Version> {
        let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
        let is_its = |definition: &&Definition| {
            definition.resource.group == group && Some(definition.kind.as_str()) == object["kind"].as_str()
        };
        self.definitions.iter().find(is_its)?.version(version)
    }

    /// Everything a new object would be refused for; nothing where no definition is of its kind and version. Fields
    /// that no schema knows count, as they do for `kubectl apply`.
    pub fn objections(&self, object: &Value) -> Vec<Objection> {
        let Some(version) = self.version(object) else {
            return Vec::new();
        };
        let mut object = object.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        let unknown = version.schema.prune(&mut object).into_iter().map(|field| Objection {
            text: format!("unknown field \"{field}\""),
            field,
        });
        let unknown: Vec<_> = unknown.collect();
        version.schema.complete(&mut object);
        let problems = version.schema.check(&object, None, false, Vec::new());
        let is_own = |problem: &Problem| problem.field != NO_FIELD;
        let refused = problems.into_iter().filter(is_own).map(|problem| Objection {
            text: problem.body(),
            field: problem.field,
        });
        unknown.into_iter().chain(refused).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn admission() -> Admission {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3", "message": "too large"}]},
        }}}});
        let definition = json!({"spec": {"group": "g.io", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}]}});
        Admission::new([definition])
    }

    #[test]
    fn an_object_is_held_to_types_rules_and_known_fields() {
        let thing = |version: &str, spec: Value| {
            let object = json!({"apiVersion": version, "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
            let objections = admission().objections(&object);
            objections.into_iter().map(|one| one.field).collect::<Vec<_>>()
        };
        assert_eq!(thing("g.io/v1", json!({"size": 2})), [""; 0]);
        assert_eq!(thing("g.io/v1", json!({"size": 3})), ["spec.size"]);
        assert_eq!(thing("g.io/v1", json!({"size": "3"})), ["spec.size"]);
        assert_eq!(thing("g.io/v1", json!({"sice": 2})), ["spec.sice"]);
        assert_eq!(
            thing("g.io/v2", json!({"size": 3})),
            [""; 0],
            "another version is not held to this one"
        );
    }
}
