//! Decisions for programs: the same tree as JSON and YAML.

use ledger::{Record, Usd};
use serde_json::{Value, json};

use super::Chosen;

/// What of a list adds up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) all: usize,
    pub(super) acted: usize,
    pub(super) refused: usize,
    /// What consolidation changed of an hour's spend.
    pub(super) consolidation: Usd,
}

impl Summary {
    pub(super) fn of(records: &[&Record]) -> Self {
        let mut summary = Self::default();
        for record in records {
            summary.all += 1;
            summary.acted += usize::from(record.is_acted());
            summary.refused += usize::from(record.is_refused());
            let is_consolidation = matches!(record.reason.as_str(), "Empty" | "Underutilized");
            if let Some(money) = record.money.filter(|_| is_consolidation && record.is_acted()) {
                summary.consolidation.0 += money.delta().0;
            }
        }
        summary
    }
}

/// A list.
pub(super) fn list(chosen: &Chosen<'_>) -> Value {
    let summary = Summary::of(&chosen.records);
    let decisions: Vec<Value> = chosen.records.iter().map(|record| one(record, false)).collect();
    json!({
        "decisions": decisions,
        "summary": {
            "decisions": summary.all,
            "acted": summary.acted,
            "refused": summary.refused,
            "consolidation_usd_mo": summary.consolidation.monthly(),
            "since_s": chosen.since.map(|since| since.as_secs()),
        },
    })
}

/// One decision; in a list without what else was possible.
pub(super) fn one(record: &Record, is_whole: bool) -> Value {
    let mut tree = serde_json::to_value(record).unwrap_or_default();
    tree["action"] = json!(record.word());
    tree["acted"] = json!(record.is_acted());
    tree["count"] = json!(record.count);
    if let Some(money) = record.money {
        tree["money"]["delta_usd_mo"] = json!(money.delta().monthly());
    }
    if let Value::Object(fields) = &mut tree {
        let options = fields.remove("options").unwrap_or(json!([]));
        if is_whole && let Value::Array(mut options) = options {
            let is_chosen = |offer: &Value| offer["verdict"] == "chosen";
            let at = options.iter().position(is_chosen);
            let chosen = at.map(|at| options.remove(at));
            fields.insert("chosen".to_owned(), chosen.unwrap_or(Value::Null));
            fields.insert("runners_up".to_owned(), Value::Array(options));
        }
    }
    tree
}
