//! How fast time passes: as fast as the work allows, or so many times the wall's.
//!
//! Everything in a world waits on tokio's clock, so that clock is what is paced: it is paused, and somebody moves it. In
//! a story nobody waits, and tokio jumps to whatever is due next. For people a thread taps ten milliseconds of the wall
//! at a time, and the clock is moved as much as the speed says, in steps small enough that what follows from one thing
//! happens before the next. Time never passes while something is being worked out, so a slow machine gives a slower
//! demo and not another one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tokio::runtime::{Builder, Runtime};

/// How many times faster than the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// At least once.
    pub times: u32,
}

/// A pace that somebody may change while time passes.
#[derive(Debug, Clone)]
pub struct Speed(Arc<AtomicU32>);

impl Speed {
    /// At first this.
    pub fn new(pace: Pace) -> Self {
        Self(Arc::new(AtomicU32::new(pace.times)))
    }

    /// How many times faster than the wall; 0: time stands still.
    pub fn times(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// From now on.
    pub fn set(&self, times: u32) {
        self.0.store(times, Ordering::Relaxed);
    }
}

/// How much of the wall's time passes between two moves of the clock.
const TAP: Duration = Duration::from_millis(10);
/// How far the clock moves at once.
const STEP: Duration = Duration::from_millis(100);

/// Runs something to its end on time that jumps to whatever is due next.
pub fn on_virtual_time<R>(work: impl Future<Output = R>) -> std::io::Result<R> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(work))
}

/// Runs something to its end on time that passes at a pace; sockets and signals work.
pub fn on_paced_time<R>(pace: Pace, work: impl Future<Output = R>) -> std::io::Result<R> {
    at_speed(&Speed::new(pace), work)
}

/// The same at a pace that may change.
pub fn at_speed<R>(speed: &Speed, work: impl Future<Output = R>) -> std::io::Result<R> {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build()?;
    let brake = hold(&runtime);
    let ended = runtime.block_on(async {
        let (taps, mut tapped) = tokio::sync::mpsc::channel(1);
        // What is missed while work goes on is missed for good: time does not catch up.
        thread::spawn(move || {
            loop {
                thread::sleep(TAP);
                if let Err(tokio::sync::mpsc::error::TrySendError::Closed(())) = taps.try_send(()) {
                    return;
                }
            }
        });
        let passing = async {
            while tapped.recv().await.is_some() {
                pass(TAP * speed.times()).await;
            }
        };
        tokio::select! {
            ended = work => Some(ended),
            () = passing => None,
        }
    });
    drop(brake);
    runtime.shutdown_background();
    ended.ok_or_else(|| std::io::Error::other("the clock stopped"))
}

async fn pass(mut time: Duration) {
    while !time.is_zero() {
        let step = time.min(STEP);
        tokio::time::advance(step).await;
        time -= step;
    }
}

/// While a blocking task runs, tokio does not move a paused clock by itself. This one runs until the sender is dropped.
fn hold(runtime: &Runtime) -> mpsc::Sender<()> {
    let (brake, released) = mpsc::channel::<()>();
    runtime.spawn_blocking(move || {
        let _ = released.recv();
    });
    brake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_a_story_takes_no_time() {
        let slept = on_virtual_time(async {
            let began = tokio::time::Instant::now();
            tokio::time::sleep(Duration::from_hours(1)).await;
            began.elapsed()
        });
        assert_eq!(slept.unwrap(), Duration::from_hours(1));
    }

    #[test]
    fn time_stands_still_at_speed_nothing_and_goes_on_when_it_is_set() {
        let speed = Speed::new(Pace { times: 0 });
        let hurry = speed.clone();
        let stood = at_speed(&speed, async move {
            let began = tokio::time::Instant::now();
            let (tell, told) = tokio::sync::oneshot::channel();
            thread::spawn(move || {
                thread::sleep(5 * TAP);
                let _ = tell.send(());
            });
            let _ = told.await;
            let stood = began.elapsed();
            hurry.set(600);
            tokio::time::sleep(Duration::from_secs(10)).await;
            stood
        });
        assert_eq!(stood.unwrap(), Duration::ZERO);
    }

    #[test]
    fn paced_time_goes_on_while_somebody_waits_and_not_while_somebody_works() {
        let waited = on_paced_time(Pace { times: 600 }, async {
            let began = tokio::time::Instant::now();
            // Work of some taps of the wall: the clock stands.
            thread::sleep(5 * TAP);
            let worked = began.elapsed();
            tokio::time::sleep(Duration::from_secs(30)).await;
            (worked, began.elapsed())
        });
        let (worked, waited) = waited.unwrap();
        assert_eq!(worked, Duration::ZERO);
        assert!(waited >= Duration::from_secs(30), "{waited:?}");
    }
}
