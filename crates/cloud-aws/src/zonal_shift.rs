//! Which zones has somebody shifted the cluster away from? ARC is asked, where that is wanted: nothing is launched in such
//! a zone, and its machines are left as they are, since whatever impairs the zone would answer late or wrongly.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use api::{aws::EC2NodeClass, labels, node_class::NodeClass};
use aws_sdk_arczonalshift::types::{AppliedStatus, ZonalShiftInResource};
use cloud::CloudError;
use jiff::Timestamp;
use model::{
    object::NodePool,
    requirement::{RequirementSpec, Requirements},
    vocabulary::Vocabulary,
};
use runtime::{Clock, Event, EventKind, Resource};

use crate::{Clients, Failure, reads::ReadSide};

/// Knows the zones that are shifted away from.
pub(crate) struct ZonalShift {
    arc: aws_sdk_arczonalshift::Client,
    /// The cluster's ARN, by which ARC knows it.
    cluster: String,
    clock: Clock,
    /// By the zone's ID: until when.
    shifted: Mutex<BTreeMap<String, Timestamp>>,
    /// The zones whose shift pools were told of.
    told: Mutex<BTreeSet<String>>,
}

impl ZonalShift {
    /// Asks ARC for the first time. A cluster that ARC does not know will never be shifted, which whoever switched this on
    /// should hear at once.
    pub(crate) async fn connect(clients: &Clients, clock: &Clock, cluster: &str) -> Result<Self, CloudError> {
        let shift = Self {
            arc: clients.zonal_shift.clone(),
            cluster: cluster.to_owned(),
            clock: clock.clone(),
            shifted: Mutex::default(),
            told: Mutex::default(),
        };
        let read = shift.read().await;
        read.map_err(|failure| {
            CloudError::Other(format!(
                "cluster not registered to Zonal Shift, {failure}; enable zonal shift of cluster {cluster}, or leave \
                 --enable-zonal-shift (ENABLE_ZONAL_SHIFT) out"
            ))
        })?;
        Ok(shift)
    }

    /// Reads what holds now. Where that fails, what held before does until its time is over.
    async fn read(&self) -> Result<(), Failure> {
        let answer = self
            .arc
            .get_managed_resource()
            .resource_identifier(&self.cluster)
            .send();
        let answer = answer.await.map_err(|error| Failure::of(&error))?;
        *self.shifted.lock().unwrap_or_else(PoisonError::into_inner) = applied(answer.zonal_shifts());
        Ok(())
    }

    /// The zones, by ID, that are shifted away from now.
    pub(crate) fn zones(&self) -> BTreeSet<String> {
        let now = self.clock.now();
        let shifted = self.shifted.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = shifted.iter().filter(|(_, until)| **until > now);
        holds.map(|(zone, _)| zone.clone()).collect()
    }
}

fn applied(shifts: &[ZonalShiftInResource]) -> BTreeMap<String, Timestamp> {
    let applied = shifts
        .iter()
        .filter(|it| *it.applied_status() == AppliedStatus::Applied);
    let until = |it: &ZonalShiftInResource| Timestamp::new(it.expiry_time().secs(), 0).ok();
    applied
        .filter_map(|it| Some((it.away_from().to_owned(), until(it)?)))
        .collect()
}

impl ReadSide {
    /// Asks ARC anew, and tells the pools that a zone of theirs is shifted or back. Nothing where that is not wanted.
    pub async fn follow_zonal_shift(&self) -> Result<(), String> {
        let Some(shift) = &self.zonal_shift else {
            return Ok(());
        };
        let read = shift.read().await;
        let zones = shift.zones();
        self.offers.shift(zones.clone());
        read.map_err(|failure| format!("updating zonal shifts: getting zonal shifts: {failure}"))?;
        let told = shift.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if told == zones {
            return Ok(());
        }
        let pools: Vec<NodePool> = self
            .objects
            .list(&Resource::of::<NodePool>())
            .await
            .map_err(|error| format!("publishing zonal shift events: listing nodepools, {error}"))?;
        for pool in &pools {
            self.tell_of_shift(pool, &told, &zones).await;
        }
        *shift.told.lock().unwrap_or_else(PoisonError::into_inner) = zones;
        Ok(())
    }

    async fn tell_of_shift(&self, pool: &NodePool, before: &BTreeSet<String>, now: &BTreeSet<String>) {
        let class = pool.spec.template.spec.node_class_ref.as_ref();
        let Some(class) = class.filter(|it| *it.kind == *EC2NodeClass::KIND) else {
            return;
        };
        let Ok(Some(class)) = self.objects.class(&class.name).await else {
            return;
        };
        let news = [
            (
                now.difference(before),
                EventKind::Warning,
                "ZonalShiftActive",
                "detected",
                "unavailable",
            ),
            (
                before.difference(now),
                EventKind::Normal,
                "ZonalShiftCleared",
                "cleared",
                "restored",
            ),
        ];
        for (zones, kind, reason, what, state) in news {
            for id in zones {
                if let Some(name) = zone_of_pool(pool, &class, id) {
                    let message =
                        format!("Zonal shift {what}: offerings in zone {name} ({id}) are {state} for this NodePool");
                    let event = Event::new(pool, kind, reason, message);
                    let about = vec![pool.metadata.uid.to_string(), id.clone()];
                    self.recorder.publish(event.deduped_by(about));
                }
            }
        }
    }
}

/// The name of a zone that a pool could launch in; none when it could not.
fn zone_of_pool(pool: &NodePool, class: &EC2NodeClass, zone_id: &str) -> Option<String> {
    let mut subnets = class.status.iter().flat_map(|status| &status.subnets);
    let zone = subnets.find(|it| it.zone_id.as_deref() == Some(zone_id))?.zone.clone();
    let mut vocabulary = Vocabulary::new();
    let specs = pool.spec.template.spec.requirements.iter().filter_map(|it| {
        let values: Vec<&str> = it.values.iter().map(|value| &**value).collect();
        Some(RequirementSpec::new(&it.key, it.operator.parse().ok()?, &values))
    });
    let wanted = Requirements::from_specs(&specs.collect::<Vec<_>>(), &mut vocabulary);
    let admits = |key: &str, value: &str| {
        let requirement = vocabulary.key(key).and_then(|key| wanted.get(key));
        requirement.is_none_or(|it| it.has(value, &vocabulary))
    };
    (admits(labels::ZONE, &zone) && admits(labels::aws::ZONE_ID, zone_id)).then_some(zone)
}

#[cfg(test)]
mod tests {
    use aws_smithy_types::DateTime;
    use serde_json::json;

    use super::*;

    fn shift(zone: &str, status: AppliedStatus, until: i64) -> ZonalShiftInResource {
        ZonalShiftInResource::builder()
            .away_from(zone)
            .applied_status(status)
            .expiry_time(DateTime::from_secs(until))
            .start_time(DateTime::from_secs(0))
            .zonal_shift_id("shift")
            .resource_identifier("cluster")
            .comment("")
            .build()
            .unwrap()
    }

    #[test]
    fn only_a_shift_that_is_applied_counts() {
        let shifts = [
            shift("usw2-az1", AppliedStatus::Applied, 100),
            shift("usw2-az2", AppliedStatus::NotApplied, 100),
        ];
        let expected = [("usw2-az1".to_owned(), Timestamp::from_second(100).unwrap())];
        assert_eq!(applied(&shifts), expected.into());
    }

    #[test]
    fn a_pool_hears_of_zones_that_it_could_launch_in() {
        let class: EC2NodeClass = serde_json::from_value(json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
            "spec": {"subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": []},
            "status": {"subnets": [
                {"id": "subnet-1", "zone": "us-west-2a", "zoneID": "usw2-az2"},
                {"id": "subnet-2", "zone": "us-west-2b", "zoneID": "usw2-az1"},
            ]},
        }))
        .unwrap();
        let pool = |requirements: serde_json::Value| -> NodePool {
            serde_json::from_value(json!({
                "metadata": {"name": "general"}, "spec": {"template": {"spec": {"requirements": requirements}}},
            }))
            .unwrap()
        };
        let any = pool(json!([]));
        assert_eq!(zone_of_pool(&any, &class, "usw2-az2").as_deref(), Some("us-west-2a"));
        assert_eq!(zone_of_pool(&any, &class, "usw2-az3"), None, "no subnet there");
        let zone = |key: &str, value: &str| pool(json!([{"key": key, "operator": "In", "values": [value]}]));
        let other = zone("topology.kubernetes.io/zone", "us-west-2b");
        assert_eq!(zone_of_pool(&other, &class, "usw2-az2"), None);
        let by_id = zone("topology.k8s.aws/zone-id", "usw2-az1");
        assert_eq!(zone_of_pool(&by_id, &class, "usw2-az2"), None);
        assert_eq!(zone_of_pool(&by_id, &class, "usw2-az1").as_deref(), Some("us-west-2b"));
    }
}
