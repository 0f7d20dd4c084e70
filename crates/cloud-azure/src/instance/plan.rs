//! What is a claim's machine to be, and what does it come to when Azure says no?

use std::sync::Arc;

use api::{azure::AKSNodeClass, labels::NODEPOOL};
use cloud::{CloudError, LaunchToken, Launched};
use model::{
    object::{NodeClaim, Object},
    snapshot::CatalogType,
};
use runtime::{Event, EventKind};

use super::facts::Machine;
use crate::{
    arm::{Failure, wire::Tags},
    class::Class,
    launch::{Chosen, check_ready, choose, missing_class, refusal::refusal, tags},
    node_class::image_of_type,
    offers::SizeRecord,
    reads::ReadSide,
};

/// Who makes the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// We do: a virtual machine.
    Us,
    /// AKS does: a machine of an agent pool.
    Aks,
}

/// What is asked for, as far as a refusal must be read with it.
#[derive(Clone)]
pub(super) struct Wish {
    pub(super) chosen: Chosen,
    pub(super) record: Arc<SizeRecord>,
    /// The image's id.
    pub(super) image: String,
}

impl Wish {
    /// What an earlier process must have asked for to get a machine; none where its size is gone.
    pub(super) fn behind(read: &ReadSide, class: &AKSNodeClass, machine: &Machine) -> Option<Self> {
        let types = types(read, class).ok()?;
        Some(Self {
            chosen: Chosen {
                entry: types.into_iter().find(|entry| *entry.name.as_str() == *machine.size)?,
                zone: machine.zone.clone(),
                capacity_type: machine.capacity_type,
                needs_ultra_ssd: machine.has_ultra_ssd,
            },
            record: read.offers.record(&machine.size)?,
            image: machine.image.clone(),
        })
    }
}

/// Everything that a launch is made from.
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) class: Arc<AKSNodeClass>,
    pub(super) wish: Wish,
    pub(super) kubernetes: String,
    pub(super) tags: Tags,
    pub(super) in_place_hash: String,
}

/// What a launch begins with.
pub(super) enum Prepared {
    /// An earlier request of it has made the machine.
    There(Box<Launched>),
    /// There is none yet.
    Planned(Box<Plan>),
}

/// The class of a claim.
pub(super) async fn class_of(read: &ReadSide, claim: &NodeClaim) -> Result<Arc<AKSNodeClass>, CloudError> {
    let reference = claim
        .spec
        .node_class_ref
        .as_ref()
        .ok_or_else(|| CloudError::Other(format!("NodeClaim {} has no spec.nodeClassRef", claim.metadata.name)))?;
    let class = read.node_class(&reference.name).await?;
    class.ok_or_else(|| {
        tell_missing(read, claim);
        missing_class(&not_found(&reference.name))
    })
}

/// Refuses a class that nothing can be launched from now.
pub(super) fn check_class(read: &ReadSide, claim: &NodeClaim, class: &AKSNodeClass) -> Result<(), CloudError> {
    if class.metadata.deletion_timestamp.is_some() {
        tell_missing(read, claim);
    }
    check_ready(class)
}

/// The words of the API server for a class that is not there.
pub(crate) fn not_found(class: &str) -> String {
    format!("aksnodeclasses.karpenter.azure.com \"{class}\" not found")
}

/// Tells those who look at a claim or a pool that its class is not there.
pub(crate) fn tell_missing<T: Object>(read: &ReadSide, about: &T) {
    let event = Event::new(
        about,
        EventKind::Warning,
        "NodeClassResolutionError",
        "Failed resolving NodeClass".to_owned(),
    );
    read.recorder.publish(event);
}

/// The sizes of a class.
pub(super) fn types(read: &ReadSide, class: &AKSNodeClass) -> Result<Vec<Arc<CatalogType>>, CloudError> {
    read.instance_types(class).map_err(|error| CloudError::Create {
        reason: "InstanceTypeResolutionFailed".to_owned(),
        message: format!("Error resolving instance types: {error}"),
    })
}

/// Upstream's tags of a claim's machine.
pub(super) fn upstream_tags(read: &ReadSide, class: &AKSNodeClass, claim: &NodeClaim) -> Result<Tags, CloudError> {
    let azure = &read.settings.azure;
    let additional = azure.extra_tags();
    let additional = additional.map_err(|error| CloudError::Other(error.to_string()))?;
    Ok(tags::upstream(&azure.cluster_name, &additional, class, claim))
}

/// The hash of what can change in place. The identities of its machines are AKS's own affair.
pub(super) fn in_place_hash(read: &ReadSide, maker: Maker, upstream: &Tags) -> String {
    match maker {
        Maker::Us => tags::in_place_hash(&read.settings.azure.node_identities, upstream),
        Maker::Aks => tags::in_place_hash(&[], upstream),
    }
}

/// All tags of a claim's machine.
pub(super) fn all_tags(
    maker: Maker,
    upstream: &Tags,
    class: &AKSNodeClass,
    claim: &NodeClaim,
    token: Option<&LaunchToken>,
) -> Tags {
    let mut all = tags::all(upstream, class, claim, token);
    if maker == Maker::Aks {
        all.insert(tags::AKS_MACHINE.to_owned(), claim.metadata.name.to_string());
    }
    all
}

/// Decides what to ask for.
pub(super) fn plan(
    read: &ReadSide,
    maker: Maker,
    claim: &NodeClaim,
    token: &LaunchToken,
    name: String,
    class: Arc<AKSNodeClass>,
) -> Result<Plan, CloudError> {
    let types = types(read, &class)?;
    let offers = &read.offers;
    let chosen = choose(claim, &types, &read.random, |size, zone, kind| {
        offers.why(size, zone, kind)
    })?;
    let upstream = upstream_tags(read, &class, claim)?;
    let in_place_hash = in_place_hash(read, maker, &upstream);
    let tags = all_tags(maker, &upstream, &class, claim, Some(token));
    complete(read, name, class, chosen, tags, in_place_hash)
}

/// The plan for a choice.
pub(super) fn complete(
    read: &ReadSide,
    name: String,
    class: Arc<AKSNodeClass>,
    chosen: Chosen,
    tags: Tags,
    in_place_hash: String,
) -> Result<Plan, CloudError> {
    let failed = |message: String| CloudError::Create {
        reason: "CreateInstanceFailed".to_owned(),
        message,
    };
    let size = chosen.entry.name.as_str();
    let record = read.offers.record(size);
    let record = record.ok_or_else(|| failed(format!("size {size} is not known any more")))?;
    let images = class.images().map_err(|stale| failed(stale.to_string()))?;
    let Some(image) = image_of_type(images, &chosen.entry).cloned() else {
        read.metrics.image_selection_error_count.inc([Class(&class).family()]);
        return Err(failed(format!(
            "no image of AKSNodeClass {} fits size {size}",
            Class(&class).name()
        )));
    };
    let kubernetes = class
        .kubernetes_version()
        .map_err(|stale| failed(stale.to_string()))?
        .to_owned();
    Ok(Plan {
        name,
        class,
        wish: Wish {
            chosen,
            record,
            image: image.id,
        },
        kubernetes,
        tags,
        in_place_hash,
    })
}

/// Azure refused a launch at once.
pub(super) const SYNC: &str = "sync";
/// It failed after Azure had taken it on.
pub(super) const ASYNC: &str = "async";

/// What a refusal comes to, told to whom it concerns.
pub(super) fn refused(read: &ReadSide, claim: &NodeClaim, wish: &Wish, failure: &Failure, phase: &str) -> CloudError {
    let Wish { chosen, record, image } = wish;
    let labels = [
        image.as_str(),
        record.name.as_str(),
        &chosen.zone,
        chosen.capacity_type,
        pool_of(claim),
        phase,
        failure.label(),
    ];
    read.metrics.instance_vm_create_failure_total.inc(labels);
    let refusal = refusal(failure, chosen, record);
    for shortage in &refusal.shortages {
        read.offers.mark_unavailable(shortage);
    }
    if !refusal.shortages.is_empty() && phase == SYNC {
        tell_shortage(read, claim, &refusal.error);
    }
    refusal.error
}

/// The next try may succeed within a second, and takes the condition that says why this one failed with it.
fn tell_shortage(read: &ReadSide, claim: &NodeClaim, error: &CloudError) {
    if let CloudError::Create { reason, message } = error {
        read.recorder
            .publish(Event::new(claim, EventKind::Warning, reason, message.clone()));
    }
}

/// A launch begins.
pub(super) fn count_start(read: &ReadSide, claim: &NodeClaim, wish: &Wish) {
    let Wish { chosen, record, image } = wish;
    let labels = [
        image.as_str(),
        record.name.as_str(),
        &chosen.zone,
        chosen.capacity_type,
        pool_of(claim),
    ];
    read.metrics.instance_vm_create_start_total.inc(labels);
}

/// The pool of a claim; empty where it has none.
pub(super) fn pool_of(claim: &NodeClaim) -> &str {
    claim.metadata.labels.get(NODEPOOL).map_or("", |pool| pool)
}

/// Whether a claim is given up when it hears this, rather than launched again.
pub(super) fn gives_up(error: &CloudError) -> bool {
    matches!(
        error,
        CloudError::InsufficientCapacity { .. } | CloudError::NodeClassNotReady(_)
    )
}

/// Whether a failure says that nothing will come of a request.
pub(super) fn is_settled(failure: &Failure) -> bool {
    failure.status.is_some_and(|status| status < 500 && status != 429)
}
