//! What it costs as a table, and as rows for a spreadsheet.

use std::fmt::Write;

use insight::{
    Dollars,
    money::{AboveBound, By, Row},
};

use super::{Cost, Selected};
use crate::terminal::{Align, Amount, Cell, Role, Screen, Table, counted, grouped, hanging, per_hour, percent};

pub(super) fn render(cost: &Cost, by: &By, screen: &Screen) -> String {
    if let Some(selected) = &cost.selected {
        return of_pods(cost, selected, by, screen);
    }
    let mut text = hanging("", &sentence(cost), screen.text_width());
    let tables = match by {
        By::Pool => [machines(cost, by, true), machines(cost, by, false)],
        By::Namespace | By::Label(_) => [pods(cost, by, true), pods(cost, by, false)],
        _ => [machines(cost, by, false), machines(cost, by, false)],
    };
    let fits = tables.iter().find(|table| table.width() <= screen.text_width());
    let table = fits.or(tables.last()).map(|table| table.render(screen));
    text.push_str(&table.unwrap_or_default());
    text.push_str(&foot(cost, by, screen));
    text
}

/// What some pods cost, and what part of all that is.
fn of_pods(cost: &Cost, selected: &Selected, by: &By, screen: &Screen) -> String {
    let first = format!(
        "{} with these labels {} {}, {}/mo: {} of {}/mo.",
        counted(selected.pods, "pod"),
        if selected.pods == 1 { "costs" } else { "cost" },
        selected.usd_h.an_hour(),
        selected.usd_mo.whole(),
        whole_percent(selected.usd_mo, cost.money.spend_usd_mo),
        cost.money.spend_usd_mo.whole(),
    );
    let how = "a core counts as 7.2 GiB, devices as 60% of their node; room that nobody asks for is in no pod's share";
    let foot = hanging("shares       ", how, screen.text_width());
    let foot = foot.lines().map(|line| screen.paint(Role::Secondary, line) + "\n");
    hanging("", &first, screen.text_width()) + &pods(cost, by, true).render(screen) + &foot.collect::<String>()
}

fn sentence(cost: &Cost) -> String {
    let money = &cost.money;
    let above = &money.above_bound;
    let share = if money.spend_usd_mo == Dollars::ZERO {
        String::new()
    } else {
        format!(
            " ({})",
            percent(above.total_usd_mo.size().picos(), money.spend_usd_mo.size().picos())
        )
    };
    let planned = if above.planned_usd_mo > Dollars::ZERO {
        format!(", {} of it on its way", above.planned_usd_mo.whole())
    } else {
        String::new()
    };
    format!(
        "{}, {}/mo; at most {}/mo{share} is avoidable{planned}.",
        money.spend_usd_h.an_hour(),
        money.spend_usd_mo.whole(),
        above.total_usd_mo.whole(),
    )
}

fn title(by: &By) -> String {
    match by {
        By::Label(key) => key.to_uppercase(),
        other => other.word().to_uppercase(),
    }
}

fn machines(cost: &Cost, by: &By, has_parts: bool) -> Table {
    let mut table = Table::default();
    table.column(&title(by), Align::Left);
    for name in ["NODES", "$/H", "$/MO", "REQUESTED", "SPOT", "IDLE"] {
        table.column(name, Align::Right);
    }
    if *by == By::Pool {
        table.column("ABOVE BOUND", Align::Right);
    }
    if has_parts {
        for name in ["= PLANNED", "+ HELD", "+ DRAG", "+ ROUNDING"] {
            table.column(name, Align::Right);
        }
    }
    if *by == By::Pool {
        table.column("SAVED", Align::Right);
    }
    for row in &cost.by.rows {
        table.row(machine_cells(row, by, has_parts));
    }
    if cost.by.rows.len() > 1 {
        table.total(machine_cells(&sum(cost), by, has_parts));
    }
    table
}

fn machine_cells(row: &Row, by: &By, has_parts: bool) -> Vec<Cell> {
    let idle = row.idle_usd_mo.unwrap_or_default();
    let asked = row.usd_mo - idle;
    let share = |part: Dollars| whole_percent(part, row.usd_mo);
    let mut cells: Vec<Cell> = vec![
        row.name.clone().into(),
        grouped(row.nodes.unwrap_or_default() as u128).into(),
        per_hour(row.usd_h).into(),
        row.usd_mo.plain().into(),
        share(asked).into(),
        share(row.spot_usd_mo).into(),
        idle.plain().into(),
    ];
    let above = row.above_bound.unwrap_or_default();
    if *by == By::Pool {
        cells.push(above.total_usd_mo.plain().into());
    }
    if has_parts {
        let AboveBound {
            planned_usd_mo,
            held_usd_mo,
            drag_usd_mo,
            rounding_usd_mo,
            ..
        } = above;
        for part in [planned_usd_mo, held_usd_mo, drag_usd_mo, rounding_usd_mo] {
            cells.push(part.plain().into());
        }
    }
    if *by == By::Pool {
        let saved = row.saved_usd_mo.unwrap_or_default();
        cells.push(Cell::new(
            if saved.0 > 0 { Role::Good } else { Role::Plain },
            saved.plain(),
        ));
    }
    cells
}

/// Sums are of exact amounts, so that a column may be one off.
fn sum(cost: &Cost) -> Row {
    let rows = &cost.by.rows;
    let of = |amount: fn(&Row) -> Dollars| rows.iter().map(amount).sum::<Dollars>();
    Row {
        name: "all".into(),
        nodes: Some(rows.iter().filter_map(|row| row.nodes).sum()),
        pods: rows.iter().map(|row| row.pods).sum(),
        cpu_m: rows.iter().map(|row| row.cpu_m).sum(),
        memory_mib: rows.iter().map(|row| row.memory_mib).sum(),
        usd_h: of(|row| row.usd_h),
        usd_mo: of(|row| row.usd_mo),
        spot_usd_mo: of(|row| row.spot_usd_mo),
        idle_usd_mo: Some(of(|row| row.idle_usd_mo.unwrap_or_default())),
        above_bound: Some(cost.money.above_bound),
        saved_usd_mo: Some(cost.money.saved.total_usd_mo),
    }
}

fn pods(cost: &Cost, by: &By, has_amounts: bool) -> Table {
    let mut table = Table::default();
    table.column(&title(by), Align::Left);
    table.column("PODS", Align::Right);
    if has_amounts {
        table.column("CPU", Align::Right);
        table.column("GIB", Align::Right);
    }
    for name in ["$/MO", "SHARE", "SPOT"] {
        table.column(name, Align::Right);
    }
    let all = sum(cost);
    for row in cost.by.rows.iter().chain([&all]) {
        let is_special = row.name.starts_with("__");
        let role = if is_special { Role::Secondary } else { Role::Plain };
        let count = |number: usize| {
            if number == 0 {
                "-".to_owned()
            } else {
                grouped(number as u128)
            }
        };
        let mut cells = vec![Cell::new(role, row.name.clone()), count(row.pods).into()];
        if has_amounts {
            cells.push(tenths(row.cpu_m, 1000).into());
            cells.push(tenths(row.memory_mib, 1024).into());
        }
        cells.push(row.usd_mo.plain().into());
        cells.push(whole_percent(row.usd_mo, cost.money.spend_usd_mo).into());
        cells.push(whole_percent(row.spot_usd_mo, row.usd_mo).into());
        if row.name == all.name || is_special {
            table.total(cells);
        } else {
            table.row(cells);
        }
    }
    table
}

fn foot(cost: &Cost, by: &By, screen: &Screen) -> String {
    let (money, saved) = (&cost.money, &cost.money.saved);
    let width = screen.text_width();
    let start =
        |name: &str, hour: Dollars, month: Dollars| format!("{name:11}  {:>8}  {:>9}  ", per_hour(hour), month.plain());
    let mut text = String::new();
    if matches!(by, By::Namespace | By::Label(_)) {
        let how = "a core counts as 7.2 GiB, devices as 60% of their node; __idle__ is allocatable and not requested";
        text.push_str(&hanging("shares       ", how, width));
    } else {
        let how = "no valid fleet costs less; planned goes by itself, held by a rule, drag is on-demand for pods that may use spot";
        text.push_str(&hanging(
            &start("lower bound", money.bound_usd_h, money.bound_usd_mo),
            how,
            width,
        ));
        let commitments = if saved.commitments_usd_mo == Dollars::ZERO {
            String::new()
        } else {
            format!(", commitments {}", saved.commitments_usd_mo.plain())
        };
        let how = format!(
            "a node a pod, on demand; saved: packing {}, spot {}{commitments}",
            saved.packing_usd_mo.plain(),
            saved.spot_usd_mo.plain()
        );
        text.push_str(&hanging(
            &start("baseline", money.baseline_usd_h, money.baseline_usd_mo),
            &how,
            width,
        ));
    }
    for used in &cost.commitments {
        let how = format!(
            "{}: {} of {} used",
            used.name,
            used.used_usd_h.an_hour(),
            used.committed_usd_h.an_hour()
        );
        text.push_str(&hanging("committed    ", &how, width));
    }
    if money.unmanaged_usd_mo > Dollars::ZERO {
        let how = format!(
            "nodes of somebody else's cost {}/mo more",
            money.unmanaged_usd_mo.whole()
        );
        text.push_str(&hanging("not counted  ", &how, width));
    }
    if money.unpriced_nodes > 0 {
        let how = format!("the catalogue has no price for {} of the nodes", money.unpriced_nodes);
        text.push_str(&hanging("not counted  ", &how, width));
    }
    let dimmed = text.lines().map(|line| screen.paint(Role::Secondary, line.trim_end()));
    dimmed.fold(String::new(), |text, line| text + &line + "\n")
}

fn whole_percent(part: Dollars, whole: Dollars) -> String {
    part.or_nothing()
        .per_mille_of(whole)
        .map_or("-".to_owned(), |share| format!("{}%", (share + 5) / 10))
}

/// With one place.
fn tenths(amount: u64, one: u64) -> String {
    let tenths = (amount * 10 + one / 2) / one;
    format!("{}.{}", grouped(tenths / 10), tenths % 10)
}

/// Rows for a spreadsheet: plain numbers, and a heading.
pub(super) fn csv(cost: &Cost) -> String {
    let mut text = format!(
        "{},nodes,pods,cpu_m,memory_mib,usd_h,usd_mo,spot_usd_mo,idle_usd_mo,above_bound_usd_mo,planned_usd_mo,held_usd_mo,drag_usd_mo,rounding_usd_mo,saved_usd_mo\n",
        quoted(&cost.by.key)
    );
    for row in &cost.by.rows {
        let maybe = |amount: Option<Dollars>| amount.map(number).unwrap_or_default();
        let above = |part: fn(&AboveBound) -> Dollars| maybe(row.above_bound.as_ref().map(part));
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            quoted(&row.name),
            row.nodes.map(|nodes| nodes.to_string()).unwrap_or_default(),
            row.pods,
            row.cpu_m,
            row.memory_mib,
            number(row.usd_h),
            number(row.usd_mo),
            number(row.spot_usd_mo),
            maybe(row.idle_usd_mo),
            above(|above| above.total_usd_mo),
            above(|above| above.planned_usd_mo),
            above(|above| above.held_usd_mo),
            above(|above| above.drag_usd_mo),
            above(|above| above.rounding_usd_mo),
            maybe(row.saved_usd_mo),
        );
    }
    text
}

fn number(amount: Dollars) -> String {
    format!("{}{}", if amount.0 < 0 { "-" } else { "" }, amount.size().to_decimal())
}

/// As spreadsheets want text that has a comma, a quote or a line end in it.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}
