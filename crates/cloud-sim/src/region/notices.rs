//! What does the cloud say beforehand about its machines, and who has heard it?

use std::time::Duration;

use cloud::{Notice, NoticeKind};
use jiff::Timestamp;
use model::object::ProviderId;

use super::{Happening, Region, after, is_meant};
use crate::{Ending, Machine, Phase, Scope};

/// A notice in the queue that processes read.
pub(super) struct Queued {
    pub(super) notice: Notice,
    /// Somebody has it, and has so long to acknowledge it.
    pub(super) hidden_until: Timestamp,
    /// It comes once more although it was acknowledged.
    pub(super) is_twice: bool,
}

/// How long a notice that somebody has received is kept from others.
const HIDDEN: Duration = Duration::from_secs(20);
/// How many notices are given at once.
const AT_ONCE: usize = 10;
/// How many of a thousand notices come although they were acknowledged: a queue promises at least once, not once.
const TWICE: u32 = 50;

impl Region {
    /// Takes spot machines of these offers back, so many of a thousand, after the usual notice. Says how many.
    pub fn interrupt(&self, scope: &Scope, per_mille: u32) -> usize {
        let now = self.now();
        let gone_at = after(now, self.rules.notice);
        let round = now.as_second().to_string();
        let mut inner = self.lock();
        inner.tick(now);
        let struck = |machine: &Machine| {
            let draw = self.chance.of("interruption", &format!("{}@{round}", machine.id));
            machine.capacity_type() == "spot" && is_meant(scope, machine) && draw.happens(per_mille)
        };
        let known = inner.happened.len();
        let ended = inner.end(now, struck, Ending::Interrupted, gone_at);
        let struck: Vec<ProviderId> = inner.happened.range(known..).filter_map(noticed).collect();
        for id in struck {
            let receipt = format!("{id}@{round}");
            let is_twice = self.chance.of("twice", &receipt).happens(TWICE);
            inner.queue.push_back(Queued {
                notice: Notice {
                    receipt: receipt.as_str().into(),
                    kind: NoticeKind::SpotInterruption,
                    machines: vec![id.as_str().into()],
                    at: now,
                    deadline: Some(gone_at),
                },
                hidden_until: now,
                is_twice,
            });
        }
        drop(inner);
        self.changed.notify_one();
        self.told.send_modify(|count| *count += 1);
        ended
    }

    /// Waits until there is a notice to be received.
    pub(crate) async fn noticed(&self) {
        let mut told = self.told.subscribe();
        loop {
            let next = self.lock().queue.iter().map(|queued| queued.hidden_until).min();
            let wait = next.map(|at| at.duration_since(self.now()));
            let wait = wait.map_or(Duration::MAX, |wait| Duration::try_from(wait).unwrap_or(Duration::ZERO));
            if wait.is_zero() {
                return;
            }
            tokio::select! {
                biased;
                _ = told.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// The notices that nobody else has.
    pub(crate) fn receive(&self) -> Vec<Notice> {
        let now = self.now();
        let mut inner = self.lock();
        let free = inner.queue.iter_mut().filter(|queued| queued.hidden_until <= now);
        let given = free.take(AT_ONCE).map(|queued| {
            queued.hidden_until = after(now, HIDDEN);
            queued.notice.clone()
        });
        given.collect()
    }

    pub(crate) fn acknowledge(&self, receipt: &str) {
        self.lock().queue.retain_mut(|queued| {
            let is_it = *queued.notice.receipt == *receipt;
            !is_it || std::mem::take(&mut queued.is_twice)
        });
    }

    /// Machines that the cloud has said it will take back, and since when.
    pub fn notices(&self) -> Vec<(Machine, Timestamp)> {
        let notice = self.rules.notice;
        let machines = self.machines().into_iter();
        let ending = machines.filter_map(|machine| match machine.phase {
            Phase::Ending(Ending::Interrupted, gone_at) => {
                let since = gone_at.checked_sub(notice).unwrap_or(gone_at);
                Some((machine, since))
            }
            _ => None,
        });
        ending.collect()
    }
}

/// The machine that the cloud has just said it will take back.
fn noticed(happening: &Happening) -> Option<ProviderId> {
    match happening {
        Happening::Notice(machine) => Some(machine.id.clone()),
        _ => None,
    }
}
