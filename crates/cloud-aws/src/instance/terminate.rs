//! Ends machines, several that are to go at the same time in one call.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use aws_sdk_ec2::types::InstanceStateName;
use futures_util::future::join_all;
use runtime::Metrics;

use super::batch::{Batcher, Window, Work};
use crate::Failure;

const WINDOW: Window = Window {
    name: "terminate_instances",
    idle: Duration::from_millis(100),
    longest: Duration::from_secs(1),
    most: 500,
};

type Answer = Result<(), Failure>;

/// Ends machines.
pub(super) struct Terminate {
    batcher: Batcher<String, Answer>,
}

impl Terminate {
    pub(super) fn new(ec2: aws_sdk_ec2::Client, metrics: Option<Arc<Metrics>>) -> Self {
        let work: Work<String, Answer> = Box::new(move |ids| {
            let ec2 = ec2.clone();
            Box::pin(async move { together(&ec2, ids).await })
        });
        Self {
            batcher: Batcher::new(WINDOW, metrics, work),
        }
    }

    /// Ends a machine; fine if it ends already.
    pub(super) async fn one(&self, id: &str) -> Answer {
        self.batcher.ask(id.to_owned()).await?
    }
}

/// Ends all at once. One that is not known fails the whole call, so whatever did not begin to end is ended alone.
async fn together(ec2: &aws_sdk_ec2::Client, ids: Vec<String>) -> Vec<Answer> {
    let ending = if ids.len() > 1 {
        let different: BTreeSet<&String> = ids.iter().collect();
        let different: Vec<String> = different.into_iter().cloned().collect();
        end(ec2, &different).await.unwrap_or_default()
    } else {
        BTreeSet::new()
    };
    let alone = ids.into_iter().map(|id| {
        let ends = ending.contains(&id);
        async move {
            if ends {
                return Ok(());
            }
            end(ec2, std::slice::from_ref(&id)).await.map(drop)
        }
    });
    join_all(alone).await
}

/// The machines that are on their way out now.
async fn end(ec2: &aws_sdk_ec2::Client, ids: &[String]) -> Result<BTreeSet<String>, Failure> {
    let request = ec2.terminate_instances().set_instance_ids(Some(ids.to_vec()));
    let answer = request.send().await.map_err(|error| Failure::of(&error))?;
    let is_ending = |state: Option<&InstanceStateName>| {
        matches!(
            state,
            Some(InstanceStateName::ShuttingDown | InstanceStateName::Terminated)
        )
    };
    let changes = answer.terminating_instances().iter();
    let ending = changes.filter(|it| is_ending(it.current_state().and_then(|state| state.name())));
    Ok(ending.filter_map(|it| it.instance_id()).map(str::to_owned).collect())
}
