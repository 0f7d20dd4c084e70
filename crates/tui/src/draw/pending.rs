//! Pods that wait, and for the one under the cursor how far it came: what each condition leaves, which leaves nothing, and
//! the smallest change that lets it in.

use insight::{Fill, funnel::Funnel};
use ratatui_core::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::{
    WIDE, below, line_of,
    table::{self, Cell, left, right},
    title,
};
use crate::{
    ahead::Waiting,
    app::App,
    canvas::{Canvas, Line},
    figure,
    theme::Role,
};

const KEYS: &str = "esc back  j/k pod  w full text  a all pools  c copy the fix  f what-if  ? help";
/// Columns before what is said in words.
const START: usize = 14;
/// Lines that other pools get.
const OTHERS: usize = 2;
/// Columns of the list where the picture is beside it.
const LIST: u16 = 57;

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64) -> &'static str {
    let is_wide = area.width >= WIDE;
    title(app, canvas, line_of(area, 0), now_ms, &summary(app, is_wide));
    let body = below(area, 1);
    let Some(ahead) = app.ahead.clone() else {
        canvas.text(body.x + 1, body.y, body.right(), Role::Secondary, "computing…");
        return KEYS;
    };
    if app.pending.0.is_empty() {
        let text = if ahead.waiting.is_empty() {
            "no pod waits for a node".to_owned()
        } else {
            format!("no pod is meant by {}: esc clears the filter", app.filters[1])
        };
        canvas.text(body.x + 1, body.y + 1, body.right(), Role::Secondary, &text);
        return KEYS;
    }
    let (list, detail) = parts(body, is_wide, app.pending.0.len());
    let columns = if is_wide {
        [left("POD", 31), left("STOPS AT", 15), right("SINCE", 7)]
    } else {
        [left("POD", 44), left("STOPS AT", 22), right("SINCE", 8)]
    };
    let (shown, cursor) = &mut app.pending;
    let row = |at: usize| -> Vec<Cell> {
        let pod = &ahead.waiting[shown[at]];
        let role = if pod.is_blocked { Role::Stop } else { Role::Good };
        let since = pod.since_s.map(figure::span).unwrap_or_default();
        vec![
            (Role::Plain, pod.pod.clone()),
            (role, pod.stops_at.clone()),
            (Role::Plain, since),
        ]
    };
    app.page = table::draw(canvas, list, &columns, cursor, shown.len(), row);
    app.hits.list = below(list, 1);
    app.hits.top = cursor.top;
    if is_wide {
        let sign = if canvas.is_ascii() { "|" } else { "│" };
        for y in list.y..list.bottom() {
            canvas.text(list.right(), y, area.right(), Role::Secondary, sign);
        }
    }
    let here = shown.get(cursor.at).and_then(|at| ahead.waiting.get(*at));
    if let Some(pod) = here {
        explain(canvas, detail, pod, is_wide);
    }
    KEYS
}

fn summary(app: &App, is_wide: bool) -> Line {
    let mut line = Line::default();
    let Some(ahead) = &app.ahead else {
        line.add(Role::Heading, "pending");
        return line;
    };
    let (all, blocked) = (ahead.waiting.len(), ahead.blocked());
    line.add(Role::Heading, format!("pending {all}: "));
    line.add(Role::Plain, format!("{blocked} blocked, {} on the way", all - blocked));
    let longest = ahead.waiting.iter().filter_map(|pod| pod.since_s).max();
    if let Some(longest) = longest.filter(|_| is_wide) {
        line.add(Role::Plain, format!("; longest wait {}", figure::span(longest)));
    }
    if !app.filters[1].is_empty() {
        line.add(Role::Plain, format!("; filter {}", app.filters[1]));
    }
    line
}

/// The list beside the picture where there is room, above it otherwise.
fn parts(body: Rect, is_wide: bool, lines: usize) -> (Rect, Rect) {
    if is_wide {
        let list = Rect { width: LIST, ..body };
        let detail = Rect::new(body.x + LIST + 2, body.y, body.width - LIST - 2, body.height);
        return (list, detail);
    }
    let lines = u16::try_from(lines + 1).unwrap_or(u16::MAX);
    let height = lines.min(body.height / 3).max(3);
    (Rect { height, ..body }, below(body, height))
}

fn explain(canvas: &mut Canvas<'_>, area: Rect, pod: &Waiting, is_wide: bool) {
    let is_ascii = canvas.is_ascii();
    let width = usize::from(area.width);
    let name = figure::cut(&pod.pod, width / 2, is_ascii);
    let heading = format!("{name} wants {}", pod.wants);
    if is_wide {
        canvas.text(area.x, area.y, area.right(), Role::Heading, &heading);
    } else {
        canvas.rule(
            line_of(area, 0),
            &figure::cut_end(&heading, width.saturating_sub(5), is_ascii),
        );
    }
    let mut lines: Vec<Line> = Vec::new();
    match &pod.funnel {
        Some(funnel) => {
            picture(&mut lines, funnel, width, is_ascii);
            remedies(&mut lines, funnel, width, is_ascii);
        }
        None => plain(&mut lines, Role::Plain, " ", &pod.message, width),
    }
    let room = usize::from(area.height.saturating_sub(1));
    for (at, line) in (1..).zip(lines.iter().take(room)) {
        canvas.line(area.x, area.y + at, area.right(), line);
    }
}

/// A line for each condition that leaves fewer. Bars are the square root of the count: most goes at the first step.
fn picture(lines: &mut Vec<Line>, funnel: &Funnel, width: usize, is_ascii: bool) {
    lines.push((Role::Secondary, format!("  pool {}", funnel.node_pool)).into());
    let names = funnel.steps.iter().map(|step| step.name.width());
    let name = names.max().unwrap_or_default().clamp(6, 18);
    let bar = if width > 70 { 12 } else { 6 };
    let note = width.saturating_sub(name + bar + 20);
    let most = funnel.steps.first().map_or(0, |step| step.left);
    let root = |count: usize| (count as u64 * 1_000_000).isqrt();
    let mut before = most;
    for step in &funnel.steps {
        let is_stop = step.left == 0 && before > 0;
        let role = if is_stop { Role::Stop } else { Role::Plain };
        let fill = Fill {
            requested: root(step.left),
            allocatable: root(most),
        };
        let lost = match before.saturating_sub(step.left) {
            0 => String::new(),
            lost => format!("-{}", figure::grouped(lost as u128)),
        };
        let mut line = Line::default();
        line.add(role, if is_stop { "x " } else { "  " });
        line.left(role, &step.name, name, is_ascii).add(Role::Plain, " ");
        let text = figure::cut_end(&asked(&step.name, &step.note), note, is_ascii);
        line.left(Role::Plain, &text, note, is_ascii).add(Role::Plain, " ");
        line.add(Role::Command, figure::bar(fill, bar, is_ascii));
        line.right(role, &figure::grouped(step.left as u128), 6, is_ascii);
        line.right(Role::Secondary, &lost, 7, is_ascii);
        lines.push(line);
        before = step.left;
    }
    if let Some(stop) = funnel
        .stops_at()
        .filter(|stop| asked(&stop.name, &stop.note).width() > note)
    {
        plain(lines, Role::Plain, "stops at      ", &brief(&stop.note), width);
    }
}

fn remedies(lines: &mut Vec<Line>, funnel: &Funnel, width: usize, is_ascii: bool) {
    if !funnel.other_pools.is_empty() {
        let others: Vec<String> = funnel
            .other_pools
            .iter()
            .map(|pool| format!("{}: {}", pool.node_pool, brief(&pool.why)))
            .collect();
        let most = (width.saturating_sub(START + 2)) * OTHERS;
        let others = figure::cut_end(&others.join("; "), most, is_ascii);
        plain(lines, Role::Secondary, "other pools   ", &others, width);
    }
    if let Some(fix) = &funnel.fix {
        let price = fix.usd_h.map(|price| format!(", +${}/h", figure::offer(price.into())));
        let text = format!("{}{}", fix.text, price.unwrap_or_default());
        plain(lines, Role::Good, "smallest fix  ", &text, width);
        for line in &fix.patch {
            let role = match line.trim_start().chars().next() {
                Some('+') => Role::Good,
                Some('-') => Role::Stop,
                _ => Role::Plain,
            };
            lines.push((role, format!("  {line}")).into());
        }
    }
    for other in &funnel.other_fixes {
        plain(lines, Role::Plain, "or            ", other, width);
    }
}

fn plain(lines: &mut Vec<Line>, role: Role, start: &str, text: &str, width: usize) {
    let room = width.saturating_sub(start.len() + 1);
    for (at, part) in figure::wrapped(text, room).into_iter().enumerate() {
        let start = if at == 0 {
            start.to_owned()
        } else {
            " ".repeat(start.len())
        };
        let mut line = Line::default();
        line.add(Role::Secondary, start).add(role, part.trim_start().to_owned());
        lines.push(line);
    }
}

/// A condition without what everybody knows: the path of its field, and the domains of labels.
fn brief(note: &str) -> String {
    let prefixes = [
        "NodePool spec.template.spec.requirements ",
        "NodePool spec.template.spec.",
        "NodePool ",
        "Pod spec.",
    ];
    let mut stripped = prefixes.iter().filter_map(|prefix| note.strip_prefix(prefix));
    let note = stripped.next().unwrap_or(note);
    let words = note.split(' ').map(|word| match word.split_once('/') {
        Some((domain, rest)) if domain.contains('.') && !domain.contains('=') => rest,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A condition without the key that its step is called by.
fn asked(name: &str, note: &str) -> String {
    let note = brief(note);
    match note.split_once(' ') {
        Some((key, rest)) if name.ends_with(key) => rest.to_owned(),
        _ => note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_told_without_what_everybody_knows() {
        let note = "NodePool spec.template.spec.requirements karpenter.k8s.aws/instance-cpu Lt 33";
        assert_eq!(asked("pool instance-cpu", note), "Lt 33");
        assert_eq!(
            brief("Pod spec.nodeSelector node.kubernetes.io/instance-type=m6g.metal"),
            "nodeSelector instance-type=m6g.metal"
        );
        assert_eq!(brief("limits.cpu 64: nodes have 60"), "limits.cpu 64: nodes have 60");
    }
}
