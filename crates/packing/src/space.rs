//! What a node may still become: requirement sets with numbers, and the algebra between them done once per pair.
//!
//! A claim's requirements narrow as pods join it. Few distinct sets ever occur, so each is a numbered state and every
//! step (a pod's requirements, a topology domain) is looked up after its first time. The algebra is `model`'s own.
//! Hostnames stay outside: a host's never changes, and it would make every state unique.

use model::{
    requirement::{Requirement, Requirements, UndefinedLabels},
    vocabulary::{KeyId, ValueId, Vocabulary},
};
use rustc_hash::FxHashMap;

use crate::{
    bitmap::{put, words_for},
    index::{Index, Mask},
};

/// A number of a state.
pub(crate) type StateId = u32;
/// A number of a pod's requirement set.
pub(crate) type SetId = u32;

/// The set without requirements.
pub(crate) const NO_REQUIREMENTS: SetId = 0;
/// In [`State::single`]: not exactly one value.
pub(crate) const MANY: u32 = u32::MAX;

/// Who has the requirements: it decides whether an undefined label is acceptable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    /// A node: a label it lacks is lacking.
    Node,
    /// A claim of this template: the cloud fills in well-known labels.
    Claim(u32),
}

impl Side {
    pub(crate) fn undefined(self) -> UndefinedLabels {
        match self {
            Self::Node => UndefinedLabels::Denied,
            Self::Claim(_) => UndefinedLabels::AllowedIfWellKnown,
        }
    }
}

/// One thing a node may still become.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) requirements: Requirements,
    pub(crate) side: Side,
    /// Per topology key, one after the other: the values still possible.
    admitted: Box<[u64]>,
    /// Per topology key, one after the other: the values its requirement lists, excluded ones too.
    listed: Box<[u64]>,
    /// Per topology key: the only value left, or [`MANY`].
    pub(crate) single: Box<[u32]>,
    /// Rows that are compatible and have a compatible offering; empty for nodes.
    pub(crate) rows: Mask,
    /// Offer classes that are compatible; empty for nodes.
    pub(crate) classes: Box<[u64]>,
    pub(crate) has_min_values: bool,
}

/// What comes of narrowing a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The narrower state.
    To(StateId),
    /// A label would need two values at once: true for ever.
    Conflict,
    /// A label is asked for that the node does not define, yet.
    Undefined,
}

const UNKNOWN: u32 = u32::MAX;
const CONFLICT: u32 = u32::MAX - 1;
const UNDEFINED: u32 = u32::MAX - 2;

impl Step {
    fn encoded(self) -> u32 {
        match self {
            Self::To(state) => state,
            Self::Conflict => CONFLICT,
            Self::Undefined => UNDEFINED,
        }
    }

    fn decoded(step: u32) -> Option<Self> {
        match step {
            UNKNOWN => None,
            CONFLICT => Some(Self::Conflict),
            UNDEFINED => Some(Self::Undefined),
            state => Some(Self::To(state)),
        }
    }
}

/// A label whose values are topology domains, and the numbers of its values in the order of their names.
#[derive(Debug)]
pub(crate) struct TopologyKey {
    pub(crate) key: KeyId,
    pub(crate) values: Vec<ValueId>,
    ordinals: FxHashMap<ValueId, u32>,
    start: usize,
    pub(crate) words: usize,
}

impl TopologyKey {
    pub(crate) fn ordinal(&self, value: ValueId) -> Option<usize> {
        self.ordinals.get(&value).map(|ordinal| *ordinal as usize)
    }

    /// The part of a per-key mask that belongs to this key.
    #[inline]
    pub(crate) fn of<'a>(&self, masks: &'a [u64]) -> &'a [u64] {
        &masks[self.start..self.start + self.words]
    }
}

/// All states of a run.
#[derive(Debug)]
pub(crate) struct Space<'a> {
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) index: &'a Index,
    pub(crate) keys: Vec<TopologyKey>,
    key_words: usize,
    pub(crate) sets: Vec<Requirements>,
    set_ids: FxHashMap<Requirements, SetId>,
    states: Vec<State>,
    state_ids: FxHashMap<(Side, Requirements), StateId>,
    joins: Vec<Vec<u32>>,
    narrowings: FxHashMap<(StateId, u32, u64), u32>,
    wide_masks: FxHashMap<Box<[u64]>, u64>,
    accepting: FxHashMap<Requirement, Option<Mask>>,
}

impl<'a> Space<'a> {
    pub(crate) fn new(
        vocabulary: &'a Vocabulary,
        index: &'a Index,
        topology_keys: impl IntoIterator<Item = KeyId>,
    ) -> Self {
        let (mut keys, mut start) = (Vec::new(), 0);
        for key in topology_keys {
            let entry = topology_key(key, start, vocabulary);
            start += entry.words;
            keys.push(entry);
        }
        let mut space = Self {
            vocabulary,
            index,
            keys,
            key_words: start,
            sets: Vec::new(),
            set_ids: FxHashMap::default(),
            states: Vec::new(),
            state_ids: FxHashMap::default(),
            joins: Vec::new(),
            narrowings: FxHashMap::default(),
            wide_masks: FxHashMap::default(),
            accepting: FxHashMap::default(),
        };
        space.set(Requirements::default());
        space
    }

    #[inline]
    pub(crate) fn state(&self, id: StateId) -> &State {
        &self.states[id as usize]
    }

    /// The position of a topology key.
    pub(crate) fn topology_key(&self, key: KeyId) -> Option<usize> {
        self.keys.iter().position(|entry| entry.key == key)
    }

    /// The values of a topology key that a state still admits.
    #[inline]
    pub(crate) fn admitted(&self, state: StateId, key: usize) -> &[u64] {
        self.keys[key].of(&self.states[state as usize].admitted)
    }

    /// The values of a topology key that a state lists, excluded ones too.
    pub(crate) fn listed(&self, state: StateId, key: usize) -> &[u64] {
        self.keys[key].of(&self.states[state as usize].listed)
    }

    /// The values of a topology key that a requirement admits; all without one.
    pub(crate) fn admitted_by(&self, requirement: Option<&Requirement>, key: usize) -> Box<[u64]> {
        let entry = &self.keys[key];
        let mut mask = vec![0; entry.words].into_boxed_slice();
        for (ordinal, value) in entry.values.iter().enumerate() {
            if requirement.is_none_or(|requirement| requirement.admits(*value, self.vocabulary)) {
                put(&mut mask, ordinal);
            }
        }
        mask
    }

    /// The number of a pod's requirements.
    pub(crate) fn set(&mut self, requirements: Requirements) -> SetId {
        if let Some(id) = self.set_ids.get(&requirements) {
            return *id;
        }
        let id = self.sets.len() as SetId;
        self.sets.push(requirements.clone());
        self.set_ids.insert(requirements, id);
        id
    }

    /// The number of a node's or claim's requirements.
    pub(crate) fn intern(&mut self, requirements: Requirements, side: Side) -> StateId {
        if let Some(id) = self.state_ids.get(&(side, requirements.clone())) {
            return *id;
        }
        let id = self.states.len() as StateId;
        let state = self.describe(&requirements, side);
        self.states.push(state);
        self.joins.push(Vec::new());
        self.state_ids.insert((side, requirements), id);
        id
    }

    /// The state after a pod with these requirements joined.
    #[inline]
    pub(crate) fn join(&mut self, state: StateId, set: SetId) -> Step {
        if set == NO_REQUIREMENTS {
            return Step::To(state);
        }
        let known = self.joins[state as usize].get(set as usize).copied();
        match known.and_then(Step::decoded) {
            Some(step) => step,
            None => self.first_join(state, set),
        }
    }

    fn first_join(&mut self, state: StateId, set: SetId) -> Step {
        let (side, wanted) = (self.state(state).side, self.sets[set as usize].clone());
        let step = self.narrowed(state, side, &wanted);
        let row = &mut self.joins[state as usize];
        if row.len() <= set as usize {
            row.resize(self.sets.len().max(set as usize + 1), UNKNOWN);
        }
        row[set as usize] = step.encoded();
        step
    }

    fn narrowed(&mut self, state: StateId, side: Side, wanted: &Requirements) -> Step {
        let requirements = &self.state(state).requirements;
        if !requirements.intersects(wanted, self.vocabulary) {
            return Step::Conflict;
        }
        if !requirements.is_compatible(wanted, side.undefined(), self.vocabulary) {
            return Step::Undefined;
        }
        let mut requirements = requirements.clone();
        requirements.add_all(wanted, self.vocabulary);
        Step::To(self.intern(requirements, side))
    }

    /// The state after the topology left only these domains of a key, as upstream applies it: the domains are joined
    /// with what the node says about the key, and the result must be compatible with the node.
    pub(crate) fn narrow(&mut self, state: StateId, key: usize, domains: &[u64]) -> Step {
        let mask = match domains {
            [word] => *word,
            _ => self.wide_mask(domains),
        };
        let place = (state, key as u32, mask);
        if let Some(step) = self.narrowings.get(&place).copied().and_then(Step::decoded) {
            return step;
        }
        let entry = &self.keys[key];
        let values = crate::bitmap::positions(domains).map(|ordinal| entry.values[ordinal]);
        let chosen = Requirement::one_of(entry.key, values);
        let chosen = match self.state(state).requirements.get(entry.key) {
            Some(existing) => chosen.intersection(existing, self.vocabulary),
            None => chosen,
        };
        let mut wanted = Requirements::default();
        wanted.replace(chosen);
        let side = self.state(state).side;
        let step = self.narrowed(state, side, &wanted);
        self.narrowings.insert(place, step.encoded());
        step
    }

    fn wide_mask(&mut self, domains: &[u64]) -> u64 {
        let next = self.wide_masks.len() as u64;
        *self.wide_masks.entry(domains.into()).or_insert(next)
    }

    fn describe(&mut self, requirements: &Requirements, side: Side) -> State {
        let mut admitted = Vec::with_capacity(self.key_words);
        let mut listed = vec![0; self.key_words].into_boxed_slice();
        let mut single = Vec::with_capacity(self.keys.len());
        for (at, entry) in self.keys.iter().enumerate() {
            let requirement = requirements.get(entry.key);
            admitted.extend_from_slice(&self.admitted_by(requirement, at));
            let values = requirement.into_iter().flat_map(Requirement::values);
            for ordinal in values.filter_map(|value| entry.ordinal(value)) {
                put(&mut listed, entry.start * 64 + ordinal);
            }
            let only = requirement.filter(|requirement| requirement.len() == 1);
            let only = only
                .and_then(|only| only.values().next())
                .and_then(|value| entry.ordinal(value));
            single.push(only.map_or(MANY, |ordinal| ordinal as u32));
        }
        let (rows, classes) = match side {
            Side::Node => (Mask::default(), Mask::default()),
            Side::Claim(_) => self.launchable(requirements),
        };
        State {
            requirements: requirements.clone(),
            side,
            admitted: admitted.into_boxed_slice(),
            listed,
            single: single.into_boxed_slice(),
            rows,
            classes,
            has_min_values: requirements.has_min_values(),
        }
    }

    /// The rows and offer classes a claim with these requirements may use.
    fn launchable(&mut self, requirements: &Requirements) -> (Mask, Box<[u64]>) {
        let classes = self.index.compatible_classes(requirements, self.vocabulary);
        let mut rows = self.index.empty_mask();
        for at in crate::bitmap::positions(&classes) {
            rows.iter_mut()
                .zip(&self.index.classes[at].rows)
                .for_each(|(row, class)| *row |= class);
        }
        for requirement in requirements.iter() {
            if !self.accepting.contains_key(requirement) {
                let mask = self.index.accepting(requirement, self.vocabulary);
                self.accepting.insert(requirement.clone(), mask);
            }
            if let Some(Some(accepting)) = self.accepting.get(requirement) {
                rows.iter_mut().zip(accepting).for_each(|(row, mask)| *row &= mask);
            }
        }
        (rows, classes)
    }
}

fn topology_key(key: KeyId, start: usize, vocabulary: &Vocabulary) -> TopologyKey {
    let mut values: Vec<ValueId> = vocabulary.values(key).collect();
    values.sort_by_key(|value| vocabulary.value_name(key, *value));
    let ordinals = values
        .iter()
        .zip(0..)
        .map(|(value, ordinal)| (*value, ordinal))
        .collect();
    TopologyKey {
        key,
        words: words_for(values.len()).max(1),
        values,
        ordinals,
        start,
    }
}
