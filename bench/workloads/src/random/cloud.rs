//! What does the random cloud sell? A part of kwok's catalogue with uneven prices, gaps and reservations; and overlays.

use serde_json::{Value, json};

use super::storage::DRIVER;
use crate::catalogue::{InstanceType, KWOK_FAMILY, KWOK_ZONES, Offering, kwok, kwok_price};
use crate::object::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, Object, requirement};
use crate::quantity::dollars;
use crate::rng::Rng;
use crate::snapshot::Snapshot;

/// The label that names a reservation.
pub(super) const RESERVATION_ID: &str = "karpenter.kwok.sh/reservation-id";

pub(super) fn catalogue(rng: &mut Rng) -> Vec<InstanceType> {
    let share = *rng.pick(&[15, 40, 100]);
    let windows = rng.chance(20);
    let mut types: Vec<InstanceType> = kwok()
        .into_iter()
        .filter(|it| windows || it.name.ends_with("linux"))
        // Two types always stay, so that no cluster is without a machine.
        .filter(|it| rng.chance(share) || ["s-4x-amd64-linux", "m-16x-amd64-linux"].contains(&it.name.as_str()))
        .collect();
    let even = rng.chance(30);
    for it in &mut types {
        reprice(it, even, rng);
    }
    if rng.chance(30) {
        for reservation in 0..rng.between(1, 3) {
            reserve(&mut types, reservation, rng);
        }
        close_unreserved(&mut types);
    }
    types
}

/// Prices differ by zone unless they are even; some offerings are sold out.
fn reprice(it: &mut InstanceType, even: bool, rng: &mut Rng) {
    let list = kwok_price(it.cpu, it.memory_mi / 1024);
    for offering in &mut it.offerings {
        let spot = offering.requirements[0]["values"][0] == "spot";
        let percent = if spot { 70 } else { 100 };
        let uneven = if even { 0 } else { u128::from(rng.below(20)) };
        offering.price = dollars(list * (percent + uneven) / 100);
        offering.available = !rng.chance(5);
    }
}

/// Sells a few instances of one type in one zone as a reservation.
fn reserve(types: &mut [InstanceType], index: u64, rng: &mut Rng) {
    let position = usize::try_from(rng.below(types.len() as u64)).unwrap_or_default();
    let id = format!("reservation-{index}");
    let &zone = rng.pick(&KWOK_ZONES);
    let mut offering = Offering::new("reserved", zone, "0.000001".to_string());
    offering.requirements.push(requirement(RESERVATION_ID, "In", &[&id]));
    offering.reservation_capacity = rng.below(4);
    let it = &mut types[position];
    it.offerings.push(offering);
    it.requirements.retain(|r| r["key"] != CAPACITY_TYPE);
    it.requirements
        .push(requirement(CAPACITY_TYPE, "In", &["spot", "on-demand", "reserved"]));
    match it.requirements.iter_mut().find(|r| r["key"] == RESERVATION_ID) {
        Some(ids) => {
            if let Some(values) = ids["values"].as_array_mut() {
                values.push(Value::from(id));
            }
        }
        None => it.requirements.push(requirement(RESERVATION_ID, "In", &[&id])),
    }
}

/// Everything that is not in a reservation says so.
fn close_unreserved(types: &mut [InstanceType]) {
    let absent = || requirement(RESERVATION_ID, "DoesNotExist", &[]);
    for it in types {
        if !it.requirements.iter().any(|r| r["key"] == RESERVATION_ID) {
            it.requirements.push(absent());
        }
        for offering in &mut it.offerings {
            if offering.requirements.len() == 2 {
                offering.requirements.push(absent());
            }
        }
    }
}

/// Types that take few volumes, and offerings whose nodes differ from what their type says. Drawn apart from the rest,
/// so that nodes that run already are as their type says.
pub(super) fn deviate(types: &mut [InstanceType], rng: &mut Rng) {
    let (limited, differing) = (rng.chance(30), rng.chance(25));
    for it in types {
        if limited && rng.chance(60) {
            it.volume_attachment_limits
                .insert(DRIVER.to_string(), rng.between(1, 4).into());
        }
        for offering in &mut it.offerings {
            if differing && rng.chance(15) {
                let key = (*rng.pick(&["example.com/fuse", "example.com/device", "pods"])).to_string();
                offering
                    .capacity_override
                    .insert(key, rng.between(1, 8).to_string().into());
            }
            if differing && rng.chance(10) {
                let reserved = json!({ "cpu": *rng.pick(&["50m", "300m"]), "memory": "64Mi" });
                offering.overhead_override =
                    json!({ "kubeReserved": reserved, "systemReserved": {}, "evictionThreshold": {} });
            }
        }
    }
}

/// NodeOverlays, which count only when their gate is on.
pub(super) fn add_overlays(snapshot: &mut Snapshot, rng: &mut Rng) {
    if !rng.chance(30) {
        return;
    }
    for index in 0..rng.between(1, 3) {
        let overlay = overlay(index, snapshot, rng);
        snapshot.objects.push(overlay);
    }
}

fn overlay(index: u64, snapshot: &Snapshot, rng: &mut Rng) -> Object {
    let name = rng.pick(&snapshot.instance_types).name.clone();
    let selected = [
        requirement(KWOK_FAMILY, "In", &[*rng.pick(&["c", "s", "m"])]),
        requirement(CAPACITY_TYPE, "In", &["spot"]),
        requirement(INSTANCE_TYPE, "In", &[&name]),
        requirement(ARCH, "NotIn", &["arm64"]),
    ];
    let overlay = Object::new("karpenter.sh/v1alpha1", "NodeOverlay", "", &format!("overlay-{index}"))
        .with("metadata.generation", 1)
        .with("spec.weight", rng.between(1, 100))
        .with("spec.requirements", json!([rng.pick(&selected)]));
    match rng.below(3) {
        0 => overlay.with("spec.price", "0.123"),
        1 => overlay.with("spec.priceAdjustment", *rng.pick(&["-10%", "+25%", "+0.05", "-0.01"])),
        _ => overlay.with("spec.capacity", json!({ "example.com/device": "2" })),
    }
}
