//! The CustomResourceDefinitions of a Dovetail installation, generated from the types of this crate.
//!
//! The types are the only source. What neither schemars nor kube's derive can say is added in [`structural`]
//! (the shape the API server wants).

pub mod structural;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use self::structural::Spec;
use crate::{
    aws::EC2NodeClass,
    azure::{self, AKSNodeClass},
    kwok::KWOKNodeClass,
    provider::Provider,
};

/// The CRDs of an installation that serves `providers`: the core kinds with these providers' label rules, and their
/// node classes.
pub fn installation(providers: &[Provider]) -> Vec<CustomResourceDefinition> {
    providers.iter().copied().flat_map(node_classes).collect()
}

fn node_classes(provider: Provider) -> Vec<CustomResourceDefinition> {
    match provider {
        Provider::Aws => vec![generate::<EC2NodeClass>(Spec::Optional)],
        Provider::Azure => vec![azure::serve_v1alpha2(generate::<AKSNodeClass>(Spec::Optional))],
        Provider::Kwok => vec![generate::<KWOKNodeClass>(Spec::Optional)],
    }
}

fn generate<K: CustomResourceExt>(spec: Spec) -> CustomResourceDefinition {
    structural::finish(K::crd(), spec)
}
