//! The CustomResourceDefinitions of a Dovetail installation, generated from the types of this crate.
//!
//! The types are the only source. What neither schemars nor kube's derive can say is added in [`structural`]
//! (the shape the API server wants) and `label_rules` (label keys users may not set, which depend on the provider).

mod label_rules;
pub mod structural;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use self::{label_rules::Site, structural::Spec};
use crate::{
    autoscaling::CapacityBuffer,
    aws::EC2NodeClass,
    azure::{self, AKSNodeClass},
    karpenter::{NodeClaim, NodeOverlay, NodePool},
    kwok::KWOKNodeClass,
    provider::Provider,
};

/// The CRDs of an installation that serves `providers`, by name: the core kinds with the label rules of these
/// providers, and their node classes. Without a provider, the plain core kinds.
pub fn installation(providers: &[Provider]) -> Vec<CustomResourceDefinition> {
    let mut crds = core(providers);
    crds.extend(providers.iter().copied().flat_map(node_classes));
    crds.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    crds
}

fn core(providers: &[Provider]) -> Vec<CustomResourceDefinition> {
    vec![
        nodepool(providers),
        nodeclaim(providers),
        nodeoverlay(providers),
        generate::<CapacityBuffer>(Spec::Required),
    ]
}

fn node_classes(provider: Provider) -> Vec<CustomResourceDefinition> {
    match provider {
        Provider::Aws => vec![generate::<EC2NodeClass>(Spec::Optional)],
        Provider::Azure => vec![azure::serve_v1alpha2(generate::<AKSNodeClass>(Spec::Optional))],
        Provider::Kwok => vec![generate::<KWOKNodeClass>(Spec::Optional)],
    }
}

fn nodepool(providers: &[Provider]) -> CustomResourceDefinition {
    let mut crd = generate::<NodePool>(Spec::Required);
    join_categories(&mut crd, providers);
    let requirement_key = "spec.template.spec.requirements.[].key";
    structural::edit(&mut crd, "spec.template.metadata.labels", |labels| {
        label_rules::add(labels, Site::TemplateLabels, providers);
    });
    structural::edit(&mut crd, requirement_key, |key| {
        label_rules::add(key, Site::NodePoolRequirement, providers);
    });
    crd
}

fn nodeclaim(providers: &[Provider]) -> CustomResourceDefinition {
    let mut crd = generate::<NodeClaim>(Spec::Required);
    join_categories(&mut crd, providers);
    structural::edit(&mut crd, "spec.requirements.[].key", |key| {
        label_rules::add(key, Site::NodeClaimRequirement, providers);
    });
    crd
}

fn nodeoverlay(providers: &[Provider]) -> CustomResourceDefinition {
    let mut crd = generate::<NodeOverlay>(Spec::Required);
    structural::edit(&mut crd, "spec.requirements.[].key", |key| {
        label_rules::add(key, Site::NodeOverlayRequirement, providers);
    });
    crd
}

/// On AKS, `kubectl get nap` lists everything of node auto-provisioning.
fn join_categories(crd: &mut CustomResourceDefinition, providers: &[Provider]) {
    if providers.contains(&Provider::Azure) {
        crd.spec.names.categories.get_or_insert_default().push("nap".to_owned());
    }
}

fn generate<K: CustomResourceExt>(spec: Spec) -> CustomResourceDefinition {
    structural::finish(K::crd(), spec)
}
