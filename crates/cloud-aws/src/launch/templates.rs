//! Which launch templates are there? Made on demand, remembered while they are used, deleted when nobody has needed
//! them for a while.

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_ec2::types::{Filter, LaunchTemplate, ResourceType, TagSpecification};
use jiff::Timestamp;
use runtime::Clock;
use tokio::sync::Mutex;

use super::{
    tags,
    template::{Template, wire_tags},
};
use crate::Failure;

/// How long a template is kept after its last use.
const KEPT: Duration = Duration::from_mins(1);
/// The most that one page lists.
const PAGE: i32 = 200;

/// The launch templates of a cluster.
pub(crate) struct Templates {
    ec2: aws_sdk_ec2::Client,
    clock: Clock,
    cluster: String,
    /// By name. Held while templates are made, so that a burst of launches makes each of them once.
    known: Mutex<BTreeMap<String, Known>>,
}

#[derive(Debug, Clone)]
struct Known {
    id: String,
    until: Timestamp,
}

impl Templates {
    pub(crate) fn new(ec2: aws_sdk_ec2::Client, clock: Clock, cluster: &str) -> Self {
        Self {
            ec2,
            clock,
            cluster: cluster.to_owned(),
            known: Mutex::default(),
        }
    }

    /// Sees to it that a template is there.
    pub(super) async fn ensure(&self, template: &Template) -> Result<(), Failure> {
        let (name, until) = (template.name(), self.until());
        let mut known = self.known.lock().await;
        if let Some(entry) = known.get_mut(&name) {
            entry.until = until;
            return Ok(());
        }
        let id = match self.find(&name).await {
            Ok(found) => found,
            Err(failure) if failure.is_not_found() => None,
            Err(failure) => return Err(failure),
        };
        let id = match id {
            Some(id) => id,
            None => self.create(&name, template).await?,
        };
        known.insert(name, Known { id, until });
        Ok(())
    }

    /// EC2 does not know these, whatever we believed.
    pub(super) async fn forget<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let mut known = self.known.lock().await;
        for name in names {
            known.remove(name);
        }
    }

    /// Takes up the templates that an earlier process made: they are used again, or go.
    pub(crate) async fn hydrate(&self) -> Result<(), Failure> {
        let found = self.all(None).await?;
        let until = self.until();
        let mut known = self.known.lock().await;
        for template in found {
            let (Some(name), Some(id)) = (template.launch_template_name(), template.launch_template_id()) else {
                continue;
            };
            let id = id.to_owned();
            known.entry(name.to_owned()).or_insert(Known { id, until });
        }
        Ok(())
    }

    /// Deletes what nobody has needed for a while. Returns how many went.
    pub(crate) async fn sweep(&self) -> Result<usize, Failure> {
        let now = self.clock.now();
        let mut known = self.known.lock().await;
        let due: Vec<(String, String)> = known
            .iter()
            .filter(|(_, entry)| entry.until <= now)
            .map(|(name, entry)| (name.clone(), entry.id.clone()))
            .collect();
        for (name, id) in &due {
            self.delete(id).await?;
            known.remove(name);
            tracing::debug!(id, name, "deleted launch template");
        }
        Ok(due.len())
    }

    /// Deletes every template of a node class.
    pub(crate) async fn delete_of_class(&self, class: &str) -> Result<(), Failure> {
        let mut known = self.known.lock().await;
        for template in self.all(Some(class)).await? {
            if let Some(id) = template.launch_template_id() {
                self.delete(id).await?;
            }
            known.remove(template.launch_template_name().unwrap_or_default());
        }
        Ok(())
    }

    fn until(&self) -> Timestamp {
        self.clock.now().saturating_add(KEPT).unwrap_or(Timestamp::MAX)
    }

    async fn find(&self, name: &str) -> Result<Option<String>, Failure> {
        let request = self.ec2.describe_launch_templates().launch_template_names(name);
        let answer = request.send().await.map_err(|error| Failure::of(&error))?;
        let found = answer
            .launch_templates()
            .iter()
            .find_map(LaunchTemplate::launch_template_id);
        Ok(found.map(str::to_owned))
    }

    async fn create(&self, name: &str, template: &Template) -> Result<String, Failure> {
        let specification = TagSpecification::builder()
            .resource_type(ResourceType::LaunchTemplate)
            .set_tags(Some(wire_tags(&template.tags)));
        let request = self
            .ec2
            .create_launch_template()
            .launch_template_name(name)
            .launch_template_data(template.data())
            .tag_specifications(specification.build());
        match request.send().await {
            Ok(answer) => {
                let id = answer.launch_template().and_then(LaunchTemplate::launch_template_id);
                tracing::debug!(id, name, "created launch template");
                Ok(id.unwrap_or_default().to_owned())
            }
            Err(error) => {
                let failure = Failure::of(&error);
                // Another process was quicker, and what it made has the contents the name says.
                if failure.is_already_exists() {
                    return Ok(self.find(name).await?.unwrap_or_default());
                }
                Err(failure)
            }
        }
    }

    async fn delete(&self, id: &str) -> Result<(), Failure> {
        match self.ec2.delete_launch_template().launch_template_id(id).send().await {
            Ok(_) => Ok(()),
            Err(error) => {
                let failure = Failure::of(&error);
                if failure.is_not_found() { Ok(()) } else { Err(failure) }
            }
        }
    }

    async fn all(&self, class: Option<&str>) -> Result<Vec<LaunchTemplate>, Failure> {
        let tagged = |key: &str, value: &str| Filter::builder().name(format!("tag:{key}")).values(value).build();
        let of_class = class.map(|class| tagged(api::labels::aws::NODE_CLASS, class));
        let filters = std::iter::once(tagged(tags::CLUSTER_NAME, &self.cluster)).chain(of_class);
        let (filters, mut found, mut next) = (filters.collect::<Vec<_>>(), Vec::new(), None);
        loop {
            let request = self
                .ec2
                .describe_launch_templates()
                .set_filters(Some(filters.clone()))
                .max_results(PAGE)
                .set_next_token(next);
            let answer = request.send().await.map_err(|error| Failure::of(&error))?;
            found.extend_from_slice(answer.launch_templates());
            next = answer.next_token().filter(|token| !token.is_empty()).map(str::to_owned);
            if next.is_none() {
                return Ok(found);
            }
        }
    }
}
