//! Does an AKSNodeClass read, default and write as the API server does?

use serde_json::{Value, json};

use super::*;

fn object(spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "karpenter.azure.com/v1beta1",
        "kind": "AKSNodeClass",
        "metadata": { "name": "default" },
        "spec": spec,
        "status": status,
    })
}

#[test]
fn an_object_with_every_field_but_sysctls_is_written_back_as_it_was_read() {
    let zone = json!({
        "zone": ".",
        "queryLogging": "Error",
        "protocol": "PreferUDP",
        "forwardDestination": "VnetDNS",
        "forwardPolicy": "Sequential",
        "maxConcurrent": 1000,
        "cacheDuration": "60m",
        "serveStaleDuration": "1h",
        "serveStale": "Immediate",
    });
    let spec = json!({
        "vnetSubnetID": "/subscriptions/s",
        "osDiskSizeGB": 128,
        "imageFamily": "Ubuntu",
        "fipsMode": "FIPS",
        "tags": { "team": "platform" },
        "kubelet": {
            "cpuManagerPolicy": "static",
            "cpuCFSQuota": true,
            "cpuCFSQuotaPeriod": "100ms",
            "imageGCHighThresholdPercent": 85,
            "imageGCLowThresholdPercent": 80,
            "topologyManagerPolicy": "single-numa-node",
            "allowedUnsafeSysctls": ["kernel.msg*"],
            "containerLogMaxSize": "50Mi",
            "containerLogMaxFiles": 5,
            "podPidsLimit": -1,
            "failSwapOn": false,
        },
        "maxPods": 250,
        "security": { "encryptionAtHost": true, "trustedLaunch": { "vtpm": true, "secureBoot": true } },
        "localDNS": { "mode": "Required", "vnetDNSOverrides": [zone], "kubeDNSOverrides": [zone] },
        "gpu": { "mode": "None" },
        "artifactStreaming": { "enabled": true },
        "linuxOSConfig": {
            "swapFileSize": "1500Mi",
            "transparentHugePageDefrag": "defer+madvise",
            "transparentHugePageEnabled": "never",
        },
    });
    let status = json!({
        "images": [{ "id": "/image", "requirements": [{ "key": "kubernetes.io/arch", "operator": "Exists" }] }],
        "kubernetesVersion": "1.36.1",
        "localDNSState": "Enabled",
    });
    let written = object(&spec, &status);
    let read: AKSNodeClass = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), written);
}

#[test]
fn a_class_without_a_spec_is_readable_because_the_schema_admits_it() {
    let read: AKSNodeClass = serde_json::from_value(object(&Value::Null, &Value::Null)).unwrap();
    assert_eq!(read, AKSNodeClass::new("default", AKSNodeClassSpec::default()));
}

#[test]
fn defaults_are_those_of_the_schema_and_nested_ones_need_their_parent() {
    let kubelet = json!({
        "cpuManagerPolicy": "none",
        "cpuCFSQuota": true,
        "cpuCFSQuotaPeriod": "100ms",
        "topologyManagerPolicy": "none",
        "containerLogMaxSize": "50Mi",
        "containerLogMaxFiles": 5,
    });
    let said = json!({ "imageFamily": "AzureLinux", "osDiskSizeGB": 30, "gpu": { "mode": "None" } });
    let cases = [
        (json!({}), json!({ "imageFamily": "Ubuntu", "osDiskSizeGB": 128 })),
        (
            json!({ "kubelet": {}, "gpu": {} }),
            json!({ "imageFamily": "Ubuntu", "osDiskSizeGB": 128, "kubelet": kubelet, "gpu": { "mode": "Driver" } }),
        ),
        (said.clone(), said),
    ];
    for (written, stored) in cases {
        let read: AKSNodeClassSpec = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(read.defaulted()).unwrap(), stored, "{written}");
    }
}
