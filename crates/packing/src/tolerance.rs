//! Does a pod tolerate a node's taints? Answered once per pair of lists.

use model::{
    object::{Taint, Toleration},
    taint::check_tolerated,
};

/// A number of a list of taints.
pub(crate) type TaintsId = u32;
/// A number of a list of tolerations.
pub(crate) type TolerationsId = u32;

/// All lists of a run and the answers so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tolerance {
    pub(crate) taints: Vec<Vec<Taint>>,
    tolerations: Vec<Vec<Toleration>>,
    answers: Vec<Vec<Option<bool>>>,
}

impl Tolerance {
    pub(crate) fn taints(&mut self, taints: &[Taint]) -> TaintsId {
        let known = self.taints.iter().position(|list| list == taints);
        known.unwrap_or_else(|| {
            self.taints.push(taints.to_vec());
            self.taints.len() - 1
        }) as TaintsId
    }

    pub(crate) fn tolerations(&mut self, tolerations: &[Toleration]) -> TolerationsId {
        let known = self.tolerations.iter().position(|list| list == tolerations);
        known.unwrap_or_else(|| {
            self.tolerations.push(tolerations.to_vec());
            self.answers.push(Vec::new());
            self.tolerations.len() - 1
        }) as TolerationsId
    }

    #[inline]
    pub(crate) fn tolerates(&mut self, tolerations: TolerationsId, taints: TaintsId) -> bool {
        let answers = &mut self.answers[tolerations as usize];
        if let Some(Some(answer)) = answers.get(taints as usize) {
            return *answer;
        }
        if answers.len() < self.taints.len() {
            answers.resize(self.taints.len(), None);
        }
        let views: Vec<_> = self.tolerations[tolerations as usize]
            .iter()
            .map(Toleration::view)
            .collect();
        let taints_list = self.taints[taints as usize].iter().map(Taint::view);
        let answer = check_tolerated(taints_list, &views).is_ok();
        answers[taints as usize] = Some(answer);
        answer
    }
}
