//! Where in a NodePool does a path lead? Read by the schema of its CRD: a field that nobody has is refused rather than set
//! to no effect, and a key of a map may have dots in it.

use serde_json::Value;

/// A path that leads nowhere: what was met last, and what there is instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Astray {
    /// The word that nobody knows.
    pub(crate) word: String,
    /// What it was looked for in.
    pub(crate) within: String,
    /// What there is; empty where nothing can be.
    pub(crate) known: Vec<String>,
}

/// The steps of a path such as `spec.limits.nvidia.com/gpu` or `spec.disruption.budgets[0].nodes`.
pub(crate) fn steps(path: &str) -> Result<Vec<String>, Astray> {
    let schema = schema();
    let mut place = &schema;
    let mut steps: Vec<String> = Vec::new();
    let plain = path.replace('[', ".").replace(']', "");
    let mut rest = Some(plain.as_str());
    while let Some(path) = rest {
        let fields = place["properties"].as_object();
        // A map takes any key, and keys of labels and resources have dots.
        if fields.is_none() && place["additionalProperties"].is_object() {
            steps.push(path.to_owned());
            return Ok(steps);
        }
        let (word, after) = path
            .split_once('.')
            .map_or((path, None), |(word, after)| (word, Some(after)));
        let next = match fields {
            Some(fields) => fields.get(word),
            None => Some(&place["items"]).filter(|items| items.is_object() && word.parse::<usize>().is_ok()),
        };
        let Some(next) = next else {
            return Err(Astray {
                word: word.to_owned(),
                within: steps.join("."),
                known: fields
                    .map(|fields| fields.keys().cloned().collect())
                    .unwrap_or_default(),
            });
        };
        steps.push(word.to_owned());
        (place, rest) = (next, after);
    }
    Ok(steps)
}

/// What a NodePool may have, as its CRD says it.
fn schema() -> Value {
    let definitions = api::crds::installation(&[]);
    let pool = definitions.into_iter().find(|one| one.spec.names.kind == "NodePool");
    let version = pool.and_then(|pool| pool.spec.versions.into_iter().next());
    let schema = version
        .and_then(|version| version.schema)
        .and_then(|schema| schema.open_api_v3_schema);
    serde_json::to_value(schema).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_by_the_schema_so_keys_of_maps_may_have_dots() {
        let read = |path: &str| steps(path).unwrap().join(" ");
        assert_eq!(read("spec.limits.nvidia.com/gpu"), "spec limits nvidia.com/gpu");
        assert_eq!(
            read("spec.template.metadata.labels.a.b/c"),
            "spec template metadata labels a.b/c"
        );
        assert_eq!(
            read("spec.disruption.budgets[0].nodes"),
            "spec disruption budgets 0 nodes"
        );
        assert_eq!(
            read("spec.disruption.budgets.0.nodes"),
            "spec disruption budgets 0 nodes"
        );
    }

    #[test]
    fn a_field_that_nobody_has_is_told_with_those_there_are() {
        let astray = steps("spec.limts.cpu").unwrap_err();
        assert_eq!((astray.word.as_str(), astray.within.as_str()), ("limts", "spec"));
        assert!(astray.known.contains(&"limits".to_owned()), "{astray:?}");
        assert_eq!(steps("spec.weight.cpu").unwrap_err().known, Vec::<String>::new());
        assert_eq!(steps("spec.disruption.budgets.nodes").unwrap_err().word, "nodes");
    }
}
