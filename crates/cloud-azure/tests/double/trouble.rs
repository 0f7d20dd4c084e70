//! What goes wrong, told by Azure in its own ways.

use std::time::Duration;

use arm::knob::{Effect, Knob, PoolPresence, Stock, Throttle, When};
use cloud::{CloudError, CloudProvider};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    journey::recorded,
    world::{EVERY_TRY, PUT_NIC, PUT_VM, World},
};

const SIZE: &str = "Standard_D4s_v5";
const FAMILY: &str = "standardDSv5Family";

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_once_is_asked_for_again_and_makes_nothing_twice() {
    for lost in [PUT_NIC, PUT_VM] {
        let world = World::new().await;
        world.cut(lost, Effect::Lost {}, Some(1));
        let claim = World::sized("a", SIZE, "spot");
        let claim = recorded(&claim, &world.launch(&claim).await.unwrap());
        assert_eq!(world.azure().count(lost), 2, "{lost}");
        assert_eq!((world.double.vms().len(), world.double.nics().len()), (1, 1), "{lost}");
        world.delete(&claim).await;
        world.judge();
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_whose_answers_are_all_lost_is_found_by_the_next_try_or_removed_with_its_claim() {
    for lost in [PUT_NIC, PUT_VM] {
        for is_tried_again in [true, false] {
            let world = World::new().await;
            world.cut(lost, Effect::Lost {}, EVERY_TRY);
            let claim = World::sized("a", SIZE, "spot");
            let refused = world.launch(&claim).await.unwrap_err();
            assert!(!matches!(refused, CloudError::InsufficientCapacity { .. }), "{refused}");
            if is_tried_again {
                let other = world.another_process().await;
                other.create(&claim, &World::token(&claim)).await.unwrap();
                let vms = world.azure().vms();
                assert_eq!((vms.len(), world.double.leftovers().len()), (1, 0), "{lost}: {vms:?}");
            }
            world.delete(&claim).await;
            world.judge();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_between_interface_and_machine_leaves_one_machine_or_none() {
    for is_tried_again in [true, false] {
        let world = World::new().await;
        world.cut(PUT_VM, Effect::Refused {}, EVERY_TRY);
        let claim = World::sized("a", SIZE, "spot");
        world.launch(&claim).await.unwrap_err();
        assert_eq!(world.azure().leftovers().len(), 1, "the interface is there");
        if is_tried_again {
            let other = world.another_process().await;
            other.create(&claim, &World::token(&claim)).await.unwrap();
            assert_eq!((world.azure().vms().len(), world.double.leftovers().len()), (1, 0));
        }
        world.delete(&claim).await;
        world.judge();
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_is_given_up_takes_along_what_earlier_tries_have_left() {
    // The class is going, and an interface is there without a machine.
    let world = World::new().await;
    world.cut(PUT_VM, Effect::Refused {}, EVERY_TRY);
    let claim = World::sized("a", SIZE, "on-demand");
    world.launch(&claim).await.unwrap_err();
    assert_eq!(world.azure().leftovers().len(), 1);
    world.server.delete("AKSNodeClass", "default").unwrap();
    let other = world.another_process().await;
    let refused = other.create(&claim, &World::token(&claim)).await.unwrap_err();
    assert!(
        matches!(refused, CloudError::InsufficientCapacity { .. }),
        "{refused:?}"
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.judge();
    // Nothing is left to choose.
    let world = World::new().await;
    world.cut(PUT_VM, Effect::Refused {}, EVERY_TRY);
    let claim = World::sized("a", SIZE, "on-demand");
    world.launch(&claim).await.unwrap_err();
    world.azure().quota(FAMILY, 3);
    world.provider.reads().offers().read_quotas().await.unwrap();
    let refused = world.launch(&claim).await.unwrap_err();
    assert!(
        matches!(refused, CloudError::InsufficientCapacity { .. }),
        "{refused:?}"
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn an_interface_whose_claim_is_gone_is_swept() {
    let world = World::new().await;
    world.cut(PUT_VM, Effect::Refused {}, EVERY_TRY);
    world.launch(&World::sized("a", SIZE, "spot")).await.unwrap_err();
    assert_eq!(world.azure().leftovers().len(), 1);
    world.run_for(Duration::from_secs(20)).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_turns_out_to_be_full_gives_machine_and_claim_up_and_is_avoided() {
    let world = World::new().await;
    let claim = world.store(&World::sized("a", SIZE, "on-demand"));
    let fault = Effect::Async {
        code: "ZonalAllocationFailed".to_owned(),
        message: None,
    };
    world.cut(PUT_VM, fault, Some(1));
    let version = world.provider.offers_version();
    let launched = world.launch(&claim).await.unwrap();
    let full = launched.labels.get("topology.kubernetes.io/zone").unwrap().clone();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(
        world.server.get("NodeClaim", "a").is_none(),
        "the claim is to be planned anew"
    );
    assert_ne!(world.provider.offers_version(), version);
    let event = format!("{:?}", world.events.lock().await.try_recv().unwrap());
    assert!(
        event.contains("AsyncProvisioningError") && event.contains("Failed to register: ZonalAllocationFailed"),
        "{event}"
    );
    for name in ["b", "c", "d", "e", "f", "g"] {
        let claim = World::sized(name, SIZE, "on-demand");
        let launched = world.launch(&claim).await.unwrap();
        assert_ne!(launched.labels.get("topology.kubernetes.io/zone"), Some(&full));
        world.delete(&recorded(&claim, &launched)).await;
    }
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn where_spot_has_run_out_at_once_the_offerings_are_named_and_the_held_interface_is_swept_later() {
    let world = World::new().await;
    let out = Stock::none("*", "*", "spot", "SkuNotAvailable", When::Sync);
    world.azure().stock(vec![out]);
    let refused = world.launch(&World::sized("a", SIZE, "spot")).await.unwrap_err();
    let CloudError::Create { reason, message } = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(reason, "SKUNotAvailable");
    assert!(message.contains("SkuNotAvailable"), "{message}");
    let why = |zone| world.provider.reads().offers().why(SIZE, zone, "spot");
    assert!(
        ["eastus-1", "eastus-2", "eastus-3"]
            .iter()
            .all(|zone| why(zone).is_some())
    );
    assert_eq!(why("0"), None, "without a zone it was not asked for");
    let event = world.events.lock().await.try_recv().unwrap();
    assert_eq!((&*event.reason, &event.message), ("SKUNotAvailable", message));
    let held = world.azure().nics();
    assert!(held[0].reserved_until.is_some(), "{held:?}");
    tokio::time::sleep(Duration::from_mins(4)).await;
    world.run_for(Duration::from_secs(20)).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_full_quota_is_told_in_words_whether_we_knew_of_it_or_azure_says_so() {
    let world = World::new().await;
    world.azure().quota(FAMILY, 3);
    // Nobody has read the quotas since: Azure itself refuses.
    let refused = world.launch(&World::sized("a", SIZE, "on-demand")).await.unwrap_err();
    let words = refused.to_string();
    assert!(
        matches!(&refused, CloudError::Create { reason, .. } if reason == "SubscriptionQuotaReached"),
        "{refused:?}"
    );
    assert!(words.contains(&format!("{FAMILY} Cores quota")), "{words}");
    // A process that has read them does not ask.
    let other = world.another_process().await;
    other.reads().offers().read_quotas().await.unwrap();
    let asked = world.azure().count(PUT_VM);
    let claim = World::sized("b", SIZE, "on-demand");
    let refused = other.create(&claim, &World::token(&claim)).await.unwrap_err();
    let words = refused.to_string();
    assert!(
        words.contains(&format!("{FAMILY}: 0 of 3 vCPUs are used, and 4 more are needed")),
        "{words}"
    );
    assert_eq!(world.azure().count(PUT_VM), asked);
    tokio::time::sleep(Duration::from_mins(4)).await;
    world.run_for(Duration::from_secs(20)).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_throttled_client_waits_as_long_as_it_is_told_and_no_longer() {
    let world = World::new().await;
    let few = Throttle {
        operation: "VirtualMachines_*".to_owned(),
        limit: 3,
        window_seconds: 40,
    };
    world.azure().turn(Knob::Throttle(few)).unwrap();
    let began = Instant::now();
    for name in ["a", "b"] {
        let claim = World::sized(name, SIZE, "spot");
        world.launch(&claim).await.unwrap();
    }
    let took = began.elapsed();
    assert!(
        (Duration::from_secs(35)..Duration::from_secs(50)).contains(&took),
        "{took:?}"
    );
    let refused = world.azure().calls().iter().filter(|call| call.status == 429).count();
    assert!(refused > 0, "the limit came to nothing");
    for name in ["a", "b"] {
        world.delete(&World::sized(name, SIZE, "spot")).await;
    }
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_throttled_launch_that_would_wait_too_long_says_until_when() {
    let world = World::new().await;
    let later = Effect::Sync {
        status: 429,
        code: "TooManyRequests".to_owned(),
        message: None,
        retry_after: Some(150),
    };
    world.cut(PUT_VM, later, Some(1));
    let claim = World::sized("a", SIZE, "spot");
    let refused = world.launch(&claim).await.unwrap_err();
    let CloudError::Throttled { retry_after, .. } = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(retry_after, Some(Duration::from_secs(150)));
    tokio::time::sleep(Duration::from_secs(150)).await;
    let claim = recorded(&claim, &world.launch(&claim).await.unwrap());
    world.delete(&claim).await;
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_the_load_balancer_that_is_gone_holds_no_launch_up() {
    let world = World::new().await;
    let first = World::sized("a", SIZE, "spot");
    let first = recorded(&first, &world.launch(&first).await.unwrap());
    let gone = PoolPresence {
        load_balancer: "kubernetes".to_owned(),
        pool: "kubernetes".to_owned(),
        present: false,
    };
    world.azure().turn(Knob::Pool(gone)).unwrap();
    let second = World::sized("b", SIZE, "spot");
    let second = recorded(&second, &world.launch(&second).await.unwrap());
    for claim in [&first, &second] {
        world.delete(claim).await;
    }
    world.judge();
}

#[tokio::test(start_paused = true)]
async fn a_full_subnet_is_told_and_leaves_nothing() {
    let world = World::new().await;
    let full = json!({"subnet": {"name": "aks-subnet", "free": 0}});
    world.azure().turn(serde_json::from_value(full).unwrap()).unwrap();
    let refused = world.launch(&World::sized("a", SIZE, "spot")).await.unwrap_err();
    assert!(refused.to_string().contains("SubnetIsFull"), "{refused}");
    world.judge();
}
