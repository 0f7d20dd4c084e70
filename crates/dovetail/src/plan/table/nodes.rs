//! The tables of nodes, laid out for the width there is.

use insight::launch::{ExistingNode, NewNode, Room};
use model::price::Price;

use crate::terminal::{Align, Cell, Role, Screen, Table, bar, counted, cut_in_the_middle, grouped, hanging};

/// Beyond so many rows, nodes of one kind share a row.
const MOST_ROWS: usize = 40;
/// Signs of a bar.
const BAR: usize = 10;

/// What is shown; narrow screens show less.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column that is there or not")]
struct Layout {
    remarks: bool,
    memory_bar: bool,
    /// Zones without their region, `od` for on-demand.
    is_short: bool,
    zone: bool,
    pool: bool,
    name: usize,
}

const WIDE: Layout = Layout {
    remarks: true,
    memory_bar: true,
    is_short: false,
    zone: true,
    pool: true,
    name: usize::MAX,
};

/// From all there is to the least, in the order things are given up.
const LAYOUTS: [Layout; 6] = {
    let bare = Layout { remarks: false, ..WIDE };
    let numbers = Layout {
        memory_bar: false,
        ..bare
    };
    let short = Layout {
        is_short: true,
        ..numbers
    };
    let zoneless = Layout { zone: false, ..short };
    [
        WIDE,
        bare,
        numbers,
        short,
        zoneless,
        Layout {
            pool: false,
            ..zoneless
        },
    ]
};

/// Names are cut no shorter than this.
const SHORTEST_NAME: usize = 12;

/// The first layout whose table fits, or the narrowest with its longest names cut.
fn fitted(screen: &Screen, longest_name: usize, table: impl Fn(Layout) -> Table) -> String {
    let width = screen.text_width();
    if let Some(fitting) = LAYOUTS.into_iter().map(&table).find(|table| table.width() <= width) {
        return fitting.render(screen);
    }
    let narrowest = LAYOUTS.last().copied().unwrap_or(WIDE);
    let over = table(narrowest).width().saturating_sub(width);
    let name = longest_name.saturating_sub(over).max(SHORTEST_NAME);
    table(Layout { name, ..narrowest }).render(screen)
}

/// One row: a node, or several of one kind.
struct Row<'a> {
    first: &'a NewNode,
    nodes: usize,
    pods: usize,
    price: Price,
    room: Room,
}

pub(super) fn new(nodes: &[NewNode], with_pods: bool, screen: &Screen) -> String {
    let is_grouped = nodes.len() > MOST_ROWS && !with_pods;
    let rows = if is_grouped {
        by_kind(nodes)
    } else {
        nodes.iter().map(single).collect()
    };
    // The narrowest layout of this table has no names to cut.
    fitted(screen, 0, |layout| {
        let mut table = Table::default();
        new_columns(&mut table, layout, is_grouped);
        for row in &rows {
            table.row(new_cells(row, layout, is_grouped, screen));
            if with_pods {
                pod_lines(&mut table, &row.first.pods, screen);
            }
        }
        table
    })
}

fn single(node: &NewNode) -> Row<'_> {
    Row {
        first: node,
        nodes: 1,
        pods: node.pods.len(),
        price: node.usd_h.unwrap_or_default(),
        room: node.room.clone(),
    }
}

/// Nodes of one pool, type, capacity type and zone together, in the order they first appear.
fn by_kind(nodes: &[NewNode]) -> Vec<Row<'_>> {
    let kind = |node: &NewNode| {
        (
            node.node_pool.clone(),
            node.instance_type.clone(),
            node.capacity_type.clone(),
            node.zone.clone(),
        )
    };
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for node in nodes {
        let at = *places.entry(kind(node)).or_insert(rows.len());
        match rows.get_mut(at) {
            None => rows.push(single(node)),
            Some(row) => {
                row.nodes += 1;
                row.pods += node.pods.len();
                row.price = row.price + node.usd_h.unwrap_or_default();
                row.room.add(&node.room);
            }
        }
    }
    rows
}

fn new_columns(table: &mut Table, layout: Layout, is_grouped: bool) {
    table.column(if is_grouped { "NODES" } else { "NEW" }, Align::Right);
    if layout.pool {
        table.column("POOL", Align::Left);
    }
    table.column("TYPE", Align::Left);
    table.column(if layout.is_short { "CAP" } else { "CAPACITY" }, Align::Left);
    if layout.zone {
        table.column("ZONE", Align::Left);
    }
    table.column("$/H", Align::Right);
    table.column("PODS", Align::Right);
    table.column("CPU", Align::Left);
    table.column(if layout.memory_bar { "MEMORY" } else { "MEM" }, Align::Left);
    if layout.remarks {
        table.column("OR ONE OF", Align::Right);
    }
}

fn new_cells(row: &Row<'_>, layout: Layout, is_grouped: bool, screen: &Screen) -> Vec<Cell> {
    let node = row.first;
    let number = if is_grouped { row.nodes } else { node.number };
    let mut cells: Vec<Cell> = vec![grouped(number as u128).into()];
    if layout.pool {
        cells.push(name(&node.node_pool, layout, screen).into());
    }
    cells.push(node.instance_type.as_deref().unwrap_or("nothing to launch now").into());
    cells.push(capacity(node.capacity_type.as_deref(), layout));
    if layout.zone {
        cells.push(zone(node.zone.as_deref(), layout).into());
    }
    cells.push(per_hour(row.price).into());
    cells.push(grouped(row.pods as u128).into());
    cells.push(fill(row.room.cpu(), true, screen));
    cells.push(fill(row.room.memory(), layout.memory_bar, screen));
    if layout.remarks {
        let others = node.instance_types.saturating_sub(1);
        cells.push(Cell::new(Role::Secondary, counted(others, "type")));
    }
    cells
}

pub(super) fn existing(nodes: &[ExistingNode], with_pods: bool, screen: &Screen) -> String {
    let longest = nodes
        .iter()
        .map(|node| node.name.chars().count())
        .max()
        .unwrap_or_default();
    fitted(screen, longest, |layout| {
        let mut table = Table::default();
        table.column("EXISTING", Align::Left);
        if layout.pool {
            table.column("POOL", Align::Left);
        }
        table.column("TYPE", Align::Left);
        if layout.zone {
            table.column("ZONE", Align::Left);
        }
        table.column("PODS", Align::Right);
        table.column("CPU", Align::Left);
        table.column(if layout.memory_bar { "MEMORY" } else { "MEM" }, Align::Left);
        for node in nodes {
            table.row(existing_cells(node, layout, screen));
            if with_pods {
                pod_lines(&mut table, &node.pods, screen);
            }
        }
        table
    })
}

fn existing_cells(node: &ExistingNode, layout: Layout, screen: &Screen) -> Vec<Cell> {
    let on_its_way = if node.is_registered { "" } else { " (on its way)" };
    let mut cells: Vec<Cell> = vec![format!("{}{on_its_way}", name(&node.name, layout, screen)).into()];
    if layout.pool {
        cells.push(name(node.node_pool.as_deref().unwrap_or("-"), layout, screen).into());
    }
    cells.push(node.instance_type.as_deref().unwrap_or("-").into());
    if layout.zone {
        cells.push(zone(node.zone.as_deref(), layout).into());
    }
    cells.push(format!("+{}", grouped(node.pods.len() as u128)).into());
    cells.push(growth(node.before.cpu(), node.after.cpu(), true, screen));
    cells.push(growth(
        node.before.memory(),
        node.after.memory(),
        layout.memory_bar,
        screen,
    ));
    cells
}

fn pod_lines(table: &mut Table, pods: &[String], screen: &Screen) {
    let lines = hanging("     ", &pods.join(" "), screen.text_width());
    for line in lines.lines() {
        table.line(screen.paint(Role::Secondary, line));
    }
}

fn name(name: &str, layout: Layout, screen: &Screen) -> String {
    cut_in_the_middle(name, layout.name, screen.is_ascii)
}

fn capacity(kind: Option<&str>, layout: Layout) -> Cell {
    let role = match kind {
        Some("spot") => Role::Spot,
        Some("on-demand") => Role::OnDemand,
        Some("reserved") => Role::Reserved,
        _ => Role::Plain,
    };
    let word = match kind {
        Some("on-demand") if layout.is_short => "od",
        Some(word) => word,
        None => "-",
    };
    Cell::new(role, word)
}

fn zone(zone: Option<&str>, layout: Layout) -> String {
    match zone {
        Some(zone) if layout.is_short => zone.rsplit('-').next().unwrap_or(zone).to_owned(),
        Some(zone) => zone.to_owned(),
        None => "-".to_owned(),
    }
}

/// Four places, without the sign, which is in the heading.
fn per_hour(price: Price) -> String {
    let ten_thousandths = (price.picos() + 50_000_000) / 100_000_000;
    format!("{}.{:04}", grouped(ten_thousandths / 10_000), ten_thousandths % 10_000)
}

fn share((requested, allocatable): (u64, u64)) -> Option<u32> {
    let percent = (requested * 100 + allocatable / 2).checked_div(allocatable)?;
    u32::try_from(percent).ok()
}

fn fill(of: (u64, u64), with_bar: bool, screen: &Screen) -> Cell {
    let Some(percent) = share(of) else {
        return "-".into();
    };
    let text = format!("{percent:>3}%");
    Cell::new(Role::Fill(percent), barred(of, text, with_bar, screen))
}

/// A node's fill before and after.
fn growth(before: (u64, u64), after: (u64, u64), with_bar: bool, screen: &Screen) -> Cell {
    let (Some(was), Some(percent)) = (share(before), share(after)) else {
        return "-".into();
    };
    let text = format!("{was:>3}{}{percent:>2}%", screen.arrow());
    Cell::new(Role::Fill(percent), barred(after, text, with_bar, screen))
}

fn barred((part, whole): (u64, u64), text: String, with_bar: bool, screen: &Screen) -> String {
    if !with_bar || !screen.has_bars() {
        return text;
    }
    format!("{} {text}", bar(part, whole, BAR, screen.is_ascii))
}
