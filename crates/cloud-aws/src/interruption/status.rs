//! Which machines does EC2 itself find broken, or about to be taken down for repair?

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use aws_sdk_ec2::types::{EventCode, Filter, InstanceStatus, InstanceStatusSummary, StatusType, SummaryStatus};
use cloud::{Notice, NoticeKind};
use jiff::Timestamp;
use runtime::{Clock, Metrics};

use crate::Failure;

/// How long a check must have failed before it counts.
const FAILED_FOR: Duration = Duration::from_mins(2);
/// The most that one page lists.
const PAGE: i32 = 1000;
/// What the receipts of these notices begin with: there is nothing to delete.
pub(crate) const RECEIPT: &str = "instance-status:";
/// Events after which a machine is not what it was.
const EVENTS: [&str; 5] = [
    "instance-reboot",
    "system-reboot",
    "system-maintenance",
    "instance-retirement",
    "instance-stop",
];

/// Looks at the health of instances.
pub(crate) struct StatusPoll {
    ec2: aws_sdk_ec2::Client,
    clock: Clock,
    metrics: Option<Arc<Metrics>>,
    /// What the last look found: a machine is counted when it falls ill, not for as long as it is.
    ill: Mutex<BTreeSet<(String, Category)>>,
}

/// What is wrong with a machine, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Category {
    Instance,
    System,
    Event,
}

impl Category {
    /// As metrics name it.
    fn label(self) -> &'static str {
        match self {
            Self::Instance => "instance_status",
            Self::System => "system_status",
            Self::Event => "event_status",
        }
    }

    fn kind(self) -> NoticeKind {
        match self {
            Self::Instance | Self::System => NoticeKind::Impaired,
            Self::Event => NoticeKind::ScheduledChange,
        }
    }
}

impl StatusPoll {
    pub(crate) fn new(ec2: aws_sdk_ec2::Client, clock: Clock, metrics: Option<Arc<Metrics>>) -> Self {
        Self {
            ec2,
            clock,
            metrics,
            ill: Mutex::default(),
        }
    }

    /// One look. Machines of others are among them; whoever hears of it knows his own.
    pub(crate) async fn look(&self) -> Result<Vec<Notice>, Failure> {
        let events: Vec<String> = EVENTS.iter().map(ToString::to_string).collect();
        let impaired = || vec!["impaired".to_owned()];
        let mut found: BTreeMap<String, InstanceStatus> = BTreeMap::new();
        for (filter, values) in [
            ("instance-status.status", impaired()),
            ("system-status.status", impaired()),
            ("event.code", events),
        ] {
            for status in self.read(filter, values).await? {
                found.insert(status.instance_id().unwrap_or_default().to_owned(), status);
            }
        }
        let now = self.clock.now();
        let ill: BTreeSet<(String, Category)> = found
            .into_iter()
            .filter_map(|(id, status)| Some((id, category(&status, now)?)))
            .collect();
        self.count(&ill);
        let notice = |(id, category): (String, Category)| Notice {
            receipt: format!("{RECEIPT}{id}").into(),
            kind: category.kind(),
            machines: vec![id.into()],
            at: now,
            deadline: None,
        };
        Ok(ill.into_iter().map(notice).collect())
    }

    fn count(&self, ill: &BTreeSet<(String, Category)>) {
        let mut before = self.ill.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(metrics) = &self.metrics {
            for (_, category) in ill.difference(&before) {
                metrics
                    .interruption_instance_status_unhealthy_total
                    .inc([category.label()]);
            }
        }
        before.clone_from(ill);
    }

    async fn read(&self, filter: &str, values: Vec<String>) -> Result<Vec<InstanceStatus>, Failure> {
        let (mut found, mut next) = (Vec::new(), None);
        loop {
            let filter = Filter::builder().name(filter).set_values(Some(values.clone())).build();
            let request = self.ec2.describe_instance_status().filters(filter);
            let request = request.max_results(PAGE).set_next_token(next);
            let answer = request.send().await.map_err(|error| Failure::of(&error))?;
            found.extend_from_slice(answer.instance_statuses());
            next = answer.next_token().filter(|token| !token.is_empty()).map(str::to_owned);
            if next.is_none() {
                return Ok(found);
            }
        }
    }
}

fn category(status: &InstanceStatus, now: Timestamp) -> Option<Category> {
    let is_due = |summary: Option<&InstanceStatusSummary>| summary.is_some_and(|it| has_failed(it, now));
    let is_planned = |code: Option<&EventCode>| code.is_some_and(|code| EVENTS.contains(&code.as_str()));
    let found = [
        (Category::Instance, is_due(status.instance_status())),
        (Category::System, is_due(status.system_status())),
        (
            Category::Event,
            status
                .events()
                .iter()
                .any(|event| is_planned(event.code()) && !is_over(event.description())),
        ),
    ];
    found
        .into_iter()
        .find(|(_, holds)| *holds)
        .map(|(category, _)| category)
}

/// EC2 keeps events that are over for a week, and marks them in their description.
fn is_over(description: Option<&str>) -> bool {
    let description = description.unwrap_or_default();
    description.starts_with("[Completed]") || description.starts_with("[Canceled]")
}

/// Whether a check has failed for long enough. One that does not say since when has.
fn has_failed(summary: &InstanceStatusSummary, now: Timestamp) -> bool {
    if summary.status() != Some(&SummaryStatus::Impaired) {
        return false;
    }
    let failed = summary
        .details()
        .iter()
        .filter(|detail| detail.status() == Some(&StatusType::Failed));
    let mut since = failed.map(|detail| detail.impaired_since().and_then(|at| Timestamp::new(at.secs(), 0).ok()));
    let is_long = |since: Option<Timestamp>| {
        let limit = jiff::SignedDuration::try_from(FAILED_FOR).unwrap_or_default();
        since.is_none_or(|since| now.duration_since(since) >= limit)
    };
    since.any(is_long)
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::{InstanceStatusDetails, InstanceStatusEvent};
    use aws_smithy_types::DateTime;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn impaired(since: i64) -> InstanceStatusSummary {
        let detail = InstanceStatusDetails::builder()
            .status(StatusType::Failed)
            .impaired_since(DateTime::from_secs(since));
        InstanceStatusSummary::builder()
            .status(SummaryStatus::Impaired)
            .details(detail.build())
            .build()
    }

    #[test]
    fn a_failed_check_counts_after_two_minutes() {
        let status = InstanceStatus::builder().instance_status(impaired(100)).build();
        assert_eq!(category(&status, at(219)), None);
        assert_eq!(category(&status, at(220)), Some(Category::Instance));
        let status = InstanceStatus::builder().system_status(impaired(100)).build();
        assert_eq!(
            category(&status, at(220)).map(Category::kind),
            Some(NoticeKind::Impaired)
        );
    }

    #[test]
    fn a_planned_event_counts_at_once_and_only_while_it_is_to_come() {
        let with = |code: &str, description: &str| {
            let event = InstanceStatusEvent::builder()
                .code(code.into())
                .description(description)
                .build();
            category(&InstanceStatus::builder().events(event).build(), at(0))
        };
        for code in EVENTS {
            assert_eq!(with(code, "soon"), Some(Category::Event), "{code}");
        }
        assert_eq!(with("instance-stop", "[Completed] soon"), None);
        assert_eq!(with("unheard-of", "soon"), None);
        assert_eq!(Category::Event.kind(), NoticeKind::ScheduledChange);
    }
}
