//! Drift over two sides that say what they are told.

use std::collections::BTreeMap;

use api::aws::{Ami, CapacityReservation, SecurityGroup, Subnet};
use async_trait::async_trait;
use model::object::ProviderId;
use serde_json::json;

use super::*;
use crate::border::{ClusterFacts, PlacementGroupFacts, ReservationNote, Shortage, SubnetFacts, TypeFacts};

struct Told {
    group: Option<&'static str>,
    machine: MachineFacts,
    fresh: MachineFacts,
}

#[async_trait]
impl Reads for Told {
    async fn node_class(&self, _: &str) -> Result<Option<Arc<EC2NodeClass>>, CloudError> {
        Ok(None)
    }

    async fn instance_types(&self, _: &EC2NodeClass) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        let requirement = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
        let types = json!([{"name": "m5.large", "requirements": [requirement("kubernetes.io/arch", "amd64")]}]);
        Ok(serde_json::from_value::<Vec<CatalogType>>(types)
            .unwrap()
            .into_iter()
            .map(Arc::new)
            .collect())
    }

    fn type_facts(&self, _: &str) -> Option<Arc<TypeFacts>> {
        None
    }

    async fn subnets(&self, _: &EC2NodeClass) -> Result<Vec<SubnetFacts>, CloudError> {
        Ok(Vec::new())
    }

    async fn placement_group(&self, _: &EC2NodeClass) -> Result<Option<PlacementGroupFacts>, CloudError> {
        Ok(self.group.map(|id| PlacementGroupFacts {
            id: id.to_owned(),
            name: String::new(),
            strategy: "cluster".to_owned(),
            partitions: 0,
        }))
    }

    async fn cluster(&self) -> Result<Arc<ClusterFacts>, CloudError> {
        Ok(Arc::default())
    }

    fn zone_id(&self, _: &str) -> Option<String> {
        None
    }

    fn tell_missing(&self, _: &NodeClaim) {}

    fn shifted_zone(&self, _: &str) -> Option<String> {
        None
    }

    fn mark_unavailable(&self, _: &Shortage) {}

    fn note_reservation(&self, _: &str, _: ReservationNote) {}
}

#[async_trait]
impl Describes for Told {
    async fn describe(&self, _: &ProviderId, freshness: Freshness) -> Result<MachineFacts, CloudError> {
        Ok(match freshness {
            Freshness::Remembered => self.machine.clone(),
            Freshness::Fresh => self.fresh.clone(),
        })
    }
}

fn machine() -> MachineFacts {
    MachineFacts {
        security_groups: vec!["sg-2".to_owned(), "sg-1".to_owned()],
        subnet: "subnet-1".to_owned(),
        ..MachineFacts::default()
    }
}

fn told() -> Told {
    Told {
        group: None,
        machine: machine(),
        fresh: machine(),
    }
}

fn class() -> EC2NodeClass {
    let mut class = EC2NodeClass::default();
    class.metadata.annotations = Some(BTreeMap::from([
        (EC2NODECLASS_HASH.to_owned(), "1".to_owned()),
        (EC2NODECLASS_HASH_VERSION.to_owned(), "v5".to_owned()),
    ]));
    let amd64 = json!([{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]);
    class.status = Some(EC2NodeClassStatus {
        amis: vec![Ami {
            id: "ami-1".to_owned(),
            requirements: serde_json::from_value(amd64).unwrap(),
            ..Ami::default()
        }],
        subnets: vec![Subnet {
            id: "subnet-1".to_owned(),
            ..Subnet::default()
        }],
        security_groups: ["sg-1", "sg-2"]
            .map(|id| SecurityGroup {
                id: id.to_owned(),
                name: None,
            })
            .to_vec(),
        ..EC2NodeClassStatus::default()
    });
    class
}

fn claim() -> NodeClaim {
    serde_json::from_value(json!({
        "metadata": {
            "name": "default-x",
            "labels": {"node.kubernetes.io/instance-type": "m5.large"},
            "annotations": {EC2NODECLASS_HASH: "1", EC2NODECLASS_HASH_VERSION: "v5"},
        },
        "spec": {"requirements": []},
        "status": {"providerID": "aws:///us-west-2a/i-1", "imageID": "ami-1"},
    }))
    .unwrap()
}

async fn found(claim: &NodeClaim, class: &EC2NodeClass, told: &Told) -> Result<Option<String>, CloudError> {
    drift(claim, class, told, told).await
}

#[tokio::test]
async fn a_machine_that_is_what_its_class_asks_for_has_not_drifted() {
    assert_eq!(found(&claim(), &class(), &told()).await, Ok(None));
}

#[tokio::test]
async fn another_hash_is_drift_only_when_both_are_of_one_recipe() {
    let mut class = class();
    let annotations = class.metadata.annotations.as_mut().unwrap();
    annotations.insert(EC2NODECLASS_HASH.to_owned(), "2".to_owned());
    assert_eq!(
        found(&claim(), &class, &told()).await,
        Ok(Some("NodeClassDrift".to_owned()))
    );
    let annotations = class.metadata.annotations.as_mut().unwrap();
    annotations.insert(EC2NODECLASS_HASH_VERSION.to_owned(), "v6".to_owned());
    assert_eq!(found(&claim(), &class, &told()).await, Ok(None));
}

#[tokio::test]
async fn an_image_that_the_type_would_not_boot_from_now_is_drift() {
    let mut class = class();
    class.status.as_mut().unwrap().amis[0].id = "ami-2".to_owned();
    assert_eq!(found(&claim(), &class, &told()).await, Ok(Some("AMIDrift".to_owned())));
    class.status.as_mut().unwrap().amis.clear();
    assert!(found(&claim(), &class, &told()).await.is_err());
}

#[tokio::test]
async fn other_security_groups_are_drift_whatever_their_order() {
    let mut told = told();
    told.machine.security_groups.pop();
    assert_eq!(
        found(&claim(), &class(), &told).await,
        Ok(Some("SecurityGroupDrift".to_owned()))
    );
}

#[tokio::test]
async fn a_subnet_that_the_class_no_longer_selects_is_drift() {
    let mut told = told();
    told.machine.subnet = "subnet-9".to_owned();
    assert_eq!(
        found(&claim(), &class(), &told).await,
        Ok(Some("SubnetDrift".to_owned()))
    );
}

#[tokio::test]
async fn a_reservation_that_the_class_no_longer_selects_is_drift_once_ec2_has_said_so_again() {
    let mut told = told();
    told.machine.capacity_reservation = Some("cr-1".to_owned());
    assert_eq!(found(&claim(), &class(), &told).await, Ok(None));
    told.fresh.capacity_reservation = Some("cr-1".to_owned());
    assert_eq!(
        found(&claim(), &class(), &told).await,
        Ok(Some("CapacityReservationDrift".to_owned()))
    );
    let mut selected = class();
    let reservation = json!({
        "availabilityZone": "us-west-2a", "id": "cr-1", "instanceMatchCriteria": "open",
        "instanceType": "m5.large", "ownerID": "123456789012",
    });
    let reservation: CapacityReservation = serde_json::from_value(reservation).unwrap();
    selected
        .status
        .as_mut()
        .unwrap()
        .capacity_reservations
        .push(reservation);
    assert_eq!(found(&claim(), &selected, &told).await, Ok(None));
}

#[tokio::test]
async fn a_machine_outside_its_classs_placement_group_is_drift() {
    let mut told = told();
    told.group = Some("pg-1");
    assert_eq!(
        found(&claim(), &class(), &told).await,
        Ok(Some("PlacementGroupDrift".to_owned()))
    );
}

#[tokio::test]
async fn without_a_machine_nothing_can_be_said() {
    let mut claim = claim();
    claim.status.provider_id = None;
    assert!(found(&claim, &class(), &told()).await.is_err());
}

#[tokio::test]
async fn hashes_that_are_missing_on_either_side_are_not_compared() {
    let mut bare = class();
    bare.metadata.annotations = None;
    assert_eq!(found(&claim(), &bare, &told()).await, Ok(None));
    let mut claim = claim();
    claim.metadata.annotations = model::object::List::default();
    assert_eq!(found(&claim, &class(), &told()).await, Ok(None));
}

#[tokio::test]
async fn nothing_is_said_about_a_class_whose_selectors_found_nothing() {
    let mut class = class();
    class.status.as_mut().unwrap().security_groups.clear();
    assert!(found(&claim(), &class, &told()).await.is_err());
}
