//! Whether a pod may go on a tainted node.
//!
//! Every taint counts, whatever its effect: a `PreferNoSchedule` taint closes a node like any other until the planner
//! relaxes the pod. The views borrow from the objects that carry taints and tolerations.

use std::fmt;

/// A taint of a node, NodeClaim or NodePool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaintView<'a> {
    /// What it is about.
    pub key: &'a str,
    /// Compared by tolerations.
    pub value: &'a str,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: &'a str,
}

/// A toleration of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TolerationView<'a> {
    /// The taint's key; empty for any.
    pub key: &'a str,
    /// `Equal` (also when empty), `Exists`, `Lt` or `Gt`.
    pub operator: &'a str,
    /// The operand.
    pub value: &'a str,
    /// The taint's effect; empty for any.
    pub effect: &'a str,
}

/// Taints that come and go while a node starts; key and effect count, the value does not.
const KNOWN_EPHEMERAL: [(&str, &str); 5] = [
    ("node.kubernetes.io/not-ready", "NoSchedule"),
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoSchedule"),
    ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    ("karpenter.sh/unregistered", "NoExecute"),
];

/// Taints of the node readiness controller come and go too, with any effect.
const KNOWN_EPHEMERAL_PREFIX: &str = "readiness.k8s.io/";

/// The taints a pod does not tolerate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", join(.0))]
pub struct NotTolerated(pub Vec<String>);

impl TaintView<'_> {
    /// Whether both are the same taint: a node has at most one per key and effect.
    pub fn matches(self, other: TaintView<'_>) -> bool {
        self.key == other.key && self.effect == other.effect
    }

    /// Whether it goes away by itself once the node has started.
    pub fn is_known_ephemeral(self) -> bool {
        KNOWN_EPHEMERAL.contains(&(self.key, self.effect)) || self.key.starts_with(KNOWN_EPHEMERAL_PREFIX)
    }

    /// Whether any of the tolerations accepts it.
    pub fn is_tolerated_by(self, tolerations: &[TolerationView<'_>]) -> bool {
        tolerations.iter().any(|toleration| toleration.tolerates(self))
    }
}

impl fmt::Display for TaintView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, effect } = self;
        if value.is_empty() {
            write!(f, "{key}:{effect}")
        } else {
            write!(f, "{key}={value}:{effect}")
        }
    }
}

impl TolerationView<'_> {
    /// Whether it accepts the taint:
    /// - its effect is empty or the taint's;
    /// - its key is empty or the taint's;
    /// - its operator holds: equal values, any value, or a taint value below (`Lt`) or above (`Gt`) its own.
    pub fn tolerates(self, taint: TaintView<'_>) -> bool {
        let applies =
            (self.effect.is_empty() || self.effect == taint.effect) && (self.key.is_empty() || self.key == taint.key);
        applies
            && match self.operator {
                "" | "Equal" => self.value == taint.value,
                "Exists" => true,
                "Lt" => compares(taint.value, self.value, |taint, ours| taint < ours),
                "Gt" => compares(taint.value, self.value, |taint, ours| taint > ours),
                _ => false,
            }
    }
}

/// Whether the tolerations accept all taints; if not, which ones they leave.
pub fn check_tolerated<'a>(
    taints: impl IntoIterator<Item = TaintView<'a>>,
    tolerations: &[TolerationView<'_>],
) -> Result<(), NotTolerated> {
    let left = taints.into_iter().filter(|taint| !taint.is_tolerated_by(tolerations));
    let left: Vec<_> = left.map(|taint| taint.to_string()).collect();
    if left.is_empty() {
        Ok(())
    } else {
        Err(NotTolerated(left))
    }
}

/// The first list, and of the second what the first has no match for.
pub fn merged<'a>(taints: &[TaintView<'a>], with: &[TaintView<'a>]) -> Vec<TaintView<'a>> {
    let mut merged = taints.to_vec();
    for taint in with {
        if !merged.iter().any(|present| taint.matches(*present)) {
            merged.push(*taint);
        }
    }
    merged
}

fn compares(taint: &str, toleration: &str, holds: fn(i64, i64) -> bool) -> bool {
    matches!((decimal(taint), decimal(toleration)), (Some(taint), Some(toleration)) if holds(taint, toleration))
}

/// A number written as people write it: no plus sign, no leading zero, no minus zero.
fn decimal(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().filter(|number| number.to_string() == text)
}

fn join(taints: &[String]) -> String {
    let texts: Vec<_> = taints
        .iter()
        .map(|taint| format!("did not tolerate taint (taint={taint})"))
        .collect();
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::{
        KNOWN_EPHEMERAL, KNOWN_EPHEMERAL_PREFIX, NotTolerated, TaintView, TolerationView, check_tolerated, merged,
    };

    fn taint(key: &'static str, value: &'static str, effect: &'static str) -> TaintView<'static> {
        TaintView { key, value, effect }
    }

    /// `key operator value effect`, a dash for empty.
    fn toleration(text: &'static str) -> TolerationView<'static> {
        let mut words = text.split(' ').map(|word| if word == "-" { "" } else { word });
        let mut next = || words.next().unwrap();
        TolerationView {
            key: next(),
            operator: next(),
            value: next(),
            effect: next(),
        }
    }

    #[test]
    fn toleration_accepts_what_kubernetes_says_it_accepts() {
        let cases = [
            ("k Equal v NoSchedule", true),
            ("k - v NoSchedule", true),
            ("k Equal w NoSchedule", false),
            ("k Exists - NoSchedule", true),
            ("k Exists - -", true),
            ("k Exists - NoExecute", false),
            ("other Exists - -", false),
            ("- Exists - -", true),
            ("- Equal v -", true),
            ("- Equal - -", false),
            ("k Near v -", false),
            ("k Lt 5 -", false),
        ];
        for (text, expected) in cases {
            assert_eq!(
                toleration(text).tolerates(taint("k", "v", "NoSchedule")),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn numeric_tolerations_compare_the_taint_with_themselves() {
        let cases = [
            ("k Lt 5 -", "4", true),
            ("k Lt 5 -", "5", false),
            ("k Gt 5 -", "6", true),
            ("k Gt 5 -", "5", false),
            ("k Gt -5 -", "-4", true),
            ("k Gt 5 -", "06", false),
            ("k Gt +5 -", "6", false),
            ("k Gt 5 -", "9223372036854775808", false),
            ("k Gt - -", "6", false),
            ("k Lt 5 -", "-0", false),
        ];
        for (text, value, expected) in cases {
            assert_eq!(
                toleration(text).tolerates(TaintView {
                    key: "k",
                    value,
                    effect: "NoExecute"
                }),
                expected,
                "{text} {value}"
            );
        }
    }

    #[test]
    fn soft_taints_must_be_tolerated_too_and_all_that_are_not_are_named() {
        let taints = [
            taint("a", "1", "PreferNoSchedule"),
            taint("b", "", "NoExecute"),
            taint("c", "", "NoSchedule"),
        ];
        let refusal = check_tolerated(taints, &[toleration("c Exists - -")]).unwrap_err();
        assert_eq!(
            refusal,
            NotTolerated(vec!["a=1:PreferNoSchedule".to_owned(), "b:NoExecute".to_owned()])
        );
        assert_eq!(
            refusal.to_string(),
            "did not tolerate taint (taint=a=1:PreferNoSchedule); did not tolerate taint (taint=b:NoExecute)"
        );
        assert_eq!(check_tolerated(taints, &[toleration("- Exists - -")]), Ok(()));
    }

    #[test]
    fn ephemeral_taints_are_known_by_key_and_effect_or_by_prefix() {
        let cases = [
            (taint("node.kubernetes.io/not-ready", "", "NoSchedule"), true),
            (taint("node.kubernetes.io/not-ready", "", "NoExecute"), true),
            (taint("node.kubernetes.io/unreachable", "", "NoSchedule"), true),
            (taint("node.kubernetes.io/unreachable", "", "NoExecute"), false),
            (
                taint("node.cloudprovider.kubernetes.io/uninitialized", "false", "NoSchedule"),
                true,
            ),
            (taint("karpenter.sh/unregistered", "", "NoExecute"), true),
            (taint("karpenter.sh/unregistered", "", "NoSchedule"), false),
            (taint("readiness.k8s.io/gpu", "", "PreferNoSchedule"), true),
            (taint("example.com/gpu", "", "NoSchedule"), false),
        ];
        for (taint, expected) in cases {
            assert_eq!(taint.is_known_ephemeral(), expected, "{taint}");
        }
    }

    #[test]
    fn ephemeral_taints_are_those_of_the_api() {
        for (key, effect) in KNOWN_EPHEMERAL
            .into_iter()
            .chain([(KNOWN_EPHEMERAL_PREFIX, "NoSchedule"), ("a", "NoExecute")])
        {
            for effect in [effect, "PreferNoSchedule"] {
                let written = serde_json::json!({"key": key, "effect": effect});
                let theirs = api::taints::is_known_ephemeral(&serde_json::from_value(written).unwrap());
                assert_eq!(taint(key, "", effect).is_known_ephemeral(), theirs, "{key}:{effect}");
            }
        }
    }

    #[test]
    fn merging_keeps_the_first_of_a_key_and_effect() {
        let ours = [taint("a", "1", "NoSchedule")];
        let with = [
            taint("a", "2", "NoSchedule"),
            taint("a", "2", "NoExecute"),
            taint("b", "", "NoSchedule"),
        ];
        assert_eq!(merged(&ours, &with), [ours[0], with[1], with[2]]);
    }
}
