//! Where in an object is a value? Paths as the API server writes them: `spec.taints[0].key`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Key(String),
    Index(usize),
}

/// A place in an object. The order puts a parent before its children and item 9 before item 10, so that changes made in
/// this order build on each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Step>);

impl Path {
    /// The same path with a leading `$` replaced by `prefix`.
    #[must_use]
    pub fn below(&self, prefix: &Self) -> Self {
        match self.0.split_first() {
            Some((Step::Key(key), rest)) if key == "$" => Self([prefix.0.as_slice(), rest].concat()),
            _ => self.clone(),
        }
    }

    /// Whether the path lies in `status`, which has a subresource of its own.
    pub fn is_status(&self) -> bool {
        matches!(self.0.first(), Some(Step::Key(key)) if key == "status")
    }

    /// The value at this place, `null` when there is none.
    pub fn get<'a>(&self, object: &'a Value) -> &'a Value {
        const NOTHING: &Value = &Value::Null;
        self.0
            .iter()
            .try_fold(object, |value, step| step.get(value))
            .unwrap_or(NOTHING)
    }

    /// Puts `value` here, making the maps and list items on the way. A list grows by one item at a time.
    pub fn put(&self, object: &mut Value, value: Value) -> Result<()> {
        let mut place = object;
        for step in &self.0 {
            place = step.make(place).with_context(|| format!("set {self}"))?;
        }
        *place = value;
        Ok(())
    }

    /// Takes away what is here; that nothing is here is an error, since the case then does not say what it means.
    pub fn remove(&self, object: &mut Value) -> Result<()> {
        let Some((last, way)) = self.0.split_last() else {
            bail!("an empty path names nothing")
        };
        let parent = way.iter().try_fold(object, |value, step| step.get_mut(value));
        let removed = match (parent, last) {
            (Some(Value::Object(map)), Step::Key(key)) => map.remove(key),
            (Some(Value::Array(list)), Step::Index(at)) if *at < list.len() => Some(list.remove(*at)),
            _ => None,
        };
        removed
            .map(drop)
            .with_context(|| format!("remove {self}: there is nothing"))
    }
}

impl Step {
    fn get<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Key(key) => value.get(key),
            Self::Index(at) => value.get(at),
        }
    }

    fn get_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        match self {
            Self::Key(key) => value.get_mut(key),
            Self::Index(at) => value.get_mut(at),
        }
    }

    fn make<'a>(&self, value: &'a mut Value) -> Result<&'a mut Value> {
        if value.is_null() {
            *value = match self {
                Self::Key(_) => Value::Object(serde_json::Map::new()),
                Self::Index(_) => Value::Array(Vec::new()),
            };
        }
        match self {
            Self::Key(key) => match value {
                Value::Object(map) => Ok(map.entry(key).or_insert(Value::Null)),
                found => bail!("no room for the key {key} in {found}"),
            },
            Self::Index(at) => match value {
                Value::Array(list) => {
                    ensure!(*at <= list.len(), "no room for item {at} in a list of {}", list.len());
                    if *at == list.len() {
                        list.push(Value::Null);
                    }
                    Ok(&mut list[*at])
                }
                found => bail!("no room for item {at} in {found}"),
            },
        }
    }
}

impl FromStr for Path {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let mut pieces = part.split('[');
            match pieces.next() {
                Some(key) if !key.is_empty() => steps.push(Step::Key(key.to_owned())),
                _ => bail!("{text:?} is not a path: a part between dots is empty"),
            }
            for piece in pieces {
                let at = piece.strip_suffix(']').and_then(|at| at.parse().ok());
                steps.push(Step::Index(at.with_context(|| {
                    format!("{text:?} is not a path: [{piece} is not an index")
                })?));
            }
        }
        Ok(Self(steps))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if at == 0 => write!(f, "{key}")?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> Path {
        text.parse().unwrap()
    }

    #[test]
    fn value_put_at_a_path_makes_what_is_missing_on_the_way() {
        let mut object = json!({"spec": {"kept": 1}});
        path("spec.taints[0].key").put(&mut object, json!("a")).unwrap();
        path("spec.taints[1]").put(&mut object, json!({"key": "b"})).unwrap();
        assert_eq!(
            object,
            json!({"spec": {"kept": 1, "taints": [{"key": "a"}, {"key": "b"}]}})
        );
        assert_eq!(path("spec.taints[1].key").get(&object), "b");
        assert_eq!(path("spec.taints[2].key").get(&object), &Value::Null);
    }

    #[test]
    fn list_does_not_grow_by_more_than_one() {
        let error = path("list[1]").put(&mut json!({"list": []}), json!(1)).unwrap_err();
        assert_eq!(format!("{error:#}"), "set list[1]: no room for item 1 in a list of 0");
    }

    #[test]
    fn removing_what_is_not_there_is_an_error() {
        let mut object = json!({"spec": {"taints": [{"key": "a", "value": "b"}]}});
        path("spec.taints[0].key").remove(&mut object).unwrap();
        assert_eq!(object, json!({"spec": {"taints": [{"value": "b"}]}}));
        assert_eq!(
            path("spec.weight").remove(&mut object).unwrap_err().to_string(),
            "remove spec.weight: there is nothing"
        );
    }

    #[test]
    fn paths_sort_parents_first_and_items_by_number() {
        let mut paths = ["a.b[10]", "a.b[9]", "a.b", "$.x"].map(path);
        paths.sort();
        assert_eq!(paths.map(|p| p.to_string()), ["$.x", "a.b", "a.b[9]", "a.b[10]"]);
    }

    #[test]
    fn dollar_stands_for_the_prefix() {
        let prefix = path("spec.template.spec");
        assert_eq!(
            path("$.taints[0]").below(&prefix).to_string(),
            "spec.template.spec.taints[0]"
        );
        assert_eq!(path("spec.weight").below(&prefix).to_string(), "spec.weight");
    }
}
