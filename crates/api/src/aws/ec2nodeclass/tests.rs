//! Does an EC2NodeClass read, default and write as the API server does?

use serde_json::{Value, json};

use super::*;

fn object(spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": { "name": "default" },
        "spec": spec,
        "status": status,
    })
}

#[test]
fn an_object_with_every_field_is_written_back_as_it_was_read() {
    let spec = json!({
        "subnetSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "demo" } }, { "id": "subnet-1" }],
        "securityGroupSelectorTerms": [{ "tags": { "a": "*" } }, { "id": "sg-1" }, { "name": "nodes" }],
        "capacityReservationSelectorTerms": [
            { "id": "cr-1" },
            { "tags": { "a": "b" }, "ownerID": "012345678901", "instanceMatchCriteria": "targeted" },
        ],
        "placementGroupSelector": { "id": "pg-1", "name": "racks" },
        "associatePublicIPAddress": false,
        "ipPrefixCount": 2,
        "amiSelectorTerms": [
            { "alias": "al2023@latest" },
            { "tags": { "a": "b" }, "name": "base-*", "owner": "self" },
            { "id": "ami-1" },
            { "ssmParameter": "/images/base" },
        ],
        "amiFamily": "AL2023",
        "userData": "#!/bin/sh\n",
        "role": "nodes",
        "instanceProfile": "nodes",
        "tags": { "team": "platform" },
        "kubelet": {
            "clusterDNS": ["10.0.0.10"],
            "maxPods": 110,
            "podsPerCore": 10,
            "systemReserved": { "cpu": "100m" },
            "kubeReserved": { "memory": "1Gi" },
            "evictionHard": { "memory.available": "5%" },
            "evictionSoft": { "nodefs.available": "10%" },
            "evictionSoftGracePeriod": { "nodefs.available": "1m30s" },
            "evictionMaxPodGracePeriod": 60,
            "imageGCHighThresholdPercent": 85,
            "imageGCLowThresholdPercent": 80,
            "cpuCFSQuota": true,
        },
        "blockDeviceMappings": [{
            "deviceName": "/dev/xvda",
            "rootVolume": true,
            "ebs": {
                "deleteOnTermination": true,
                "encrypted": true,
                "iops": 3000,
                "kmsKeyID": "alias/key",
                "snapshotID": "snap-1",
                "throughput": 125,
                "volumeInitializationRate": 100,
                "volumeSize": "100Gi",
                "volumeType": "gp3",
            },
        }],
        "instanceStorePolicy": "RAID0",
        "networkInterfaces": [{ "networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface" }],
        "detailedMonitoring": true,
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
        "connectionTracking": { "tcpEstablishedTimeout": 60, "udpStreamTimeout": 60, "udpTimeout": 30 },
        "context": "c",
        "cpuOptions": { "nestedVirtualization": "enabled" },
    });
    let status = json!({
        "subnets": [{ "id": "subnet-1", "zone": "eu-west-1a", "zoneID": "euw1-az1" }],
        "securityGroups": [{ "id": "sg-1", "name": "nodes" }],
        "capacityReservations": [{
            "availabilityZone": "eu-west-1a",
            "endTime": "2026-12-01T00:00:00Z",
            "id": "cr-1",
            "instanceMatchCriteria": "open",
            "instanceType": "m7i.large",
            "ownerID": "012345678901",
            "reservationType": "capacity-block",
            "interruptible": false,
            "state": "expiring",
        }],
        "amis": [{
            "id": "ami-1",
            "deprecated": true,
            "name": "base-1",
            "requirements": [{ "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] }],
        }],
        "instanceProfile": "nodes",
        "conditions": [{
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 3,
        }],
    });
    let written = object(&spec, &status);
    let read: EC2NodeClass = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), written);
}

#[test]
fn fields_the_user_left_out_stay_out() {
    let spec = json!({ "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [] });
    let written = object(&spec, &json!({}));
    let read: EC2NodeClass = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), written);
}

#[test]
fn a_class_without_a_spec_is_readable_because_the_schema_admits_it() {
    let read: EC2NodeClass = serde_json::from_value(object(&Value::Null, &Value::Null)).unwrap();
    assert_eq!(read, EC2NodeClass::new("default", EC2NodeClassSpec::default()));
}

#[test]
fn the_metadata_service_defaults_to_one_hop_with_tokens_and_what_the_user_says_stays() {
    let (enabled, disabled, required) = (json!("enabled"), json!("disabled"), json!("required"));
    let defaults = json!({
        "httpEndpoint": enabled,
        "httpProtocolIPv6": disabled,
        "httpPutResponseHopLimit": 1,
        "httpTokens": required,
    });
    let said = json!({
        "httpEndpoint": disabled,
        "httpProtocolIPv6": enabled,
        "httpPutResponseHopLimit": 2,
        "httpTokens": "optional",
    });
    for (options, expected) in [(Value::Null, &defaults), (json!({}), &defaults), (said.clone(), &said)] {
        let spec = json!({
            "subnetSelectorTerms": [],
            "securityGroupSelectorTerms": [],
            "amiSelectorTerms": [],
            "metadataOptions": options,
        });
        let read: EC2NodeClassSpec = serde_json::from_value(spec).unwrap();
        assert_eq!(
            serde_json::to_value(read.defaulted()).unwrap()["metadataOptions"],
            *expected,
            "{options}"
        );
    }
}
