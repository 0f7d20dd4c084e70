//! Are devices that pods share given out no further than they go?

use serde_json::{Value, json};

use super::fixture::{devices::*, *};

/// A type with one GPU whose memory pods share.
fn shared_gpu(memory: &str, policy: Option<Value>) -> FakeType {
    let mut capacity = json!({ "value": memory });
    if let Some(policy) = policy {
        capacity["requestPolicy"] = policy;
    }
    let device = json!({ "name": "gpu-0", "allowMultipleAllocations": true, "capacity": { MEMORY: capacity } });
    instance_type("gpu-it").devices(json!([template(GPU, "gpu-it-pool", json!([device]))]))
}

/// A type whose profiles draw on a common budget.
fn partitioned(budget: Value, profiles: usize, each: Value) -> FakeType {
    let profile = |at: usize| {
        json!({ "name": format!("profile-{at}"),
                "consumesCounters": [{ "counterSet": "board", "counters": each }] })
    };
    let profiles: Vec<Value> = (0..profiles).map(profile).collect();
    let counters = json!({ "driver": GPU, "pool": { "name": "gpu-it-pool" },
                           "sharedCounters": [{ "name": "board", "counters": budget }] });
    instance_type("gpu-it").devices(json!([counters, template(GPU, "gpu-it-pool", profiles.into())]))
}

fn amounts(entries: &[(&str, &str)]) -> Value {
    Value::Object(
        entries
            .iter()
            .map(|(name, value)| ((*name).to_string(), json!({ "value": value })))
            .collect(),
    )
}

#[test]
fn memory_of_a_shared_device_is_given_out_until_it_is_gone() {
    let asks = |amounts: &[&str]| -> Vec<Value> {
        amounts
            .iter()
            .map(|amount| with_capacity(json!({ MEMORY: amount })))
            .collect()
    };
    let shared = || shared_gpu("16Gi", None);
    assert_eq!(outcome(&plan_for_each(shared(), &asks(&["4Gi"]))), (1, 0, 0));
    assert_eq!(
        outcome(&plan_for_each(shared(), &asks(&["4Gi", "4Gi", "4Gi"]))),
        (1, 0, 0)
    );
    assert_eq!(
        outcome(&plan_for_each(shared(), &asks(&["4Gi", "4Gi", "4Gi", "8Gi"]))),
        (2, 0, 0)
    );
    assert_eq!(outcome(&plan_for_each(shared(), &asks(&["32Gi"]))), (0, 0, 1));
}

#[test]
fn memory_a_leaving_pod_holds_is_free() {
    for (is_leaving, unplaced) in [(false, 1), (true, 0)] {
        let own = node_with("plain-it", "own").initialized();
        let (live, leaving) = (pod("live").on("elsewhere"), pod("leaving").on("own"));
        let mut world = world([plain()]).with(if is_leaving { own.deleting() } else { own });
        let device = json!({ "name": "shared-0", "allowMultipleAllocations": true,
                             "capacity": { MEMORY: { "value": "16Gi" } } });
        world.add(slice(
            "shared",
            GPU,
            &[],
            &json!({ "allNodes": true, "devices": [device] }),
        ));
        for (pod, amount) in [(live, "4Gi"), (leaving, "10Gi")] {
            let (request, consumed) = (with_capacity(json!({ MEMORY: amount })), json!({ MEMORY: amount }));
            world.add(held(&format!("{}-claim", pod.name()), request, Some(consumed), &pod));
            world.add(pod);
        }
        world.add(claim_for("new", json!([with_capacity(json!({ MEMORY: "10Gi" }))])));
        let plan = world.plan_for([user("a", &["new"])]);
        assert_eq!(plan.unplaced.len(), unplaced, "{is_leaving}");
    }
}

#[test]
fn dimension_a_device_does_not_have_cannot_be_had() {
    let request = with_capacity(json!({ MEMORY: "4Gi", "bandwidth": "10" }));
    assert_eq!(outcome(&plan_for_one([shared_gpu("16Gi", None)], request)), (0, 0, 1));
}

#[test]
fn amount_above_the_valid_ones_cannot_be_had() {
    let policy = json!({ "default": "4Gi", "validValues": ["4Gi", "8Gi", "16Gi"] });
    let request = with_capacity(json!({ MEMORY: "32Gi" }));
    assert_eq!(
        outcome(&plan_for_one([shared_gpu("16Gi", Some(policy))], request)),
        (0, 0, 1)
    );
}

#[test]
fn request_without_an_amount_takes_the_default() {
    let kind = shared_gpu("16Gi", Some(json!({ "default": "4Gi" })));
    let each = [exactly("gpu", 1), exactly("gpu", 1), exactly("gpu", 1)];
    assert_eq!(outcome(&plan_for_each(kind, &each)), (1, 0, 0));
}

#[test]
fn profiles_share_a_device_within_its_budget() {
    let memory = |amount: &str| amounts(&[("memory", amount)]);
    let cases = [
        (memory("80Gi"), memory("40Gi"), 2, (1, 0, 0)),
        (memory("80Gi"), memory("40Gi"), 3, (2, 0, 0)),
        (
            amounts(&[("memory", "80Gi"), ("compute", "100")]),
            amounts(&[("memory", "40Gi"), ("compute", "50")]),
            2,
            (1, 0, 0),
        ),
        (memory("40Gi"), memory("80Gi"), 1, (0, 0, 1)),
        (
            amounts(&[("compute", "100")]),
            amounts(&[("compute", "60")]),
            2,
            (2, 0, 0),
        ),
    ];
    for (budget, each, count, expected) in cases {
        let requests = vec![exactly("gpu", 1); count];
        let plan = plan_for_each(partitioned(budget.clone(), count, each.clone()), &requests);
        assert_eq!(outcome(&plan), expected, "{budget} {each} {count}");
    }
}

#[test]
fn pool_whose_devices_draw_on_an_unknown_budget_is_not_used() {
    let mut kind = partitioned(amounts(&[("memory", "80Gi")]), 1, amounts(&[("memory", "40Gi")])).build();
    let devices = &mut kind.dynamic_resources["resourceSliceTemplates"][1]["devices"];
    devices[0]["consumesCounters"][0]["counterSet"] = "nonexistent-counter-set".into();
    let mut world = world([]).with(gpu_claim("gpu"));
    world.types.push(kind);
    assert_eq!(outcome(&world.plan_for([user("a", &["gpu"])])), (0, 0, 1));
}
