//! What of an object is not written down: what nothing reads, and on request what may be private.

use serde_json::Value;

/// Annotations whose domain ends so are read by decisions, rules or checks.
const KEPT_DOMAINS: [&str; 8] = [
    "karpenter.sh",
    "karpenter.k8s.aws",
    "karpenter.azure.com",
    "kubernetes.io",
    "k8s.io",
    "dovetail.dev",
    "keda.sh",
    "argoproj.io",
];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields of a container that people put secrets into, and that no answer needs.
const OF_CONTAINERS: [&str; 9] = [
    "env",
    "envFrom",
    "command",
    "args",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "workingDir",
];
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
/// Where a kind keeps the spec of its pods.
const POD_SPECS: [&str; 3] = ["/spec", "/spec/template/spec", "/spec/jobTemplate/spec/template/spec"];

/// Without what servers and tools note for themselves.
pub(super) fn tidied(object: &mut Value) {
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    metadata.remove("managedFields");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
}

/// Without what may be private.
pub(super) fn redacted(object: &mut Value) {
    for at in [
        "/metadata",
        "/spec/template/metadata",
        "/spec/jobTemplate/spec/template/metadata",
    ] {
        let annotations = object.pointer_mut(at).map(|metadata| &mut metadata["annotations"]);
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.retain(|key, _| is_kept(key));
        }
    }
    for at in POD_SPECS {
        if let Some(spec) = object.pointer_mut(at) {
            for kind in CONTAINERS {
                without_secrets(spec, kind);
            }
        }
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        // Of a node class.
        spec.remove("userData");
        // Of a ScaledObject: addresses, queries, connection strings.
        let triggers = spec.get_mut("triggers").and_then(Value::as_array_mut);
        for trigger in triggers.into_iter().flatten().filter_map(Value::as_object_mut) {
            trigger.remove("metadata");
        }
    }
}

fn is_kept(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let within = |kept: &str| {
        domain
            .strip_suffix(kept)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    KEPT_DOMAINS.iter().any(|kept| within(kept))
}

fn without_secrets(spec: &mut Value, kind: &str) {
    let containers = spec.get_mut(kind).and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
        for field in OF_CONTAINERS {
            container.remove(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_private_is_left_and_what_decisions_read_is() {
        let pod_spec = || {
            json!({
                "nodeName": "a",
                "containers": [{"name": "app", "image": "app:1", "env": [{"name": "TOKEN", "value": "s3cret"}],
                    "args": ["--password=s3cret"], "readinessProbe": {"httpGet": {"path": "/s3cret"}},
                    "resources": {"requests": {"cpu": "1"}}}],
                "initContainers": [{"name": "init", "command": ["sh", "-c", "s3cret"]}],
            })
        };
        let annotations = || json!({"karpenter.sh/do-not-disrupt": "true", "vault.example.com/role": "s3cret"});
        let mut objects = [
            json!({"kind": "Pod", "metadata": {"name": "p", "annotations": annotations()}, "spec": pod_spec()}),
            json!({"kind": "Deployment", "metadata": {"name": "d"},
                "spec": {"template": {"metadata": {"annotations": annotations()}, "spec": pod_spec()}}}),
            json!({"kind": "CronJob", "metadata": {"name": "c"},
                "spec": {"jobTemplate": {"spec": {"template": {"spec": pod_spec()}}}}}),
            json!({"kind": "EC2NodeClass", "metadata": {"name": "n"}, "spec": {"role": "r", "userData": "s3cret"}}),
            json!({"kind": "ScaledObject", "metadata": {"name": "s"},
                "spec": {"triggers": [{"type": "rabbitmq", "metadata": {"host": "amqp://s3cret"}}]}}),
        ];
        for object in &mut objects {
            redacted(object);
        }
        let text = json!(objects).to_string();
        assert!(!text.contains("s3cret"), "{text}");
        for kept in [
            "karpenter.sh/do-not-disrupt",
            "app:1",
            "\"cpu\":\"1\"",
            "rabbitmq",
            "\"role\":\"r\"",
        ] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
    }

    #[test]
    fn a_domain_that_only_ends_alike_is_not_ours() {
        assert!(is_kept("controller.kubernetes.io/pod-deletion-cost") && is_kept("karpenter.sh/nodepool-hash"));
        assert!(!is_kept("notkarpenter.sh/a") && !is_kept("plain") && !is_kept("evil.example/karpenter.sh"));
    }

    #[test]
    fn what_servers_note_for_themselves_is_left_out_anyway() {
        let mut object = json!({"metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}],
            "annotations": {LAST_APPLIED: "{}", "team": "shop"}}});
        tidied(&mut object);
        assert_eq!(
            object,
            json!({"metadata": {"name": "a", "annotations": {"team": "shop"}}})
        );
    }
}
