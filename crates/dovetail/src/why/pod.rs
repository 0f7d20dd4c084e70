//! Why a pod is where it is, for a person.

use insight::{
    NewNode,
    fleet::NodeRow,
    funnel::Funnel,
    why::pod::{PodExplanation, PodState},
};

use super::{nothing_to_fix, object::patch};
use crate::{
    failure::Failure,
    plan::funnel,
    terminal::{Amount, Role, Screen, counted, hanging, span},
};

/// Of which NodePools the way of a pod is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pools {
    /// Where it comes furthest, with the smallest change that helps.
    Furthest,
    /// Of each.
    All,
    /// Of this one.
    One(String),
}

pub(super) fn render(why: &PodExplanation, pools: &Pools, screen: &Screen) -> String {
    let width = screen.text_width();
    let mut text = hanging("", &sentence(why), width);
    text = text.replacen(&why.pod, &screen.paint(Role::Heading, &why.pod), 1);
    let part = |name: &str, rest: &str| hanging(&format!("  {name:13} "), rest, width);
    text.push_str(&part("wants", &wants(why)));
    if why.state == PodState::Blocked && why.existing.looked_at > 0 {
        text.push_str(&part(
            &format!("on {}", counted(why.existing.looked_at, "node")),
            &existing(why),
        ));
    }
    if let Some(way) = &why.funnel {
        text.push('\n');
        text.push_str(&ways(why, way, pools, screen));
    } else if why.state == PodState::Blocked && !why.message.is_empty() {
        text.push_str(&part("refused", &why.message));
    }
    if let Some(node) = &why.node {
        text.push_str(&part("node", &place(node)));
    }
    for stay in &why.stays {
        text.push_str(&part("stays", &stay.text));
        if let Some(fix) = &stay.fix {
            text.push_str(&part("", &format!("{}: {}", fix.object, fix.change)));
        }
    }
    if why.is_crowded_out {
        text.push_str(&part("crowded out", "it would have a place if no other pod wanted one"));
    }
    text
}

fn ways(why: &PodExplanation, furthest: &Funnel, pools: &Pools, screen: &Screen) -> String {
    let others = why.ways.iter().filter(|way| match pools {
        Pools::Furthest => false,
        Pools::All => way.node_pool != furthest.node_pool,
        Pools::One(name) => way.node_pool == *name,
    });
    let others = others.map(|way| funnel::way(&way.node_pool, &way.steps, screen));
    let others: String = others.collect();
    match pools {
        Pools::One(name) if others.is_empty() => format!("   pool {name} was not tried\n"),
        Pools::One(_) => others,
        Pools::Furthest | Pools::All => others + &funnel::render(furthest, screen),
    }
}

fn sentence(why: &PodExplanation) -> String {
    let since = why
        .since_s
        .map(|since| format!(" for {}", span(since)))
        .unwrap_or_default();
    let pod = &why.pod;
    match why.state {
        PodState::Blocked => {
            let because = match (&why.funnel, &why.stops_at) {
                (Some(funnel), Some(stop)) => {
                    let note = funnel
                        .stops_at()
                        .map(|step| funnel::brief(&step.note))
                        .unwrap_or_default();
                    format!("NodePool {} stops at {stop} ({note})", funnel.node_pool)
                }
                _ if why.message.is_empty() => "no node was found for it".to_owned(),
                _ => "it is refused".to_owned(),
            };
            format!("{pod} has been pending{since}: {because}.")
        }
        PodState::OnItsWay => {
            let launch = why.launch.as_ref().map(described).unwrap_or_default();
            format!("{pod} has been pending{since} and nothing is in its way: the plan launches {launch} for it.")
        }
        PodState::FitsExisting => {
            let node = why.node.as_ref().map(|node| node.name.as_str()).unwrap_or_default();
            format!(
                "{pod} has been pending{since}, and {node} has room for it: {} places it there.",
                why.scheduler
            )
        }
        PodState::Running => {
            let node = bound_to(why);
            format!("{pod} has been on {node}{since}; {}.", kept(why))
        }
        PodState::Leaving => {
            let node = bound_to(why);
            format!(
                "{pod} is being deleted and still on {node}: its grace period ended {} ago.",
                span(why.since_s.unwrap_or_default())
            )
        }
        PodState::Ended => format!("{pod} has ended."),
        PodState::NotTried => {
            format!(
                "{pod} has no node{since}, and none is launched for it: {}.",
                why.message
            )
        }
    }
}

fn bound_to(why: &PodExplanation) -> &str {
    why.bound_to.as_deref().unwrap_or_default()
}

/// What keeps a pod where it is: its own rules, or else those of its node.
fn kept(why: &PodExplanation) -> String {
    if !why.stays.is_empty() {
        return "it may not be moved".to_owned();
    }
    match (&why.node, why.node_stays.first()) {
        (None, _) => "that node is not among those read".to_owned(),
        (Some(_), _) if !why.is_managed => "that node is not managed here".to_owned(),
        (Some(_), Some(stay)) => format!("nothing of its own keeps it there, and its node stays: {}", stay.text),
        (Some(_), None) => "nothing keeps it there".to_owned(),
    }
}

fn described(launch: &NewNode) -> String {
    format!(
        "{} {} in {} ({}, NodePool {}, {})",
        launch.instance_type,
        launch.capacity_type,
        launch.zone,
        launch.usd_h.an_hour(),
        launch.pool,
        counted(launch.pods, "pod")
    )
}

fn wants(why: &PodExplanation) -> String {
    let wants: Vec<String> = why
        .wants
        .iter()
        .map(|(name, amount)| format!("{amount} {name}"))
        .collect();
    let wants = if wants.is_empty() {
        "nothing".to_owned()
    } else {
        wants.join(", ")
    };
    let selects: Vec<String> = why
        .selects
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let selects = if selects.is_empty() {
        String::new()
    } else {
        format!("; on a node with {}", selects.join(", "))
    };
    format!("{wants}{selects} ({})", why.workload)
}

fn existing(why: &PodExplanation) -> String {
    let reasons = why.existing.reasons.iter();
    let reasons: Vec<String> = reasons
        .map(|reason| format!("{} {}", reason.nodes, reason.text))
        .collect();
    format!("no room: {}", reasons.join(", "))
}

fn place(node: &NodeRow) -> String {
    let mut parts = vec![node.name.clone()];
    parts.extend(super::node::offer(node));
    parts.extend(node.zone.clone());
    parts.extend(node.pool.as_ref().map(|pool| format!("pool {pool}")));
    parts.join(" · ")
}

/// The change that lets the pod in, as YAML.
pub(super) fn fix(why: &PodExplanation) -> Result<String, Failure> {
    let fix = why.funnel.as_ref().and_then(|funnel| funnel.fix.as_ref());
    let fix = fix.ok_or_else(|| nothing_to_fix(&format!("pod/{}", why.pod)))?;
    Ok(format!("# {}\n{}", fix.text, patch(&fix.patch)))
}
