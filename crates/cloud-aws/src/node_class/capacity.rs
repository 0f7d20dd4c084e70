//! The capacity reservations and the placement group that a node class selects.

use std::{collections::BTreeMap, time::Duration};

use api::{
    aws::{
        CapacityReservation, CapacityReservationSelectorTerm, CapacityReservationState, CapacityReservationType,
        EC2NodeClass, InstanceMatchCriteria, PlacementGroupSelector,
    },
    time::Time,
};
use aws_sdk_ec2::types::{CapacityReservation as Described, Filter};
use jiff::{SignedDuration, Timestamp};
use runtime::{Clock, remembered::Remembered};
use tokio::sync::Mutex;

use super::{
    filters::{filter, tag_filters},
    networks::question,
};
use crate::{Failure, border::PlacementGroupFacts};

/// How long reservations are believed, and at most until they are asked for again.
pub(crate) const POLL: Duration = Duration::from_mins(1);
/// How long the last known placement group is believed when EC2 does not answer.
const GROUP_BELIEVED: Duration = Duration::from_hours(24);
/// EC2 takes a capacity block back so long before its end.
const EXPIRING: SignedDuration = SignedDuration::from_mins(40);

/// Asks for reservations and placement groups.
pub(crate) struct Capacity {
    ec2: aws_sdk_ec2::Client,
    clock: Clock,
    reservations: Remembered<Vec<Described>>,
    groups: Remembered<Option<PlacementGroupFacts>>,
    last_groups: Remembered<PlacementGroupFacts>,
    asking: Mutex<()>,
}

impl Capacity {
    pub(crate) fn new(ec2: aws_sdk_ec2::Client, clock: &Clock) -> Self {
        Self {
            ec2,
            clock: clock.clone(),
            reservations: Remembered::new(clock.clone()),
            groups: Remembered::new(clock.clone()),
            last_groups: Remembered::new(clock.clone()),
            asking: Mutex::default(),
        }
    }

    /// The reservations that any term finds and that have not ended, by ID. `read` hears how many places each has left
    /// when EC2 was asked, and only then.
    pub(crate) async fn reservations(
        &self,
        terms: &[CapacityReservationSelectorTerm],
        read: impl Fn(&str, u32),
    ) -> Result<Vec<CapacityReservation>, Failure> {
        let _asking = self.asking.lock().await;
        let mut found: BTreeMap<String, Described> = BTreeMap::new();
        for query in terms.iter().flat_map(queries) {
            let question = format!("{query:?}");
            let described = if let Some(known) = self.reservations.get(&question) {
                known
            } else {
                let described = self.describe(&query).await?;
                for it in &described {
                    let left = u32::try_from(it.available_instance_count().unwrap_or(0)).unwrap_or(0);
                    read(it.capacity_reservation_id().unwrap_or_default(), left);
                }
                self.reservations.put(&question, described.clone(), POLL);
                described
            };
            for it in described {
                let id = it.capacity_reservation_id().unwrap_or_default().to_owned();
                found.entry(id).or_insert(it);
            }
        }
        let now = self.clock.now();
        let read = found.values().filter_map(|it| match parse(it, now) {
            Ok(reservation) => Some(reservation),
            Err(unsupported) => {
                tracing::error!(error = unsupported, "failed to parse discovered capacity reservations");
                None
            }
        });
        let has_ended = |it: &CapacityReservation| it.end_time.is_some_and(|end| end.0 <= now);
        Ok(read.filter(|it| !has_ended(it)).collect())
    }

    async fn describe(&self, query: &Query) -> Result<Vec<Described>, Failure> {
        let mut filters = vec![filter("state", vec!["active".to_owned()])];
        let ids = match query {
            Query::Id(id) => Some(vec![id.clone()]),
            Query::Filters(more) => {
                filters.extend(more.clone());
                None
            }
        };
        // A page size is refused beside IDs.
        let size = ids.is_none().then_some(1000);
        let mut pages = self
            .ec2
            .describe_capacity_reservations()
            .set_filters(Some(filters))
            .set_capacity_reservation_ids(ids)
            .set_max_results(size)
            .into_paginator()
            .send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            match page.map_err(|error| Failure::of(&error)) {
                Ok(page) => found.extend(page.capacity_reservations.unwrap_or_default()),
                Err(failure) if failure.is_not_found() => break,
                Err(failure) => return Err(failure),
            }
        }
        Ok(found)
    }

    /// The placement group that a class selects; none when it selects none, or there is none.
    pub(crate) async fn placement_group(&self, class: &EC2NodeClass) -> Result<Option<PlacementGroupFacts>, Failure> {
        let Some(selector) = &class.spec.placement_group_selector else {
            return Ok(None);
        };
        let question = question(selector);
        let _asking = self.asking.lock().await;
        if let Some(known) = self.groups.get(&question) {
            return Ok(known);
        }
        let group = self.describe_group(selector).await?;
        if let Some(group) = &group {
            self.last_groups.put(&question, group.clone(), GROUP_BELIEVED);
        }
        self.groups.put(&question, group.clone(), POLL);
        Ok(group)
    }

    /// The same, or what it was when EC2 last answered.
    pub(crate) async fn last_placement_group(&self, class: &EC2NodeClass) -> Option<PlacementGroupFacts> {
        match self.placement_group(class).await {
            Ok(group) => group,
            Err(_) => self.last_groups.get(&question(&class.spec.placement_group_selector)),
        }
    }

    async fn describe_group(&self, selector: &PlacementGroupSelector) -> Result<Option<PlacementGroupFacts>, Failure> {
        let list = |it: &Option<String>| it.as_ref().map(|it| vec![it.clone()]);
        let answer = self
            .ec2
            .describe_placement_groups()
            .filters(filter("state", vec!["available".to_owned()]))
            .set_group_ids(list(&selector.id))
            .set_group_names(list(&selector.name))
            .send()
            .await;
        let answer = match answer.map_err(|error| Failure::of(&error)) {
            Ok(answer) => answer,
            Err(failure) if failure.code.starts_with("InvalidPlacementGroup") => return Ok(None),
            Err(failure) => return Err(failure),
        };
        Ok(answer.placement_groups().first().map(|group| PlacementGroupFacts {
            id: group.group_id().unwrap_or_default().to_owned(),
            name: group.group_name().unwrap_or_default().to_owned(),
            strategy: group.strategy().map_or("", |it| it.as_str()).to_owned(),
            partitions: group.partition_count().unwrap_or(0),
        }))
    }
}

#[derive(Debug)]
enum Query {
    Id(String),
    Filters(Vec<Filter>),
}

fn queries(term: &CapacityReservationSelectorTerm) -> Vec<Query> {
    let mut queries: Vec<Query> = term.id.iter().cloned().map(Query::Id).collect();
    let has_tags = term.tags.as_ref().is_some_and(|tags| !tags.is_empty());
    if has_tags || term.instance_match_criteria.is_some() {
        let mut filters = tag_filters(term.tags.as_ref());
        filters.extend(term.owner_id.as_ref().map(|it| filter("owner-id", vec![it.clone()])));
        let criteria = term.instance_match_criteria.as_ref();
        filters.extend(criteria.map(|it| filter("instance-match-criteria", vec![it.as_str().to_owned()])));
        queries.push(Query::Filters(filters));
    }
    queries
}

/// A reservation as the status lists it. Kinds from the future are refused rather than misread.
fn parse(described: &Described, now: Timestamp) -> Result<CapacityReservation, String> {
    let id = described.capacity_reservation_id().unwrap_or_default();
    let text = |it: Option<&str>| it.unwrap_or_default().to_owned();
    let criteria = described.instance_match_criteria().map_or("", |it| it.as_str());
    let known = InstanceMatchCriteria::from(criteria);
    if !matches!(known, InstanceMatchCriteria::Open | InstanceMatchCriteria::Targeted) {
        return Err(format!(
            "received capacity reservation with unsupported instance match criteria from ec2 (capacity-reservation={id}, instance-match-criteria={criteria})"
        ));
    }
    let word = described.reservation_type().map_or("default", |it| it.as_str());
    let kind = CapacityReservationType::from(word);
    if !matches!(
        kind,
        CapacityReservationType::Default | CapacityReservationType::CapacityBlock
    ) {
        return Err(format!(
            "received capacity reservation with unsupported type from ec2 (capacity-reservation={id}, type={word})"
        ));
    }
    let end = described
        .end_date()
        .and_then(|it| Timestamp::from_second(it.secs()).ok());
    let is_ending = end.is_some_and(|end| end.duration_since(now) <= EXPIRING);
    let state = if kind == CapacityReservationType::CapacityBlock && is_ending {
        CapacityReservationState::Expiring
    } else {
        CapacityReservationState::Active
    };
    Ok(CapacityReservation {
        availability_zone: text(described.availability_zone()),
        end_time: end.map(Time),
        id: id.to_owned(),
        instance_match_criteria: known,
        instance_type: text(described.instance_type()),
        owner_id: text(described.owner_id()),
        reservation_type: kind,
        interruptible: described.interruptible().filter(|it| *it),
        state,
    })
}

/// When reservations are to be asked for again: at the end of the first that ends, if that is soon.
pub(crate) fn asked_again_after(reservations: &[CapacityReservation], now: Timestamp) -> Duration {
    let first = reservations.iter().filter_map(|it| it.end_time).map(|end| end.0).min();
    let until = first.map(|end| Duration::try_from(end.duration_since(now)).unwrap_or_default());
    until.map_or(POLL, |until| until.min(POLL))
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types as ec2;
    use aws_smithy_types::DateTime;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn described(kind: ec2::CapacityReservationType, ends_in: Option<i64>) -> Described {
        Described::builder()
            .capacity_reservation_id("cr-1")
            .availability_zone("us-west-2a")
            .instance_type("p5.48xlarge")
            .owner_id("123456789012")
            .instance_match_criteria(ec2::InstanceMatchCriteria::Targeted)
            .reservation_type(kind)
            .set_end_date(ends_in.map(|seconds| DateTime::from_secs(NOW + seconds)))
            .build()
    }

    fn parsed(kind: ec2::CapacityReservationType, ends_in: Option<i64>) -> CapacityReservation {
        parse(&described(kind, ends_in), Timestamp::from_second(NOW).unwrap()).unwrap()
    }

    #[test]
    fn a_capacity_block_expires_forty_minutes_before_its_end_and_other_reservations_do_not() {
        use ec2::CapacityReservationType::{CapacityBlock, Default};
        let state = |kind, seconds| parsed(kind, seconds).state;
        assert_eq!(
            state(CapacityBlock, Some(40 * 60 + 1)),
            CapacityReservationState::Active
        );
        assert_eq!(state(CapacityBlock, Some(40 * 60)), CapacityReservationState::Expiring);
        assert_eq!(state(Default, Some(60)), CapacityReservationState::Active);
        assert_eq!(state(CapacityBlock, None), CapacityReservationState::Active);
    }

    #[test]
    fn reservations_are_asked_for_again_when_the_first_ends_or_in_a_minute() {
        let now = Timestamp::from_second(NOW).unwrap();
        let ends = |seconds: Option<i64>| parsed(ec2::CapacityReservationType::Default, seconds);
        let after = |all: &[CapacityReservation]| asked_again_after(all, now).as_secs();
        assert_eq!(after(&[]), 60);
        assert_eq!(after(&[ends(None), ends(Some(3600))]), 60);
        assert_eq!(after(&[ends(Some(30)), ends(Some(3600))]), 30);
        assert_eq!(after(&[ends(Some(-5))]), 0);
    }

    #[test]
    fn a_kind_from_the_future_is_refused() {
        let unknown = described(ec2::CapacityReservationType::from("lease"), None);
        let refused = parse(&unknown, Timestamp::from_second(NOW).unwrap()).unwrap_err();
        assert!(refused.contains("type=lease"), "{refused}");
    }
}
