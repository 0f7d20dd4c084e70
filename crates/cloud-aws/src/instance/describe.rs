//! Reads machines: one by its ID, together with others that are asked about at the same time, or many by their tags.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use aws_sdk_ec2::types::{Filter, Reservation};
use futures_util::future::join_all;
use runtime::Metrics;

use super::{
    batch::{Batcher, Window, Work},
    facts::Machine,
};
use crate::Failure;

const WINDOW: Window = Window {
    name: "describe_instances",
    idle: Duration::from_millis(100),
    longest: Duration::from_secs(1),
    most: 500,
};

/// The most that one page lists.
const PAGE: i32 = 1000;

/// What a machine is asked about in, unless it is gone.
const ALIVE: [&str; 5] = ["pending", "running", "stopping", "stopped", "shutting-down"];

/// A machine; none when EC2 does not know it.
type Answer = Result<Option<Machine>, Failure>;

/// Reads machines.
pub(super) struct Describe {
    ec2: aws_sdk_ec2::Client,
    may_reserve: bool,
    by_id: Batcher<String, Answer>,
}

impl Describe {
    pub(super) fn new(ec2: aws_sdk_ec2::Client, may_reserve: bool, metrics: Option<Arc<Metrics>>) -> Self {
        let client = ec2.clone();
        let work: Work<String, Answer> = Box::new(move |ids| {
            let client = client.clone();
            Box::pin(async move { together(&client, ids, may_reserve).await })
        });
        Self {
            ec2,
            may_reserve,
            by_id: Batcher::new(WINDOW, metrics, work),
        }
    }

    /// A machine that is not gone.
    pub(super) async fn one(&self, id: &str) -> Answer {
        self.by_id.ask(id.to_owned()).await?
    }

    /// All machines that have these tags, sorted by ID: a value, or any value where none is given. Those that are gone
    /// too, if asked for.
    pub(super) async fn tagged(&self, tags: &[(&str, Option<&str>)], and_gone: bool) -> Result<Vec<Machine>, Failure> {
        let filter = |(key, value): &(&str, Option<&str>)| match value {
            Some(value) => Filter::builder().name(format!("tag:{key}")).values(*value).build(),
            None => Filter::builder().name("tag-key").values(*key).build(),
        };
        let mut filters: Vec<Filter> = tags.iter().map(filter).collect();
        filters.extend((!and_gone).then(alive));
        let mut found = BTreeMap::new();
        let mut next = None;
        loop {
            let request = self.ec2.describe_instances().set_filters(Some(filters.clone()));
            let request = request.max_results(PAGE).set_next_token(next);
            let answer = request.send().await.map_err(|error| Failure::of(&error))?;
            for described in answer.reservations().iter().flat_map(Reservation::instances) {
                let machine = Machine::of(described, self.may_reserve);
                found.insert(machine.id.clone(), machine);
            }
            next = answer.next_token().filter(|token| !token.is_empty()).map(str::to_owned);
            if next.is_none() {
                return Ok(found.into_values().collect());
            }
        }
    }
}

fn alive() -> Filter {
    let states = ALIVE.iter().map(ToString::to_string).collect();
    Filter::builder()
        .name("instance-state-name")
        .set_values(Some(states))
        .build()
}

/// Asks for all at once. One that is not known fails the whole call, so whatever is missing is asked for alone.
async fn together(ec2: &aws_sdk_ec2::Client, ids: Vec<String>, may_reserve: bool) -> Vec<Answer> {
    let found = if ids.len() > 1 {
        let different: BTreeSet<&String> = ids.iter().collect();
        let different: Vec<String> = different.into_iter().cloned().collect();
        read(ec2, &different, may_reserve).await.unwrap_or_default()
    } else {
        BTreeMap::new()
    };
    let alone = ids.into_iter().map(|id| {
        let known = found.get(&id).cloned();
        async move {
            match known {
                Some(machine) => Ok(Some(machine)),
                None => by_itself(ec2, id, may_reserve).await,
            }
        }
    });
    join_all(alone).await
}

async fn by_itself(ec2: &aws_sdk_ec2::Client, id: String, may_reserve: bool) -> Answer {
    match read(ec2, std::slice::from_ref(&id), may_reserve).await {
        Ok(mut found) => Ok(found.remove(&id)),
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn read(
    ec2: &aws_sdk_ec2::Client,
    ids: &[String],
    may_reserve: bool,
) -> Result<BTreeMap<String, Machine>, Failure> {
    let request = ec2
        .describe_instances()
        .set_instance_ids(Some(ids.to_vec()))
        .filters(alive());
    let answer = request.send().await.map_err(|error| Failure::of(&error))?;
    let described = answer.reservations().iter().flat_map(Reservation::instances);
    let machines = described.map(|it| Machine::of(it, may_reserve));
    Ok(machines.map(|machine| (machine.id.clone(), machine)).collect())
}
