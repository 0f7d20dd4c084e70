//! Selector terms as EC2's filters.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::Filter;

/// One of the values.
pub(crate) fn filter(name: &str, values: Vec<String>) -> Filter {
    Filter::builder().name(name).set_values(Some(values)).build()
}

/// Every tag has its value; `*` asks only that it is there.
pub(crate) fn tag_filters(tags: Option<&BTreeMap<String, String>>) -> Vec<Filter> {
    let one = |(key, value): (&String, &String)| match value.as_str() {
        "*" => filter("tag-key", vec![key.clone()]),
        value => filter(&format!("tag:{key}"), vec![value.to_owned()]),
    };
    tags.into_iter().flatten().map(one).collect()
}

/// Reads a value that a term names outright.
pub(crate) type Named<T> = for<'a> fn(&'a T) -> Option<&'a String>;
/// Reads the tags of a term.
pub(crate) type Tags<T> = for<'a> fn(&'a T) -> Option<&'a BTreeMap<String, String>>;

/// A set of filters for each term that selects by tags, and one for all terms that name a value outright.
pub(crate) fn filter_sets<T>(terms: &[T], named: &[(&str, Named<T>)], tags: Tags<T>) -> Vec<Vec<Filter>> {
    let is_named = |term: &T| named.iter().any(|(_, value)| value(term).is_some());
    let by_tags = terms.iter().filter(|term| !is_named(term));
    let mut sets: Vec<Vec<Filter>> = by_tags.map(|term| tag_filters(tags(term))).collect();
    for (at, (name, value)) in named.iter().enumerate() {
        let earlier = |term: &T| named.iter().take(at).any(|(_, value)| value(term).is_some());
        let meant = terms.iter().filter(|term| !earlier(term));
        let values: Vec<String> = meant.filter_map(|term| value(term)).cloned().collect();
        if !values.is_empty() {
            sets.push(vec![filter(name, values)]);
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use api::aws::SecurityGroupSelectorTerm;
    use serde_json::json;

    use super::*;

    fn sets(terms: serde_json::Value) -> Vec<Vec<(String, Vec<String>)>> {
        let terms: Vec<SecurityGroupSelectorTerm> = serde_json::from_value(terms).unwrap();
        let named: [(&str, Named<SecurityGroupSelectorTerm>); 2] = [
            ("group-id", |term| term.id.as_ref()),
            ("group-name", |term| term.name.as_ref()),
        ];
        let sets = filter_sets(&terms, &named, |term| term.tags.as_ref());
        let pair = |it: &Filter| (it.name().unwrap().to_owned(), it.values().to_vec());
        sets.iter().map(|set| set.iter().map(pair).collect()).collect()
    }

    fn owned(name: &str, values: &[&str]) -> (String, Vec<String>) {
        (
            name.to_owned(),
            values.iter().map(|value| (*value).to_owned()).collect(),
        )
    }

    #[test]
    fn tags_of_a_term_are_all_asked_for_and_terms_are_alternatives() {
        let found = sets(json!([{"tags": {"a": "1", "b": "*"}}, {"tags": {"c": "2"}}]));
        let first = vec![owned("tag:a", &["1"]), owned("tag-key", &["b"])];
        assert_eq!(found, [first, vec![owned("tag:c", &["2"])]]);
    }

    #[test]
    fn ids_are_asked_for_together_and_so_are_names() {
        let found = sets(json!([{"id": "sg-1"}, {"name": "a"}, {"id": "sg-2"}, {"tags": {"a": "1"}}, {"name": "b"}]));
        let expected = [
            vec![owned("tag:a", &["1"])],
            vec![owned("group-id", &["sg-1", "sg-2"])],
            vec![owned("group-name", &["a", "b"])],
        ];
        assert_eq!(found, expected);
    }
}
