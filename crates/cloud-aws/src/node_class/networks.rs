//! The subnets and security groups that a node class selects.

use std::{collections::BTreeMap, time::Duration};

use api::aws::{SecurityGroup, SecurityGroupSelectorTerm, SubnetSelectorTerm};
use runtime::{Clock, remembered::Remembered};
use serde::Serialize;
use tokio::sync::Mutex;

use super::filters::{Named, filter_sets};
use crate::{Failure, border::SubnetFacts};

/// How long security groups are believed.
const GROUPS_BELIEVED: Duration = Duration::from_mins(1);

/// Asks for subnets and security groups.
pub(crate) struct Networks {
    ec2: aws_sdk_ec2::Client,
    clock: Clock,
    subnets: Remembered<Vec<SubnetFacts>>,
    groups: Remembered<Vec<SecurityGroup>>,
    subnets_believed: Duration,
    /// One question at a time: whoever waited finds the answer remembered.
    asking: Mutex<()>,
}

/// A question in one text.
pub(super) fn question<T: Serialize>(terms: &T) -> String {
    serde_json::to_string(terms).unwrap_or_default()
}

impl Networks {
    pub(crate) fn new(ec2: aws_sdk_ec2::Client, clock: &Clock, subnets_believed: Duration) -> Self {
        Self {
            ec2,
            clock: clock.clone(),
            subnets: Remembered::new(clock.clone()),
            groups: Remembered::new(clock.clone()),
            subnets_believed,
            asking: Mutex::default(),
        }
    }

    /// The subnets that any term finds: most free addresses first.
    pub(crate) async fn subnets(&self, terms: &[SubnetSelectorTerm]) -> Result<Vec<SubnetFacts>, Failure> {
        let question = question(&terms);
        let _asking = self.asking.lock().await;
        if let Some(known) = self.subnets.get(&question) {
            return Ok(known);
        }
        // Before the question: what is launched while it is on its way may not be in the answer.
        let read_at = self.clock.now();
        let mut found: BTreeMap<String, SubnetFacts> = BTreeMap::new();
        for filters in filter_sets(terms, &[("subnet-id", |term| term.id.as_ref())], |term| {
            term.tags.as_ref()
        }) {
            let mut pages = self
                .ec2
                .describe_subnets()
                .set_filters(Some(filters))
                .max_results(500)
                .into_paginator()
                .send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| Failure::of(&error))?;
                for subnet in page.subnets() {
                    let text = |it: Option<&str>| it.unwrap_or_default().to_owned();
                    let facts = SubnetFacts {
                        id: text(subnet.subnet_id()),
                        zone: text(subnet.availability_zone()),
                        zone_id: text(subnet.availability_zone_id()),
                        free_addresses: subnet.available_ip_address_count().unwrap_or(0),
                        read_at,
                    };
                    found.insert(facts.id.clone(), facts);
                }
            }
        }
        let mut found: Vec<SubnetFacts> = found.into_values().collect();
        found.sort_by(|one, two| {
            two.free_addresses
                .cmp(&one.free_addresses)
                .then_with(|| one.id.cmp(&two.id))
        });
        self.subnets.put(&question, found.clone(), self.subnets_believed);
        Ok(found)
    }

    /// The security groups that any term finds, by ID.
    pub(crate) async fn groups(&self, terms: &[SecurityGroupSelectorTerm]) -> Result<Vec<SecurityGroup>, Failure> {
        let question = question(&terms);
        let _asking = self.asking.lock().await;
        if let Some(known) = self.groups.get(&question) {
            return Ok(known);
        }
        let mut found: BTreeMap<String, SecurityGroup> = BTreeMap::new();
        let named: [(&str, Named<SecurityGroupSelectorTerm>); 2] = [
            ("group-id", |term| term.id.as_ref()),
            ("group-name", |term| term.name.as_ref()),
        ];
        for filters in filter_sets(terms, &named, |term| term.tags.as_ref()) {
            let mut pages = self
                .ec2
                .describe_security_groups()
                .set_filters(Some(filters))
                .max_results(500)
                .into_paginator()
                .send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| Failure::of(&error))?;
                for group in page.security_groups() {
                    let id = group.group_id().unwrap_or_default().to_owned();
                    let name = group.group_name().map(str::to_owned);
                    found.insert(id.clone(), SecurityGroup { id, name });
                }
            }
        }
        let found: Vec<SecurityGroup> = found.into_values().collect();
        self.groups.put(&question, found.clone(), GROUPS_BELIEVED);
        Ok(found)
    }
}
