//! What somebody chose on the command line or in a file of defaults: resources, labels, nodes, order, colours. The words
//! and their meanings are those of eks-node-viewer.

use model::object::Labels;

use crate::theme::Rgb;

/// What somebody chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choices {
    /// Resources with a bar each, in this order.
    pub resources: Vec<String>,
    /// Labels with a column each.
    pub extra_labels: Vec<String>,
    /// Only these nodes.
    pub selector: Selector,
    /// In which order to begin with.
    pub sort: Sort,
    /// Whether prices are shown.
    pub has_prices: bool,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            resources: vec!["cpu".to_owned(), "memory".to_owned()],
            extra_labels: Vec::new(),
            selector: Selector::default(),
            sort: Sort::default(),
            has_prices: true,
        }
    }
}

/// An order of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    /// By what.
    pub key: SortKey,
    /// The other way round.
    pub is_reversed: bool,
}

/// What nodes are ordered by. Each has a natural direction: what people look for first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// What happens next, then the price.
    Next,
    /// The dearest first.
    Price,
    /// The emptiest first.
    Cpu,
    /// The emptiest first.
    Memory,
    /// The youngest last, as eks-node-viewer has it.
    Creation,
    /// By name.
    Name,
    /// Most pods first.
    Pods,
    /// By the value of a label.
    Label(String),
}

impl Default for Sort {
    fn default() -> Self {
        Self {
            key: SortKey::Next,
            is_reversed: false,
        }
    }
}

/// Labels that are worked out, as eks-node-viewer calls them.
pub(crate) const COMPUTED: &str = "eks-node-viewer/node-";

impl Sort {
    /// Reads `next`, `creation`, `cpu=dsc` or `LABEL=asc`.
    pub fn read(text: &str) -> Result<Self, String> {
        let (word, direction) = match text.rsplit_once('=') {
            Some((word, direction @ ("asc" | "dsc"))) => (word, direction),
            Some((_, direction)) => {
                return Err(format!("{direction:?} is no direction: write asc or dsc"));
            }
            None => (text, ""),
        };
        let key = match word {
            "" => return Err("say by what: next, creation, price, cpu, memory, pods, name or a label".to_owned()),
            "next" => SortKey::Next,
            "creation" | "age" | "eks-node-viewer/node-age" => SortKey::Creation,
            "price" | "$" => SortKey::Price,
            "cpu" | "eks-node-viewer/node-cpu-usage" => SortKey::Cpu,
            "memory" | "mem" | "eks-node-viewer/node-memory-usage" => SortKey::Memory,
            "pods" | "eks-node-viewer/node-pods-usage" => SortKey::Pods,
            "name" => SortKey::Name,
            "pool" => SortKey::Label(api::labels::NODEPOOL.to_owned()),
            label => SortKey::Label(label.to_owned()),
        };
        // Whoever says a direction means what it says of the figure, not our habit.
        let is_reversed = match (direction, key.rises()) {
            ("asc", rises) => !rises,
            ("dsc", rises) => rises,
            _ => false,
        };
        Ok(Self { key, is_reversed })
    }

    /// Orders by a key, or by the same key the other way round.
    pub(crate) fn turn_to(&mut self, key: SortKey) {
        self.is_reversed = self.key == key && !self.is_reversed;
        self.key = key;
    }
}

impl SortKey {
    /// Whether its natural direction is from little to much.
    fn rises(&self) -> bool {
        !matches!(self, Self::Price | Self::Pods)
    }

    /// As the line above the list says it.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Next => "next".to_owned(),
            Self::Price => "$".to_owned(),
            Self::Cpu => "cpu".to_owned(),
            Self::Memory => "mem".to_owned(),
            Self::Creation => "age".to_owned(),
            Self::Name => "name".to_owned(),
            Self::Pods => "pods".to_owned(),
            Self::Label(label) => label.rsplit('/').next().unwrap_or(label).to_owned(),
        }
    }

    /// What the key `s` turns to.
    pub(crate) fn following(&self) -> Self {
        match self {
            Self::Next => Self::Price,
            Self::Price => Self::Cpu,
            Self::Cpu => Self::Memory,
            Self::Memory => Self::Creation,
            Self::Creation => Self::Name,
            Self::Name | Self::Pods | Self::Label(_) => Self::Next,
        }
    }
}

/// Which nodes, by their labels, as kubectl writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector(Vec<Demand>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Demand {
    key: String,
    wants: Wants,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wants {
    Present,
    Absent,
    OneOf(Vec<String>),
    NoneOf(Vec<String>),
}

impl Selector {
    /// Reads `key`, `!key`, `key=value`, `key!=value`, `key in (a,b)` and `key notin (a,b)`, joined by commas; the key
    /// `pool` stands for `karpenter.sh/nodepool`.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut demands = Vec::new();
        for part in parts(text) {
            let part = part.trim();
            if !part.is_empty() {
                demands.push(demand(part)?);
            }
        }
        Ok(Self(demands))
    }

    /// Whether nothing is demanded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels are as demanded.
    pub fn selects(&self, labels: &Labels) -> bool {
        self.0.iter().all(|demand| {
            let value = labels.get(&demand.key).map(|value| &**value);
            match &demand.wants {
                Wants::Present => value.is_some(),
                Wants::Absent => value.is_none(),
                Wants::OneOf(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
                Wants::NoneOf(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
            }
        })
    }
}

/// The parts between commas that are not within brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let split = |sign: char| {
        depth += match sign {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        sign == ',' && depth == 0
    };
    text.split(split).collect()
}

fn demand(text: &str) -> Result<Demand, String> {
    let wrong = || format!("{text:?} selects nothing: write key, !key, key=value, key!=value or key in (a,b)");
    let listed = |text: &str| -> Option<Vec<String>> {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.split(',').map(|value| value.trim().to_owned()).collect())
    };
    let (key, wants) = if let Some(key) = text.strip_prefix('!') {
        (key, Wants::Absent)
    } else if let Some((key, values)) = text.split_once(" notin ") {
        (key, Wants::NoneOf(listed(values).ok_or_else(wrong)?))
    } else if let Some((key, values)) = text.split_once(" in ") {
        (key, Wants::OneOf(listed(values).ok_or_else(wrong)?))
    } else if let Some((key, value)) = text.split_once("!=") {
        (key, Wants::NoneOf(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = text.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        (key, Wants::OneOf(vec![value.trim().to_owned()]))
    } else {
        (text, Wants::Present)
    };
    let key = match key.trim() {
        "" => return Err(wrong()),
        key if key.contains([' ', '(', ')']) => return Err(wrong()),
        "pool" => api::labels::NODEPOOL,
        key => key,
    };
    Ok(Demand {
        key: key.to_owned(),
        wants,
    })
}

/// Three colours for good, middling and bad values: `#04B575,#FFFF00,#FF0000`.
pub fn style(text: &str) -> Result<[Rgb; 3], String> {
    let wrong = || format!("{text:?} are not three colours: write #04B575,#FFFF00,#FF0000 (good, middling, bad)");
    let colours: Option<Vec<Rgb>> = text.split(',').map(|one| colour(one.trim())).collect();
    colours
        .and_then(|colours| <[Rgb; 3]>::try_from(colours).ok())
        .ok_or_else(wrong)
}

fn colour(text: &str) -> Option<Rgb> {
    let digits = text.strip_prefix('#')?;
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (digits.len() == 6).then_some(Rgb(pair(0)?, pair(2)?, pair(4)?))
}

/// A file of defaults: a flag and its value a line, as `.eks-node-viewer` has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Defaults(Vec<(String, String)>);

impl Defaults {
    /// Reads the file. Lines that are neither empty nor a remark must have a `=`.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut found = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                return Err(format!("line {number}: {line:?} has no `=`: write option=value"));
            };
            let name = name.trim().trim_start_matches('-').to_owned();
            found.push((name, value.trim().to_owned()));
        }
        Ok(Self(found))
    }

    /// The value of a flag; the last counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::from_pairs(
            pairs
                .iter()
                .map(|(key, value)| ((*key).into(), (*value).into()))
                .collect(),
        )
    }

    #[test]
    fn a_selector_is_written_as_for_kubectl() {
        let data = labels(&[("karpenter.sh/nodepool", "data"), ("tier", "gold")]);
        let cases = [
            ("", true),
            ("tier", true),
            ("!tier", false),
            ("pool=data", true),
            ("karpenter.sh/nodepool==data,tier!=gold", false),
            ("tier in (gold, silver),!gpu", true),
            ("tier notin (gold,silver)", false),
            ("gpu!=yes", true),
        ];
        for (text, expected) in cases {
            assert_eq!(Selector::read(text).unwrap().selects(&data), expected, "{text}");
        }
        for wrong in ["=x", "tier in gold", "a b"] {
            assert!(Selector::read(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_direction_is_that_of_the_figure() {
        let sort = |text: &str| Sort::read(text).unwrap();
        let is_reversed = ["cpu=asc", "cpu=dsc", "price=dsc", "price=asc"].map(|text| sort(text).is_reversed);
        assert_eq!(is_reversed, [false, true, false, true]);
        assert_eq!(sort("eks-node-viewer/node-cpu-usage=dsc").key, SortKey::Cpu);
        assert_eq!(sort("topology.kubernetes.io/zone").key.word(), "zone");
        assert!(Sort::read("cpu=up").is_err() && Sort::read("").is_err());
    }

    #[test]
    fn defaults_are_options_with_values_and_the_last_counts() {
        let text = "# mine\nresources=cpu\n\n--node-selector = karpenter.sh/nodepool=data\nresources=cpu,memory\n";
        let defaults = Defaults::read(text).unwrap();
        assert_eq!(defaults.get("resources"), Some("cpu,memory"));
        assert_eq!(defaults.get("node-selector"), Some("karpenter.sh/nodepool=data"));
        assert_eq!(defaults.get("style"), None);
        assert!(Defaults::read("cpu").unwrap_err().starts_with("line 1"));
    }

    #[test]
    fn a_style_is_three_colours() {
        assert_eq!(style("#04B575,#FFFF00,#ff0000").unwrap()[2], Rgb(255, 0, 0));
        for wrong in ["red,green,blue", "#04B575", "#04B575,#FFFF00,#ff00"] {
            assert!(style(wrong).is_err(), "{wrong}");
        }
    }
}
