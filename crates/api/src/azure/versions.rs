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

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt;

    use super::*;
    use crate::azure::AKSNodeClass;

    #[test]
    fn v1alpha2_differs_from_the_stored_version_in_name_and_warning_only() {
        let crd = serve_v1alpha2(AKSNodeClass::crd());
        let [older, stored] = crd.spec.versions.as_slice() else {
            panic!("two versions, not {:?}", crd.spec.versions)
        };
        let expected = CustomResourceDefinitionVersion {
            name: "v1alpha2".to_owned(),
            deprecated: Some(true),
            deprecation_warning: Some("use v1beta1.AKSNodeClass instead".to_owned()),
            storage: false,
            ..stored.clone()
        };
        assert_eq!(*older, expected);
        assert_eq!(
            (stored.name.as_str(), stored.storage, stored.deprecated),
            ("v1beta1", true, None)
        );
    }
}
