//! The older name under which `AKSNodeClass` is served.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};

/// Adds the deprecated version `v1alpha2` to the CRD. Its schema is that of the stored version, so the API server
/// converts between them by changing the version's name only.
pub(crate) fn serve_v1alpha2(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let deprecated: Vec<_> = crd.spec.versions.iter().map(deprecate).collect();
    crd.spec.versions.splice(..0, deprecated);
    crd
}

fn deprecate(version: &CustomResourceDefinitionVersion) -> CustomResourceDefinitionVersion {
    CustomResourceDefinitionVersion {
        name: "v1alpha2".to_owned(),
        deprecated: Some(true),
        deprecation_warning: Some("use v1beta1.AKSNodeClass instead".to_owned()),
        storage: false,
        ..version.clone()
    }
}
