//! Money by pool: what is spent, what is idle, what lies above the lower bound and why, what was saved.

use insight::money::Money;
use ratatui_core::layout::Rect;

use super::{
    WIDE, below, line_of,
    table::{self, Cell, Column, left, right},
    title,
};
use crate::{
    app::App,
    canvas::{Canvas, Line},
    figure::{self, plain},
    theme::Role,
};

const KEYS: &str = "esc back   j/k pool   enter its nodes   w why   :cost --by namespace   ? help";

const COLUMNS: [Column; 10] = [
    left("POOL", 16),
    right("$/H", 8),
    right("$/MO", 9),
    right("IDLE $/MO", 9),
    right("ABOVE BOUND", 11),
    right("= PLANNED", 9),
    right("+ HELD", 7),
    right("+ DRAG", 7),
    right("+ ROUNDING", 10),
    right("SAVED $/MO", 11),
];
const NARROW: [Column; 7] = [
    left("POOL", 16),
    right("$/H", 8),
    right("$/MO", 9),
    right("IDLE", 8),
    right("ABOVE", 8),
    right("HELD", 8),
    right("SAVED", 9),
];

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64) -> &'static str {
    let mut line: Line = (Role::Heading, "cost".to_owned()).into();
    let (ahead, picture) = match (app.ahead.clone(), app.picture.clone()) {
        (Some(ahead), Some(picture)) if app.choices.has_prices => (ahead, picture),
        _ => {
            let text = if app.choices.has_prices {
                "computing…"
            } else {
                "prices are switched off by --disable-pricing"
            };
            title(app, canvas, line_of(area, 0), now_ms, &line);
            canvas.text(area.x + 1, area.y + 2, area.right(), Role::Secondary, text);
            return KEYS;
        }
    };
    let is_wide = area.width >= WIDE;
    let money = &ahead.accounts.money;
    let spent = format!(
        "  {}/h, {}/mo",
        figure::two_places(money.spend_usd_h),
        figure::dollars(money.spend_usd_mo)
    );
    line.add(Role::Plain, spent);
    if is_wide {
        let avoidable = format!(
            "; at most {}/mo avoidable, {} of it on its way",
            figure::dollars(money.above_bound.total_usd_mo),
            figure::dollars(money.above_bound.planned_usd_mo)
        );
        line.add(Role::Plain, avoidable);
    }
    title(app, canvas, line_of(area, 0), now_ms, &line);
    let columns: &[Column] = if is_wide { &COLUMNS } else { &NARROW };
    let none = Money::default();
    let row = |at: usize| -> Vec<Cell> {
        let Some(pool) = picture.pools.get(at) else {
            return cells("all", money, is_wide);
        };
        let money = ahead.accounts.pools.get(&pool.name).unwrap_or(&none);
        cells(&pool.name, money, is_wide)
    };
    let list = below(area, 1);
    let lines = picture.pools.len() + 1;
    app.page = table::draw(canvas, list, columns, &mut app.pools, lines, row);
    app.hits.list = below(list, 1);
    app.hits.top = app.pools.top;
    let end = list.y + 1 + u16::try_from(lines).unwrap_or(u16::MAX).min(list.height);
    let bound = format!(
        "lower bound {}/h, {}/mo; baseline {}/h: each pod on a node of its own",
        figure::two_places(money.bound_usd_h),
        figure::dollars(money.bound_usd_mo),
        figure::two_places(money.baseline_usd_h)
    );
    if end < area.bottom() {
        canvas.text(area.x + 1, end, area.right(), Role::Secondary, &bound);
    }
    KEYS
}

fn cells(name: &str, money: &Money, is_wide: bool) -> Vec<Cell> {
    let above = &money.above_bound;
    let mut amounts = vec![money.spend_usd_mo, money.idle_usd_mo, above.total_usd_mo];
    if is_wide {
        amounts.extend([
            above.planned_usd_mo,
            above.held_usd_mo,
            above.drag_usd_mo,
            above.rounding_usd_mo,
        ]);
    } else {
        amounts.push(above.held_usd_mo);
    }
    amounts.push(money.saved.total_usd_mo);
    let first = [name.to_owned(), figure::two_places(money.spend_usd_h)];
    let texts = first.into_iter().chain(amounts.into_iter().map(plain));
    texts.map(|text| (Role::Plain, text)).collect()
}
