//! Questions about the requirement algebra and our answers, in the line protocol of the reference program.
//!
//! One JSON object a line: two sets of requirements and values to probe them with go in, everything that can be asked
//! of the sets comes out. Both sides sort what has no order, so answers compare as whole values.

use model::{
    requirement::{Incompatible, Operator, Requirement, RequirementSpec, Requirements, UndefinedLabels},
    vocabulary::Vocabulary,
};
use serde::{Deserialize, Serialize};

/// Two sets of requirements, and values to probe them with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) a: Vec<RequirementSpec>,
    pub(crate) b: Vec<RequirementSpec>,
    pub(crate) values: Vec<String>,
}

/// What an algebra has to say about them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    pub(crate) sum: Vec<Description>,
    pub(crate) overlaps: Vec<Overlap>,
    pub(crate) intersects: Vec<String>,
    pub(crate) compatible: Vec<String>,
    pub(crate) compatible_well_known: Vec<String>,
    pub(crate) text: String,
}

/// Everything that can be asked of one requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) key: String,
    pub(crate) operator: Operator,
    pub(crate) len: i64,
    pub(crate) text: String,
    /// Whether it admits each probed value.
    pub(crate) has: Vec<bool>,
    pub(crate) api: Vec<RequirementSpec>,
}

/// Whether the two sets' requirements on one key share a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Overlap {
    pub(crate) key: String,
    pub(crate) both: bool,
}

impl Question {
    /// Our answer.
    pub(crate) fn ask(&self) -> Answer {
        let mut vocabulary = Vocabulary::new();
        let a = Requirements::from_specs(&self.a, &mut vocabulary);
        let b = Requirements::from_specs(&self.b, &mut vocabulary);
        let vocabulary = &vocabulary;
        let mut sum = a.clone();
        sum.add_all(&b, vocabulary);
        let compatible = |undefined| {
            let verdict = a.compatible(&b, undefined, vocabulary);
            assert_eq!(verdict.is_ok(), a.is_compatible(&b, undefined, vocabulary), "{self:?}");
            texts(verdict)
        };
        Answer {
            sum: self.describe(&sum, vocabulary),
            overlaps: overlaps(&a, &b, vocabulary),
            intersects: texts(a.check_intersects(&b, vocabulary)),
            compatible: compatible(UndefinedLabels::Denied),
            compatible_well_known: compatible(UndefinedLabels::AllowedIfWellKnown),
            text: sum.text(vocabulary),
        }
        .without_map_order()
    }

    fn describe(&self, set: &Requirements, vocabulary: &Vocabulary) -> Vec<Description> {
        let describe = |requirement: &Requirement| Description {
            key: vocabulary.key_name(requirement.key()).to_owned(),
            operator: requirement.operator(),
            len: requirement.len(),
            text: requirement.text(vocabulary),
            has: self
                .values
                .iter()
                .map(|value| requirement.has(value, vocabulary))
                .collect(),
            api: requirement.to_specs(vocabulary),
        };
        let mut descriptions: Vec<_> = set.iter().map(describe).collect();
        descriptions.sort_by(|left, right| left.key.cmp(&right.key));
        descriptions
    }
}

impl Answer {
    /// Which unknown label is named, and which known one it resembles, follows Go's random map order.
    #[must_use]
    pub(crate) fn without_map_order(mut self) -> Self {
        for text in self.compatible.iter_mut().chain(&mut self.compatible_well_known) {
            if text.starts_with("label ") {
                *text = "label".to_owned();
            }
        }
        self
    }
}

fn overlaps(a: &Requirements, b: &Requirements, vocabulary: &Vocabulary) -> Vec<Overlap> {
    let overlap = |ours: &Requirement| {
        b.get(ours.key()).map(|theirs| Overlap {
            key: vocabulary.key_name(ours.key()).to_owned(),
            both: ours.overlaps(theirs, vocabulary),
        })
    };
    let mut overlaps: Vec<_> = a.iter().filter_map(overlap).collect();
    overlaps.sort();
    overlaps
}

fn texts(verdict: Result<(), Incompatible>) -> Vec<String> {
    let mut texts: Vec<_> = match verdict {
        Ok(()) => Vec::new(),
        Err(Incompatible::Conflicts(conflicts)) => conflicts.iter().map(ToString::to_string).collect(),
        Err(unknown) => vec![unknown.to_string()],
    };
    texts.sort();
    texts
}

/// Questions from a seed: the same seed asks the same ones on every machine.
pub(crate) struct Questions(pub(crate) u64);

/// The first one more often than the others, so that the two sets meet.
const KEYS: [&str; 9] = [
    "size",
    "size",
    "size",
    "example.com/team",
    "kubernetes.io/arch",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/hostname",
    "zone",
];
const VALUES: [&str; 13] = [
    "a",
    "b",
    "c",
    "1",
    "2",
    "3",
    "5",
    "8",
    "-4",
    "007",
    "+3",
    "",
    "99999999999999999999",
];
const BOUNDS: [&str; 10] = [
    "0",
    "1",
    "2",
    "4",
    "7",
    "-5",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "many",
];
const OPERATORS: [Operator; 8] = [
    Operator::In,
    Operator::NotIn,
    Operator::Exists,
    Operator::DoesNotExist,
    Operator::Gt,
    Operator::Lt,
    Operator::Gte,
    Operator::Lte,
];

impl Iterator for Questions {
    type Item = Question;

    fn next(&mut self) -> Option<Question> {
        let (a, b) = (self.requirements(), self.requirements());
        Some(Question {
            a,
            b,
            values: VALUES.iter().map(|value| (*value).to_owned()).collect(),
        })
    }
}

impl Questions {
    fn requirements(&mut self) -> Vec<RequirementSpec> {
        (0..self.below(3)).map(|_| self.requirement()).collect()
    }

    fn requirement(&mut self) -> RequirementSpec {
        let operator = self.pick(&OPERATORS);
        let values = match operator {
            Operator::In | Operator::NotIn => self.values(),
            Operator::Exists | Operator::DoesNotExist => Vec::new(),
            _ => vec![self.pick(&BOUNDS).to_owned()],
        };
        let min_values = if self.below(3) == 0 {
            u32::try_from(1 + self.below(4)).ok()
        } else {
            None
        };
        RequirementSpec {
            key: self.pick(&KEYS).to_owned(),
            operator,
            values,
            min_values,
        }
    }

    /// Mostly few values; sometimes more than one word of bits.
    fn values(&mut self) -> Vec<String> {
        if self.below(60) == 0 {
            return (0..60 + self.below(20)).map(|number| number.to_string()).collect();
        }
        (0..self.below(5)).map(|_| self.pick(&VALUES).to_owned()).collect()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    /// SplitMix64.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}
