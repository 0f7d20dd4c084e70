//! Claims get volumes, and volumes are attached to the nodes of the pods that use them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{News, key, pods, text, workload::is_gone};
use crate::{ApiServer, Resource, write::time};

fn claims() -> Resource {
    Resource::new("", "persistentvolumeclaims")
}

/// Binds claims: at once, or when a pod that uses them has a node.
pub(super) async fn bind(server: ApiServer) {
    let mut news = News::of(&server);
    while news.next(&[claims(), pods()]).await.is_some() {
        for claim in server.all(&claims()) {
            if text(&claim, "/spec/volumeName").is_empty() {
                provision(&server, &claim);
            }
        }
    }
}

fn provision(server: &ApiServer, claim: &Value) {
    let class = server.get("StorageClass", text(claim, "/spec/storageClassName"));
    let Some(class) = class else { return };
    let user = server.all(&pods()).into_iter().find(|pod| {
        let is_placed = !text(pod, "/spec/nodeName").is_empty();
        is_placed && claims_of(pod).contains(&key(claim))
    });
    let waits = class["volumeBindingMode"] == "WaitForFirstConsumer";
    if waits && user.is_none() {
        return;
    }
    let node = user.and_then(|pod| server.get("Node", text(&pod, "/spec/nodeName")));
    let name = format!("pvc-{}", text(claim, "/metadata/uid"));
    let storage = &claim["spec"]["resources"]["requests"]["storage"];
    let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
            "capacity": {"storage": storage}, "accessModes": claim["spec"]["accessModes"],
            "storageClassName": claim["spec"]["storageClassName"], "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": class["reclaimPolicy"].as_str().unwrap_or("Delete"),
            "csi": {"driver": class["provisioner"], "volumeHandle": name},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim["metadata"]["name"],
                "namespace": claim["metadata"]["namespace"], "uid": claim["metadata"]["uid"]},
        }, "status": {"phase": "Bound"}});
    let zone = node
        .as_ref()
        .map(|node| text(node, "/metadata/labels/topology.kubernetes.io~1zone"));
    if let Some(zone) = zone.filter(|zone| !zone.is_empty()) {
        let term =
            json!({"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]});
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [term]}});
    }
    let _ = server.create(volume);
    let _ = server.update("PersistentVolumeClaim", &key(claim), |claim| {
        claim["spec"]["volumeName"] = json!(name);
        for word in ["bind-completed", "bound-by-controller"] {
            claim["metadata"]["annotations"][format!("pv.kubernetes.io/{word}")] = json!("yes");
        }
        claim["status"] = json!({"phase": "Bound", "accessModes": claim["spec"]["accessModes"],
            "capacity": claim["spec"]["resources"]["requests"]});
    });
}

/// The claims a pod uses, with its namespace.
fn claims_of(pod: &Value) -> Vec<String> {
    let namespace = text(pod, "/metadata/namespace");
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let names = volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
    names.map(|name| format!("{namespace}/{name}")).collect()
}

/// Attaches volumes where pods use them, and detaches them when none does.
pub(super) async fn attach(server: ApiServer) {
    let attachments = Resource::new("storage.k8s.io", "volumeattachments");
    let mut news = News::of(&server);
    while news.next(&[claims(), pods()]).await.is_some() {
        let mut wanted = BTreeSet::new();
        for pod in server.all(&pods()) {
            let node = text(&pod, "/spec/nodeName");
            // A pod that is going holds its volumes until it is gone.
            if node.is_empty() || (is_gone(&pod) && !super::is_deleting(&pod)) {
                continue;
            }
            for claim in claims_of(&pod) {
                let volume = server.get("PersistentVolumeClaim", &claim);
                let volume = volume.map(|claim| text(&claim, "/spec/volumeName").to_owned());
                if let Some(volume) = volume.filter(|volume| !volume.is_empty()) {
                    wanted.insert((volume, node.to_owned()));
                }
            }
        }
        for known in server.all(&attachments) {
            let what = (
                text(&known, "/spec/source/persistentVolumeName").to_owned(),
                text(&known, "/spec/nodeName").to_owned(),
            );
            if !wanted.remove(&what) {
                let _ = server.delete("VolumeAttachment", &key(&known));
            }
        }
        for (volume, node) in wanted {
            let Some(object) = server.get("PersistentVolume", &volume) else {
                continue;
            };
            let attachment = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
                "metadata": {"name": format!("csi-{volume}-{node}")},
                "spec": {"attacher": object["spec"]["csi"]["driver"], "nodeName": node,
                    "source": {"persistentVolumeName": volume}},
                "status": {"attached": true, "attachmentMetadata": {"attachedAt": time(server.now())}}});
            let _ = server.create(attachment);
        }
    }
}
