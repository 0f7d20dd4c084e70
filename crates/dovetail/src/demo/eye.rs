//! How the page looks at the demo: it asks the thread whose clock is the cluster's, and is answered there.

use std::sync::Arc;

use async_trait::async_trait;
use controllers::Cluster;
use tokio::sync::{mpsc, oneshot};
use web::{Eye, Seen, Stage};

use super::{Demo, act};

/// Decisions that the page shows.
const DECISIONS: usize = 500;
/// Questions that may wait.
const WAITING: usize = 16;

/// Asked by the page.
pub(super) enum Question {
    Look(oneshot::Sender<Result<Seen, String>>),
    Act(String, Option<u32>, oneshot::Sender<Result<String, String>>),
}

/// The page's end.
pub(super) struct Window(mpsc::Sender<Question>);

/// A window, and what is asked through it.
pub(super) fn window() -> (Window, mpsc::Receiver<Question>) {
    let (ask, asked) = mpsc::channel(WAITING);
    (Window(ask), asked)
}

impl Window {
    async fn ask<R>(&self, question: Question, told: oneshot::Receiver<Result<R, String>>) -> Result<R, String> {
        let gone = || "the demo is over".to_owned();
        self.0.send(question).await.map_err(|_| gone())?;
        told.await.map_err(|_| gone())?
    }
}

#[async_trait]
impl Eye for Window {
    async fn look(&self) -> Result<Seen, String> {
        let (tell, told) = oneshot::channel();
        self.ask(Question::Look(tell), told).await
    }

    async fn act(&self, act: &str, argument: Option<u32>) -> Result<String, String> {
        let (tell, told) = oneshot::channel();
        self.ask(Question::Act(act.to_owned(), argument, tell), told).await
    }
}

/// Answers what the page asks, for ever.
pub(super) async fn answer(demo: Arc<Demo>, mut asked: mpsc::Receiver<Question>) {
    while let Some(question) = asked.recv().await {
        match question {
            Question::Look(tell) => {
                let known = demo.world.known().ok_or("the autoscaler is being restarted".to_owned());
                let _ = tell.send(known.map(|cluster| seen(&demo, &cluster)));
            }
            Question::Act(act, argument, tell) => {
                let _ = tell.send(act::act(&demo, &act, argument));
            }
        }
    }
}

fn seen(demo: &Demo, cluster: &Cluster) -> Seen {
    Seen {
        snapshot: cluster.snapshot(),
        decisions: cluster.latest_decisions(DECISIONS),
        stage: Some(Stage {
            speed: demo.speed.times(),
            said: demo.said(),
        }),
    }
}
