//! Taints with a meaning: our own, and those that pass by themselves while a node starts.

use crate::karpenter::{Taint, TaintEffect};

/// Key of [`disrupted`].
pub const DISRUPTED: &str = "karpenter.sh/disrupted";
/// Key of [`unregistered`].
pub const UNREGISTERED: &str = "karpenter.sh/unregistered";
/// Key of [`rebooting`].
pub const REBOOTING: &str = "karpenter.sh/rebooting";

/// Key of [`pinning`]. Ours.
pub const PINNING: &str = "dovetail.dev/pinning";

/// On a node that is going away: no more pods.
pub fn disrupted() -> Taint {
    Taint::new(DISRUPTED, TaintEffect::NoSchedule)
}

/// On a node from its first breath until registration: nothing runs before the claim's taints and labels are there.
pub fn unregistered() -> Taint {
    Taint::new(UNREGISTERED, TaintEffect::NoExecute)
}

/// On a node from the request to reboot it until it is back.
pub fn rebooting() -> Taint {
    Taint::new(REBOOTING, TaintEffect::NoSchedule)
}

/// On a node while we bind the pods planned for it ourselves: unlike [`unregistered`] it does not evict them.
pub fn pinning() -> Taint {
    Taint::new(PINNING, TaintEffect::NoSchedule)
}

const READINESS_PREFIX: &str = "readiness.k8s.io/";

/// Whether a taint is expected to go by itself while a node starts. Such a taint delays initialization and does not
/// count against pods until then.
///
/// - one of Kubernetes' own start-up taints or our unregistered taint, by key and effect
/// - any taint of `readiness.k8s.io`
pub fn is_known_ephemeral(taint: &Taint) -> bool {
    let known = [
        ("node.kubernetes.io/not-ready", TaintEffect::NoSchedule),
        ("node.kubernetes.io/not-ready", TaintEffect::NoExecute),
        ("node.kubernetes.io/unreachable", TaintEffect::NoSchedule),
        (
            "node.cloudprovider.kubernetes.io/uninitialized",
            TaintEffect::NoSchedule,
        ),
        (UNREGISTERED, TaintEffect::NoExecute),
    ];
    known
        .iter()
        .any(|(key, effect)| taint.key == *key && taint.effect == *effect)
        || taint.key.starts_with(READINESS_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_up_taints_are_known_by_key_and_effect() {
        let cases = [
            ("node.kubernetes.io/not-ready", TaintEffect::NoSchedule, true),
            ("node.kubernetes.io/not-ready", TaintEffect::NoExecute, true),
            ("node.kubernetes.io/unreachable", TaintEffect::NoSchedule, true),
            ("node.kubernetes.io/unreachable", TaintEffect::NoExecute, false),
            (
                "node.cloudprovider.kubernetes.io/uninitialized",
                TaintEffect::NoSchedule,
                true,
            ),
            ("karpenter.sh/unregistered", TaintEffect::NoExecute, true),
            ("karpenter.sh/unregistered", TaintEffect::NoSchedule, false),
            ("karpenter.sh/disrupted", TaintEffect::NoSchedule, false),
            ("readiness.k8s.io/network", TaintEffect::PreferNoSchedule, true),
            ("dedicated", TaintEffect::NoSchedule, false),
        ];
        for (key, effect, known) in cases {
            let taint = Taint {
                value: "any".to_owned(),
                ..Taint::new(key, effect)
            };
            assert_eq!(is_known_ephemeral(&taint), known, "{taint:?}");
        }
    }
}
