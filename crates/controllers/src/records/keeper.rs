//! Decisions outlive the process: in ConfigMaps beside the Lease, and in a file where that is asked for.
//!
//! Written at most every half minute and at the end, only what changed. Whatever cannot be read or written is a line in
//! the log; nothing waits for it.

use std::{
    collections::BTreeSet,
    fs, io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::Method;
use ledger::{ENTRY, Limits, Ring, Saved, lines, name_of, read_lines, read_shard, write_shard};
use model::object::NodeClaim;
use runtime::ApiError;
use serde_json::{Value, json};

use super::follow::catch_up;
use crate::Cluster;

/// How often what changed is written.
const PERIOD: Duration = Duration::from_secs(30);

/// Keeps the decisions of a cluster.
pub struct Keeper {
    cluster: Arc<Cluster>,
    namespace: String,
    /// What was last said of what cannot be kept.
    complained: Mutex<String>,
}

impl Keeper {
    /// Keeps them in this namespace.
    pub fn new(cluster: &Arc<Cluster>, namespace: &str) -> Self {
        Self {
            cluster: Arc::clone(cluster),
            namespace: namespace.to_owned(),
            complained: Mutex::default(),
        }
    }

    /// Reads back what was kept, and keeps on until the future is dropped. Does nothing where nothing is written down.
    pub async fn run(&self) {
        if !self.cluster.book().is_on() {
            return std::future::pending().await;
        }
        self.load().await;
        loop {
            tokio::time::sleep(PERIOD).await;
            self.save(false).await;
        }
    }

    /// Reads back what was kept.
    pub async fn load(&self) {
        let limits = Limits::default();
        let mut stored = Vec::new();
        for slot in 0..limits.shards {
            match self.read(slot).await {
                Ok(Some(shard)) => stored.push(shard),
                Ok(None) => {}
                Err(error) => {
                    let name = name_of(slot);
                    tracing::error!(
                        configmap = name,
                        error,
                        "decisions that were kept cannot be read; going on without"
                    );
                }
            }
        }
        let mut ring = Ring::restored(limits, stored);
        let path = self.cluster.settings().decisions_file.as_str();
        if !path.is_empty() && ring.is_empty() {
            match fs::read_to_string(path) {
                Ok(text) => {
                    let (records, unread) = read_lines(&text);
                    if unread > 0 {
                        tracing::error!(
                            file = path,
                            unread,
                            "lines of decisions cannot be read; going on without"
                        );
                    }
                    for record in records {
                        ring.put(record);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::error!(file = path, error = %error, "decisions cannot be read"),
            }
        }
        let known = ring.len();
        self.cluster.book().restore(ring);
        let claims: BTreeSet<_> = self.cluster.look(|state| {
            let mut pages = self.cluster.book().pages();
            let claims = state.all::<NodeClaim>().iter();
            let claims = claims.inspect(|claim| catch_up(&mut pages, claim, state.catalog()));
            claims.map(|claim| claim.metadata.name.clone()).collect()
        });
        self.cluster.book().settle(&claims, self.cluster.now());
        tracing::info!(decisions = known, "recalled");
    }

    /// Writes what changed; at the end also what could wait.
    pub async fn save(&self, is_last: bool) {
        let book = self.cluster.book();
        if !book.is_on() {
            return;
        }
        let unsaved = book.pages().ring.take_unsaved(self.cluster.now(), is_last);
        if unsaved.is_empty() {
            return;
        }
        let mut problem = String::new();
        for shard in unsaved {
            if let Err(error) = self.write(&shard).await {
                book.pages().ring.not_saved(shard.number);
                problem = format!("{}: {error}", name_of(shard.slot));
            }
        }
        if let Err(error) = self.write_file() {
            problem = format!("{}: {error}", self.cluster.settings().decisions_file);
        }
        let mut complained = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        if *complained != problem && !problem.is_empty() {
            tracing::error!(
                error = problem,
                "decisions cannot be kept, and are lost with this process; the role in deploy/rbac.yaml has the right"
            );
        }
        *complained = problem;
    }

    fn path(&self, slot: usize) -> String {
        format!("/api/v1/namespaces/{}/configmaps/{}", self.namespace, name_of(slot))
    }

    async fn read(&self, slot: usize) -> Result<Option<(u64, Vec<ledger::Record>)>, String> {
        let api = self.cluster.api();
        let bytes = match api.call(Method::GET, &self.path(slot), None, "application/json").await {
            Err(error) if error.is_not_found() => return Ok(None),
            read => read.map_err(|error| error.to_string())?,
        };
        let map: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        let Some(text) = map["binaryData"][ENTRY].as_str() else {
            return Err(format!("it has no binaryData {ENTRY:?}"));
        };
        let (number, records, unread) = read_shard(text).map_err(|error| error.to_string())?;
        if unread > 0 {
            tracing::error!(
                configmap = name_of(slot),
                unread,
                "lines of decisions cannot be read; going on without"
            );
        }
        Ok(Some((number, records)))
    }

    async fn write(&self, shard: &Saved) -> Result<(), ApiError> {
        let (text, left_out) = write_shard(shard.number, &shard.records);
        if left_out > 0 {
            tracing::error!(
                configmap = name_of(shard.slot),
                left_out,
                "decisions are too long for a ConfigMap; the oldest are not kept"
            );
        }
        let labels = json!({"app.kubernetes.io/managed-by": "dovetail"});
        let patch = json!({"metadata": {"labels": labels}, "binaryData": {ENTRY: text}});
        let api = self.cluster.api();
        let path = self.path(shard.slot);
        let patched = api.call(Method::PATCH, &path, Some(&patch), "application/merge-patch+json");
        match patched.await {
            Err(error) if error.is_not_found() => {}
            result => return result.map(drop),
        }
        let whole = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name_of(shard.slot), "namespace": self.namespace, "labels": labels},
            "binaryData": {ENTRY: text},
        });
        let collection = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        api.call(Method::POST, &collection, Some(&whole), "application/json")
            .await
            .map(drop)
    }

    /// Writes all decisions to the file, which is there whole or not at all.
    fn write_file(&self) -> io::Result<()> {
        let path = self.cluster.settings().decisions_file.as_str();
        if path.is_empty() {
            return Ok(());
        }
        let text = lines(self.cluster.book().pages().ring.iter());
        let beside = format!("{path}.new");
        fs::write(Path::new(&beside), text)?;
        fs::rename(&beside, path)
    }
}
