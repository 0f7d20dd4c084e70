//! Figures as people read them in a narrow place: money, time, shares, bars, names.

use insight::{Dollars, Fill};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use ledger::Usd;
pub(crate) use model::words::{counted, grouped};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const PICOS: u128 = 1_000_000_000_000;
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

fn decimal(picos: u128, places: u32) -> String {
    let one = 10_u128.pow(places);
    let rounded = (picos * one + PICOS / 2) / PICOS;
    let whole = grouped(rounded / one);
    if places == 0 {
        return whole;
    }
    format!("{whole}.{:0places$}", rounded % one, places = places as usize)
}

/// `$24.71`: of a fleet.
pub(crate) fn two_places(amount: Dollars) -> String {
    format!("{}${}", minus(amount), decimal(amount.0.unsigned_abs(), 2))
}

/// `0.3830`: of one node, with at most six signs.
pub(crate) fn offer(amount: Dollars) -> String {
    let picos = amount.0.unsigned_abs();
    let places = match picos / PICOS {
        0..10 => 4,
        10..100 => 3,
        _ => 1,
    };
    decimal(picos, places)
}

/// `18,039`: of a month, cents below ten.
pub(crate) fn plain(amount: Dollars) -> String {
    let picos = amount.0.unsigned_abs();
    let places = if picos > 0 && picos < 10 * PICOS { 2 } else { 0 };
    format!("{}{}", minus(amount), decimal(picos, places))
}

/// `$18,039`.
pub(crate) fn dollars(amount: Dollars) -> String {
    let size = Dollars(i128::try_from(amount.0.unsigned_abs()).unwrap_or(i128::MAX));
    format!("{}${}", minus(amount), plain(size))
}

/// A change with its sign: `-$234` means that spend falls.
pub(crate) fn signed(amount: Dollars) -> String {
    let sign = if amount.0 > 0 { "+" } else { "" };
    format!("{sign}{}", dollars(amount))
}

/// What a ledger counts, in the same unit.
pub(crate) fn of_ledger(amount: Usd) -> Dollars {
    Dollars(i128::from(amount.0) * 1000)
}

fn minus(amount: Dollars) -> &'static str {
    if amount.0 < 0 { "-" } else { "" }
}

/// Thousandths of a whole; none of nothing.
pub(crate) fn per_mille(fill: Fill) -> Option<u64> {
    let (part, whole) = (u128::from(fill.requested), u128::from(fill.allocatable));
    let share = (part * 1000 + whole / 2).checked_div(whole)?;
    u64::try_from(share).ok()
}

/// `79.7%`; `-` of nothing.
pub(crate) fn percent(fill: Fill) -> String {
    match per_mille(fill) {
        Some(share) => format!("{}.{}%", share / 10, share % 10),
        None => "-".to_owned(),
    }
}

/// `80%`; `-` of nothing.
pub(crate) fn whole_percent(fill: Fill) -> String {
    match per_mille(fill) {
        Some(share) => format!("{}%", (share + 5) / 10),
        None => "-".to_owned(),
    }
}

/// A bar of so many signs. More than the whole is full.
pub(crate) fn bar(fill: Fill, signs: usize, is_ascii: bool) -> String {
    let steps: u128 = if is_ascii { 1 } else { 8 };
    let all = signs as u128 * steps;
    let (part, whole) = (u128::from(fill.requested), u128::from(fill.allocatable));
    let filled = (part * all + whole / 2).checked_div(whole).unwrap_or(0).min(all);
    let (full, rest) = (filled / steps, filled % steps);
    let (full_sign, empty_sign) = if is_ascii { ('#', '.') } else { ('█', '░') };
    let partial = EIGHTHS
        .get(usize::try_from(rest).unwrap_or_default())
        .filter(|_| rest > 0);
    let mut bar: String = (0..full).map(|_| full_sign).chain(partial.copied()).collect();
    let drawn = bar.chars().count();
    bar.extend((drawn..signs).map(|_| empty_sign));
    bar
}

/// Two units at most: `36s`, `4m 12s`, `1h 26m`, `6d 11h`, `26d`.
pub(crate) fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: &str, small: i64, of: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit} {small}{of}"),
    };
    match () {
        () if minutes == 0 => format!("{seconds}s"),
        () if hours == 0 => two(minutes, "m", seconds % 60, "s"),
        () if days == 0 => two(hours, "h", minutes % 60, "m"),
        () if days < 10 => two(days, "d", hours % 24, "h"),
        () => format!("{days}d"),
    }
}

/// One unit, three signs for most of a node's life: `36s`, `4d`, `26d`, `3y`.
pub(crate) fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..86_400_000 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_557_600),
    }
}

/// `15:41` today, `Tue 03:00` within a week, `16 Nov` otherwise; in UTC.
pub(crate) fn moment(time: Timestamp, now: Timestamp) -> String {
    let (then, today) = (time.to_zoned(TimeZone::UTC), now.to_zoned(TimeZone::UTC));
    let away = time.duration_since(now).abs();
    let format = if then.date() == today.date() {
        "%H:%M"
    } else if away < SignedDuration::from_hours(7 * 24) {
        "%a %H:%M"
    } else {
        "%-d %b"
    };
    then.strftime(format).to_string()
}

/// `15:42:00`.
pub(crate) fn clock(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%H:%M:%S").to_string()
}

/// Cores with one place: `15.9`.
pub(crate) fn cores(millis: u64) -> String {
    tenths(millis, 1000)
}

/// GiB with one place: `115.5`.
pub(crate) fn gibs(mib: u64) -> String {
    tenths(mib, 1024)
}

fn tenths(amount: u64, one: u64) -> String {
    let tenths = (u128::from(amount) * 10 + u128::from(one) / 2) / u128::from(one);
    format!("{}.{}", grouped(tenths / 10), tenths % 10)
}

/// Memory of a fleet: GiB, and from a thousand on TiB.
pub(crate) fn memory(fill: Fill) -> String {
    const TIB: u64 = 1 << 20;
    if fill.allocatable >= TIB {
        let tib = |mib: u64| decimal(u128::from(mib) * PICOS / u128::from(TIB), 2);
        return format!("{}/{} TiB", tib(fill.requested), tib(fill.allocatable));
    }
    let gib = |mib: u64| grouped((mib + 512) / 1024);
    format!("{}/{} GiB", gib(fill.requested), gib(fill.allocatable))
}

/// Instance types as people say them: `m7i-flex.2xl`.
pub(crate) fn short_type(name: &str) -> String {
    name.replace("xlarge", "xl")
}

/// A node without the domain that all nodes of a cluster share.
pub(crate) fn short_name(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The part of a zone that tells it from others of its region.
pub(crate) fn short_zone(zone: &str) -> &str {
    let at = zone.char_indices().next_back().map_or(0, |(at, _)| at);
    zone.get(at..).unwrap_or(zone)
}

/// A name of at most so many columns: both ends stay, because they tell names apart.
pub(crate) fn cut(name: &str, width: usize, is_ascii: bool) -> String {
    if name.width() <= width {
        return name.to_owned();
    }
    let gap = if is_ascii { ".." } else { "…" };
    let room = width.saturating_sub(gap.width());
    let head = taken(name.chars(), room - room / 3);
    let tail: String = taken(name.chars().rev(), room / 3).chars().rev().collect();
    format!("{head}{gap}{tail}")
}

/// A text of at most so many columns: its beginning.
pub(crate) fn cut_end(text: &str, width: usize, is_ascii: bool) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let gap = if is_ascii { ".." } else { "…" };
    format!(
        "{}{gap}",
        taken(text.chars(), width.saturating_sub(gap.width())).trim_end()
    )
}

fn taken(signs: impl Iterator<Item = char>, width: usize) -> String {
    let mut left = width;
    signs
        .take_while(|sign| {
            let needed = sign.width().unwrap_or_default();
            let fits = needed <= left;
            left = left.saturating_sub(needed);
            fits
        })
        .collect()
}

/// Lines of at most so many columns, broken between words; a line that begins with blanks keeps them.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.width() <= width {
            lines.push(line.to_owned());
            continue;
        }
        let indent: String = line.chars().take_while(|sign| *sign == ' ').take(width / 2).collect();
        let mut current = indent.clone();
        for word in line.split_whitespace() {
            let is_fresh = current.trim().is_empty();
            if !is_fresh && current.width() + 1 + word.width() > width {
                lines.push(std::mem::replace(&mut current, format!("{indent}  {word}")));
            } else {
                current.push_str(if is_fresh { "" } else { " " });
                current.push_str(word);
            }
        }
        lines.push(current);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(requested: u64, allocatable: u64) -> Fill {
        Fill { requested, allocatable }
    }

    fn usd(text: &str) -> Dollars {
        text.parse::<model::price::Price>().unwrap().into()
    }

    #[test]
    fn money_has_as_many_places_as_its_column_has_room_for() {
        assert_eq!(two_places(usd("24.711")), "$24.71");
        let offers = ["0.38304", "2.2421", "98.32", "1234.5"].map(|price| offer(usd(price)));
        assert_eq!(offers, ["0.3830", "2.2421", "98.320", "1,234.5"]);
        assert_eq!([dollars(usd("18039.2")), dollars(usd("9.124"))], ["$18,039", "$9.12"]);
        let change = Dollars(0) - usd("234");
        assert_eq!(
            [signed(change), signed(usd("12")), signed(Dollars(0))],
            ["-$234", "+$12", "$0"]
        );
    }

    #[test]
    fn a_bar_shows_the_share_to_an_eighth_of_a_sign() {
        assert_eq!(bar(fill(35, 100), 8, false), "██▊░░░░░");
        assert_eq!(bar(fill(140, 100), 4, false), "████");
        assert_eq!(bar(fill(1, 0), 4, false), "░░░░");
        assert_eq!(bar(fill(35, 100), 8, true), "###.....");
    }

    #[test]
    fn shares_of_nothing_are_no_number() {
        assert_eq!([percent(fill(797, 1000)), percent(fill(1, 0))], ["79.7%", "-"]);
        assert_eq!(
            [whole_percent(fill(797, 1000)), whole_percent(fill(1, 0))],
            ["80%", "-"]
        );
    }

    #[test]
    fn ages_have_one_unit_and_spans_two() {
        let ages = [36, 252, 5160, 26 * 86_400, 1200 * 86_400].map(age);
        assert_eq!(ages, ["36s", "4m", "1h", "26d", "3y"]);
        assert_eq!([252, 5160, 558_000].map(span), ["4m 12s", "1h 26m", "6d 11h"]);
    }

    #[test]
    fn names_lose_what_they_share_or_their_middle() {
        assert_eq!(short_name("ip-10-0-2-84.ec2.internal"), "ip-10-0-2-84");
        assert_eq!(short_type("m7i-flex.2xlarge"), "m7i-flex.2xl");
        assert_eq!(short_zone("us-east-1b"), "b");
        assert_eq!(cut("recommendations-5f6d8-jnmdx", 15, false), "recommenda…nmdx");
        assert_eq!(cut_end("no node for this pod", 8, true), "no nod..");
    }

    #[test]
    fn long_lines_are_broken_between_words_and_keep_their_indent() {
        let lines = wrapped("  stays  three rules keep this node where it is", 24);
        assert_eq!(lines, ["  stays three rules keep", "    this node where it", "    is"]);
    }
}
