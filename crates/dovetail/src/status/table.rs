//! The fleet as a page: a head, the pools, what is next, what needs a person.

use insight::{
    Dollars, Fill,
    alert::{Alert, Level},
};

use super::{PoolStatus, Status};
use crate::{
    notice,
    source::{Input, Origin},
    terminal::{
        Align, Amount, Cell, Role, Screen, Table, bar, counted, filled, grouped, hanging, per_hour, percent, span,
    },
};

/// Signs of a bar in the head.
const HEAD_BAR: usize = 20;
/// Signs of a bar in the table.
const BAR: usize = 10;
/// Alerts that are shown.
const MOST_ALERTS: usize = 12;

pub(super) fn render(status: &Status, input: &Input, screen: &Screen) -> String {
    let mut text = head(status, input, screen);
    text.push('\n');
    text.push_str(&pools(status, screen));
    text.push('\n');
    text.push_str(&next(status, screen));
    text.push_str(&needs(&status.alerts, screen));
    text
}

/// A line: what it is about, and the rest, broken where it must be.
fn line(name: &str, rest: &str, screen: &Screen) -> String {
    let line = hanging(&format!("{name:8}  "), rest, screen.text_width());
    // A bar's blanks would be squeezed by breaking, so lines with bars are made by hand.
    line.replacen(name, &screen.paint(Role::Heading, name), 1)
}

fn head(status: &Status, input: &Input, screen: &Screen) -> String {
    let mut text = title(status, input, screen);
    let fleet = &status.fleet;
    let launching = match fleet.launching {
        0 => String::new(),
        count => format!(" and {count} launching"),
    };
    let kinds = [
        (fleet.spot, "spot"),
        (fleet.on_demand, "on-demand"),
        (fleet.reserved, "reserved"),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{count} {kind}"))
        .collect();
    let kinds = if kinds.is_empty() {
        String::new()
    } else {
        format!(": {}", kinds.join(", "))
    };
    let unmanaged = match fleet.unmanaged {
        0 => String::new(),
        count => format!("; {count} more of somebody else's"),
    };
    let spot = percent(fleet.spot_vcpu, fleet.vcpu);
    text.push_str(&line(
        "nodes",
        &format!(
            "{}{launching}{kinds}; spot {spot} of {} vCPU{unmanaged}",
            fleet.nodes,
            grouped(fleet.vcpu)
        ),
        screen,
    ));
    text.push_str(&fill_line("cpu", fleet.cpu_m, &cores(fleet.cpu_m), screen));
    text.push_str(&fill_line("memory", fleet.memory_mib, &gibs(fleet.memory_mib), screen));
    text.push_str(&line("pods", &pods(status), screen));
    text.push_str(&line("spend", &spend(status), screen));
    text.push_str(&line("saved", &saved(status), screen));
    if !status.notices.is_empty() {
        text.push_str(&line("notices", &notices(&status.notices, input, screen), screen));
    }
    text
}

/// What the cloud said: `2 spot interruptions, 1 rebalance recommendation since 14:41 UTC; 2 nodes drained for them`.
fn notices(count: &notice::Count, input: &Input, screen: &Screen) -> String {
    let said: Vec<String> = count
        .machines
        .iter()
        .map(|(text, machines)| counted(*machines, text))
        .collect();
    let said = if said.is_empty() {
        "of some kind".to_owned()
    } else {
        said.join(", ")
    };
    let since = count
        .since
        .map(|since| format!(" since {}", screen.zone.said(since, input.snapshot.taken_at())));
    let them = if count.machines.values().sum::<usize>() == 1 {
        "it"
    } else {
        "them"
    };
    let drained = match count.drained {
        0 => format!("no node drained for {them}"),
        nodes => format!("{} drained for {them}", counted(nodes, "node")),
    };
    format!("{said}{}; {drained}", since.unwrap_or_default())
}

fn title(status: &Status, input: &Input, screen: &Screen) -> String {
    let taken = input.snapshot.taken_at();
    let now = screen.zone.at(taken);
    let (name, leader) = match &input.origin {
        Origin::Dump { name, .. } => {
            let title = &input.snapshot.title().name;
            (if title.is_empty() { name } else { title }, None)
        }
        Origin::Live { cluster, leader, .. } => {
            let leader = leader.as_ref().map_or_else(
                || "no leader seen: figures are computed here".to_owned(),
                |leader| format!("leader {leader}"),
            );
            (cluster, Some(leader))
        }
        Origin::Catalogue => (&input.snapshot.title().name, None),
    };
    let mut parts = vec![name.clone()];
    if !status.kubernetes.is_empty() {
        parts.push(format!("Kubernetes {}", status.kubernetes));
    }
    if !status.region.is_empty() {
        parts.push(status.region.clone());
    }
    parts.extend(leader);
    parts.push(format!(
        "{} {}",
        now.strftime("%a %-d %b %H:%M:%S"),
        screen.zone.short(taken)
    ));
    let line = hanging("", &parts.join(" · "), screen.text_width());
    line.replacen(name, &screen.paint(Role::Heading, name), 1)
}

fn fill_line(name: &str, fill: Fill, words: &str, screen: &Screen) -> String {
    let share = percent(fill.requested, fill.allocatable);
    let role = Role::Fill(u32::try_from(fill.requested * 100 / fill.allocatable.max(1)).unwrap_or(100));
    let picture = if screen.has_bars() {
        let bar = bar(fill.requested, fill.allocatable, HEAD_BAR, screen.is_ascii);
        format!("{} {share:>6}", screen.paint(role, &bar))
    } else {
        share
    };
    let name = format!("{name:8}").replacen(name, &screen.paint(Role::Heading, name), 1);
    format!("{name}  {picture}   {words} requested\n")
}

fn cores(fill: Fill) -> String {
    let cores = |millis: u64| grouped((millis + 500) / 1000);
    format!("{} of {} cores", cores(fill.requested), cores(fill.allocatable))
}

/// Memory as people say it: GiB, and from a thousand on TiB.
fn gibs(fill: Fill) -> String {
    const TIB: u64 = 1 << 20;
    if fill.allocatable >= TIB {
        let tib = |mib: u64| format!("{}.{:02}", mib / TIB, (mib % TIB) * 100 / TIB);
        return format!("{} of {} TiB", tib(fill.requested), tib(fill.allocatable));
    }
    let gib = |mib: u64| grouped((mib + 512) / 1024);
    format!("{} of {} GiB", gib(fill.requested), gib(fill.allocatable))
}

fn pods(status: &Status) -> String {
    let pods = &status.pods;
    let running = format!("{} running", grouped(pods.running as u128));
    if pods.pending == 0 {
        return format!("{running}, none waits for a node");
    }
    let blocked: usize = status.pending.iter().map(|group| group.pods.len()).sum();
    let waited = pods
        .longest_wait_s
        .map(|wait| format!("; longest wait {}", span(wait)))
        .unwrap_or_default();
    format!(
        "{running}, {} pending: {} blocked by a rule, {} on {} way{waited}",
        pods.pending,
        blocked,
        status.on_their_way,
        if status.on_their_way == 1 { "its" } else { "their" }
    )
}

fn spend(status: &Status) -> String {
    let money = &status.money;
    let above = money.spend_usd_h - money.bound_usd_h;
    if money.bound_usd_h == Dollars::ZERO {
        let spend = format!("{}   {}/mo", money.spend_usd_h.an_hour(), money.spend_usd_mo.whole());
        if above == Dollars::ZERO {
            return spend;
        }
        return format!("{spend}   no pod that runs on it needs a node: all of it is above the lower bound");
    }
    format!(
        "{}   {}/mo   at most {} ({}/mo) above the lower bound of {}",
        money.spend_usd_h.an_hour(),
        money.spend_usd_mo.whole(),
        share(above, money.bound_usd_h),
        money.above_bound.total_usd_mo.whole(),
        money.bound_usd_h.an_hour()
    )
}

fn saved(status: &Status) -> String {
    let (money, saved) = (&status.money, &status.money.saved);
    let commitments = if saved.commitments_usd_mo == Dollars::ZERO {
        String::new()
    } else {
        format!(", commitments {}", saved.commitments_usd_mo.whole())
    };
    format!(
        "{}   {}/mo   against {} for a node a pod on demand: packing {}, spot {}{commitments}",
        (money.baseline_usd_h - money.spend_usd_h).an_hour(),
        saved.total_usd_mo.whole(),
        money.baseline_usd_h.an_hour(),
        saved.packing_usd_mo.whole(),
        saved.spot_usd_mo.whole(),
    )
}

fn share(part: Dollars, whole: Dollars) -> String {
    let part = part.or_nothing().size().picos();
    percent(part, whole.size().picos())
}

fn pools(status: &Status, screen: &Screen) -> String {
    let layouts = [(true, BAR), (false, BAR), (false, 0)];
    let tables = layouts.map(|(is_wide, signs)| table(status, is_wide, signs, screen));
    let fitting = tables.iter().find(|table| table.width() <= screen.text_width());
    fitting
        .or(tables.last())
        .map(|table| table.render(screen))
        .unwrap_or_default()
}

/// Narrow screens have no bar for memory, no column for spot, and no name of the limit.
fn table(status: &Status, is_wide: bool, signs: usize, screen: &Screen) -> Table {
    let mut table = Table::default();
    table.column("POOL", Align::Left);
    table.column("NODES", Align::Right);
    if is_wide {
        table.column("SPOT", Align::Right);
    }
    table.column("CPU", Align::Left);
    table.column(
        if is_wide { "MEMORY" } else { "MEM" },
        if is_wide { Align::Left } else { Align::Right },
    );
    table.column(
        if is_wide { "NEAREST LIMIT" } else { "LIMIT" },
        if is_wide { Align::Left } else { Align::Right },
    );
    table.column("$/H", Align::Right);
    table.column("ABOVE", Align::Right);
    for title in if is_wide {
        ["HELD", "DRIFTED", "PENDING"]
    } else {
        ["HELD", "DRIFT", "PEND"]
    } {
        table.column(title, Align::Right);
    }
    for pool in &status.pools {
        table.row(row(pool, is_wide, signs, screen));
    }
    if status.pools.len() > 1 {
        table.total(all(status, is_wide, signs, screen));
    }
    table
}

fn row(it: &PoolStatus, is_wide: bool, signs: usize, screen: &Screen) -> Vec<Cell> {
    let pool = &it.pool;
    let name = Cell::new(if pool.ready { Role::Plain } else { Role::Stop }, pool.name.clone());
    let mut cells = vec![name, pool.nodes.to_string().into()];
    if is_wide {
        cells.push(pool.spot.to_string().into());
    }
    cells.extend(fills(pool.cpu_m, pool.memory_mib, is_wide, signs, screen));
    let limit = pool.nearest_limit();
    cells.push(match limit {
        None => "-".into(),
        Some(limit) => {
            let role = if limit.percent >= 90 { Role::Warn } else { Role::Plain };
            let name = if is_wide {
                format!("{} ", limit.brief())
            } else {
                String::new()
            };
            Cell::new(role, format!("{name}{}%", limit.percent))
        }
    });
    let above = it.money.spend_usd_h - it.money.bound_usd_h;
    cells.push(per_hour(pool.spend_usd_h).into());
    cells.push(share(above, it.money.bound_usd_h).into());
    cells.extend(counts([it.held, pool.drifted, it.pending]));
    cells
}

fn all(status: &Status, is_wide: bool, signs: usize, screen: &Screen) -> Vec<Cell> {
    let fleet = &status.fleet;
    let mut cells: Vec<Cell> = vec!["all".into(), fleet.nodes.to_string().into()];
    if is_wide {
        cells.push(fleet.spot.to_string().into());
    }
    cells.extend(fills(fleet.cpu_m, fleet.memory_mib, is_wide, signs, screen));
    cells.push(String::new().into());
    let above = status.money.spend_usd_h - status.money.bound_usd_h;
    cells.push(per_hour(status.money.spend_usd_h).into());
    cells.push(share(above, status.money.bound_usd_h).into());
    let drifted = status.pools.iter().map(|it| it.pool.drifted).sum();
    cells.extend(counts([status.outlook.held_nodes, drifted, status.pods.pending]));
    cells
}

fn fills(cpu: Fill, memory: Fill, is_wide: bool, signs: usize, screen: &Screen) -> [Cell; 2] {
    let memory_bar = if is_wide { signs } else { 0 };
    [
        filled(cpu.requested, cpu.allocatable, signs, screen),
        filled(memory.requested, memory.allocatable, memory_bar, screen),
    ]
}

fn counts(counts: [usize; 3]) -> impl Iterator<Item = Cell> {
    counts.into_iter().map(|count| match count {
        0 => Cell::new(Role::Secondary, "0"),
        count => grouped(count as u128).into(),
    })
}

fn next(status: &Status, screen: &Screen) -> String {
    let total = &status.outlook;
    let moves = match status.next.len() {
        0 => "no move would save more than it disturbs".to_owned(),
        count => format!("{}, {}/mo", counted(count, "move"), total.delta_usd_mo.signed()),
    };
    let waits = if total.waiting_usd_mo > Dollars::ZERO {
        format!("; {}/mo more waits for its time", total.waiting_usd_mo.whole())
    } else {
        String::new()
    };
    let held = match total.held_nodes {
        0 => String::new(),
        1 => "; 1 node is held".to_owned(),
        count => format!("; {count} nodes are held"),
    };
    let worth = if total.held_usd_mo > Dollars::ZERO {
        format!(" ({}/mo)", total.held_usd_mo.whole())
    } else {
        String::new()
    };
    line(
        "NEXT",
        &format!("{moves}{waits}{held}{worth}   [dovetail plan]"),
        screen,
    )
}

fn needs(alerts: &[Alert], screen: &Screen) -> String {
    if alerts.is_empty() {
        return format!("{}\n", screen.paint(Role::Good, "nothing needs a person"));
    }
    let mut text = format!("{}\n", screen.paint(Role::Heading, "NEEDS A PERSON"));
    for alert in alerts.iter().take(MOST_ALERTS) {
        let role = match alert.level {
            Level::Stop => Role::Stop,
            Level::Warn => Role::Warn,
            Level::Info => Role::Command,
        };
        let since = alert.since_s.map(short_span).unwrap_or_default();
        let start = format!("  {}  {since:>4}  ", alert.level.word());
        let line = hanging(&start, &format!("{} [{}]", alert.text, alert.ask), screen.text_width());
        text.push_str(&painted(&line, alert, role, screen));
    }
    if alerts.len() > MOST_ALERTS {
        let more = format!("  and {} more (-o json lists them)", alerts.len() - MOST_ALERTS);
        text.push_str(&format!("{}\n", screen.paint(Role::Secondary, &more)));
    }
    text
}

/// The level and the question in colour.
fn painted(line: &str, alert: &Alert, role: Role, screen: &Screen) -> String {
    let word = alert.level.word();
    let line = line.replacen(word, &screen.paint(role, word), 1);
    match line.rfind(&alert.ask) {
        Some(at) => {
            let (before, after) = line.split_at(at);
            let rest = &after[alert.ask.len()..];
            format!("{before}{}{rest}", screen.paint(Role::Command, &alert.ask))
        }
        None => line,
    }
}

/// One unit: `16m`, `9d`.
fn short_span(seconds: i64) -> String {
    let whole = span(seconds);
    whole.split(' ').next().unwrap_or_default().to_owned()
}

/// Rows for a spreadsheet: a pool each, plain numbers.
pub(super) fn csv(status: &Status) -> String {
    let mut text = "pool,ready,nodes,launching,spot,vcpu,cpu_m_requested,cpu_m_allocatable,memory_mib_requested,memory_mib_allocatable,nearest_limit_percent,spend_usd_h,bound_usd_h,held,drifted,pending\n".to_owned();
    for it in &status.pools {
        let pool = &it.pool;
        let limit = pool.nearest_limit().map(|limit| limit.percent.to_string());
        let fields = [
            pool.name.clone(),
            pool.ready.to_string(),
            pool.nodes.to_string(),
            pool.launching.to_string(),
            pool.spot.to_string(),
            pool.vcpu.to_string(),
            pool.cpu_m.requested.to_string(),
            pool.cpu_m.allocatable.to_string(),
            pool.memory_mib.requested.to_string(),
            pool.memory_mib.allocatable.to_string(),
            limit.unwrap_or_default(),
            pool.spend_usd_h.size().to_decimal(),
            it.money.bound_usd_h.size().to_decimal(),
            it.held.to_string(),
            pool.drifted.to_string(),
            it.pending.to_string(),
        ];
        text.push_str(&format!("{}\n", fields.join(",")));
    }
    text
}
