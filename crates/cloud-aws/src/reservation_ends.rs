//! What becomes of machines whose capacity reservation ends? Those of a capacity block go before EC2 takes them; all others
//! stay, and are on demand from then on.

use std::collections::BTreeSet;

use api::{
    aws::{CapacityReservationSelectorTerm, CapacityReservationState},
    labels::{self, aws::CAPACITY_RESERVATION_ID},
};
use cloud::Instance;
use http::Method;
use model::object::{Metadata, Node, NodeClaim, Object, ObjectKey};
use runtime::{ApiError, Patch, Resource};
use serde::Deserialize;
use serde_json::json;

use crate::{border::Machines, instance::OF_RESERVATIONS, reads::ReadSide};

impl ReadSide {
    /// Deletes claims whose capacity block is about to be taken back, whether or not a class still selects it.
    pub async fn expire_capacity_blocks(&self) -> Result<(), String> {
        let claims = self.objects.claims().await;
        let claims = claims.map_err(|error| format!("listing nodeclaims, {error}"))?;
        let reservation = |claim: &NodeClaim| Some(claim.metadata.labels.get(CAPACITY_RESERVATION_ID)?.to_string());
        let used: BTreeSet<String> = claims.iter().filter_map(reservation).collect();
        let expiring = self.expiring(used).await?;
        for claim in claims.iter().filter(|it| !it.metadata.is_deleting()) {
            if reservation(claim).is_some_and(|id| expiring.contains(&id)) {
                let only_this = runtime::Delete {
                    uid: Some(claim.metadata.uid.clone()),
                    ..runtime::Delete::default()
                };
                let key = claim.metadata.key();
                let deleted = self.objects.api().delete::<NodeClaim>(&key, &only_this);
                unless_gone(deleted.await).map_err(|error| format!("deleting nodeclaim, {error}"))?;
                tracing::info!(NodeClaim.name = %claim.metadata.name, "initiating delete for capacity block expiration");
            }
        }
        Ok(())
    }

    async fn expiring(&self, ids: BTreeSet<String>) -> Result<BTreeSet<String>, String> {
        let term = |id| CapacityReservationSelectorTerm {
            id: Some(id),
            ..CapacityReservationSelectorTerm::default()
        };
        let terms: Vec<CapacityReservationSelectorTerm> = ids.into_iter().map(term).collect();
        let read = |id: &str, left| self.offers.read_reservation(id, left);
        let found = self.capacity.reservations(&terms, read).await;
        let found = found.map_err(|failure| format!("getting capacity reservations, {failure}"))?;
        let expiring = found
            .into_iter()
            .filter(|it| it.state == CapacityReservationState::Expiring);
        Ok(expiring.map(|it| it.id).collect())
    }

    /// Claims and nodes whose machine EC2 counts as on demand by now are no longer called reserved: they cost what that
    /// costs, and would never be consolidated for the next to nothing that a reservation does.
    pub async fn demote(&self, machines: &dyn Machines) -> Result<(), String> {
        let claims = self.objects.claims().await;
        let claims = claims.map_err(|error| format!("listing nodeclaims, {error}"))?;
        // A claim may have been changed without its node: by a process that died, or by Karpenter.
        let nodes = self.reserved_nodes().await?;
        if nodes.is_empty() && !claims.iter().any(|claim| is_reserved(&claim.metadata)) {
            return Ok(());
        }
        let listed = machines.list().await;
        let listed = listed.map_err(|error| format!("listing machines, {error}"))?;
        let stays = |claim: &&NodeClaim| !claim.metadata.is_deleting() && is_on_demand(claim, &listed);
        for claim in claims.iter().filter(stays) {
            for node in nodes.iter().filter(|node| is_due(node, claim)) {
                self.call_on_demand::<Node>(&node.metadata.key()).await?;
            }
            if is_reserved(&claim.metadata) {
                self.call_on_demand::<NodeClaim>(&claim.metadata.key()).await?;
            }
        }
        Ok(())
    }

    async fn reserved_nodes(&self) -> Result<Vec<Node>, String> {
        let selector = format!(
            "{}%3D{}",
            labels::CAPACITY_TYPE.replace('/', "%2F"),
            labels::CAPACITY_TYPE_RESERVED
        );
        let path = format!("{}?labelSelector={selector}", Resource::of::<Node>().collection(""));
        let list = self
            .objects
            .api()
            .call(Method::GET, &path, None, "application/json")
            .await;
        let list = list.map_err(|error| format!("listing nodes, {error}"))?;
        let read: Result<Nodes, _> = serde_json::from_slice(&list);
        read.map(|nodes| nodes.items)
            .map_err(|error| format!("reading nodes, {error}"))
    }

    async fn call_on_demand<T: Object>(&self, key: &ObjectKey) -> Result<(), String> {
        let mut changed = json!({ labels::CAPACITY_TYPE: labels::CAPACITY_TYPE_ON_DEMAND });
        for label in OF_RESERVATIONS {
            changed[label] = serde_json::Value::Null;
        }
        let patch = Patch::Merge(json!({"metadata": {"labels": changed}}));
        let patched = self.objects.api().patch::<T>(key, None, &patch).await;
        unless_gone(patched.map(drop)).map_err(|error| format!("patching {key}, {error}"))?;
        tracing::debug!(name = %key, "updated capacity type: the reservation has ended");
        Ok(())
    }
}

#[derive(Deserialize)]
struct Nodes {
    items: Vec<Node>,
}

fn unless_gone(answer: Result<(), ApiError>) -> Result<(), ApiError> {
    match answer {
        Err(error) if error.is_not_found() => Ok(()),
        answer => answer,
    }
}

fn is_reserved(metadata: &Metadata) -> bool {
    let kind = metadata.labels.get(labels::CAPACITY_TYPE);
    !metadata.is_deleting() && kind.is_some_and(|kind| **kind == *labels::CAPACITY_TYPE_RESERVED)
}

fn is_on_demand(claim: &NodeClaim, listed: &[Instance]) -> bool {
    let mut of_claim = listed
        .iter()
        .filter(|it| Some(&it.provider_id) == claim.status.provider_id.as_ref());
    of_claim.any(|it| {
        let kind = it.launched.labels.get(labels::CAPACITY_TYPE);
        kind.is_some_and(|kind| **kind == *labels::CAPACITY_TYPE_ON_DEMAND)
    })
}

/// A node that has not registered yet gets its labels from the claim when it does.
fn is_due(node: &Node, claim: &NodeClaim) -> bool {
    let is_registered = node
        .metadata
        .labels
        .get(labels::REGISTERED)
        .is_some_and(|it| **it == *"true");
    is_registered && node.spec.provider_id == claim.status.provider_id && is_reserved(&node.metadata)
}
