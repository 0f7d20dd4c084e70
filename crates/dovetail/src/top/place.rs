//! Where the cluster is: what the flags of the source mean to this command, and what the cluster is called.

use std::path::PathBuf;

use jiff::Timestamp;
use runtime::{Clock, api::Whereabouts};
use tui::{Defaults, Place, Title};

use crate::{
    failure::Failure,
    source::{Input, Origin, SourceArgs},
};

/// Whether a cluster is watched.
pub(super) fn is_live(source: &SourceArgs) -> bool {
    source.place.from.is_empty()
}

/// Which cluster.
pub(super) fn whereabouts(source: &SourceArgs) -> Whereabouts {
    source.place.cluster()
}

/// The same source as flags, for commands that are asked.
pub(super) fn flags(source: &SourceArgs) -> Flags {
    let text = |path: &PathBuf| path.display().to_string();
    let mut flags: Vec<String> = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            flags.extend([format!("--{name}"), value]);
        }
    };
    for path in &source.place.from {
        add("from", Some(text(path)));
    }
    add("kubeconfig", source.place.kubeconfig.as_ref().map(text));
    add("context", source.place.context.clone());
    let cluster = flags.clone();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            flags.extend([format!("--{name}"), value]);
        }
    };
    add("catalogue", source.catalogue.clone());
    add("region", source.region.clone());
    add("prices", source.prices.as_ref().map(text));
    add("commitments", source.commitments.as_ref().map(text));
    add("at", source.place.at.map(|at| at.to_string()));
    Flags {
        cluster,
        all: flags,
        is_live: is_live(source),
    }
}

/// A source as flags.
#[derive(Debug, Clone)]
pub(super) struct Flags {
    /// Which cluster or dump.
    pub(super) cluster: Vec<String>,
    /// With prices and time.
    pub(super) all: Vec<String>,
    pub(super) is_live: bool,
}

/// What kind of source it is.
pub(super) fn kind(source: &SourceArgs) -> Place {
    if is_live(source) {
        Place::Live
    } else {
        Place::Dump { opened_at: now() }
    }
}

/// What the cluster is called and says of itself.
pub(super) fn title(input: &Input) -> Title {
    let objects = input.snapshot.objects();
    let newest = || {
        let versions = objects
            .nodes
            .iter()
            .map(|node| node.status.node_info.kubelet_version.to_string());
        versions.max().unwrap_or_default()
    };
    let offers = input.catalogue.as_ref();
    let (cluster, leader, version) = match &input.origin {
        Origin::Dump { name, .. } => {
            let title = &input.snapshot.title().name;
            let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
            let named = if title.is_empty() || title == "dump" {
                last
            } else {
                title
            };
            (named.to_owned(), None, None)
        }
        Origin::Live {
            cluster,
            leader,
            version,
            ..
        } => (cluster.clone(), leader.clone(), version.clone()),
        Origin::Catalogue => (String::new(), None, None),
    };
    Title {
        cluster,
        kubernetes: version.unwrap_or_else(newest),
        region: offers.map(|offers| offers.region.clone()).unwrap_or_default(),
        leader,
        prices_of: input.prices_of().to_owned(),
    }
}

/// What somebody wants to be so unless flags say otherwise.
pub(super) fn defaults() -> Result<Defaults, Failure> {
    let Some(home) = std::env::home_dir() else {
        return Ok(Defaults::default());
    };
    let files = [home.join(".config/dovetail/top"), home.join(".eks-node-viewer")];
    let Some((path, text)) = files
        .iter()
        .find_map(|path| Some((path, std::fs::read_to_string(path).ok()?)))
    else {
        return Ok(Defaults::default());
    };
    Defaults::read(&text).map_err(|why| {
        let error = format!("{} cannot be read", path.display());
        Failure::usage(error, why, "mend the line, or take the file away")
    })
}

/// The machine's time, for what says none.
pub(super) fn now() -> Timestamp {
    Clock::system().now()
}
