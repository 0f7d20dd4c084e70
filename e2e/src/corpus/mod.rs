//! Which objects must the API server accept, refuse, and fill in? Reads `e2e/corpus`, whose README explains the format.

mod file;
mod large;
pub mod path;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path as FsPath, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use self::file::{Kinds, Row, Since, Topic};
use self::path::Path;
use crate::crd_set::CrdSet;

/// The kinds of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[allow(missing_docs)]
pub enum Kind {
    NodePool,
    NodeClaim,
    NodeOverlay,
    CapacityBuffer,
    KWOKNodeClass,
    EC2NodeClass,
    AKSNodeClass,
}

impl Kind {
    /// Where objects of the kind live, below `/apis/<group>/<version>/`.
    pub fn collection(self) -> &'static str {
        match self {
            Self::NodePool => "nodepools",
            Self::NodeClaim => "nodeclaims",
            Self::NodeOverlay => "nodeoverlays",
            Self::CapacityBuffer => "namespaces/default/capacitybuffers",
            Self::KWOKNodeClass => "kwoknodeclasses",
            Self::EC2NodeClass => "ec2nodeclasses",
            Self::AKSNodeClass => "aksnodeclasses",
        }
    }

    /// The sets of CRDs that are compared on this kind.
    pub fn sets(self) -> BTreeSet<CrdSet> {
        match self {
            Self::NodePool | Self::NodeClaim | Self::NodeOverlay | Self::CapacityBuffer => {
                [CrdSet::Core, CrdSet::Kwok, CrdSet::Aws].into()
            }
            Self::KWOKNodeClass => [CrdSet::Kwok].into(),
            Self::EC2NodeClass => [CrdSet::Aws].into(),
            Self::AKSNodeClass => [CrdSet::Azure].into(),
        }
    }

    fn base(self, root: &FsPath) -> PathBuf {
        let plural = self.collection().rsplit('/').next().unwrap_or_default();
        root.join("base").join(format!("{plural}.yaml"))
    }
}

/// What the API server says to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It takes it.
    Valid,
    /// It refuses it.
    Invalid,
    /// It does not know the version.
    Unserved,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Created, for show.
    Create,
    /// Created in earnest and read back.
    Store,
    /// Created, then replaced by this object, for show.
    Update(Box<Value>),
    /// Created without status, then given its status, for show.
    Status,
    /// Created, then scaled to so many, for show.
    Scale(i64),
}

/// An object and what must come of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// The file it comes from.
    pub file: String,
    /// The kind it is about.
    pub kind: Kind,
    /// What it says, in a sentence.
    pub name: String,
    /// The CRDs it is tried under.
    pub sets: BTreeSet<CrdSet>,
    /// Whether upstream's AWS module, still on core 1.14, cannot judge it.
    pub newer_than_aws: bool,
    /// The object.
    pub object: Value,
    /// What is done with it.
    pub request: Request,
    /// The verdict.
    pub expect: Verdict,
    /// A field that is blamed.
    pub field: Option<String>,
    /// A part of what is said.
    pub message: Option<String>,
    /// What the answer holds at these places.
    pub becomes: BTreeMap<Path, Value>,
}

/// All cases below `root`, in the order of files and lines.
pub fn load(root: &FsPath) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for folder in sorted(root)?
        .into_iter()
        .filter(|path| path.is_dir() && !path.ends_with("base"))
    {
        for file in sorted(&folder)?.into_iter().filter(|path| path.is_file()) {
            let name = file.strip_prefix(root)?.display().to_string();
            let topic: Topic = read(&file)?;
            topic
                .spell_out(root, &name, &mut cases)
                .with_context(|| format!("in {}", file.display()))?;
        }
    }
    Ok(cases)
}

fn sorted(folder: &FsPath) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn read<T: serde::de::DeserializeOwned>(file: &FsPath) -> Result<T> {
    let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("parse {}", file.display()))
}

impl Topic {
    fn spell_out(&self, root: &FsPath, file: &str, cases: &mut Vec<Case>) -> Result<()> {
        let tabled: Vec<Row> = self.tables.iter().flat_map(file::Table::rows).collect();
        for (kind, prefix) in self.prefixes()? {
            let base = read(&kind.base(root))?;
            let rows = self.cases.iter().chain(&tabled);
            for row in rows.filter(|row| row.only.as_ref().is_none_or(|only| only.contains(&kind))) {
                let start = match &row.manifest {
                    Some(name) => read(&root.join("mission/manifests").join(name))?,
                    None => Value::clone(&base),
                };
                let case = self.case(file, kind, &prefix, row, start);
                cases.push(case.with_context(|| format!("case {:?}", row.name))?);
            }
        }
        Ok(())
    }

    fn prefixes(&self) -> Result<BTreeMap<Kind, Path>> {
        match &self.kinds {
            Kinds::One(kind) => Ok([(*kind, "spec".parse()?)].into()),
            Kinds::Several(prefixes) => Ok(prefixes.clone()),
        }
    }

    fn case(&self, file: &str, kind: Kind, prefix: &Path, row: &Row, mut object: Value) -> Result<Case> {
        change(&mut object, prefix, &self.common, &[])?;
        change(&mut object, prefix, &row.set, &row.remove)?;
        let stated = row.expect != Verdict::Invalid || row.field.is_some() || row.message.is_some();
        ensure!(stated, "a refusal must state the field blamed or a part of the message");
        let below = |field: &String| field.parse::<Path>().map(|path| path.below(prefix).to_string());
        Ok(Case {
            file: file.to_owned(),
            kind,
            name: row.name.clone(),
            sets: self.sets.clone().unwrap_or_else(|| kind.sets()),
            newer_than_aws: row.since == Some(Since::Core1_15),
            request: self.request(row, prefix, &object)?,
            object,
            expect: row.expect,
            field: row.field.as_ref().map(below).transpose()?,
            message: row.message.clone(),
            becomes: row
                .becomes
                .iter()
                .map(|(path, value)| (path.below(prefix), value.clone()))
                .collect(),
        })
    }

    fn request(&self, row: &Row, prefix: &Path, object: &Value) -> Result<Request> {
        let mut changed = self.common.keys().chain(row.set.keys()).chain(&row.remove);
        let status = changed.any(|path| path.below(prefix).is_status());
        match (&row.update, row.scale, status, row.stored) {
            (None, None, false, false) => Ok(Request::Create),
            (None, None, false, true) => Ok(Request::Store),
            (None, None, true, false) => Ok(Request::Status),
            (None, Some(size), false, false) => Ok(Request::Scale(size)),
            (Some(update), None, false, false) => {
                let mut updated = object.clone();
                change(&mut updated, prefix, &update.set, &update.remove)?;
                Ok(Request::Update(Box::new(updated)))
            }
            _ => bail!("only one of update, scale, stored and a change of status can be asked"),
        }
    }
}

fn change(object: &mut Value, prefix: &Path, set: &BTreeMap<Path, Value>, remove: &[Path]) -> Result<()> {
    for (path, value) in set {
        path.below(prefix).put(object, large::build(value)?)?;
    }
    remove.iter().try_for_each(|path| path.below(prefix).remove(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus() -> Vec<Case> {
        load(&FsPath::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap()
    }

    #[test]
    fn corpus_covers_every_kind_well() {
        let mut counts = BTreeMap::<Kind, usize>::new();
        for case in corpus() {
            *counts.entry(case.kind).or_default() += 1;
        }
        let promised = [
            (Kind::NodePool, 120),
            (Kind::NodeClaim, 50),
            (Kind::NodeOverlay, 40),
            (Kind::CapacityBuffer, 25),
            (Kind::KWOKNodeClass, 10),
            (Kind::EC2NodeClass, 130),
            (Kind::AKSNodeClass, 70),
        ];
        for (kind, least) in promised {
            assert!(
                counts[&kind] >= least,
                "{kind:?} has {} cases, {least} were promised",
                counts[&kind]
            );
        }
    }

    #[test]
    fn no_two_cases_of_a_file_share_a_name() {
        let mut seen = BTreeSet::new();
        for case in corpus() {
            let name = (case.file, case.kind, case.name);
            assert!(seen.insert(name.clone()), "{name:?} appears twice");
        }
    }
}
