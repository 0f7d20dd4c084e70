//! Nodes that fall silent or say that they are not ready get the taints that keep pods away and send them off.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinSet};

use super::{News, is_deleting, key, nodes, pods, text};
use crate::{
    ApiServer,
    pod::{is_ready, set_condition},
};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Nodes whose kubelet has stopped: nothing on them begins or ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Silent(Arc<(Mutex<BTreeSet<String>>, Notify)>);

impl Silent {
    pub(super) fn set(&self, node: &str, is_silent: bool) {
        let mut nodes = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_silent {
            nodes.insert(node.to_owned());
        } else {
            nodes.remove(node);
        }
        self.0.1.notify_one();
    }

    pub(super) fn has(&self, node: &str) -> bool {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).contains(node)
    }

    fn all(&self) -> Vec<String> {
        let nodes = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.iter().cloned().collect()
    }

    async fn changed(&self) {
        self.0.1.notified().await;
    }
}

/// Believes that a node is gone once it was silent for a time, and that it is back as soon as it speaks.
pub(super) async fn listen(server: ApiServer, silent: Silent, patience: Duration) {
    let mut given_up = BTreeSet::new();
    let mut waits = JoinSet::new();
    loop {
        silent.changed().await;
        let now_silent = silent.all();
        let back: Vec<String> = given_up
            .iter()
            .filter(|node| !now_silent.contains(node))
            .cloned()
            .collect();
        for node in back {
            given_up.remove(&node);
            say(
                &server,
                &node,
                "True",
                "KubeletReady",
                "kubelet is posting ready status",
            );
        }
        for node in now_silent {
            if given_up.insert(node.clone()) {
                waits.spawn(give_up(server.clone(), silent.clone(), node, patience));
            }
        }
    }
}

async fn give_up(server: ApiServer, silent: Silent, node: String, patience: Duration) {
    tokio::time::sleep(patience).await;
    if !silent.has(&node) {
        return;
    }
    say(
        &server,
        &node,
        "Unknown",
        "NodeStatusUnknown",
        "Kubelet stopped posting node status.",
    );
    let now = server.now();
    for pod in server.all(&pods()) {
        if text(&pod, "/spec/nodeName") == node && is_ready(&pod) && !is_deleting(&pod) {
            let _ = server.update("Pod", &key(&pod), |pod| {
                set_condition(pod, json!({"type": "Ready", "status": "False"}), now);
            });
        }
    }
}

fn say(server: &ApiServer, node: &str, status: &str, reason: &str, message: &str) {
    let now = server.now();
    let _ = server.update("Node", node, |node| {
        let condition = json!({"type": "Ready", "status": status, "reason": reason, "message": message});
        set_condition(node, condition, now);
    });
}

/// Keeps the taints of nodes as their condition says.
pub(super) async fn taint(server: ApiServer) {
    let mut news = News::of(&server);
    while let Some(changed) = news.next(&[nodes()]).await {
        for (_, node) in changed {
            let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
            let ready = conditions.into_iter().find(|one| one["type"] == "Ready");
            match ready.map(|ready| text(ready, "/status")) {
                Some("True") => mark(&server, &node, None),
                Some("Unknown") => mark(&server, &node, Some(UNREACHABLE)),
                Some(_) => mark(&server, &node, Some(NOT_READY)),
                None => {}
            }
        }
    }
}

fn mark(server: &ApiServer, node: &Value, trouble: Option<&str>) {
    let is_ours = |taint: &Value| {
        let key = text(taint, "/key");
        key == NOT_READY || key == UNREACHABLE
    };
    let known: Vec<&Value> = super::taint::taints(node)
        .iter()
        .filter(|taint| is_ours(taint))
        .collect();
    let is_right = |taint: &&Value| trouble.is_some_and(|trouble| text(taint, "/key") == trouble);
    if known.len() == trouble.map_or(0, |_| 2) && known.iter().all(is_right) {
        return;
    }
    let now = crate::write::time(server.now());
    let _ = server.update("Node", text(node, "/metadata/name"), |node| {
        let mut taints: Vec<Value> = super::taint::taints(node)
            .iter()
            .filter(|taint| !is_ours(taint))
            .cloned()
            .collect();
        for effect in ["NoSchedule", "NoExecute"] {
            taints.extend(trouble.map(|key| json!({"key": key, "effect": effect, "timeAdded": now})));
        }
        node["spec"]["taints"] = json!(taints);
    });
}
