//! Turns what kube's derive generates into the schema Karpenter publishes.
//!
//! The derive marks every `Option` as nullable, names every type in a title and leaves out the root's boilerplate.
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
    if let Some(words) = &mut schema.enum_ {
        words.retain(|word| !word.0.is_null());
    }
    if let Some(required) = &mut schema.required {
        required.sort();
    }
}

fn add_type_meta(root: &mut JSONSchemaProps) {
    let text = |description: &str| JSONSchemaProps {
        description: Some(description.to_owned()),
        type_: Some("string".to_owned()),
        ..JSONSchemaProps::default()
    };
    let properties = root.properties.get_or_insert_default();
    properties.insert(
        "apiVersion".to_owned(),
        text("Group and version this object is written in."),
    );
    properties.insert("kind".to_owned(), text("Kind of this object."));
    properties.insert(
        "metadata".to_owned(),
        JSONSchemaProps {
            type_: Some("object".to_owned()),
            ..JSONSchemaProps::default()
        },
    );
}
