//! Whatever is asked in whatever order, does the world stay one that Azure could be in?

use arm::{
    Double,
    knob::{Effect, Stock, When},
};
use proptest::prelude::*;
use serde_json::json;

use crate::client::Azure;

/// How many names there are, so that steps meet each other.
const NAMES: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Nic(usize),
    Vm { name: usize, is_spot: bool, zone: usize },
    DeleteVm(usize),
    DeleteNic(usize),
    Patch(usize),
    Extension(usize),
    Wait(i64),
    FailNextVm,
    LoseNext,
    SellOut(bool),
    Evict(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES;
    prop_oneof![
        3 => name.clone().prop_map(Step::Nic),
        4 => (name.clone(), any::<bool>(), 0..3_usize).prop_map(|(name, is_spot, zone)| Step::Vm { name, is_spot, zone }),
        2 => name.clone().prop_map(Step::DeleteVm),
        1 => name.clone().prop_map(Step::DeleteNic),
        1 => name.clone().prop_map(Step::Patch),
        1 => name.clone().prop_map(Step::Extension),
        2 => (0..20_i64).prop_map(Step::Wait),
        1 => Just(Step::FailNextVm),
        1 => Just(Step::LoseNext),
        1 => any::<bool>().prop_map(Step::SellOut),
        1 => name.prop_map(Step::Evict),
    ]
}

async fn take(azure: &Azure, step: &Step) {
    let named = |index: &usize| format!("aks-{index}");
    match step {
        Step::Nic(index) => {
            let name = named(index);
            azure
                .try_call("PUT", &azure.nic(&name), Some(&azure.nic_body(&name)))
                .await;
        }
        Step::Vm { name, is_spot, zone } => {
            let name = named(name);
            let mut body = if *is_spot {
                azure.spot_body(&name)
            } else {
                azure.vm_body(&name)
            };
            body["zones"] = json!([(zone + 1).to_string()]);
            azure.try_call("PUT", &azure.vm(&name), Some(&body)).await;
        }
        Step::DeleteVm(index) => drop(azure.try_call("DELETE", &azure.vm(&named(index)), None).await),
        Step::DeleteNic(index) => drop(azure.try_call("DELETE", &azure.nic(&named(index)), None).await),
        Step::Patch(index) => {
            let patch = json!({"tags": {"a": "b"}});
            azure.try_call("PATCH", &azure.vm(&named(index)), Some(&patch)).await;
        }
        Step::Extension(index) => {
            let body = json!({"location": "eastus", "properties": {"publisher": "p", "type": "t"}});
            let target = azure.extension(&named(index), "billing");
            azure.try_call("PUT", &target, Some(&body)).await;
        }
        Step::Wait(seconds) => azure.double.advance(*seconds).unwrap(),
        Step::FailNextVm => {
            let effect = Effect::Async {
                code: "AllocationFailed".to_owned(),
                message: None,
            };
            azure.double.fail_next("VirtualMachines_CreateOrUpdate", effect);
        }
        Step::LoseNext => azure.double.fail_next("*_CreateOrUpdate", Effect::Lost {}),
        Step::SellOut(is_sold) => {
            let none = Stock::none("*", "1", "*", "ZonalAllocationFailed", When::Sync);
            azure.double.stock(if *is_sold { vec![none] } else { Vec::new() });
        }
        // There may be none, or one that is not spot.
        Step::Evict(index) => drop(azure.double.evict(&named(index), 5)),
    }
}

/// What holds at every moment.
fn check(double: &Double) {
    assert_eq!(double.violations(), []);
    let state = double.state();
    let (nics, disks) = (&state.nics, &state.disks);
    for vm in &state.vms {
        let own = nics.iter().find(|nic| nic.name == vm.name);
        assert_eq!(
            own.and_then(|nic| nic.vm.as_ref()),
            Some(&vm.id),
            "{} has its interface",
            vm.name
        );
        let own = disks.iter().find(|disk| disk.name == vm.name);
        assert_eq!(
            own.and_then(|disk| disk.vm.as_ref()),
            Some(&vm.id),
            "{} has its disk",
            vm.name
        );
    }
    let is_there = |id: &Option<String>| id.as_ref().is_none_or(|id| state.vms.iter().any(|vm| vm.id == *id));
    assert!(nics.iter().all(|nic| is_there(&nic.vm)), "{nics:?}");
    assert!(
        disks.iter().all(|disk| disk.vm.is_some() && is_there(&disk.vm)),
        "{disks:?}"
    );
    // Twelve of four cores fit into neither quota.
    assert!(state.cores.values().all(|used| *used <= 10), "{:?}", state.cores);
}

async fn play(steps: &[Step]) {
    let azure = Azure::start().await;
    azure.double.latency("*", 10);
    azure.double.latency("NetworkInterfaces_*", 0);
    azure.double.quota("standardDSv5Family", 8);
    azure.double.quota("lowPriorityCores", 8);
    for step in steps {
        take(&azure, step).await;
        check(&azure.double);
    }
    azure.turn("reset", json!({}));
    azure.double.advance(200).unwrap();
    for index in 0..NAMES {
        azure.call("DELETE", &azure.vm(&format!("aks-{index}")), None).await;
        azure.call("DELETE", &azure.nic(&format!("aks-{index}")), None).await;
    }
    let state = azure.double.state();
    assert_eq!((state.vms.len(), state.nics.len(), state.disks.len()), (1, 1, 1));
    assert_eq!(state.in_progress, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_leaks_and_no_quota_is_passed(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(&steps));
    }
}
