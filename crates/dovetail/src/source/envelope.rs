//! What every answer says about itself: the frame of its document, and the lines that close it on standard error.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Input, Origin};
use crate::terminal::{Role, Screen, counted, grouped, hanging};

/// A document: what it is about, where that comes from, and the answer. Stable within `v1alpha1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Envelope<T> {
    #[serde(rename = "apiVersion")]
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// What the cluster is called; empty for dumps, which do not say.
    pub(crate) cluster: String,
    pub(crate) as_of: String,
    pub(crate) source: SourceReport,
    pub(crate) engine: String,
    /// The day of the prices; empty where nobody says.
    pub(crate) prices: String,
    pub(crate) assumed: Vec<String>,
    #[serde(flatten)]
    pub(crate) answer: T,
}

/// Where the answer comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SourceReport {
    /// `dump`, `live`, or `catalogue` where no cluster was asked.
    pub(crate) r#type: String,
    /// The files, or the cluster.
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<usize>,
    pub(crate) objects: usize,
    /// How old the objects are; of a dump nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) age_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leader: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) catalogue: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) catalogue_because: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) region: String,
    pub(crate) instance_types: usize,
}

impl Input {
    /// The answer as a document.
    pub(crate) fn envelope<T>(&self, kind: &str, answer: T) -> Envelope<T> {
        let title = self.snapshot.title();
        let name = self.origin.cluster().unwrap_or(&title.name);
        Envelope {
            api_version: "dovetail.dev/v1alpha1".into(),
            kind: kind.into(),
            cluster: name.into(),
            as_of: title.taken_at.to_string(),
            source: self.source_report(),
            engine: env!("CARGO_PKG_VERSION").into(),
            prices: self.prices_of().to_owned(),
            assumed: self.assumed.clone(),
            answer,
        }
    }

    /// The day of the prices; empty where nobody says.
    pub(crate) fn prices_of(&self) -> &str {
        self.catalogue.as_ref().map_or("", |offers| &offers.prices_of)
    }

    fn source_report(&self) -> SourceReport {
        let offers = self.catalogue.as_ref();
        let common = SourceReport {
            name: self.origin.name().to_owned(),
            catalogue: offers.map(|offers| offers.name.clone()),
            catalogue_because: offers.map(|offers| offers.because.clone()).unwrap_or_default(),
            region: offers.map(|offers| offers.region.clone()).unwrap_or_default(),
            instance_types: self.snapshot.catalog().instance_types.len(),
            ..SourceReport::default()
        };
        match &self.origin {
            Origin::Dump { files, objects, .. } => SourceReport {
                r#type: "dump".into(),
                files: Some(*files),
                objects: *objects,
                ..common
            },
            Origin::Live { objects, leader, .. } => SourceReport {
                r#type: "live".into(),
                objects: *objects,
                age_ms: u64::try_from(self.took.as_millis()).ok(),
                leader: leader.clone(),
                ..common
            },
            Origin::Catalogue => SourceReport {
                r#type: "catalogue".into(),
                ..common
            },
        }
    }

    /// Where the answer comes from, and what the source could not know: a line each, dim.
    pub(crate) fn closing(&self, screen: &Screen) -> String {
        let mut notes = hanging("source   ", &self.source_line(), screen.text_width());
        for assumed in &self.assumed {
            notes.push_str(&hanging("assumed  ", assumed, screen.text_width()));
        }
        let dimmed = notes.lines().map(|line| screen.paint(Role::Secondary, line));
        dimmed.fold(String::new(), |notes, line| notes + &line + "\n")
    }

    fn source_line(&self) -> String {
        let objects = self.snapshot.objects();
        let holds = format!(
            "{}, {}",
            counted(objects.nodes.len(), "node"),
            counted(objects.pods.len(), "pod")
        );
        let mut line = match &self.origin {
            Origin::Dump {
                name, files, objects, ..
            } => format!(
                "{name}: {holds}, {} in {}, read in {}",
                counted(*objects, "object"),
                counted(*files, "file"),
                seconds(self.took)
            ),
            Origin::Live { cluster, leader, .. } => {
                let leader = leader.as_ref().map(|leader| format!(" (leader {leader})"));
                let leader = leader.unwrap_or_default();
                format!("live {cluster}{leader}: {holds}, {} old", seconds(self.took))
            }
            Origin::Catalogue => String::new(),
        };
        if let Some(offers) = &self.catalogue {
            let start = if line.is_empty() { "" } else { "; " };
            let types = grouped(self.snapshot.catalog().instance_types.len() as u128);
            line += &format!("{start}catalogue {}", offers.name);
            if !offers.region.is_empty() {
                line += &format!(" {}", offers.region);
            }
            line += &format!(", {types} instance types");
            if !offers.prices_of.is_empty() {
                line += &format!(", prices {}", offers.prices_of);
            }
            if !offers.because.is_empty() {
                line += &format!(" (because {})", offers.because);
            }
        }
        line
    }
}

/// `0.4 s`.
fn seconds(span: Duration) -> String {
    let hundredths = span.as_millis() / 10;
    format!("{}.{:02} s", hundredths / 100, hundredths % 100)
}
