//! Decisions as a table for spreadsheets: one a line, money as numbers.

use ledger::Record;

const HEAD: &str = "id,time,action,acted,reason,pool,node,nodeclaim,type,zone,capacity,usd_h_before,usd_h_after,delta_usd_mo,pods,score,took_ms,ready_s,detail";

pub(super) fn render(records: &[&Record]) -> String {
    let mut text = format!("{HEAD}\n");
    for record in records {
        text.push_str(&line(record));
        text.push('\n');
    }
    text
}

fn line(record: &Record) -> String {
    let target = record.targets.first().cloned().unwrap_or_default();
    let amount = |usd: Option<ledger::Usd>| usd.map(|usd| usd.dollars().to_string()).unwrap_or_default();
    let last = record.steps.last().map(|step| step.step.as_str()).unwrap_or_default();
    let took = record.took_to(last).map(|took| took.as_millis().to_string());
    let ready = record.took_to("ready").map(|took| took.as_secs().to_string());
    let score = record.score.map(|score| match score.disruption_permille {
        0 => String::new(),
        disruption => format!("{:.2}", ratio(score.saving_permille, disruption)),
    });
    let fields = [
        record.id.to_string(),
        record.time.to_string(),
        record.word().to_owned(),
        record.is_acted().to_string(),
        record.reason.clone(),
        record.pool.clone(),
        target.node,
        target.claim,
        target.instance_type,
        target.zone,
        target.capacity,
        amount(record.money.map(|money| money.before_usd_h)),
        amount(record.money.map(|money| money.after_usd_h)),
        amount(record.money.map(|money| money.delta().monthly())),
        record.pod_count.to_string(),
        score.unwrap_or_default(),
        took.unwrap_or_default(),
        ready.unwrap_or_default(),
        record.detail.clone(),
    ];
    fields.map(|field| quoted(&field)).join(",")
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(super) fn ratio(part: i64, whole: i64) -> f64 {
    part as f64 / whole as f64
}

/// Quoted where a comma, a quote or a line break would be misread; what a spreadsheet would take for a formula is text.
fn quoted(field: &str) -> String {
    let is_number = field.parse::<f64>().is_ok();
    let field = if field.starts_with(['=', '+', '-', '@']) && !is_number {
        format!("'{field}")
    } else {
        field.to_owned()
    };
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_would_be_misread() {
        let cases = [
            ("plain", "plain"),
            ("-0.5", "-0.5"),
            ("a,b", "\"a,b\""),
            ("say \"no\"", "\"say \"\"no\"\"\""),
            ("=1+1", "'=1+1"),
        ];
        for (field, expected) in cases {
            assert_eq!(quoted(field), expected);
        }
    }
}
