//! What does the page know, and what of it has changed? A document of objects by section and key, and its differences.

use std::collections::BTreeMap;

use serde::Serialize;

/// The objects of a section by their keys, each as JSON.
type Section = BTreeMap<String, String>;

/// What the page knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    sections: BTreeMap<&'static str, Section>,
}

/// An object as JSON. What cannot be written down, such as a map whose keys are no text, is not there.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

impl Document {
    /// Puts an object in its place.
    pub fn put(&mut self, section: &'static str, key: &str, value: &impl Serialize) {
        let objects = self.sections.entry(section).or_default();
        objects.insert(key.to_owned(), json(value));
    }

    /// A section is there, even if nothing is in it.
    pub fn open(&mut self, section: &'static str) {
        self.sections.entry(section).or_default();
    }

    /// Takes over the sections of another; those of the same name are replaced.
    pub fn take(&mut self, other: &Self) {
        for (name, section) in &other.sections {
            self.sections.insert(name, section.clone());
        }
    }

    /// An object as JSON.
    pub fn get(&self, section: &str, key: &str) -> Option<&str> {
        self.sections.get(section)?.get(key).map(String::as_str)
    }

    /// How many objects a section has.
    pub fn len(&self, section: &str) -> usize {
        self.sections.get(section).map_or(0, BTreeMap::len)
    }

    /// All of it, as one JSON object.
    pub fn text(&self) -> String {
        object(self.sections.iter().map(|(name, section)| (*name, raw(section))))
    }

    /// What must be set and dropped to come here from an earlier document; none when nothing must.
    pub fn delta_from(&self, before: &Self) -> Option<String> {
        let nothing = Section::new();
        let (mut set, mut drop) = (Vec::new(), Vec::new());
        for (name, objects) in &self.sections {
            let old = before.sections.get(name).unwrap_or(&nothing);
            let changed = objects.iter().filter(|(key, text)| old.get(*key) != Some(text));
            let changed: Vec<(&str, String)> = changed.map(|(key, text)| (key.as_str(), text.clone())).collect();
            if !changed.is_empty() {
                set.push((*name, object(changed.into_iter())));
            }
            let gone: Vec<&String> = old.keys().filter(|key| !objects.contains_key(*key)).collect();
            if !gone.is_empty() {
                drop.push((*name, json(&gone)));
            }
        }
        if set.is_empty() && drop.is_empty() {
            return None;
        }
        let parts = [("set", object(set.into_iter())), ("drop", object(drop.into_iter()))];
        Some(object(parts.into_iter()))
    }
}

fn raw(section: &Section) -> String {
    object(section.iter().map(|(key, text)| (key.as_str(), text.clone())))
}

/// A JSON object of members that are JSON already.
fn object<'a>(members: impl Iterator<Item = (&'a str, String)>) -> String {
    let mut text = String::from("{");
    for (key, value) in members {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&json(&key));
        text.push(':');
        text.push_str(&value);
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn document(nodes: &[(&str, u32)]) -> Document {
        let mut document = Document::default();
        document.open("nodes");
        for (name, cpu) in nodes {
            document.put("nodes", name, &json!({"cpu": cpu}));
        }
        document
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    /// What a page does with a delta.
    fn applied(mut whole: Value, delta: &Value) -> Value {
        for (section, objects) in delta["set"].as_object().unwrap() {
            for (key, object) in objects.as_object().unwrap() {
                whole[section][key] = object.clone();
            }
        }
        for (section, keys) in delta["drop"].as_object().unwrap() {
            for key in keys.as_array().unwrap() {
                whole[section].as_object_mut().unwrap().remove(key.as_str().unwrap());
            }
        }
        whole
    }

    #[test]
    fn a_delta_names_only_what_changed_and_what_is_gone() {
        let (before, after) = (document(&[("a", 1), ("b", 1)]), document(&[("a", 1), ("c", 2)]));
        let delta = parsed(&after.delta_from(&before).unwrap());
        assert_eq!(
            delta,
            json!({"set": {"nodes": {"c": {"cpu": 2}}}, "drop": {"nodes": ["b"]}})
        );
        assert_eq!(after.delta_from(&after), None);
    }

    #[test]
    fn whoever_applies_every_delta_has_the_document() {
        let steps = [
            document(&[]),
            document(&[("a", 1), ("a\"quoted\"", 3)]),
            document(&[("a", 2)]),
            document(&[("b", 2), ("é", 9)]),
        ];
        let mut page = parsed(&steps[0].text());
        for pair in steps.windows(2) {
            let delta = pair[1].delta_from(&pair[0]).unwrap();
            page = applied(page, &parsed(&delta));
            assert_eq!(page, parsed(&pair[1].text()));
        }
    }

    #[test]
    fn sections_of_another_replace_those_of_the_same_name() {
        let mut whole = document(&[("a", 1)]);
        whole.put("now", "", &json!({"nodes": 1}));
        whole.take(&document(&[("b", 2)]));
        assert_eq!((whole.get("nodes", "a"), whole.len("nodes")), (None, 1));
        assert_eq!(whole.get("now", ""), Some("{\"nodes\":1}"));
    }
}
