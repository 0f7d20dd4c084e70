//! The cases.

use std::{sync::Arc, time::Duration};

use api::labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE};
use model::{
    object::{Condition, ConditionStatus, NodeClaim, ProviderId},
    snapshot::CatalogType,
};

use super::{Case, Fault, Harness};
use crate::{CloudError, Instance, LaunchToken, Launched, RepairPolicies, Sweep};

type Verdict = Result<(), String>;

macro_rules! cases {
    ($($name:ident,)*) => {
        /// Every case.
        pub(super) fn all() -> Vec<Case> {
            vec![$(Case { name: stringify!($name), run: |harness| Box::pin($name(harness)) },)*]
        }
    };
}
cases! {
    a_launch_says_what_was_launched,
    one_token_launches_one_machine,
    a_new_attempt_after_a_dead_one_launches_another_machine,
    a_launch_whose_answer_was_lost_is_found_again,
    a_machine_whose_launch_was_not_recorded_is_deleted_with_its_claim,
    a_launch_that_failed_half_way_leaves_nothing_behind,
    deleting_goes_on_until_the_machine_is_gone_and_no_further,
    deleting_what_never_was_finds_nothing,
    getting_what_is_gone_finds_nothing,
    machines_are_listed_with_the_claim_they_were_launched_for,
    a_machine_that_reads_do_not_show_yet_is_not_missed,
    foreign_machines_are_neither_listed_nor_deleted,
    a_throttled_launch_says_when_to_come_back_and_then_succeeds,
    a_shortage_names_the_offering,
    types_that_cannot_be_had_are_listed_all_the_same,
    every_offering_says_where_and_how,
    a_fresh_machine_has_not_drifted,
    repair_policies_are_in_order,
}

/// How often a deletion is asked for before it counts as stuck.
const PATIENCE: usize = 200;

fn token(claim: &NodeClaim, attempt: u32) -> LaunchToken {
    LaunchToken {
        claim: claim.metadata.uid.clone(),
        attempt,
    }
}

fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise()) }
}

async fn launch(harness: &dyn Harness, claim: &NodeClaim, attempt: u32) -> Result<Launched, String> {
    let launched = harness.cloud().create(claim, &token(claim, attempt)).await;
    launched.map_err(|error| format!("launching {} failed: {error}", claim.metadata.name))
}

/// The claim as it looks once its launch is recorded.
fn recorded(claim: &NodeClaim, launched: &Launched, harness: &dyn Harness) -> NodeClaim {
    let mut claim = claim.clone();
    claim.status.provider_id = Some(launched.provider_id.clone().into());
    claim.status.conditions = vec![Condition {
        kind: "Launched".into(),
        status: ConditionStatus::True,
        last_transition_time: Some(harness.now()),
        ..Condition::default()
    }]
    .into();
    claim
}

/// Deletes until the provider says that nothing is left.
async fn delete(harness: &dyn Harness, claim: &NodeClaim) -> Verdict {
    for _ in 0..PATIENCE {
        match harness.cloud().delete(claim).await {
            Ok(()) => harness.advance(Duration::from_secs(5)).await,
            Err(CloudError::NotFound(_)) => return Ok(()),
            Err(error) => return Err(format!("deleting {} failed: {error}", claim.metadata.name)),
        }
    }
    Err(format!(
        "{} was not gone after {PATIENCE} calls of delete",
        claim.metadata.name
    ))
}

async fn list(harness: &dyn Harness) -> Result<Vec<Instance>, String> {
    let listed = harness.cloud().list().await;
    listed.map_err(|error| format!("listing failed: {error}"))
}

type Types = Vec<Arc<CatalogType>>;

async fn types(harness: &dyn Harness) -> Result<Types, String> {
    let types = harness.cloud().instance_types(&harness.pool()).await;
    types.map_err(|error| format!("asking for types failed: {error}"))
}

async fn expect_machines(harness: &dyn Harness, expected: &[&str]) -> Verdict {
    let mut running: Vec<_> = harness.machines().await.iter().map(ToString::to_string).collect();
    let mut expected: Vec<_> = expected.iter().map(ToString::to_string).collect();
    running.sort_unstable();
    expected.sort_unstable();
    check(running == expected, || {
        format!("{running:?} run, but {expected:?} should")
    })
}

async fn a_launch_says_what_was_launched(harness: &dyn Harness) -> Verdict {
    let launched = launch(harness, &harness.claim("a"), 1).await?;
    check(!launched.provider_id.is_empty(), || "no provider ID".to_owned())?;
    for key in [INSTANCE_TYPE, ZONE, CAPACITY_TYPE] {
        check(launched.labels.get(key).is_some(), || format!("label {key} is missing"))?;
    }
    check(!launched.allocatable.is_empty(), || "nothing to allocate".to_owned())?;
    expect_machines(harness, &[&launched.provider_id]).await?;
    let got = harness.cloud().get(&launched.provider_id.clone().into()).await;
    let got = got.map_err(|error| format!("the machine cannot be read: {error}"))?;
    let (told, read) = (
        launched.labels.get(INSTANCE_TYPE),
        got.launched.labels.get(INSTANCE_TYPE),
    );
    check(told == read, || format!("launched as {told:?}, read as {read:?}"))
}

async fn one_token_launches_one_machine(harness: &dyn Harness) -> Verdict {
    let claim = harness.claim("a");
    let first = launch(harness, &claim, 1).await?;
    let second = launch(harness, &claim, 1).await?;
    check(first == second, || format!("first {first:?}, then {second:?}"))?;
    expect_machines(harness, &[&first.provider_id]).await
}

async fn a_new_attempt_after_a_dead_one_launches_another_machine(harness: &dyn Harness) -> Verdict {
    let claim = harness.claim("a");
    let first = launch(harness, &claim, 1).await?;
    delete(harness, &recorded(&claim, &first, harness)).await?;
    let second = launch(harness, &claim, 2).await?;
    check(first.provider_id != second.provider_id, || {
        format!("{} was launched twice", first.provider_id)
    })?;
    expect_machines(harness, &[&second.provider_id]).await
}

async fn a_launch_whose_answer_was_lost_is_found_again(harness: &dyn Harness) -> Verdict {
    if !harness.inject(Fault::LostResponse).await {
        return Ok(());
    }
    let claim = harness.claim("a");
    // A provider may notice by itself and ask again.
    drop(harness.cloud().create(&claim, &token(&claim, 1)).await);
    let found = launch(harness, &claim, 1).await?;
    expect_machines(harness, &[&found.provider_id]).await
}

async fn a_machine_whose_launch_was_not_recorded_is_deleted_with_its_claim(harness: &dyn Harness) -> Verdict {
    let claim = harness.claim("a");
    launch(harness, &claim, 1).await?;
    delete(harness, &claim).await?;
    expect_machines(harness, &[]).await
}

async fn a_launch_that_failed_half_way_leaves_nothing_behind(harness: &dyn Harness) -> Verdict {
    if !harness.inject(Fault::PartialFailure).await {
        return Ok(());
    }
    let claim = harness.claim("a");
    let failed = harness.cloud().create(&claim, &token(&claim, 1)).await;
    check(failed.is_err(), || "the launch did not fail".to_owned())?;
    delete(harness, &claim).await?;
    expect_machines(harness, &[]).await
}

async fn deleting_goes_on_until_the_machine_is_gone_and_no_further(harness: &dyn Harness) -> Verdict {
    let (claim, other) = (harness.claim("a"), harness.claim("b"));
    let launched = launch(harness, &claim, 1).await?;
    let stays = launch(harness, &other, 1).await?;
    let claim = recorded(&claim, &launched, harness);
    delete(harness, &claim).await?;
    expect_machines(harness, &[&stays.provider_id]).await?;
    let again = harness.cloud().delete(&claim).await;
    check(matches!(again, Err(CloudError::NotFound(_))), || {
        format!("deleting again: {again:?}")
    })
}

async fn deleting_what_never_was_finds_nothing(harness: &dyn Harness) -> Verdict {
    let deleted = harness.cloud().delete(&harness.claim("a")).await;
    check(matches!(deleted, Err(CloudError::NotFound(_))), || {
        format!("{deleted:?}")
    })
}

async fn getting_what_is_gone_finds_nothing(harness: &dyn Harness) -> Verdict {
    let claim = harness.claim("a");
    let launched = launch(harness, &claim, 1).await?;
    delete(harness, &recorded(&claim, &launched, harness)).await?;
    let got = harness.cloud().get(&launched.provider_id.into()).await;
    check(matches!(got, Err(CloudError::NotFound(_))), || format!("{got:?}"))
}

async fn machines_are_listed_with_the_claim_they_were_launched_for(harness: &dyn Harness) -> Verdict {
    let claims = [harness.claim("a"), harness.claim("b")];
    for claim in &claims {
        let launched = launch(harness, claim, 1).await?;
        let listed = list(harness).await?;
        let own = listed
            .iter()
            .find(|it| *it.provider_id.as_str() == *launched.provider_id);
        let own = own.ok_or_else(|| format!("{} is not listed", launched.provider_id))?;
        let (name, uid) = (Some(claim.name()), Some(claim.metadata.uid.clone()));
        check(own.claim == name && own.claim_uid == uid, || {
            format!(
                "listed for {:?} ({:?}), but it was for {name:?} ({uid:?})",
                own.claim, own.claim_uid
            )
        })?;
        check(own.launched_at.is_some(), || "no time of launch".to_owned())?;
    }
    let count = list(harness).await?.len();
    check(count == claims.len(), || format!("{count} machines are listed"))
}

async fn a_machine_that_reads_do_not_show_yet_is_not_missed(harness: &dyn Harness) -> Verdict {
    let lag = Duration::from_secs(30);
    if !harness.inject(Fault::ReadLag(lag)).await {
        return Ok(());
    }
    let claim = harness.claim("a");
    let launched = launch(harness, &claim, 1).await?;
    let claim = recorded(&claim, &launched, harness);
    let mut sweep = Sweep::default();
    for _ in 0..2 {
        let findings = sweep.look(&list(harness).await?, [&claim], harness.now());
        check(findings.bereft.is_empty(), || format!("{findings:?}"))?;
        harness.advance(lag).await;
    }
    let listed = list(harness).await?;
    check(listed.len() == 1, || {
        format!("{} machines are listed after the lag", listed.len())
    })
}

async fn foreign_machines_are_neither_listed_nor_deleted(harness: &dyn Harness) -> Verdict {
    let Some(foreign) = harness.start_foreign().await else {
        return Ok(());
    };
    let is_foreign = |id: &ProviderId| *id == foreign;
    let listed = list(harness).await?;
    check(!listed.iter().any(|it| is_foreign(&it.provider_id)), || {
        format!("{foreign} is listed")
    })?;
    let claim = harness.claim("a");
    let launched = launch(harness, &claim, 1).await?;
    delete(harness, &recorded(&claim, &launched, harness)).await?;
    // A claim that names it does not make it ours.
    let mut astray = harness.claim("b");
    astray.status.provider_id = Some(foreign.clone());
    let deleted = harness.cloud().delete(&astray).await;
    check(deleted.is_err(), || format!("{foreign} was accepted for deletion"))?;
    let running = harness.machines().await;
    check(running.iter().any(is_foreign), || format!("{foreign} is gone"))
}

async fn a_throttled_launch_says_when_to_come_back_and_then_succeeds(harness: &dyn Harness) -> Verdict {
    let wait = Duration::from_secs(7);
    if !harness.inject(Fault::Throttled(wait)).await {
        return Ok(());
    }
    let claim = harness.claim("a");
    match harness.cloud().create(&claim, &token(&claim, 1)).await {
        // A provider may wait by itself.
        Ok(_)
        | Err(CloudError::Throttled {
            retry_after: Some(_), ..
        }) => {}
        refused => return Err(format!("{refused:?}")),
    }
    harness.advance(wait).await;
    let launched = launch(harness, &claim, 1).await?;
    expect_machines(harness, &[&launched.provider_id]).await
}

async fn a_shortage_names_the_offering(harness: &dyn Harness) -> Verdict {
    if !harness.inject(Fault::OutOfStock).await {
        return Ok(());
    }
    let claim = harness.claim("a");
    let version = harness.cloud().offers_version();
    match harness.cloud().create(&claim, &token(&claim, 1)).await {
        Err(CloudError::InsufficientCapacity { offerings, .. }) => {
            let is_named = |it: &crate::UnavailableOffering| it.instance_type.is_some() || it.capacity_type.is_some();
            check(offerings.iter().any(is_named), || format!("it names {offerings:?}"))
        }
        // The claim is tried again, so the offering must be gone from what it chooses from.
        Err(CloudError::Create { reason, .. }) => check(harness.cloud().offers_version() != version, || {
            format!("{reason}, and everything is on offer as before")
        }),
        refused => Err(format!("{refused:?}")),
    }
}

async fn types_that_cannot_be_had_are_listed_all_the_same(harness: &dyn Harness) -> Verdict {
    let before = types(harness).await?;
    if !harness.inject(Fault::OutOfStock).await {
        return Ok(());
    }
    let claim = harness.claim("a");
    let version = harness.cloud().offers_version();
    drop(harness.cloud().create(&claim, &token(&claim, 1)).await);
    let after = types(harness).await?;
    let names = |types: &Types| types.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    check(names(&before) == names(&after), || "types vanished".to_owned())?;
    check(before == after || harness.cloud().offers_version() != version, || {
        "the offers changed, but not their version".to_owned()
    })
}

async fn every_offering_says_where_and_how(harness: &dyn Harness) -> Verdict {
    let types = types(harness).await?;
    check(!types.is_empty(), || "there are no types".to_owned())?;
    let mut names: Vec<_> = types.iter().map(|it| it.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    check(names.len() == types.len(), || "a type is listed twice".to_owned())?;
    for entry in &types {
        for offering in &entry.offerings {
            let says = |key| {
                offering
                    .requirements
                    .iter()
                    .any(|it| it.key == key && !it.values.is_empty())
            };
            check(says(ZONE) && says(CAPACITY_TYPE), || {
                format!("an offering of {} lacks zone or capacity type", entry.name)
            })?;
        }
    }
    Ok(())
}

async fn a_fresh_machine_has_not_drifted(harness: &dyn Harness) -> Verdict {
    let claim = harness.claim("a");
    let launched = launch(harness, &claim, 1).await?;
    let mut claim = recorded(&claim, &launched, harness);
    claim.metadata.labels = launched.labels.clone();
    claim.metadata.annotations = launched.annotations.clone();
    claim.status.image_id = launched.image_id.clone();
    let drifted = harness.cloud().is_drifted(&claim).await;
    check(matches!(drifted, Ok(None)), || format!("{drifted:?}"))
}

async fn repair_policies_are_in_order(harness: &dyn Harness) -> Verdict {
    let policies = harness.cloud().repair_policies();
    if policies.is_empty() {
        return Ok(());
    }
    RepairPolicies::new(policies)
        .map(drop)
        .map_err(|error| error.to_string())
}
