//! Nodes that go, or are replaced or rebooted: found, begun, carried out, given up.

use std::time::Duration;

use disruption::{Candidate, Command, Decision, Replacement};
use jiff::Timestamp;
use ledger::{Action, Id, MOST_LISTED, Money, Offer, Phase, Record, Target, Usd, cut};

use super::{launches::name_of, nodes::score, story::inputs_of};
use crate::Cluster;

/// The decision that a command is: what is done, to which claims.
pub(crate) fn id_of_move(command: &Command) -> Id {
    let mut claims: Vec<&str> = command.candidates.iter().map(|it| it.claim.as_str()).collect();
    claims.sort_unstable();
    Id::of(command.decision().as_str(), claims)
}

/// Writes down what a round found.
pub(crate) fn planned(
    cluster: &Cluster,
    commands: &[Command],
    inputs: &model::snapshot::Inputs,
    took: Duration,
) -> Vec<Id> {
    if !cluster.book().is_on() || commands.is_empty() {
        return Vec::new();
    }
    let (inputs, now) = (inputs_of(cluster, inputs, took), cluster.now());
    let mut pages = cluster.book().pages();
    let mut ids = Vec::new();
    for command in commands {
        let id = id_of_move(command);
        ids.push(id);
        if pages.ring.get(id).is_some_and(|known| known.phase == Phase::UnderWay) {
            continue;
        }
        let mut record = record(id, command, now);
        record.inputs = inputs.clone();
        if let Some(known) = pages.ring.get(id) {
            record.count = known.count + 1;
        }
        pages.ring.put(record);
    }
    ids
}

/// Writes down that a command is being carried out.
pub(crate) fn begun(cluster: &Cluster, id: Id, command: &Command) {
    if !cluster.book().is_on() {
        return;
    }
    let now = cluster.now();
    let mut pages = cluster.book().pages();
    if pages.ring.get(id).is_none() {
        pages.ring.put(record(id, command, now));
    }
    let is_reboot = command.is_reboot;
    pages.ring.change(id, |record| {
        record.phase = if is_reboot { Phase::Done } else { Phase::UnderWay };
        record.step("validated", now);
        record.step(if is_reboot { "rebooted" } else { "tainted" }, now);
        // Nodes that could not be marked are not part of it any more.
        record.nodes = command.candidates.len();
    });
    if !is_reboot {
        pages.leave(id, command.candidates.iter().map(|candidate| candidate.claim.as_str()));
    }
}

/// Writes down how far a command has come.
pub(crate) fn went_on(cluster: &Cluster, id: Id, step: &str) {
    if cluster.book().is_on() {
        let now = cluster.now();
        cluster.book().pages().ring.change(id, |record| record.step(step, now));
    }
}

/// Writes down that a command came to nothing.
pub(crate) fn aborted(cluster: &Cluster, id: Id, command: &Command, why: &str) {
    if !cluster.book().is_on() {
        return;
    }
    let now = cluster.now();
    let mut pages = cluster.book().pages();
    if pages.ring.get(id).is_none() {
        pages.ring.put(record(id, command, now));
    }
    pages.stay(id);
    pages.ring.change(id, |record| {
        record.phase = Phase::Aborted;
        record.detail = cut(why);
        record.step("given up", now);
    });
}

fn record(id: Id, command: &Command, now: Timestamp) -> Record {
    let action = match command.decision() {
        Decision::Delete | Decision::TerminateFirst => Action::Delete,
        Decision::Replace => Action::Replace,
        Decision::Reboot => Action::Reboot,
    };
    let mut record = Record::new(id, action, Phase::Planned, command.reason().as_str(), now);
    let pools: Vec<&str> = command.node_pools().iter().map(|pool| pool.as_str()).collect();
    record.pool = pools.join(",");
    record.nodes = command.candidates.len();
    record.targets = command.candidates.iter().take(MOST_LISTED).map(target).collect();
    let before = Usd::from(command.source_price());
    let saving = Usd::from_picos(command.saving.0);
    if !command.is_reboot {
        record.money = Some(Money {
            before_usd_h: before,
            after_usd_h: before - saving,
        });
    }
    record.score = command.scores.first().map(score);
    record.options = options(command, before, before - saving);
    record.pods = moves(command);
    record.pod_count = command.pod_count();
    if command.terminate_first.is_some() {
        "no replacement can be had before it goes".clone_into(&mut record.detail);
    }
    record.step("planned", now);
    record
}

fn target(candidate: &Candidate) -> Target {
    Target {
        node: candidate.node.to_string(),
        claim: candidate.claim.to_string(),
        instance_type: candidate.instance_type.to_string(),
        zone: candidate.zone.to_string(),
        capacity: candidate.capacity_type.to_string(),
        usd_h: Some(candidate.price.into()),
        comes: false,
    }
}

/// What is done, what else could come instead, and what staying costs.
fn options(command: &Command, before: Usd, after: Usd) -> Vec<Offer> {
    let planned = || command.replacements.iter().filter_map(Replacement::planned);
    let launches: Vec<String> = planned()
        .filter_map(|claim| claim.cheapest.as_ref())
        .map(|launch| {
            let target = Target {
                instance_type: launch.instance_type.to_string(),
                zone: launch.zone.as_deref().unwrap_or_default().to_owned(),
                capacity: launch.capacity_type.as_deref().unwrap_or_default().to_owned(),
                ..Target::default()
            };
            target.to_string()
        })
        .collect();
    let chosen = match command.decision() {
        Decision::Reboot => "reboot it".to_owned(),
        Decision::Delete => "delete, pods to existing nodes".to_owned(),
        Decision::TerminateFirst => "delete before a replacement comes".to_owned(),
        Decision::Replace if launches.is_empty() => "replace from the static NodePool".to_owned(),
        Decision::Replace => format!("replace by {}", launches.join(", ")),
    };
    let is_priced = !command.is_reboot;
    let mut offers = vec![Offer {
        offer: cut(&chosen),
        usd_h: is_priced.then_some(after),
        verdict: "chosen".to_owned(),
    }];
    if let [Replacement::Planned(claim)] = command.replacements.as_slice() {
        let chosen = claim.cheapest.as_ref().map(|launch| &launch.instance_type);
        let others = claim.options.iter().filter(|name| Some(*name) != chosen).take(3);
        offers.extend(others.map(|name| Offer {
            offer: format!("replace by {name}"),
            usd_h: None,
            verdict: "fits; not cheaper".to_owned(),
        }));
    }
    offers.push(Offer {
        offer: format!("keep {} node(s) as they are", command.candidates.len()),
        usd_h: is_priced.then_some(before),
        verdict: "do nothing".to_owned(),
    });
    offers
}

/// Where the first pods go.
fn moves(command: &Command) -> Vec<String> {
    let existing = command.plan.existing.iter().flat_map(|node| {
        let name = node.name.to_string();
        node.pods.iter().map(move |pod| (pod, name.clone()))
    });
    let new = command.plan.claims.iter().flat_map(|claim| {
        let pods = claim.pods.iter();
        pods.map(|pod| (pod, "a new node".to_owned()))
    });
    let placed: std::collections::BTreeMap<_, _> =
        existing.chain(new).map(|(pod, to)| (pod.metadata.key(), to)).collect();
    let pods = command.candidates.iter().flat_map(|candidate| &candidate.reschedulable);
    pods.take(MOST_LISTED)
        .map(|pod| match placed.get(&pod.metadata.key()) {
            Some(to) => format!("{} → {to}", name_of(pod)),
            None => name_of(pod),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use disruption::{Cost, Method, Saving};
    use model::{plan::Plan, price::Price};

    use super::*;

    fn command(nodes: &[&str]) -> Command {
        let candidate = |node: &&str| Candidate {
            node: (*node).into(),
            claim: format!("claim-{node}").as_str().into(),
            provider_id: (*node).into(),
            node_pool: "general".into(),
            instance_type: "m6i.2xlarge".into(),
            capacity_type: "spot".into(),
            zone: "1b".into(),
            price: Price::from_picos(158_500_000_000),
            reschedule_cost: Cost::NODE,
            disruption_cost: Cost::NODE,
            reschedulable: Vec::new(),
            has_pod_blockers: false,
            is_initialized: true,
            drain_bound: None,
            repair: None,
        };
        Command {
            method: Method::SingleNodeConsolidation,
            candidates: nodes.iter().map(candidate).collect(),
            replacements: Vec::new(),
            plan: Plan::default(),
            terminate_first: None,
            is_reboot: false,
            saving: Saving(158_500_000_000),
            scores: Vec::new(),
        }
    }

    #[test]
    fn a_move_that_is_found_again_is_the_same_decision_in_whatever_order_its_nodes_are() {
        assert_eq!(id_of_move(&command(&["a", "b"])), id_of_move(&command(&["b", "a"])));
        assert_ne!(id_of_move(&command(&["a"])), id_of_move(&command(&["a", "b"])));
        let mut reboot = command(&["a"]);
        reboot.is_reboot = true;
        assert_ne!(id_of_move(&command(&["a"])), id_of_move(&reboot));
    }

    #[test]
    fn the_record_of_a_move_says_what_is_saved_and_what_doing_nothing_costs() {
        let command = command(&["a"]);
        let record = record(id_of_move(&command), &command, Timestamp::UNIX_EPOCH);
        let money = record.money.unwrap();
        assert_eq!((money.after_usd_h, money.delta()), (Usd(0), Usd(-158_500_000)));
        let options: Vec<_> = record
            .options
            .iter()
            .map(|offer| (&*offer.offer, &*offer.verdict))
            .collect();
        let expected = [
            ("delete, pods to existing nodes", "chosen"),
            ("keep 1 node(s) as they are", "do nothing"),
        ];
        assert_eq!(options, expected);
        assert_eq!((record.word(), &*record.reason), ("planned", "Underutilized"));
    }
}
