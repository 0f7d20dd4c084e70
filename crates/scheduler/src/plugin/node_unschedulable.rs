//! Is the node cordoned, and does the pod care?

use model::{object::Toleration, taint::TaintView};

/// What cordoning means to a pod that tolerates it.
const UNSCHEDULABLE: TaintView<'static> = TaintView {
    key: "node.kubernetes.io/unschedulable",
    value: "",
    effect: "NoSchedule",
};

/// Whether a pod with these tolerations may run on a node that is cordoned or not.
pub fn admits(tolerations: &[Toleration], is_unschedulable: bool) -> bool {
    !is_unschedulable
        || tolerations
            .iter()
            .any(|toleration| toleration.view().tolerates(UNSCHEDULABLE))
}
