//! Questions that take the engine a while, and their answers: computed away from the screen, kept as long as they hold.

use forecast::Change;
use insight::{Dollars, View, outlook::Reach, why::node::NodeExplanation};

use crate::picture::Picture;

/// What is asked about the latest snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Why a node stays, and what removing it would take.
    Node(String),
    /// What comes of removing nodes.
    Remove(Vec<String>),
    /// Why, in full, as the command line says it; so many columns wide.
    Why {
        /// `pod`, `node`, `nodepool`, or the id of a decision alone.
        object: Vec<String>,
        /// Columns.
        width: u16,
    },
    /// An object as it is written: as YAML, or described.
    Object {
        /// `Node`, `Pod` or `NodePool`.
        kind: &'static str,
        /// With its namespace, where it has one.
        name: String,
        /// In sections with headings instead of as YAML.
        is_described: bool,
    },
    /// What was said about an object, newest first; so many columns wide.
    Events {
        /// `Node`, `Pod` or `NodePool`.
        kind: &'static str,
        /// With its namespace, where it has one.
        name: String,
        /// Columns.
        width: u16,
    },
    /// A command of the command line that only reads; so many columns wide.
    Command {
        /// Its words.
        words: Vec<String>,
        /// Columns.
        width: u16,
    },
}

impl Question {
    /// The object it is about, as the API calls it; none where it is about several, or about a decision.
    pub(crate) fn object(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Object { kind, name, .. } | Self::Events { kind, name, .. } => Some((*kind, name.clone())),
            Self::Node(name) => Some(("Node", name.clone())),
            Self::Why { object, .. } => {
                let [word, name] = object.as_slice() else {
                    return None;
                };
                let kind = match word.as_str() {
                    "node" => "Node",
                    "pod" => "Pod",
                    "nodepool" => "NodePool",
                    _ => return None,
                };
                Some((kind, name.clone()))
            }
            Self::Remove(_) | Self::Command { .. } => None,
        }
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// About a node.
    Node(Box<NodeExplanation>),
    /// About removing nodes.
    Removal(Box<WhatIf>),
    /// In words.
    Text(String),
    /// There is no answer, and this is why.
    Failed(String),
}

/// What comes of removing nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WhatIf {
    /// Nodes before and after.
    pub nodes: (usize, usize),
    /// Nodes that go.
    pub lost: usize,
    /// Nodes that come: how many of which kind.
    pub new_nodes: Vec<String>,
    /// Spend an hour before and after.
    pub usd_h: (Dollars, Dollars),
    /// Pods that run elsewhere then.
    pub moved: usize,
    /// Pods without a place, before and after.
    pub unplaced: (usize, usize),
    /// The first of those that lose theirs, and why.
    pub stuck: Vec<(String, String)>,
    /// Pods that nobody makes again.
    pub gone: usize,
}

/// Answers what the engine can answer; nothing where the question is for the command line.
pub fn answered(picture: &Picture, question: &Question, threads: usize) -> Option<Answer> {
    match question {
        Question::Node(name) => Some(node(picture, name, threads)),
        Question::Remove(names) => Some(removal(picture, names, threads)),
        Question::Why { .. } | Question::Command { .. } | Question::Object { .. } | Question::Events { .. } => None,
    }
}

fn node(picture: &Picture, name: &str, threads: usize) -> Answer {
    let view = View::priced(&picture.snapshot, &picture.prices);
    match view.machine(name) {
        Some(machine) => {
            let reach = Reach::for_machines(view.machines.len(), threads);
            Answer::Node(Box::new(NodeExplanation::of(&view, machine, reach)))
        }
        None => Answer::Failed(format!("node {name} is gone")),
    }
}

fn removal(picture: &Picture, names: &[String], threads: usize) -> Answer {
    let options = packing::Options {
        threads,
        ..packing::Options::default()
    };
    let changes: Vec<Change> = names.iter().cloned().map(Change::RemoveNode).collect();
    let found = match forecast::ask(&picture.snapshot, &changes, &options, false) {
        Ok(found) => found,
        Err(misfit) => return Answer::Failed(format!("{}: {}", misfit.what, misfit.why)),
    };
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for node in &found.new_nodes {
        let kind = format!("{} {} in {}", node.instance_type, node.capacity_type, node.zone);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let stuck = found.stuck.iter().take(MOST_STUCK);
    Answer::Removal(Box::new(WhatIf {
        nodes: (found.before.nodes, found.after.nodes),
        lost: found.removed.len(),
        new_nodes: kinds
            .into_iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect(),
        usd_h: (found.before.price.into(), found.after.price.into()),
        moved: found.moved.iter().filter(|it| it.to.is_some()).count(),
        unplaced: (found.before.unplaced, found.after.unplaced),
        stuck: stuck.map(|it| (it.pod.to_string(), it.why.clone())).collect(),
        gone: found.lost.len(),
    }))
}

/// Pods without a place that are named.
const MOST_STUCK: usize = 3;
