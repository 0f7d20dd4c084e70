//! What can happen to the store behind a cluster? Its history is forgotten, or it is set back to a backup.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::control_plane::API_SERVER;
use super::{Cluster, TOKEN};
use crate::client::{Client, media};
use crate::error::{Error, Result, io};

/// etcd's data, and where a backup of it lies.
const DATA: &str = "etcd";
const BACKUP: &str = "etcd-backup";
const ETCD: &str = "etcd";

impl Cluster {
    /// Compacts etcd up to now and restarts the API server, which then knows nothing of what was before either: who resumes
    /// a watch is told that its version is gone.
    pub fn forget_history(&mut self) -> Result<()> {
        let etcd = Client::new(self.etcd.clone(), TOKEN, &self.pki.ca_pem)?;
        let ask = |path: &str, body| {
            let answer = etcd.request("POST", path, Some(&body), media::JSON)?;
            if answer.ok() {
                return Ok(answer.json);
            }
            Err(Error::Manifest {
                origin: format!("etcd {path}"),
                reason: answer.message(),
            })
        };
        let status = ask("/v3/maintenance/status", json!({}))?;
        let revision = &status["header"]["revision"];
        ask("/v3/kv/compaction", json!({"revision": revision, "physical": true}))?;
        self.restart_api_server()
    }

    /// Keeps what the store holds now.
    pub fn back_up(&mut self) -> Result<()> {
        let (data, backup) = (self.state.join(DATA), self.state.join(BACKUP));
        let etcd = self.commands.iter().position(|(name, _)| name == ETCD);
        let mut etcd = etcd.and_then(|at| self.processes.get_mut(at));
        if let Some(etcd) = &mut etcd {
            etcd.freeze();
        }
        let copied = copy(&data, &backup);
        if let Some(etcd) = etcd {
            etcd.thaw();
        }
        copied
    }

    /// Sets the store back to the backup, as an operator does: the whole control plane stops, and starts again on the old
    /// data. What runs beside the control plane goes on.
    pub fn restore(&mut self) -> Result<()> {
        const EVERYTHING: &str = "";
        self.kill(EVERYTHING);
        let (data, backup) = (self.state.join(DATA), self.state.join(BACKUP));
        fs::remove_dir_all(&data).map_err(io("remove", &data))?;
        copy(&backup, &data)?;
        self.start_again(ETCD)?;
        self.start_again(API_SERVER)?;
        // The others give up when nobody answers them, so they come after it.
        self.await_api_server()?;
        for name in ["kube-scheduler", "kube-controller-manager", "kwok"] {
            self.start_again(name)?;
        }
        Ok(())
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(io("create", to))?;
    for entry in fs::read_dir(from).map_err(io("read", from))? {
        let path = entry.map_err(io("read", from))?.path();
        let Some(name) = path.file_name() else { continue };
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name)).map_err(io("copy", &path))?;
        }
    }
    Ok(())
}
