//! What the terminal shows while the demo runs: what happens, and a line that counts.

use std::{io::Write, time::Duration};

use jiff::Timestamp;
use scenario::World;
use serde_json::Value;
use simulator::{Change, Event};
use tokio::sync::mpsc::UnboundedReceiver;

use super::Demo;
use crate::terminal::{Role, Screen, counted, grouped, hourly};

/// Prints a text now. A terminal that is gone is no reason to stop.
pub(super) fn print(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Something that people want to hear of.
pub(super) struct Notice {
    role: Role,
    text: String,
}

impl Notice {
    /// What the story says happens now.
    pub(super) fn story(said: &str) -> Self {
        Self {
            role: Role::Heading,
            text: format!("* {said}"),
        }
    }
}

/// What a change means to people, if anything.
pub(super) fn notice(change: &Change, world: &World) -> Option<Notice> {
    match (change.resource.plural.as_str(), change.event) {
        ("nodes", Event::Added) => Some(joined(&change.object, world)),
        ("nodes", Event::Deleted) => Some(Notice {
            role: Role::Secondary,
            text: format!("- node {} is gone", name(&change.object)),
        }),
        ("nodeclaims", Event::Added) => Some(Notice {
            role: Role::Plain,
            text: format!("  NodeClaim {} is asked for", name(&change.object)),
        }),
        ("nodeclaims", Event::Modified) => disrupted(change),
        _ => None,
    }
}

fn joined(node: &Value, world: &World) -> Notice {
    let label = |key: &str| node["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
    let id = node["spec"]["providerID"].as_str().unwrap_or_default();
    let machine = world
        .region
        .machines()
        .into_iter()
        .find(|machine| machine.id.as_str() == id);
    let price = machine
        .map(|machine| format!(", {}", hourly(machine.price)))
        .unwrap_or_default();
    Notice {
        role: Role::Good,
        text: format!(
            "+ node {} joins: {} {} in {}{price}",
            name(node),
            label("node.kubernetes.io/instance-type"),
            label("karpenter.sh/capacity-type"),
            label("topology.kubernetes.io/zone"),
        ),
    }
}

fn disrupted(change: &Change) -> Option<Notice> {
    let reason = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array()?;
        let found = conditions
            .iter()
            .find(|it| it["type"] == "DisruptionReason" && it["status"] == "True")?;
        found["reason"].as_str().map(str::to_owned)
    };
    let now = reason(&change.object)?;
    if change.before.as_ref().and_then(|before| reason(before)).is_some() {
        return None;
    }
    Some(Notice {
        role: Role::OnDemand,
        text: format!("~ NodeClaim {} is disrupted: {now}", name(&change.object)),
    })
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Shows what happens, for ever. On a terminal the last line counts on; elsewhere it is printed now and then.
pub(super) async fn show(demo: &Demo, mut told: UnboundedReceiver<(Timestamp, Notice)>, screen: Screen) {
    let is_terminal = screen.width.is_some();
    let mut last = String::new();
    let mut rounds: u32 = 0;
    loop {
        // Half a second of the wall.
        tokio::time::sleep(Duration::from_millis(500) * demo.speed.times().max(1)).await;
        rounds += 1;
        let mut text = String::new();
        while let Ok((at, notice)) = told.try_recv() {
            let line = format!("{}  {}", at.strftime("%H:%M:%S"), notice.text);
            text.push_str(&screen.paint(notice.role, &line));
            text.push('\n');
        }
        let line = line(demo).await;
        if is_terminal {
            print(&format!("\r\x1b[2K{text}{line}"));
        } else if !text.is_empty() || (rounds.is_multiple_of(20) && line != last) {
            print(&format!("{text}{line}\n"));
        }
        last = line;
    }
}

/// The cluster in a line.
async fn line(demo: &Demo) -> String {
    let tally = demo.tally.lock().await;
    let bill = demo.world.region.bill();
    format!(
        "{}  {}  {} running, {} waiting  {}  spent {}",
        demo.world.clock.now().strftime("%H:%M:%S"),
        counted(tally.nodes.len(), "node"),
        grouped(tally.running.len() as u128),
        grouped(tally.waiting.len() as u128),
        hourly(bill.hourly),
        dollars(bill.spent_picos),
    )
}

pub(super) fn dollars(picos: u128) -> String {
    let cents = (picos + 50_000_000) / 100_000_000;
    format!("${}.{:04}", grouped(cents / 10_000), cents % 10_000)
}
