//! Why is a NodePool not ready, at its limits, or launches nothing?

use model::object::{Condition, ConditionStatus, NodePool};
use packing::explain::{Constraint, Explanation};
use serde::Serialize;

use crate::{
    View,
    fleet::{Limit, Pool},
    funnel::{Fix, Funnel},
};

/// How a pool fares, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodePoolExplanation {
    /// The pool.
    pub pool: Pool,
    /// What controllers say of it.
    pub conditions: Vec<ConditionRow>,
    /// Its node class.
    pub class: Option<Class>,
    /// Each limit, and the pods that wait for it.
    pub limits: Vec<LimitRow>,
    /// Pods that wait and could use it, but for something else.
    pub refused: Vec<Refused>,
    /// The smallest change that lets a waiting pod in.
    pub fix: Option<Fix>,
}

/// The node class of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Class {
    /// `EC2NodeClass/default`.
    pub name: String,
    /// Whether it is in the source.
    pub is_known: bool,
    /// What controllers say of it.
    pub conditions: Vec<ConditionRow>,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConditionRow {
    /// What it is about.
    pub name: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Since when.
    pub since_s: Option<i64>,
    /// Why, for machines.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

/// A limit, and who waits for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LimitRow {
    /// The limit.
    #[serde(flatten)]
    pub limit: Limit,
    /// Pods that wait for it.
    pub blocks: Vec<String>,
}

/// A pod that a pool does not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// `namespace/name`.
    pub pod: String,
    /// The condition that leaves nothing.
    pub stops_at: String,
    /// In words.
    pub why: String,
}

impl NodePoolExplanation {
    /// Explains a pool; `explanations` are of the pods that wait.
    pub fn of(view: &View<'_>, pool: &NodePool, explanations: &[Explanation]) -> Self {
        let seen = Pool::of(view, pool);
        let name = pool.name();
        let mut limits: Vec<LimitRow> = seen
            .limits
            .iter()
            .map(|limit| LimitRow {
                limit: limit.clone(),
                blocks: Vec::new(),
            })
            .collect();
        let (mut refused, mut fix) = (Vec::new(), None);
        for explanation in explanations {
            let Some(funnel) = explanation.pools.iter().find(|funnel| funnel.pool == name) else {
                continue;
            };
            let Some(stage) = funnel.blocking_stage() else {
                continue;
            };
            let pod = explanation.pod.to_string();
            if let Constraint::Limit { resource, .. } = &stage.constraint {
                let best = Funnel::of(explanation);
                let is_best = best.as_ref().is_some_and(|funnel| funnel.node_pool == name.as_str());
                let limit = limits
                    .iter_mut()
                    .filter(|_| is_best)
                    .find(|row| row.limit.resource == resource.as_str());
                if let Some(limit) = limit {
                    limit.blocks.push(pod.clone());
                }
                let found = Funnel::of(explanation).filter(|funnel| funnel.node_pool == name.as_str());
                fix = fix.or_else(|| found.and_then(|funnel| funnel.fix));
            }
            refused.push(Refused {
                pod,
                stops_at: stage.constraint.name(),
                why: stage.text.clone(),
            });
        }
        Self {
            conditions: pool.status.conditions.iter().map(|it| condition(view, it)).collect(),
            class: class(view, pool),
            pool: seen,
            limits,
            refused,
            fix,
        }
    }
}

fn condition(view: &View<'_>, condition: &Condition) -> ConditionRow {
    ConditionRow {
        name: condition.kind.to_string(),
        status: condition.status,
        since_s: condition.last_transition_time.map(|since| view.seconds_since(since)),
        reason: condition.reason.to_string(),
        message: condition.message.to_string(),
    }
}

fn class(view: &View<'_>, pool: &NodePool) -> Option<Class> {
    let reference = pool.spec.template.spec.node_class_ref.as_ref()?;
    let class = view.snapshot.objects().node_classes.get(reference);
    let conditions = class.map(|class| {
        let conditions = class.status.conditions.iter();
        conditions.map(|it| condition(view, it)).collect()
    });
    Some(Class {
        name: format!("{}/{}", reference.kind, reference.name),
        is_known: class.is_some(),
        conditions: conditions.unwrap_or_default(),
    })
}
