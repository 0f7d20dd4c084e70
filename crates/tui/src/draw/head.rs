//! The head that eks-node-viewer's users know: nodes, what is asked of them, money, pods by how they fare.

use insight::{Dollars, Fill};
use ratatui_core::layout::Rect;

use super::{WIDE, line_of, title};
use crate::{
    ahead::Ahead,
    app::{App, Place},
    canvas::{Canvas, Line},
    figure::{self, dollars, plain, signed, two_places},
    picture::Picture,
    theme::Role,
};

const BAR: usize = 20;
const NARROW_BAR: usize = 16;

/// Draws the head; returns how many lines it took.
pub(super) fn draw(app: &App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64) -> u16 {
    let Some(picture) = app.picture.clone() else {
        let mut line = Line::default();
        line.add(Role::Heading, "dovetail top");
        title(app, canvas, area, now_ms, &line);
        return 1;
    };
    if area.width >= WIDE {
        wide(app, canvas, area, now_ms, &picture)
    } else {
        narrow(app, canvas, area, now_ms, &picture)
    }
}

fn wide(app: &App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64, picture: &Picture) -> u16 {
    title(app, canvas, line_of(area, 0), now_ms, &name(app, picture));
    let right = area.right();
    let count = nodes(picture);
    let mut y = 1;
    let amounts: Vec<String> = app
        .choices
        .resources
        .iter()
        .zip(&picture.total.shares)
        .map(|(name, share)| format!("({})", amount(name, share.0)))
        .collect();
    let widest = amounts.iter().map(String::len).max().unwrap_or_default();
    for (at, (resource, share)) in app.choices.resources.iter().zip(&picture.total.shares).enumerate() {
        let lead = if at == 0 {
            count.clone()
        } else {
            " ".repeat(count.len())
        };
        let mut line = Line::default();
        line.add(Role::Heading, lead).add(Role::Plain, " ");
        line.add(Role::Plain, format!("{:widest$} ", amounts[at]));
        fill(&mut line, resource, share.0, BAR, canvas.is_ascii());
        line.add(Role::Plain, "  ");
        match at {
            0 => money(app, &mut line, picture),
            1 => saved(app, &mut line),
            _ => {}
        }
        canvas.line(area.x + 1, area.y + y, right, &line);
        y += 1;
    }
    canvas.line(area.x + 1, area.y + y, right, &pods(app, picture));
    y + 1
}

fn narrow(app: &App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64, picture: &Picture) -> u16 {
    let mut first = Line::default();
    first.add(Role::Heading, picture.title.cluster.clone());
    first.add(Role::Plain, format!("   {}", nodes(picture)));
    if app.choices.has_prices {
        let spend = picture.total.spend_usd_h;
        first.add(
            Role::Plain,
            format!("   {}/h  {}/mo", two_places(spend), dollars(spend.monthly())),
        );
    }
    title(app, canvas, line_of(area, 0), now_ms, &first);
    let mut line = Line::default();
    for (resource, share) in app.choices.resources.iter().zip(&picture.total.shares).take(2) {
        line.add(Role::Plain, format!("{} ", short(resource)));
        let role = Role::fill(share.0);
        line.add(role, figure::bar(share.0, NARROW_BAR, canvas.is_ascii()));
        line.add(Role::Plain, format!(" {}   ", figure::percent(share.0)));
    }
    line.add(
        Role::Plain,
        format!("spot {}", figure::whole_percent(picture.total.vcpu)),
    );
    canvas.line(area.x + 1, area.y + 1, area.right(), &line);
    canvas.line(area.x + 1, area.y + 2, area.right(), &brief(app, picture));
    3
}

fn name(app: &App, picture: &Picture) -> Line {
    let title = &picture.title;
    let mut line = Line::default();
    line.add(Role::Heading, title.cluster.clone());
    let about = [title.platform(), title.region.clone()];
    let about: Vec<&str> = about
        .iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    line.add(Role::Plain, format!("  {}", about.join(", ")));
    if app.place == Place::Live {
        match &title.leader {
            Some(leader) => line.add(Role::Plain, format!("   leader {leader}")),
            None => line.add(Role::Warn, "   no leader seen: figures are computed here"),
        };
    }
    line
}

/// `60 nodes +1`, with those of somebody else's.
fn nodes(picture: &Picture) -> String {
    let total = &picture.total;
    let mut text = figure::counted(total.nodes, "node");
    if total.launching > 0 {
        text.push_str(&format!(" +{}", total.launching));
    }
    text
}

fn short(resource: &str) -> &str {
    match resource {
        "memory" => "mem",
        other => other.rsplit('/').next().unwrap_or(other),
    }
}

fn amount(resource: &str, fill: Fill) -> String {
    match resource {
        "cpu" => {
            let cores = |millis: u64| figure::grouped((millis + 500) / 1000);
            format!("{}/{}", cores(fill.requested), cores(fill.allocatable))
        }
        "memory" => figure::memory(fill),
        _ => format!(
            "{}/{}",
            figure::grouped(fill.requested),
            figure::grouped(fill.allocatable)
        ),
    }
}

fn fill(line: &mut Line, resource: &str, fill: Fill, signs: usize, is_ascii: bool) {
    let role = Role::fill(fill);
    line.add(
        Role::Plain,
        format!("{:>6} {:<3} ", figure::percent(fill), short(resource)),
    );
    line.add(role, figure::bar(fill, signs, is_ascii));
}

fn money(app: &App, line: &mut Line, picture: &Picture) {
    if !app.choices.has_prices {
        return;
    }
    let spend = picture.total.spend_usd_h;
    let spent = format!("{}/hour | {}/month", two_places(spend), dollars(spend.monthly()));
    line.add(Role::Plain, spent);
    let Some(ahead) = &app.ahead else {
        line.add(Role::Secondary, "  computing…");
        return;
    };
    let money = &ahead.accounts.money;
    if money.bound_usd_h == Dollars::ZERO {
        return;
    }
    let above = Fill {
        requested: (money.spend_usd_h - money.bound_usd_h).or_nothing().size().picos(),
        allocatable: money.bound_usd_h.size().picos(),
    };
    let bound = two_places(money.bound_usd_h);
    line.add(
        Role::Plain,
        format!("  bound {bound}/h, {} above", figure::percent(above)),
    );
}

fn saved(app: &App, line: &mut Line) {
    let Some(ahead) = app.ahead.as_ref().filter(|_| app.choices.has_prices) else {
        return;
    };
    let saved = &ahead.accounts.money.saved;
    let mut text = format!(
        "saved {}/month: packing {}, spot {}",
        dollars(saved.total_usd_mo),
        plain(saved.packing_usd_mo),
        plain(saved.spot_usd_mo)
    );
    if saved.commitments_usd_mo > Dollars::ZERO {
        text.push_str(&format!(", plan {}", plain(saved.commitments_usd_mo)));
    }
    line.add(Role::Plain, text);
}

fn waiting(app: &App, picture: &Picture) -> String {
    let pods = &picture.pods;
    match (pods.pending, &app.ahead) {
        (0, _) => "none pending".to_owned(),
        (pending, None) => format!("{pending} pending"),
        (pending, Some(ahead)) => {
            let blocked = ahead.blocked();
            let coming = pending.saturating_sub(blocked);
            match coming {
                0 => format!("{pending} pending ({blocked} blocked)"),
                _ => format!("{pending} pending ({blocked} blocked, {coming} on the way)"),
            }
        }
    }
}

fn pods(app: &App, picture: &Picture) -> Line {
    let mut line = Line::default();
    let running = figure::grouped(picture.pods.running as u128);
    line.add(Role::Plain, format!("{running} pods running, "));
    let role = if picture.pods.pending > 0 {
        Role::Warn
    } else {
        Role::Plain
    };
    line.add(role, waiting(app, picture));
    if let Some(ahead) = &app.ahead {
        let total = &ahead.outlook.total;
        let moves = ahead.outlook.moves.len();
        let next = match moves {
            0 => "no move next".to_owned(),
            _ => format!(
                "next {} {}",
                figure::counted(moves, "move"),
                money_of(app, total.delta_usd_mo)
            ),
        };
        line.add(Role::Plain, format!("   {}", next.trim_end()));
        line.add(Role::Plain, format!("   {}", held(app, ahead)));
    }
    line.add(Role::Plain, format!("   {} drifted", picture.total.drifted));
    line.add(
        Role::Plain,
        format!("   spot {}", figure::whole_percent(picture.total.vcpu)),
    );
    if picture.total.unmanaged > 0 {
        line.add(Role::Secondary, format!("   {} other", picture.total.unmanaged));
    }
    line
}

fn money_of(app: &App, amount: Dollars) -> String {
    if app.choices.has_prices {
        format!("{}/mo", signed(amount))
    } else {
        String::new()
    }
}

fn held(app: &App, ahead: &Ahead) -> String {
    let total = &ahead.outlook.total;
    if total.held_usd_mo > Dollars::ZERO && app.choices.has_prices {
        return format!("{} held ({})", total.held_nodes, dollars(total.held_usd_mo));
    }
    format!("{} held", total.held_nodes)
}

fn brief(app: &App, picture: &Picture) -> Line {
    let mut line = Line::default();
    let running = figure::grouped(picture.pods.running as u128);
    let pending = match (picture.pods.pending, &app.ahead) {
        (0, _) => "none pending".to_owned(),
        (pending, None) => format!("{pending} pending"),
        (pending, Some(ahead)) => format!("{pending} pending ({} blocked)", ahead.blocked()),
    };
    line.add(Role::Plain, format!("{running} pods, "));
    let role = if picture.pods.pending > 0 {
        Role::Warn
    } else {
        Role::Plain
    };
    line.add(role, pending);
    match &app.ahead {
        None => {
            line.add(Role::Secondary, "   computing…");
        }
        Some(ahead) => {
            let total = &ahead.outlook.total;
            line.add(Role::Plain, format!("   next {}", money_of(app, total.delta_usd_mo)));
            line.add(Role::Plain, format!("   held {}", total.held_nodes));
        }
    }
    line.add(Role::Plain, format!("   drifted {}", picture.total.drifted));
    line
}
