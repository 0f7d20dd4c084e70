//! Refusals against the contract's table.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::arm::wire::Sku;

fn record() -> SizeRecord {
    let all: Value = serde_json::from_str(include_str!("../../../tests/data/resource-skus.json")).unwrap();
    let all: Vec<Sku> = serde_json::from_value(all["southcentralus"]["value"].clone()).unwrap();
    SizeRecord::read(
        all.iter().find(|it| it.name == "Standard_D4s_v3").unwrap(),
        "southcentralus",
    )
    .unwrap()
}

fn chosen(zone: &str, kind: &'static str) -> Chosen {
    let one = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let mut offerings = Vec::new();
    for zone in ["r-1", "r-2", "0"] {
        for kind in ["on-demand", "spot"] {
            offerings.push(
                json!({"price": "1", "available": true, "requirements": [one(ZONE, zone), one(CAPACITY_TYPE, kind)]}),
            );
        }
    }
    Chosen {
        entry: Arc::new(serde_json::from_value(json!({"name": "Standard_D4s_v3", "offerings": offerings})).unwrap()),
        zone: zone.to_owned(),
        capacity_type: kind,
        needs_ultra_ssd: false,
    }
}

/// The reason of the condition, the offerings that are marked and for how many minutes.
fn judged(code: &str, message: &str, zone: &str, kind: &'static str) -> (String, Vec<String>, u64) {
    let failure = Failure {
        code: code.to_owned(),
        message: message.to_owned(),
        status: Some(409),
        ..Failure::default()
    };
    let refusal = refusal(&failure, &chosen(zone, kind), &record());
    let CloudError::Create { reason, .. } = refusal.error else {
        panic!("{:?}", refusal.error);
    };
    let named = |it: &Shortage| match it {
        Shortage::AllSpot { .. } => "* spot".to_owned(),
        Shortage::Offering {
            zone, capacity_type, ..
        } => format!("{zone} {capacity_type}"),
    };
    let minutes = refusal.shortages.first().map_or(0, |it| match it {
        Shortage::AllSpot { believed, .. } | Shortage::Offering { believed, .. } => believed.as_secs() / 60,
    });
    (reason, refusal.shortages.iter().map(named).collect(), minutes)
}

/// Code, message, zone and kind that were asked for; reason, offerings, minutes.
type Judged = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
    u64,
);

#[test]
fn every_class_of_the_table_marks_what_it_is_about() {
    let quota = "Operation could not be completed as it results in exceeding approved standardDSv3Family Cores quota.";
    let cases: [Judged; 11] = [
        (
            "OperationNotAllowed",
            "exceeding approved LowPriorityCores quota",
            "r-1",
            "spot",
            "SubscriptionQuotaReached",
            &["* spot"],
            60,
        ),
        (
            "OperationNotAllowed",
            quota,
            "r-1",
            "on-demand",
            "SubscriptionQuotaReached",
            &["0 on-demand", "r-1 on-demand", "r-2 on-demand"],
            10,
        ),
        (
            "OperationNotAllowed",
            "Family Cores quota. Current Limit: 0",
            "0",
            "on-demand",
            "SubscriptionQuotaReached",
            &["0 on-demand", "r-1 on-demand", "r-2 on-demand"],
            60,
        ),
        (
            "SkuNotAvailable",
            "",
            "r-1",
            "spot",
            "SKUNotAvailable",
            &["r-1 spot", "r-2 spot"],
            60,
        ),
        (
            "SkuNotAvailable",
            "",
            "r-1",
            "on-demand",
            "SKUNotAvailable",
            &["r-1 on-demand", "r-2 on-demand"],
            23 * 60,
        ),
        ("SkuNotAvailable", "", "0", "spot", "SKUNotAvailable", &["0 spot"], 60),
        (
            "ZonalAllocationFailed",
            "",
            "r-2",
            "spot",
            "ZonalAllocationFailure",
            &["r-2 on-demand", "r-2 spot"],
            60,
        ),
        (
            "AllocationFailed",
            "",
            "r-1",
            "spot",
            "AllocationFailure",
            &["r-1 on-demand", "r-1 spot", "r-2 on-demand", "r-2 spot"],
            60,
        ),
        (
            "AllocationFailed",
            "",
            "0",
            "spot",
            "AllocationFailure",
            &["0 on-demand", "0 spot"],
            60,
        ),
        (
            "OverconstrainedZonalAllocationRequest",
            "",
            "r-1",
            "spot",
            "OverconstrainedZonalAllocationFailure",
            &["r-1 spot"],
            60,
        ),
        (
            "OverconstrainedAllocationRequest",
            "",
            "r-1",
            "on-demand",
            "OverconstrainedAllocationFailure",
            &["r-1 on-demand", "r-2 on-demand"],
            60,
        ),
    ];
    for (code, message, zone, kind, reason, offerings, minutes) in cases {
        let expected = (
            reason.to_owned(),
            offerings.iter().map(|it| (*it).to_owned()).collect(),
            minutes,
        );
        assert_eq!(
            judged(code, message, zone, kind),
            expected,
            "{code} {message} {zone} {kind}"
        );
    }
}

/// What a person reads, without Azure's own words behind it.
fn told(code: &str, message: &str, kind: &'static str) -> String {
    let failure = Failure {
        code: code.to_owned(),
        message: message.to_owned(),
        status: Some(409),
        ..Failure::default()
    };
    let text = refusal(&failure, &chosen("r-1", kind), &record()).error.to_string();
    let text = text.replace(&format!(" ({failure})"), "");
    text.replace("insufficient capacity, ", "")
        .replace("creating nodeclaim, ", "")
}

#[test]
fn people_read_upstreams_words_and_where_to_ask_for_more() {
    let cases = [
        (
            ("OperationNotAllowed", "LowPriorityCores", "spot"),
            "this subscription has reached the regional vCPU quota for spot (LowPriorityQuota). To scale beyond this limit, please review the quota increase process here: https://docs.microsoft.com/en-us/azure/azure-portal/supportability/low-priority-quota",
        ),
        (
            ("OverconstrainedZonalAllocationRequest", "", "spot"),
            "unable to allocate resources in the selected zone (r-1) with spot capacity type and Standard_D4s_v3 VM size. (will try a different zone, capacity type or VM size to fulfill your request)",
        ),
        (
            ("OverconstrainedAllocationRequest", "", "spot"),
            "unable to allocate resources in all zones with spot capacity type and Standard_D4s_v3 VM size. (will try a different capacity type or VM size to fulfill your request)",
        ),
        (
            (
                "OperationNotAllowed",
                "exceeding approved Total Regional Cores quota",
                "spot",
            ),
            "regional spot vCPU quota limit for subscription has been reached. To scale beyond this limit, please review the quota increase process here: https://learn.microsoft.com/en-us/azure/quotas/regional-quota-requests",
        ),
    ];
    for ((code, message, kind), words) in cases {
        let text = told(code, message, kind);
        assert_eq!(text, words);
    }
}

#[test]
fn a_size_that_nobody_may_have_here_takes_its_larger_brothers_along_as_either_kind_of_capacity() {
    let mut chosen = chosen("r-1", "on-demand");
    let only_on_demand = |it: &model::snapshot::CatalogOffering| {
        let mut kinds = it.requirements.iter().filter(|it| it.key == CAPACITY_TYPE);
        kinds.any(|it| it.values == ["on-demand"])
    };
    Arc::make_mut(&mut chosen.entry).offerings.retain(only_on_demand);
    for (code, expected) in [
        ("VMSizeNotSupported", 6),
        ("ZonalAllocationFailed", 2),
        ("AllocationFailed", 4),
        ("SkuNotAvailable", 2),
    ] {
        let refusal = refusal(&Failure::with_code(code, String::new()), &chosen, &record());
        assert_eq!(refusal.shortages.len(), expected, "{code}: {:?}", refusal.shortages);
    }
}

#[test]
fn a_regional_quota_gives_the_claim_up_and_marks_nothing() {
    let failure = Failure {
        code: "OperationNotAllowed".to_owned(),
        message: "exceeding approved Total Regional Cores quota".to_owned(),
        status: Some(409),
        ..Failure::default()
    };
    let refusal = refusal(&failure, &chosen("r-1", "on-demand"), &record());
    assert!(
        matches!(&refusal.error, CloudError::InsufficientCapacity { offerings, .. } if offerings.is_empty()),
        "{:?}",
        refusal.error
    );
    assert!(refusal.shortages.is_empty());
}

#[test]
fn anything_else_is_tried_again_with_its_words() {
    let failure = Failure {
        code: "InvalidParameter".to_owned(),
        message: "x".repeat(5000),
        status: Some(400),
        ..Failure::default()
    };
    let refusal = refusal(&failure, &chosen("r-1", "spot"), &record());
    let CloudError::Create { reason, message } = refusal.error else {
        panic!("{:?}", refusal.error)
    };
    assert_eq!(
        (reason.as_str(), message.chars().count()),
        ("CreateInstanceFailed", 1200)
    );
    assert!(refusal.shortages.is_empty());
}
