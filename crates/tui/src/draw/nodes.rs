//! The list of nodes: a bar for each resource, what they are, what they cost, and what comes next or why they stay.

use insight::{Dollars, Fill, State};
use jiff::Timestamp;
use ratatui_core::layout::Rect;

use super::{WIDE, below, head, line_of, mark};
use crate::{
    ahead::{Next, NextKind},
    app::{App, NEW_MS, Unit},
    canvas::{Canvas, Line},
    choice::SortKey,
    figure,
    listing::Entry,
    picture::{Picture, Row, summed},
    theme::Role,
};

const KEYS: &str = "1 nodes 2 pools 3 plan p pending t timeline 6 cost | enter open  w why  x what-if  / filter  s sort  b group  ? help";
/// From here on there is room for zones and images in full.
const BROAD: u16 = 140;
const NARROW_KEYS: &str = "enter open  w why  x what-if  p pending  t timeline  / filter  ? help";

/// What a column shows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Show {
    Name,
    /// A bar and a share of a chosen resource.
    Bar(usize),
    /// Only the share.
    Share(usize),
    Pods,
    Type,
    Price,
    Capacity,
    Zone,
    Pool,
    Age,
    Image,
    Label(String),
    Next,
}

#[derive(Debug, Clone)]
struct Column {
    show: Show,
    width: usize,
}

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64) -> &'static str {
    let used = head::draw(app, canvas, area, now_ms);
    let Some(picture) = app.picture.clone() else {
        return "q quit";
    };
    canvas.rule(line_of(area, used), &about(app, &picture, area.width));
    let body = below(area, used + 1);
    let columns = columns(app, &picture, area.width);
    heading(app, canvas, line_of(body, 0), &columns);
    let list = below(body, 1);
    let room = usize::from(list.height);
    app.page = room;
    app.nodes.cursor.scroll(room, app.nodes.listing.entries.len());
    app.hits.list = list;
    app.hits.top = app.nodes.cursor.top;
    if app.nodes.listing.entries.is_empty() {
        canvas.text(list.x + 1, list.y, list.right(), Role::Secondary, &empty(app, &picture));
    }
    let now = app.now(now_ms).unwrap_or(picture.taken_at);
    let is_stale = app.is_stale(now_ms);
    let (top, lines) = (app.nodes.cursor.top, &app.nodes.listing.entries);
    for (at, (index, entry)) in lines.iter().enumerate().skip(top).take(room).enumerate() {
        let place = line_of(list, u16::try_from(at).unwrap_or(u16::MAX));
        canvas.rows += 1;
        match entry {
            Entry::Group(name, rows) => group(app, canvas, place, name, rows, &picture),
            Entry::Row(row) => {
                if let Some(row) = picture.rows.get(*row) {
                    node(app, canvas, place, &columns, row, (now, now_ms), is_stale);
                }
            }
        }
        if index == app.nodes.cursor.at {
            mark(canvas, place);
        }
    }
    if area.width >= WIDE { KEYS } else { NARROW_KEYS }
}

/// What the list shows: how many of how many, in which order.
fn about(app: &App, picture: &Picture, width: u16) -> String {
    let nodes = &app.nodes;
    let mut text = format!("nodes {} of {}", nodes.listing.shown, picture.rows.len());
    if !app.filters[0].is_empty() {
        text.push_str(&format!(", filter {}", app.filters[0]));
    }
    let reverse = if nodes.sort.is_reversed { " reversed" } else { "" };
    let then = match nodes.sort.key {
        SortKey::Next if width >= WIDE => " then $/h",
        _ => "",
    };
    text.push_str(&format!(", sort {}{reverse}{then}", nodes.sort.key.word()));
    if width >= WIDE || nodes.group != crate::listing::Group::Off {
        text.push_str(&format!(", group {}", nodes.group.word()));
    }
    if !nodes.marked.is_empty() {
        text.push_str(&format!(", {} marked", nodes.marked.len()));
    }
    text
}

fn empty(app: &App, picture: &Picture) -> String {
    if !picture.rows.is_empty() {
        return format!("no node is meant by {}: esc clears the filter", app.filters[0]);
    }
    let ready = picture.pools.iter().filter(|pool| pool.ready).count();
    let pools = figure::counted(ready, "pool");
    let verb = if ready == 1 { "is" } else { "are" };
    let waits = if picture.pods.pending == 1 { "waits" } else { "wait" };
    format!(
        "no nodes: {pools} {verb} ready, {} {waits}",
        figure::counted(picture.pods.pending, "pod")
    )
}

/// The columns there is room for. What somebody asked for by a flag comes before what was thought of here.
fn columns(app: &App, picture: &Picture, width: u16) -> Vec<Column> {
    let is_wide = width >= WIDE;
    let is_broad = width >= BROAD;
    let width = usize::from(width) - 1;
    let resources = app.choices.resources.len();
    let column = |show: Show, width: usize| Column { show, width };
    let names = picture
        .rows
        .iter()
        .map(|row| figure::short_name(&row.node.name).chars().count());
    let longest = names.max().unwrap_or(4);
    let mut columns = vec![column(Show::Name, longest.clamp(4, if is_wide { 24 } else { 15 }))];
    let shown = shown_resources(app);
    if is_wide {
        columns.extend(shown.iter().map(|at| column(Show::Bar(*at), 13)));
        columns.push(column(Show::Pods, 7));
    } else {
        let mut shown = shown.iter();
        columns.extend(shown.next().map(|at| column(Show::Bar(*at), 11)));
        columns.extend(shown.next().map(|at| column(Show::Share(*at), 4)));
    }
    columns.push(column(Show::Type, 12));
    if app.choices.has_prices {
        columns.push(column(Show::Price, 6));
    }
    columns.push(column(Show::Capacity, if is_wide { 4 } else { 3 }));
    if is_wide {
        columns.push(column(Show::Zone, if is_broad { 11 } else { 1 }));
        columns.push(column(Show::Pool, 10));
    }
    columns.push(column(Show::Age, 3));
    for label in &app.choices.extra_labels {
        let title = label.rsplit('/').next().unwrap_or(label).chars().count();
        let values = picture
            .rows
            .iter()
            .map(|row| row.label(label, picture.taken_at).chars().count());
        let widest = values.max().unwrap_or_default().max(title);
        columns.push(column(Show::Label(label.clone()), widest.clamp(4, 20)));
    }
    if is_broad {
        columns.push(column(Show::Image, 16));
    }
    let least = if is_wide { 20 } else { 12 };
    // What does not fit goes, the least asked for first; labels were asked for, so they go last.
    let drops = [
        Show::Image,
        Show::Pool,
        Show::Zone,
        Show::Pods,
        Show::Age,
        Show::Bar(1),
        Show::Capacity,
    ];
    let used = |columns: &[Column]| columns.iter().map(|column| column.width + 1).sum::<usize>();
    for drop in drops {
        if used(&columns) + least <= width {
            break;
        }
        columns.retain(|column| column.show != drop || resources < 2 && matches!(drop, Show::Bar(_)));
    }
    while used(&columns) + least > width
        && matches!(
            columns.last(),
            Some(Column {
                show: Show::Label(_),
                ..
            })
        )
    {
        columns.pop();
    }
    let rest = width.saturating_sub(used(&columns));
    columns.push(column(Show::Next, rest));
    columns
}

/// Which of the chosen resources have a column: the first, and on narrow screens the one that was turned to.
fn shown_resources(app: &App) -> Vec<usize> {
    let count = app.choices.resources.len();
    match count {
        0 => Vec::new(),
        1 => vec![0],
        2 => vec![0, 1],
        _ => {
            let second = app.nodes.second.clamp(1, count - 1);
            let mut shown = vec![0, second];
            if usize::from(app.size.0) >= 134 {
                shown.extend((1..count).filter(|at| *at != second));
            }
            shown
        }
    }
}

fn heading(app: &mut App, canvas: &mut Canvas<'_>, line: Rect, columns: &[Column]) {
    let mut x = line.x + 1;
    for column in columns {
        let width = u16::try_from(column.width).unwrap_or_default();
        let (title, key) = titled(app, column);
        let is_right = matches!(column.show, Show::Price | Show::Age | Show::Share(_));
        let mut text = Line::default();
        if is_right {
            text.right(Role::Heading, &title, column.width, canvas.is_ascii());
        } else {
            text.left(Role::Heading, &title, column.width, canvas.is_ascii());
        }
        canvas.line(x, line.y, (x + width).min(line.right()), &text);
        if let Some(key) = key {
            app.hits.headings.push((line.y, x, x + width, key));
        }
        x += width + 1;
    }
}

fn titled(app: &App, column: &Column) -> (String, Option<SortKey>) {
    let show = &column.show;
    let resource = |at: &usize| app.choices.resources.get(*at).cloned().unwrap_or_default();
    let (title, key) = match show {
        Show::Name => ("NODE".to_owned(), Some(SortKey::Name)),
        Show::Bar(at) | Show::Share(at) => {
            let name = resource(at);
            let key = match name.as_str() {
                "cpu" => Some(SortKey::Cpu),
                "memory" => Some(SortKey::Memory),
                "pods" => Some(SortKey::Pods),
                _ => None,
            };
            let name = name.rsplit('/').next().unwrap_or_default().to_uppercase();
            let is_short = matches!(show, Show::Share(_)) && name == "MEMORY";
            (if is_short { "MEM".to_owned() } else { name }, key)
        }
        Show::Pods => ("PODS".to_owned(), Some(SortKey::Pods)),
        Show::Type => (
            "TYPE".to_owned(),
            Some(SortKey::Label(api::labels::INSTANCE_TYPE.to_owned())),
        ),
        Show::Price => {
            let unit = match app.nodes.unit {
                Unit::Hour => "$/H",
                Unit::Day => "$/DAY",
                Unit::Month => "$/MO",
            };
            (unit.to_owned(), Some(SortKey::Price))
        }
        Show::Capacity => (
            "CAP".to_owned(),
            Some(SortKey::Label(api::labels::CAPACITY_TYPE.to_owned())),
        ),
        Show::Zone => {
            let title = if column.width > 1 { "ZONE" } else { "Z" };
            (title.to_owned(), Some(SortKey::Label(api::labels::ZONE.to_owned())))
        }
        Show::Pool => (
            "POOL".to_owned(),
            Some(SortKey::Label(api::labels::NODEPOOL.to_owned())),
        ),
        Show::Age => ("AGE".to_owned(), Some(SortKey::Creation)),
        Show::Image => ("IMAGE".to_owned(), None),
        Show::Label(label) => {
            let title = label.rsplit('/').next().unwrap_or(label).to_uppercase();
            (title, Some(SortKey::Label(label.clone())))
        }
        Show::Next => {
            let is_wide = app.size.0 >= WIDE;
            let title = if is_wide { "NEXT, OR WHY IT STAYS" } else { "NEXT" };
            (title.to_owned(), Some(SortKey::Next))
        }
    };
    (title, key)
}

fn group(app: &App, canvas: &mut Canvas<'_>, place: Rect, name: &str, rows: &[usize], picture: &Picture) {
    let rows = rows.iter().filter_map(|at| picture.rows.get(*at));
    let (count, cpu, memory, spend) = summed(rows);
    let spend = if app.choices.has_prices {
        format!("   {}/h", figure::two_places(spend))
    } else {
        String::new()
    };
    let mut line = Line::default();
    line.add(Role::Heading, name.to_owned());
    line.add(
        Role::Plain,
        format!(
            "   {}   cpu {}   mem {}{spend}",
            figure::counted(count, "node"),
            figure::percent(cpu),
            figure::percent(memory)
        ),
    );
    canvas.line(place.x + 1, place.y, place.right(), &line);
}

fn node(
    app: &App,
    canvas: &mut Canvas<'_>,
    place: Rect,
    columns: &[Column],
    row: &Row,
    (now, now_ms): (Timestamp, u64),
    is_stale: bool,
) {
    let is_ascii = canvas.is_ascii();
    let mut line = Line::default();
    for column in columns {
        let width = column.width;
        match &column.show {
            Show::Next => {
                next(&mut line, app, row, (width, now), is_stale, is_ascii);
                continue;
            }
            Show::Bar(at) => bar(&mut line, row.shares.get(*at).map(|share| share.0), width, is_ascii),
            Show::Share(at) => {
                let fill = row.shares.get(*at).map(|share| share.0).unwrap_or_default();
                line.right(Role::fill(fill), &figure::whole_percent(fill), width, is_ascii);
            }
            Show::Price => {
                let role = if is_stale { Role::Secondary } else { Role::Plain };
                line.right(role, &price(row, app.nodes.unit), width, is_ascii);
            }
            Show::Age => {
                let age = row.age_s(now).map(figure::age).unwrap_or_default();
                line.right(Role::Plain, &age, width, is_ascii);
            }
            Show::Pods => {
                let pods = row.pods();
                let text = format!("{:>3}/{}", pods.requested, pods.allocatable);
                line.left(Role::Plain, &text, width, is_ascii);
            }
            other => {
                let (role, text) = words(other, row, width, now);
                line.left(role, &text, width, is_ascii);
            }
        }
        line.add(Role::Plain, " ");
    }
    canvas.line(place.x + 1, place.y, place.right(), &line);
    let is_new = app
        .nodes
        .new
        .get(&row.node.name)
        .is_some_and(|since| since + NEW_MS > now_ms);
    let sign = match () {
        () if app.nodes.marked.contains(&row.node.name) => "*",
        () if row.node.state == State::Leaving => "-",
        () if is_new => "+",
        () => return,
    };
    canvas.text(place.x, place.y, place.right(), Role::Warn, sign);
}

fn words(show: &Show, row: &Row, width: usize, now: Timestamp) -> (Role, String) {
    let node = &row.node;
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    match show {
        Show::Name => {
            let is_up = !matches!(node.state, State::NotReady | State::Leaving);
            let role = if is_up { Role::Plain } else { Role::Warn };
            (role, figure::short_name(&node.name).to_owned())
        }
        Show::Type => (Role::Plain, figure::short_type(&text(&node.instance_type))),
        Show::Capacity => capacity(row, width),
        Show::Zone if width == 1 => (Role::Plain, figure::short_zone(&text(&node.zone)).to_owned()),
        Show::Zone => (Role::Plain, text(&node.zone)),
        Show::Pool => (Role::Plain, text(&node.pool)),
        Show::Image => (Role::Secondary, node.image.clone()),
        Show::Label(label) => (Role::Plain, row.label(label, now)),
        _ => (Role::Plain, String::new()),
    }
}

fn capacity(row: &Row, width: usize) -> (Role, String) {
    let is_short = width < 4;
    let (role, long, short) = match row.node.capacity_type.as_deref() {
        Some(api::labels::CAPACITY_TYPE_SPOT) => (Role::Spot, "spot", "sp"),
        Some(api::labels::CAPACITY_TYPE_RESERVED) => (Role::Reserved, "resv", "rs"),
        Some(_) => (Role::OnDemand, "od", "od"),
        None => (Role::Secondary, "-", "-"),
    };
    (role, (if is_short { short } else { long }).to_owned())
}

fn price(row: &Row, unit: Unit) -> String {
    let Some(hour) = row.node.usd_h else {
        return "-".to_owned();
    };
    match unit {
        Unit::Hour => figure::offer(hour),
        Unit::Day => figure::offer(Dollars(hour.0.saturating_mul(24))),
        Unit::Month => figure::plain(hour.monthly()),
    }
}

fn bar(line: &mut Line, fill: Option<Fill>, width: usize, is_ascii: bool) {
    let fill = fill.unwrap_or_default();
    if fill.allocatable == 0 {
        line.left(Role::Secondary, "-", width, is_ascii);
        return;
    }
    let signs = width.saturating_sub(5);
    line.add(Role::fill(fill), figure::bar(fill, signs, is_ascii));
    line.add(Role::Plain, format!(" {:>4}", figure::whole_percent(fill)));
}

/// What comes next, or why it stays, or how it fares if that is out of the ordinary.
fn next(line: &mut Line, app: &App, row: &Row, (width, now): (usize, Timestamp), is_stale: bool, is_ascii: bool) {
    if let Some(state) = state(row, now) {
        line.add(Role::Warn, figure::cut_end(&state, width, is_ascii));
        return;
    }
    let Some(next) = app.ahead.as_ref().and_then(|ahead| ahead.next(&row.node.name)) else {
        let word = match (row.node.state, row.is_managed) {
            (State::Cordoned, _) => "cordoned",
            (_, false) => "not managed here",
            _ => "",
        };
        line.add(Role::Secondary, figure::cut_end(word, width, is_ascii));
        return;
    };
    let role = match next.kind {
        _ if is_stale => Role::Secondary,
        NextKind::Goes => Role::Good,
        NextKind::Held => Role::Warn,
        NextKind::Waits => Role::Plain,
    };
    let money = amount(app, next, width);
    // Money and ids are not cut; what they are about is.
    let id = if width >= 24 { next.id.as_str() } else { "" };
    let tail: Vec<&str> = [id, money.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let tail = tail.join(" ");
    let until = next.lifts_at.filter(|_| next.kind == NextKind::Waits);
    let until = until.zip(app.picture.as_ref()).map(|(at, picture)| {
        let at = figure::moment(at, picture.taken_at);
        format!(" until {at}")
    });
    let waits = if next.kind == NextKind::Waits && until.is_none() {
        "waits: "
    } else {
        ""
    };
    let text = format!("{waits}{}{}", next.text, until.unwrap_or_default());
    let room = width.saturating_sub(tail.chars().count() + usize::from(!tail.is_empty()));
    line.add(role, figure::cut_end(&text, room, is_ascii));
    if !tail.is_empty() {
        line.add(Role::Plain, format!(" {tail}"));
    }
}

fn amount(app: &App, next: &Next, width: usize) -> String {
    let Some(usd) = next.usd_mo.filter(|_| app.choices.has_prices) else {
        return String::new();
    };
    match (next.kind, next.nodes) {
        (NextKind::Goes, _) => figure::signed(usd),
        (_, nodes) if nodes == 1 || width < 24 => format!("({})", figure::dollars(usd)),
        (_, nodes) => format!("({} for {nodes})", figure::dollars(usd)),
    }
}

/// How a node fares, where that is out of the ordinary.
fn state(row: &Row, now: Timestamp) -> Option<String> {
    let age = || row.age_s(now).map(figure::age).unwrap_or_default();
    Some(match row.node.state {
        State::Ready | State::Cordoned => return None,
        State::Launching => format!("launching {}", age()),
        State::Starting => format!("starting {}", age()),
        State::NotReady => match row.not_ready_s {
            Some(since) => format!("not ready {}", figure::age(since)),
            None => "not ready".to_owned(),
        },
        State::Leaving => format!("draining, {} left", figure::counted(row.node.pods, "pod")),
    })
}
