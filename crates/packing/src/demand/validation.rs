//! Which pending pods are not tried at all, and in which words they are told.

use std::sync::Arc;

use api::{
    karpenter::{NodeSelectorRequirementWithMinValues, validation::requirement_faults},
    labels::{LabelRules, NODEPOOL},
};
use model::{
    object::{NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec},
    plan::{RefusalKind, Unplaced},
    requirement::{Operator, Requirement},
    vocabulary::Vocabulary,
};
use rustc_hash::FxHashMap;

use super::volume::Storage;

const OPTED_OUT: &str =
    "configured to not run on a Karpenter provisioned node (requirement=karpenter.sh/nodepool DoesNotExist)";
const MATCH_FIELDS: &str = "node selector term with matchFields is not supported";

/// Checks pods; replicas share their spec, so each spec is checked once.
#[derive(Debug)]
pub(super) struct Validation {
    rules: LabelRules,
    /// By the address of the spec, which lives as long as the snapshot.
    verdicts: FxHashMap<*const PodSpec, Verdict>,
}

/// What is wrong with a spec, but for its volumes.
#[derive(Debug, Clone, Default)]
struct Verdict {
    is_opted_out: bool,
    faults: Vec<String>,
}

impl Validation {
    pub(super) fn new(rules: LabelRules) -> Self {
        Self {
            rules,
            verdicts: FxHashMap::default(),
        }
    }

    /// The pod as one that is not tried, or nothing for a valid one. All faults are named:
    /// - it opted out of node autoscaling;
    /// - its node selector or a term of its required node affinity cannot be met by any node;
    /// - the first of its volume claims that will not come about.
    pub(super) fn refusal(&mut self, pod: &Arc<Pod>, storage: Storage<'_>) -> Option<Unplaced> {
        let rules = &self.rules;
        let verdict = self
            .verdicts
            .entry(Arc::as_ptr(&pod.spec))
            .or_insert_with(|| Verdict::of(&pod.spec, rules));
        let volume_fault = storage.validate(pod).err().map(|fault| fault.to_string());
        if verdict.faults.is_empty() && volume_fault.is_none() {
            return None;
        }
        let faults: Vec<_> = verdict.faults.iter().cloned().chain(volume_fault).collect();
        Some(Unplaced {
            pod: Arc::clone(pod),
            kind: verdict.kind(),
            message: faults.join("; ").into(),
        })
    }
}

impl Verdict {
    fn of(spec: &PodSpec, rules: &LabelRules) -> Self {
        let is_opted_out = is_opted_out(spec, rules);
        let mut faults: Vec<_> = is_opted_out.then(|| OPTED_OUT.to_owned()).into_iter().collect();
        // Upstream's order of the selector is its map's; ours is sorted.
        for (key, value) in &spec.node_selector {
            faults.extend(faults_of(key, "In", [&**value], rules));
        }
        let required = node_affinity(spec).and_then(|affinity| affinity.required.as_ref());
        for term in required.iter().flat_map(|required| &required.node_selector_terms) {
            faults.extend(term_faults(term, rules));
        }
        Self { is_opted_out, faults }
    }

    /// Who opted out is not told anything, whatever else is wrong.
    fn kind(&self) -> RefusalKind {
        if self.is_opted_out {
            RefusalKind::OptedOut
        } else {
            RefusalKind::Invalid
        }
    }
}

fn node_affinity(spec: &PodSpec) -> Option<&NodeAffinity> {
    spec.affinity.as_ref()?.node_affinity.as_ref()
}

fn term_faults(term: &NodeSelectorTerm, rules: &LabelRules) -> Vec<String> {
    let mut faults = Vec::new();
    if !term.match_fields.is_empty() {
        faults.push(MATCH_FIELDS.to_owned());
    }
    for expression in &term.match_expressions {
        let values = expression.values.iter().map(AsRef::as_ref);
        faults.extend(faults_of(&expression.key, &expression.operator, values, rules));
    }
    faults
}

fn faults_of<'a>(
    key: &str,
    operator: &str,
    values: impl IntoIterator<Item = &'a str>,
    rules: &LabelRules,
) -> Vec<String> {
    let requirement = NodeSelectorRequirementWithMinValues {
        key: key.to_owned(),
        operator: operator.into(),
        values: values.into_iter().map(str::to_owned).collect(),
        min_values: None,
    };
    let faults = requirement_faults(&requirement, rules);
    faults.iter().map(ToString::to_string).collect()
}

/// Whether all that the pod asks of the NodePool label comes to its absence. The heaviest preference counts as required
/// here even where preferences are ignored.
fn is_opted_out(spec: &PodSpec, rules: &LabelRules) -> bool {
    let selected = spec.node_selector.get(NODEPOOL);
    if selected.is_none() && first_terms(spec).all(|expression| *expression.key != *NODEPOOL) {
        return false;
    }
    let mut vocabulary = Vocabulary::with_rules(rules.clone());
    let selected = selected.map(|pool| Requirement::parse(NODEPOOL, Operator::In, [&**pool], &mut vocabulary));
    let mut asked: Vec<_> = selected.into_iter().collect();
    for expression in first_terms(spec).filter(|expression| *expression.key == *NODEPOOL) {
        let values = expression.values.iter().map(AsRef::as_ref);
        // An unknown operator admits any value upstream; the pod is refused for it elsewhere.
        let operator = expression.operator.parse().unwrap_or(Operator::Exists);
        asked.push(Requirement::parse(NODEPOOL, operator, values, &mut vocabulary));
    }
    let all = asked.into_iter().reduce(|all, one| one.intersection(&all, &vocabulary));
    all.is_some_and(|all| all.operator() == Operator::DoesNotExist)
}

/// The conditions of the heaviest preference, of several the first, and of the first required term.
fn first_terms(spec: &PodSpec) -> impl Iterator<Item = &NodeSelectorRequirement> {
    let affinity = node_affinity(spec);
    let preferred = affinity.into_iter().flat_map(|affinity| &affinity.preferred);
    let heaviest = preferred.reduce(|heaviest, term| if term.weight > heaviest.weight { term } else { heaviest });
    let required = affinity.and_then(|affinity| affinity.required.as_ref()?.node_selector_terms.first());
    let terms = heaviest.map(|term| &term.preference).into_iter().chain(required);
    terms.flat_map(|term| &term.match_expressions)
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::demand::fixture::{pending, pod, snapshot};

    /// What a pod of this spec is told, if it is not tried.
    fn refusal(spec: Value) -> Option<(RefusalKind, String)> {
        let snapshot = snapshot(vec![pending("p", json!({ "spec": spec }))]);
        let mut validation = Validation::new(LabelRules::new(&[]));
        let refusal = validation.refusal(pod(&snapshot, "p"), Storage(snapshot.objects()))?;
        Some((refusal.kind, refusal.message.to_string()))
    }

    fn required(terms: Value) -> Value {
        json!({ "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms },
        } } })
    }

    fn preferred(weighted: &[(i32, &str)]) -> Value {
        let term = |(weight, operator): &(i32, &str)| {
            let expression = json!({ "key": NODEPOOL, "operator": operator });
            json!({ "weight": weight, "preference": { "matchExpressions": [expression] } })
        };
        let terms: Vec<_> = weighted.iter().map(term).collect();
        json!({ "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": terms } } })
    }

    #[test]
    fn pods_that_ask_for_what_nodes_may_have_are_tried() {
        for spec in [
            json!({}),
            json!({ "nodeSelector": { "topology.kubernetes.io/zone": "z", "team": "a" } }),
            json!({ "nodeSelector": { "kubernetes.io/os-extra": "x" } }),
            required(json!([{ "matchExpressions": [{ "key": "team", "operator": "Gt", "values": ["3"] }] }])),
            preferred(&[(1, "Nonsense")]),
        ] {
            assert_eq!(refusal(spec.clone()), None, "{spec}");
        }
    }

    #[test]
    fn hostname_and_restricted_selectors_make_a_pod_invalid() {
        for key in [
            "kubernetes.io/hostname",
            "karpenter.sh/registered",
            "sub.karpenter.sh/x",
        ] {
            let (kind, message) = refusal(json!({ "nodeSelector": { key: "x" } })).unwrap();
            assert_eq!(kind, RefusalKind::Invalid);
            let expected =
                format!("using label {key} is not allowed as it might interfere with the internal provisioning logic");
            assert!(message.starts_with(&expected), "{message}");
        }
    }

    #[test]
    fn every_fault_of_every_required_term_is_named_in_order() {
        let spec = required(json!([
            { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] },
            { "matchExpressions": [
                { "key": "a", "operator": "In", "values": [] },
                { "key": "b", "operator": "Lt", "values": ["-1"] },
                { "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["free"] },
            ] },
        ]));
        let expected = concat!(
            "node selector term with matchFields is not supported; ",
            "key a with operator In must have a value defined; ",
            "key b with operator Lt must have a single positive integer value; ",
            "no valid values found in [free] for karpenter.sh/capacity-type, ",
            "expected one of: map[on-demand:{} reserved:{} spot:{}], got: [free]"
        );
        let (_, message) = refusal(spec).unwrap();
        assert!(message.contains("invalid value -1 for key b"), "{message}");
        let without_syntax: Vec<_> = message
            .split("; ")
            .filter(|fault| !fault.starts_with("invalid value -1"))
            .collect();
        assert_eq!(without_syntax.join("; "), expected);
    }

    #[test]
    fn pod_that_wants_no_node_of_any_pool_opted_out() {
        let absent = json!({ "key": NODEPOOL, "operator": "DoesNotExist" });
        let named = json!({ "key": NODEPOOL, "operator": "In", "values": ["a"] });
        let contradiction = json!({ "nodeSelector": { NODEPOOL: "b" }, "affinity": required(json!([{ "matchExpressions": [named] }]))["affinity"] });
        let cases = [
            (required(json!([{ "matchExpressions": [absent] }])), true),
            (
                required(json!([{ "matchExpressions": [named] }, { "matchExpressions": [absent] }])),
                false,
            ),
            (contradiction, true),
            (preferred(&[(1, "Exists"), (2, "DoesNotExist")]), true),
            (preferred(&[(2, "Exists"), (2, "DoesNotExist")]), false),
        ];
        for (spec, expected) in cases {
            let opted_out = (RefusalKind::OptedOut, OPTED_OUT.to_owned());
            assert_eq!(refusal(spec.clone()), expected.then_some(opted_out), "{spec}");
        }
    }
}
