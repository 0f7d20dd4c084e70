//! Pools: how many nodes, how full, how near their limits, what they cost, what is held and drifted.

use insight::{
    Fill,
    fleet::{Limit, Pool},
};
use ratatui_core::layout::Rect;

use super::{
    WIDE, below, head, line_of,
    table::{self, Cell, Column, left, right},
};
use crate::{ahead::Ahead, app::App, canvas::Canvas, figure, theme::Role};

const KEYS: &str = "esc back   j/k pool   enter its nodes   w why   ? help";
/// A limit is near from here on.
const NEAR: u64 = 90;

const COLUMNS: [Column; 10] = [
    left("POOL", 16),
    right("NODES", 5),
    right("SPOT", 4),
    left("CPU", 17),
    left("MEMORY", 17),
    left("NEAREST LIMIT", 20),
    right("$/H", 8),
    right("HELD", 4),
    right("DRIFTED", 7),
    left("POLICY", 10),
];
const NARROW: [Column; 8] = [
    left("POOL", 14),
    right("NODES", 5),
    left("CPU", 17),
    right("MEM", 6),
    right("LIMIT", 5),
    right("$/H", 8),
    right("HELD", 4),
    right("DRIFT", 5),
];

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64) -> &'static str {
    let used = head::draw(app, canvas, area, now_ms);
    let Some(picture) = app.picture.clone() else {
        return KEYS;
    };
    canvas.rule(line_of(area, used), &figure::counted(picture.pools.len(), "pool"));
    let is_wide = area.width >= WIDE;
    let columns: &[Column] = if is_wide { &COLUMNS } else { &NARROW };
    let list = below(area, used + 1);
    let is_ascii = canvas.is_ascii();
    let (ahead, has_prices) = (app.ahead.clone(), app.choices.has_prices);
    let row = |at: usize| -> Vec<Cell> {
        let pool = &picture.pools[at];
        let held = held(ahead.as_deref(), pool).to_string();
        let price = if has_prices {
            figure::two_places(pool.spend_usd_h)
        } else {
            "-".to_owned()
        };
        let name = (if pool.ready { Role::Plain } else { Role::Stop }, pool.name.clone());
        let plain = |text: String| (Role::Plain, text);
        let drifted = pool.drifted.to_string();
        let limit = limit(pool.nearest_limit(), is_wide);
        let cpu = filled(pool.cpu_m, is_ascii);
        let nodes = plain(pool.nodes.to_string());
        if !is_wide {
            let memory = plain(figure::percent(pool.memory_mib));
            return vec![
                name,
                nodes,
                cpu,
                memory,
                limit,
                plain(price),
                plain(held),
                plain(drifted),
            ];
        }
        let policy = if pool.ready {
            plain(pool.policy.clone())
        } else {
            (Role::Stop, "not ready".to_owned())
        };
        vec![
            name,
            nodes,
            plain(pool.spot.to_string()),
            cpu,
            filled(pool.memory_mib, is_ascii),
            limit,
            plain(price),
            plain(held),
            plain(drifted),
            policy,
        ]
    };
    app.page = table::draw(canvas, list, columns, &mut app.pools, picture.pools.len(), row);
    app.hits.list = below(list, 1);
    app.hits.top = app.pools.top;
    KEYS
}

fn held(ahead: Option<&Ahead>, pool: &Pool) -> usize {
    let held = ahead.into_iter().flat_map(|ahead| &ahead.outlook.held);
    held.filter(|kept| kept.pool == pool.name)
        .map(|kept| kept.targets.len())
        .sum()
}

fn limit(limit: Option<&Limit>, is_wide: bool) -> Cell {
    let Some(limit) = limit else {
        return (Role::Secondary, "-".to_owned());
    };
    let role = if limit.percent >= NEAR { Role::Warn } else { Role::Plain };
    let text = if is_wide {
        format!("{} {}%", limit.brief(), limit.percent)
    } else {
        format!("{}%", limit.percent)
    };
    (role, text)
}

fn filled(fill: Fill, is_ascii: bool) -> Cell {
    if fill.allocatable == 0 {
        return (Role::Secondary, "-".to_owned());
    }
    let bar = figure::bar(fill, 10, is_ascii);
    (Role::fill(fill), format!("{bar} {:>6}", figure::percent(fill)))
}
