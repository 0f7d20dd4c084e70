//! Which templates does a launch need? One for each image and each thing about a type that its kubelet must be told.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    aws::{Alias, AmiFamily, EC2NodeClass, Enablement, InstanceStorePolicy},
    labels,
    taints::UNREGISTERED,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use model::{
    instance_type::InstanceType,
    object::{NodeClaim, Taint},
    snapshot::CatalogType,
    vocabulary::Vocabulary,
};

use super::{Reservations, Template, allowed_labels, disks, interfaces, metadata};
use crate::{
    border::{ClusterFacts, images_of_types},
    launch::{
        choice::{Reservation, ReservationKeys, reservation},
        tags::Tags,
        user_data::{self, Bootstrap, UserDataError, bottlerocket_has_default_mounts},
    },
};

/// The resource of an EFA interface.
pub(crate) const EFA: &str = "vpc.amazonaws.com/efa";
/// A request for it turns enclaves on.
const NITRO_SANDBOX: &str = "eks.amazonaws.com/nitro-sandbox";

/// What a launch is about, beside the types it may choose from.
pub(crate) struct Scene<'a> {
    pub(crate) class: &'a EC2NodeClass,
    pub(crate) claim: &'a NodeClaim,
    pub(crate) cluster: &'a ClusterFacts,
    /// Of everything made for this class and pool.
    pub(crate) tags: &'a Tags,
    pub(crate) capacity_type: &'a str,
    pub(crate) tenancy: &'a str,
    /// The placement group and the partition asked for.
    pub(crate) placement_group: Option<(String, Option<i32>)>,
    /// The gate `ReservedCapacity`.
    pub(crate) may_reserve: bool,
}

/// A template, and the types to launch from it.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) template: Template,
    /// By name.
    pub(crate) types: Vec<Arc<str>>,
}

/// Nothing can be launched from this class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error("no security groups are present in the status")]
    NoSecurityGroups,
    #[error("no amis exist given constraints")]
    NoImages,
    #[error("no instance types satisfy requirements of amis [{}]", .0.join(" "))]
    NoFittingImage(Vec<String>),
    #[error(transparent)]
    UserData(#[from] UserDataError),
}

/// What types must have in common to share a template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Share {
    image: String,
    max_pods: i64,
    efa: usize,
    /// Of a reserved launch; each reservation has a template of its own.
    reservation: Option<Reservation>,
}

/// The templates of a launch, in an order that does not depend on anything but their contents.
pub(crate) fn resolve(
    scene: &Scene<'_>,
    types: &[InstanceType],
    catalogue: &[Arc<CatalogType>],
    vocabulary: &mut Vocabulary,
) -> Result<Vec<Resolved>, ResolveError> {
    let status = scene.class.status.clone().unwrap_or_default();
    if status.security_groups.is_empty() {
        return Err(ResolveError::NoSecurityGroups);
    }
    if status.amis.is_empty() {
        return Err(ResolveError::NoImages);
    }
    let mut image_of: BTreeMap<&str, &str> = BTreeMap::new();
    for (image, entries) in images_of_types(&status.amis, catalogue) {
        image_of.extend(entries.into_iter().map(|entry| (entry.name.as_str(), image)));
    }
    let keys = ReservationKeys::of(vocabulary);
    let mut shares: BTreeMap<Share, Vec<Arc<str>>> = BTreeMap::new();
    for entry in types {
        let Some(image) = image_of.get(&*entry.name) else {
            continue;
        };
        for reservation in reservations(entry, scene.capacity_type, keys, vocabulary) {
            let share = Share {
                image: (*image).to_owned(),
                max_pods: entry.capacity.amount("pods").value(),
                efa: efa_interfaces(entry, scene.claim),
                reservation,
            };
            shares.entry(share).or_default().push(Arc::clone(&entry.name));
        }
    }
    if shares.is_empty() {
        let images = status.amis.iter().map(|image| image.id.clone()).collect();
        return Err(ResolveError::NoFittingImage(images));
    }
    let resolved = shares.into_iter().map(|(share, types)| {
        let template = template(scene, &share)?;
        Ok(Resolved { template, types })
    });
    resolved.collect()
}

/// The reservations of a type that a launch of a capacity type may go into; one of none for another capacity type.
fn reservations(
    entry: &InstanceType,
    capacity_type: &str,
    keys: ReservationKeys,
    vocabulary: &Vocabulary,
) -> Vec<Option<Reservation>> {
    if capacity_type != labels::CAPACITY_TYPE_RESERVED {
        return vec![None];
    }
    let found = entry
        .offerings
        .iter()
        .filter_map(|it| reservation(it, keys, vocabulary));
    let mut found: Vec<_> = found.map(Some).collect();
    found.sort();
    found.dedup();
    found
}

/// How many EFA interfaces a machine of the type gets: all it can have, if the claim asks for any.
pub(crate) fn efa_interfaces(entry: &InstanceType, claim: &NodeClaim) -> usize {
    let is_asked_for = claim.spec.resources.requests.get(EFA).is_some();
    let most = usize::try_from(entry.capacity.amount(EFA).value()).unwrap_or(0);
    if is_asked_for { most } else { 0 }
}

fn template(scene: &Scene<'_>, share: &Share) -> Result<Template, ResolveError> {
    let (class, family) = (scene.class, scene.class.ami_family());
    let status = class.status.clone().unwrap_or_default();
    let user_data = user_data::render(&family, &bootstrap(scene, share, &family))?;
    let reservations = match &share.reservation {
        Some(it) => Reservations::Only {
            id: it.id.clone(),
            kind: it.kind,
        },
        None if scene.may_reserve => Reservations::None,
        None => Reservations::Open,
    };
    let nested = class
        .spec
        .cpu_options
        .as_ref()
        .and_then(|it| it.nested_virtualization.as_ref());
    Ok(Template {
        image: share.image.clone(),
        instance_profile: status.instance_profile.unwrap_or_default(),
        user_data: STANDARD.encode(user_data),
        is_monitored: class.spec.detailed_monitoring.unwrap_or_default(),
        disks: disks(class, &family),
        metadata: metadata(class, scene.cluster.is_ipv6, &scene.cluster.region),
        interfaces: interfaces(class, share.efa, scene.cluster.is_ipv6),
        tenancy: scene.tenancy.to_owned(),
        placement_group: scene.placement_group.as_ref().map(|(id, _)| id.clone()),
        partition: scene.placement_group.as_ref().and_then(|(_, partition)| *partition),
        has_enclaves: scene.claim.spec.resources.requests.get(NITRO_SANDBOX).is_some(),
        nested_virtualization: nested.map(Enablement::to_string),
        tags: scene.tags.clone(),
        is_spot: scene.capacity_type == labels::CAPACITY_TYPE_SPOT,
        reservations,
    })
}

fn bootstrap(scene: &Scene<'_>, share: &Share, family: &AmiFamily) -> Bootstrap {
    let (spec, cluster) = (&scene.class.spec, scene.cluster);
    let mut kubelet = spec.kubelet.clone().unwrap_or_default();
    kubelet
        .max_pods
        .get_or_insert(i32::try_from(share.max_pods).unwrap_or(i32::MAX));
    if kubelet.cluster_dns.as_ref().is_none_or(Vec::is_empty) {
        kubelet.cluster_dns = cluster.dns_ip.clone().map(|dns| vec![dns]);
    }
    Bootstrap {
        cluster_name: cluster.name.clone(),
        cluster_endpoint: cluster.endpoint.clone(),
        ca_bundle: cluster.ca_bundle.clone(),
        cluster_cidr: cluster.service_cidr.clone(),
        kubelet,
        taints: taints(scene.claim),
        labels: node_labels(scene, family),
        custom: spec.user_data.clone(),
        raid0: spec.instance_store_policy == Some(InstanceStorePolicy::Raid0),
        has_default_mounts: *family == AmiFamily::Bottlerocket && has_default_mounts(scene.class, &share.image),
    }
}

/// The claim's taints, its start-up taints, and the one that keeps everything off until registration.
fn taints(claim: &NodeClaim) -> Vec<Taint> {
    let mut taints: Vec<Taint> = claim
        .spec
        .taints
        .iter()
        .chain(&claim.spec.startup_taints)
        .cloned()
        .collect();
    let is_there = taints
        .iter()
        .any(|taint| *taint.key == *UNREGISTERED && *taint.effect == *"NoExecute");
    if !is_there {
        taints.push(Taint {
            key: UNREGISTERED.into(),
            effect: "NoExecute".into(),
            ..Taint::default()
        });
    }
    taints
}

fn node_labels(scene: &Scene<'_>, family: &AmiFamily) -> BTreeMap<String, String> {
    let written = scene.claim.metadata.labels.iter();
    let mut all: BTreeMap<String, String> = written
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    all.insert(labels::CAPACITY_TYPE.to_owned(), scene.capacity_type.to_owned());
    if *family != AmiFamily::Custom {
        all.insert(labels::DO_NOT_SYNC_TAINTS.to_owned(), "true".to_owned());
    }
    allowed_labels(all)
}

/// Whether the release of a Bottlerocket image knows its mounts: by the alias, or by the version in the image's name.
fn has_default_mounts(class: &EC2NodeClass, image: &str) -> bool {
    if let Some(Alias { version, .. }) = class.alias() {
        return bottlerocket_has_default_mounts(&version);
    }
    let status = class.status.as_ref();
    let images = status.map_or(&[][..], |status| &status.amis);
    let name = images
        .iter()
        .find(|it| it.id == image)
        .and_then(|it| it.name.as_deref());
    name.and_then(version_in_name)
        .is_some_and(bottlerocket_has_default_mounts)
}

/// `1.46.0` of `bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-0d7c2d2f`.
fn version_in_name(name: &str) -> Option<&str> {
    let is_version = |part: &&str| {
        part.strip_prefix('v')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    name.split('-').find(is_version)
}
