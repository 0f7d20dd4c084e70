//! What happened, in a few words, and for how much.

use jiff::SignedDuration;
use model::words::{counted, grouped};

use crate::{Action, Phase, Record, Target, Usd};

/// `4m 12s`, `1h 26m`, `36s`, `0.3s`: two units at most.
pub fn lasting(span: SignedDuration) -> String {
    let seconds = span.as_secs();
    let two = |large: i64, unit: &str, small: i64, rest: &str| {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit} {small}{rest}")
        }
    };
    match seconds {
        ..=0 if span.subsec_millis() >= 100 => format!("0.{}s", span.subsec_millis() / 100),
        ..=59 => format!("{}s", seconds.max(0)),
        60..=3599 => two(seconds / 60, "m", seconds % 60, "s"),
        3600..=86_399 => two(seconds / 3600, "h", seconds % 3600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

/// Dollars with so many places and thousands with commas, without sign.
fn dollars(amount: Usd, places: u32) -> String {
    let one = 10_u128.pow(places);
    let rounded = (u128::from(amount.0.unsigned_abs()) * one + 500_000_000) / 1_000_000_000;
    let whole = grouped(rounded / one);
    if places == 0 {
        whole
    } else {
        format!("{whole}.{:0width$}", rounded % one, width = places as usize)
    }
}

/// `$0.1374/h`.
pub fn hourly(amount: Usd) -> String {
    let places = if amount.0.abs() < 1_000_000_000 { 4 } else { 2 };
    let sign = if amount.0 < 0 { "-" } else { "" };
    format!("{sign}${}/h", dollars(amount, places))
}

/// `-$116/mo`: the change of a month's spend, from that of an hour.
pub fn monthly_change(hourly: Usd) -> String {
    let month = hourly.monthly();
    let sign = if month.0 < 0 { "-" } else { "+" };
    let places = if month.0.abs() < 10_000_000_000 { 2 } else { 0 };
    format!("{sign}${}/mo", dollars(month, places))
}

/// What a month costs more or less by it: `+100.30`, `(423.11)` for what is forgone, `-` for nothing.
pub fn in_a_list(record: &Record) -> String {
    if let Some(money) = record.money.filter(|_| !record.is_refused()) {
        let month = money.delta().monthly();
        let sign = if month.0 < 0 { "-" } else { "+" };
        return format!("{sign}{}", dollars(month, 2));
    }
    match record.forgone_usd_h {
        Some(forgone) if record.is_refused() => format!("({})", dollars(forgone.monthly(), 2)),
        _ => "-".to_owned(),
    }
}

/// How long a launch took until its node was ready: `, ready in 31s`.
pub fn ready_in(record: &Record) -> String {
    match (record.action, record.phase, record.took_to("ready")) {
        (Action::Launch, Phase::Done, Some(took)) => format!(", ready in {}", lasting(took)),
        _ => String::new(),
    }
}

/// A node as people know it.
fn name(target: &Target) -> &str {
    if target.node.is_empty() {
        &target.claim
    } else {
        &target.node
    }
}

/// Whom it is for: the pod, or how many there are.
fn for_pods(record: &Record) -> String {
    match (record.pod_count, record.pods.first()) {
        (0, _) => String::new(),
        (1, Some(pod)) => format!(" for {pod}"),
        (count, _) => format!(" for {}", counted(count, "pod")),
    }
}

fn pods_without_node(record: &Record) -> String {
    let pod = record.pods.first().map_or("a pod", String::as_str);
    match record.pod_count.saturating_sub(1) {
        0 => format!("no node for {pod}"),
        more => format!("no node for {pod} and {more} more"),
    }
}

/// What happened, in a few words; `short` is how a node's name is said.
pub fn what(record: &Record, short: fn(&str) -> &str) -> String {
    let names: Vec<&str> = record.there().map(|target| short(name(target))).take(2).collect();
    let names = match record.nodes.saturating_sub(names.len()) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    };
    let kind = record.there().next().map(|target| target.instance_type.as_str());
    let kind = kind.filter(|kind| !kind.is_empty());
    let kind = kind.map(|kind| format!("{kind} ")).unwrap_or_default();
    let coming: Vec<String> = record.coming().map(ToString::to_string).collect();
    let coming = coming.join(", ");
    let text = match record.action {
        Action::Launch if coming.is_empty() => format!("a node{}", for_pods(record)),
        Action::Launch => format!("{coming}{}", for_pods(record)),
        Action::Refuse if record.nodes > 0 => format!("{}: {}", counted(record.nodes, "node"), record.detail),
        Action::Refuse => pods_without_node(record),
        Action::Keep => format!("{names}: {}", record.detail),
        Action::Replace if !coming.is_empty() => format!("{kind}{names} by {coming}"),
        Action::Replace | Action::Delete | Action::Reboot => format!("{kind}{names}"),
    };
    if record.phase == Phase::Aborted && !record.detail.is_empty() {
        return format!("{text}: {}", record.detail);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        let cases = [
            (SignedDuration::from_millis(340), "0.3s"),
            (SignedDuration::ZERO, "0s"),
            (SignedDuration::from_secs(24), "24s"),
            (SignedDuration::from_secs(71), "1m 11s"),
            (SignedDuration::from_secs(120), "2m"),
            (SignedDuration::from_secs(5160), "1h 26m"),
            (SignedDuration::from_hours(155), "6d 11h"),
        ];
        for (span, expected) in cases {
            assert_eq!(lasting(span), expected);
        }
    }

    #[test]
    fn money_has_its_sign_and_as_many_places_as_count() {
        assert_eq!(hourly(Usd(158_500_000)), "$0.1585/h");
        assert_eq!(hourly(Usd(24_710_000_000)), "$24.71/h");
        assert_eq!(monthly_change(Usd(-158_500_000)), "-$116/mo");
        assert_eq!(monthly_change(Usd(8_500_000)), "+$6.21/mo");
    }
}
