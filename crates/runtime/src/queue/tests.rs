//! What the queue promises, on paused time.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{Backoff, Load, News, Queue};
use crate::rate::Rate;

const BACKOFF: Backoff = Backoff {
    least: Duration::from_secs(1),
    most: Duration::from_mins(1),
};

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// The next key, and after how many seconds it came.
async fn next_after(queue: &Queue<&'static str>) -> (&'static str, u64) {
    let began = Instant::now();
    let key = queue.next().await;
    (key, began.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_twice_is_done_once_at_the_earliest_wish() {
    let queue = Queue::new(BACKOFF);
    queue.add_after("a", seconds(10));
    queue.add_after("a", seconds(3));
    queue.add_after("a", seconds(7));
    assert_eq!(queue.load().depth, 0, "nothing is due yet");
    assert_eq!(next_after(&queue).await, ("a", 3));
    queue.done(&"a");
    assert!(timeout(seconds(100), queue.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_is_being_done_waits_and_is_done_again_afterwards() {
    let queue = Queue::new(BACKOFF);
    queue.add("a");
    assert_eq!(queue.next().await, "a");
    queue.add("a");
    assert!(timeout(seconds(100), queue.next()).await.is_err());
    queue.done(&"a");
    assert_eq!(next_after(&queue).await, ("a", 0));
}

#[tokio::test(start_paused = true)]
async fn failures_wait_twice_as_long_each_time_until_one_goes_well() {
    let queue = Queue::new(BACKOFF);
    queue.add("a");
    let mut waits = Vec::new();
    for _ in 0..8 {
        waits.push(next_after(&queue).await.1);
        queue.failed(&"a");
    }
    assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60]);
    assert_eq!(queue.next().await, "a");
    queue.done(&"a");
    queue.add("a");
    assert_eq!(queue.next().await, "a");
    assert_eq!(queue.failed(&"a"), seconds(1));
}

#[tokio::test(start_paused = true)]
async fn failed_work_that_somebody_asks_for_does_not_wait() {
    let queue = Queue::new(BACKOFF);
    queue.add("a");
    assert_eq!(queue.next().await, "a");
    queue.add("a");
    queue.failed(&"a");
    assert_eq!(next_after(&queue).await, ("a", 0));
}

#[tokio::test(start_paused = true)]
async fn failed_work_comes_back_no_faster_than_the_rate() {
    let rate = Rate {
        per_second: 0.1,
        burst: 2,
    };
    let queue = Queue::new(BACKOFF).with_retries_at(rate);
    for key in ["a", "b", "c", "d"] {
        queue.add(key);
        assert_eq!(queue.next().await, key);
    }
    let waits = ["a", "b", "c", "d"].map(|key| queue.failed(&key).as_secs());
    assert_eq!(waits, [1, 1, 10, 20]);
}

#[tokio::test(start_paused = true)]
async fn work_that_is_not_due_for_ages_waits_for_ages() {
    let queue = Queue::new(BACKOFF);
    queue.add_after("a", Duration::MAX);
    assert!(timeout(seconds(1_000_000), queue.next()).await.is_err());
    queue.add("a");
    assert_eq!(next_after(&queue).await, ("a", 0));
}

#[tokio::test(start_paused = true)]
async fn a_sleeper_hears_of_earlier_work() {
    let queue = Arc::new(Queue::new(BACKOFF));
    queue.add_after("late", seconds(1000));
    let sleeper = Arc::clone(&queue);
    let woken = tokio::spawn(async move { next_after(&sleeper).await });
    tokio::time::sleep(seconds(5)).await;
    queue.add_after("early", seconds(2));
    assert_eq!(woken.await.unwrap(), ("early", 7));
}

#[tokio::test(start_paused = true)]
async fn no_wake_up_is_lost_among_several_waiters() {
    let queue = Arc::new(Queue::new(BACKOFF));
    let mut waiters = JoinSet::new();
    for _ in 0..8 {
        let queue = Arc::clone(&queue);
        waiters.spawn(async move { timeout(seconds(10), queue.next()).await });
    }
    tokio::task::yield_now().await;
    // Nobody runs between these, so eight additions meet waiters that were woken and have not looked yet.
    for key in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        queue.add(key);
    }
    let mut taken = Vec::new();
    while let Some(key) = waiters.join_next().await {
        taken.push(key.unwrap().unwrap());
    }
    taken.sort_unstable();
    assert_eq!(taken, ["a", "b", "c", "d", "e", "f", "g", "h"]);
}

#[tokio::test(start_paused = true)]
async fn a_wake_up_of_a_waiter_that_was_dropped_reaches_another() {
    let queue = Arc::new(Queue::new(BACKOFF));
    let impatient = Arc::clone(&queue);
    let dropped = tokio::spawn(async move { timeout(seconds(1), impatient.next()).await.is_err() });
    let patient = Arc::clone(&queue);
    let waiting = tokio::spawn(async move { next_after(&patient).await });
    assert!(dropped.await.unwrap());
    queue.add("a");
    assert_eq!(waiting.await.unwrap(), ("a", 1));
}

#[tokio::test(start_paused = true)]
async fn a_queue_tells_how_long_work_waited_and_how_much_came() {
    let queue = Queue::new(BACKOFF);
    queue.add("a");
    queue.add("a");
    queue.add_after("b", Duration::from_secs(5));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(queue.next_waited().await, ("a", Duration::from_secs(2)));
    queue.failed(&"a");
    assert_eq!(queue.news(), News { adds: 3, retries: 2 });
    assert_eq!(queue.news(), News::default());
}

#[tokio::test(start_paused = true)]
async fn what_is_being_done_is_told_with_how_long_it_has_taken_so_far() {
    let queue = Queue::new(BACKOFF);
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    queue.next().await;
    tokio::time::advance(seconds(4)).await;
    queue.next().await;
    tokio::time::advance(seconds(3)).await;
    let load = |depth, unfinished, longest| Load {
        depth,
        unfinished: seconds(unfinished),
        longest: seconds(longest),
    };
    assert_eq!(queue.load(), load(1, 10, 7));
    queue.done(&"a");
    assert_eq!(queue.load(), load(1, 3, 3));
    queue.failed(&"b");
    assert_eq!(queue.load(), load(1, 0, 0), "what failed is not due yet");
}
