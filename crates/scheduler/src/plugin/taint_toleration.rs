//! Does the pod tolerate the node's taints?
//!
//! Taints with `NoSchedule` and `NoExecute` close a node; each `PreferNoSchedule` taint that is not tolerated makes it
//! less welcome.

use model::object::{Taint, Toleration};

/// What the score counts for.
pub(crate) const WEIGHT: i64 = 3;

/// The first taint that keeps the pod off the node.
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints
        .iter()
        .filter(|taint| matches!(&*taint.effect, "NoSchedule" | "NoExecute"))
        .find(|taint| !is_tolerated(taint, tolerations))
}

/// How many `PreferNoSchedule` taints the pod does not tolerate.
pub fn intolerable(taints: &[Taint], tolerations: &[Toleration]) -> i64 {
    let soft = taints.iter().filter(|taint| *taint.effect == *"PreferNoSchedule");
    soft.filter(|taint| !is_tolerated(taint, tolerations)).map(|_| 1).sum()
}

fn is_tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    tolerations
        .iter()
        .any(|toleration| toleration.view().tolerates(taint.view()))
}
