//! Many decisions in a few lines: how many of which, what they cost together, and the first of them.

use std::collections::BTreeMap;

use ledger::{
    Record, Usd,
    words::{in_a_list, monthly_change, ready_in, what},
};
use model::words::{counted, grouped};

/// Lines of a message; the rest is counted.
const LINES: usize = 10;

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest<'a> {
    /// Which cluster.
    pub cluster: String,
    /// `2 launched, 1 refused · +$116/mo`.
    pub summary: String,
    /// What most asks for a person first.
    pub lines: Vec<Line<'a>>,
    /// Decisions that have no line.
    pub left_out: usize,
    /// Decisions that could not be told in time and are forgotten.
    pub dropped: usize,
    /// Every decision it is about.
    pub records: Vec<&'a Record>,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// Which.
    pub record: &'a Record,
    /// `launched`.
    pub word: &'static str,
    /// `m7g.large spot in 1c for 3 pods, ready in 31s (Provisioned, +$42.10/mo)`.
    pub text: String,
}

impl<'a> Digest<'a> {
    /// What there is to say of these, oldest first; nothing of none.
    pub fn of(cluster: &str, records: Vec<&'a Record>, dropped: usize) -> Option<Self> {
        if records.is_empty() {
            return None;
        }
        let mut ordered = records.clone();
        ordered.sort_by_key(|record| !record.is_refused());
        let lines: Vec<Line<'a>> = ordered.into_iter().take(LINES).map(line).collect();
        Some(Self {
            cluster: cluster.to_owned(),
            summary: summary(&records),
            left_out: records.len() - lines.len(),
            lines,
            dropped,
            records,
        })
    }

    /// What is not said in lines: `and 12 more decisions`; empty where nothing is.
    pub fn rest(&self) -> String {
        let mut rest = Vec::new();
        if self.left_out > 0 {
            rest.push(format!("and {}", counted(self.left_out, "more decision")));
        }
        if self.dropped > 0 {
            let dropped = counted(self.dropped, "earlier decision");
            rest.push(format!("{dropped} could not be told in time: see `dovetail decisions`"));
        }
        rest.join("; ")
    }
}

fn line(record: &Record) -> Line<'_> {
    let mut notes = vec![record.reason.clone()];
    match in_a_list(record).as_str() {
        "-" => {}
        money => notes.push(match money.strip_prefix('(') {
            Some(forgone) => format!("${} forgone", forgone.trim_end_matches(')')),
            None => format!(
                "{}${}/mo",
                money.get(..1).unwrap_or_default(),
                money.get(1..).unwrap_or_default()
            ),
        }),
    }
    let pool = if record.pool.is_empty() {
        String::new()
    } else {
        format!("{}: ", record.pool)
    };
    let said = what(record, |name| name);
    Line {
        record,
        word: record.word(),
        text: format!("{pool}{said}{} ({})", ready_in(record), notes.join(", ")),
    }
}

fn summary(records: &[&Record]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records {
        *counts.entry(record.word()).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .into_iter()
        .map(|(word, count)| format!("{} {word}", grouped(count as u128)))
        .collect();
    let acted = records.iter().filter(|record| !record.is_refused());
    let change: i64 = acted
        .filter_map(|record| record.money)
        .map(|money| money.delta().0)
        .sum();
    let counts = counts.join(", ");
    if change == 0 {
        return counts;
    }
    format!("{counts} · {}", monthly_change(Usd(change)))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use ledger::{Action, Id, Money, Phase, Target};

    use super::*;

    fn launched(name: &str) -> Record {
        let id = Id::of("launch", [name]);
        let mut record = Record::new(id, Action::Launch, Phase::Done, "Provisioned", Timestamp::UNIX_EPOCH);
        record.pool = "general".to_owned();
        record.pod_count = 3;
        record.targets = vec![Target {
            instance_type: "m7g.large".to_owned(),
            zone: "1c".to_owned(),
            capacity: "spot".to_owned(),
            comes: true,
            ..Target::default()
        }];
        record.money = Some(Money {
            before_usd_h: Usd(0),
            after_usd_h: Usd(100_000_000),
        });
        record
    }

    fn refused(name: &str) -> Record {
        let id = Id::of("refuse", [name]);
        let mut record = Record::new(id, Action::Refuse, Phase::Done, "NoTypeFits", Timestamp::UNIX_EPOCH);
        record.pods = vec![format!("shop/{name}")];
        record.pod_count = 1;
        record
    }

    #[test]
    fn what_is_refused_comes_first_and_money_is_summed() {
        let records = [launched("a"), launched("b"), refused("cart-0")];
        let digest = Digest::of("prod", records.iter().collect(), 0).unwrap();
        assert_eq!(digest.summary, "2 launched, 1 refused · +$146/mo");
        let lines: Vec<String> = digest
            .lines
            .iter()
            .map(|line| format!("{} {}", line.word, line.text))
            .collect();
        assert_eq!(
            lines,
            [
                "refused no node for shop/cart-0 (NoTypeFits)",
                "launched general: m7g.large spot in 1c for 3 pods (Provisioned, +$73.00/mo)",
                "launched general: m7g.large spot in 1c for 3 pods (Provisioned, +$73.00/mo)",
            ]
        );
        assert_eq!(digest.rest(), "");
    }

    #[test]
    fn a_flood_is_a_few_lines_and_a_count() {
        let records: Vec<Record> = (0..1200).map(|at| refused(&at.to_string())).collect();
        let digest = Digest::of("prod", records.iter().collect(), 7).unwrap();
        assert_eq!((digest.lines.len(), digest.left_out), (LINES, 1190));
        assert_eq!(
            digest.rest(),
            "and 1,190 more decisions; 7 earlier decisions could not be told in time: see `dovetail decisions`"
        );
    }

    #[test]
    fn of_nothing_nothing_is_said() {
        assert_eq!(Digest::of("prod", Vec::new(), 0), None);
    }
}
