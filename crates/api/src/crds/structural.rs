//! Turns what kube's derive generates into the schema Karpenter publishes.
//!
//! The derive marks every `Option` as nullable, names every type in a title, leaves out the root's boilerplate and
//! strips the types of int-or-string alternatives.
//! Nullable would change behaviour: the API server drops a null before defaulting only where the schema forbids null.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Whether users may leave out `spec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spec {
    /// The object is refused without it.
    Required,
    /// The object stands for an empty spec.
    Optional,
}

/// Completes a generated CRD.
pub fn finish(mut crd: CustomResourceDefinition, spec: Spec) -> CustomResourceDefinition {
    let names = &mut crd.spec.names;
    names.list_kind = Some(format!("{}List", names.kind));
    for schema in root_schemas(&mut crd) {
        walk(schema, &mut plain);
        add_type_meta(schema);
        schema.required = (spec == Spec::Required).then(|| vec!["spec".to_owned()]);
    }
    crd
}

/// The root schema of each version.
pub fn root_schemas(crd: &mut CustomResourceDefinition) -> impl Iterator<Item = &mut JSONSchemaProps> {
    crd.spec
        .versions
        .iter_mut()
        .filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut())
}

/// Applies `edit` to the field at a dotted path; `[]` stands for the items of a list. A path that leads nowhere is a
/// mistake in this crate and edits nothing, which the comparison with the published CRDs would show.
pub(super) fn edit(crd: &mut CustomResourceDefinition, path: &str, edit: impl Fn(&mut JSONSchemaProps)) {
    for root in root_schemas(crd) {
        let field = path
            .split('.')
            .try_fold(root, |schema, segment| match (segment, &mut schema.items) {
                ("[]", Some(JSONSchemaPropsOrArray::Schema(item))) => Some(item.as_mut()),
                ("[]", _) => None,
                (name, _) => schema.properties.as_mut()?.get_mut(name),
            });
        if let Some(field) = field {
            edit(field);
        }
    }
}

/// Applies `edit` to a schema and to everything below it.
pub fn walk(schema: &mut JSONSchemaProps, edit: &mut impl FnMut(&mut JSONSchemaProps)) {
    edit(schema);
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        walk(property, edit);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => walk(item, edit),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(|item| walk(item, edit)),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        walk(value, edit);
    }
}

fn plain(schema: &mut JSONSchemaProps) {
    schema.title = None;
    schema.nullable = None;
    schema.description = schema.description.take().map(|text| paragraphs(&text));
    if let Some(words) = &mut schema.enum_ {
        words.retain(|word| !word.0.is_null());
    }
    if let Some(required) = &mut schema.required {
        required.sort();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        schema.any_of = Some(vec![typed("integer"), typed("string")]);
    }
}

/// One line per paragraph: where our source breaks a line is no concern of `kubectl explain`.
fn paragraphs(text: &str) -> String {
    let paragraphs = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

fn typed(name: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        type_: Some(name.to_owned()),
        ..JSONSchemaProps::default()
    }
}

fn add_type_meta(root: &mut JSONSchemaProps) {
    let text = |description: &str| JSONSchemaProps {
        description: Some(description.to_owned()),
        ..typed("string")
    };
    let properties = root.properties.get_or_insert_default();
    properties.insert(
        "apiVersion".to_owned(),
        text("Group and version this object is written in."),
    );
    properties.insert("kind".to_owned(), text("Kind of this object."));
    properties.insert("metadata".to_owned(), typed("object"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_keep_paragraphs_and_lose_line_breaks() {
        assert_eq!(paragraphs("One\ntwo.\n\nThree\n four."), "One two.\n\nThree four.");
    }

    #[test]
    fn every_field_users_write_says_what_it_is() {
        let mut silent = vec![];
        for mut crd in crate::crds::installation(&crate::provider::Provider::ALL) {
            let name = crd.spec.names.kind.clone();
            for root in root_schemas(&mut crd) {
                for (field, schema) in root
                    .properties
                    .iter()
                    .flatten()
                    .filter(|(field, _)| *field != "metadata")
                {
                    collect_silent(schema, &format!("{name}.{field}"), &mut silent);
                }
            }
        }
        assert_eq!(silent, Vec::<String>::new());
    }

    fn collect_silent(schema: &JSONSchemaProps, path: &str, silent: &mut Vec<String>) {
        if schema.description.as_ref().is_none_or(|text| text.trim().is_empty()) {
            silent.push(path.to_owned());
        }
        let below = match &schema.items {
            Some(JSONSchemaPropsOrArray::Schema(item)) => &item.properties,
            _ => &schema.properties,
        };
        for (field, schema) in below.iter().flatten() {
            collect_silent(schema, &format!("{path}.{field}"), silent);
        }
    }
}
