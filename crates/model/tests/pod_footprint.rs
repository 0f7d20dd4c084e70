//! How much heap a watched pod costs, counted by the allocator over 100,000 pods of Deployments.
//!
//! The pods are of the size API servers send: managed fields, environment, probes, projected volumes, five conditions.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and may print"
)]

use std::{alloc::System, fmt::Write, sync::Arc};

use model::{
    object::{Object, Pod},
    sharing::Sharing,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const PODS: usize = 100_000;
const REPLICAS: usize = 20;
const LIMIT_BYTES: usize = 1024;

const MANAGED_BY_CONTROLLER: &str = r#"{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-11-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"0b5e6a8e\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"SETTING_NUMBER_1\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{}},"f:name":{},"f:ports":{".":{}},"f:resources":{".":{},"f:requests":{}}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{}}}}"#;
const MANAGED_BY_KUBELET: &str = r#"{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-11-01T00:00:09Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:startTime":{}}},"subresource":"status"}"#;

#[test]
fn a_running_pod_of_a_deployment_costs_under_a_kilobyte() {
    let mut pool = Sharing::default();
    let mut pods: Vec<Arc<Pod>> = Vec::with_capacity(PODS);
    let mut json_bytes = 0;
    let mut json = String::new();

    let region = Region::new(ALLOCATOR);
    let mut scratch = 0;
    for i in 0..PODS {
        let before = region.change();
        write_pod(&mut json, i);
        let after = region.change();
        scratch += net(&after) - net(&before);
        json_bytes += json.len();
        pods.push(Arc::new(Pod::from_json(json.as_bytes(), &mut pool).unwrap()));
    }
    let each = usize::try_from(net(&region.change()) - scratch).unwrap() / PODS;

    println!("{each} bytes of heap per pod, {} bytes of JSON each", json_bytes / PODS);
    assert!(
        (6_000..8_500).contains(&(json_bytes / PODS)),
        "the pods are not of a typical size"
    );
    assert_eq!(
        pods.last().map(|pod| pod.metadata.name.len()),
        Some("service-4999-6d4cf56db6-x0099999".len())
    );
    assert!(each < LIMIT_BYTES, "{each} bytes per pod, the limit is {LIMIT_BYTES}");
}

fn net(stats: &stats_alloc::Stats) -> isize {
    let signed = |bytes: usize| isize::try_from(bytes).unwrap();
    // Reallocations are already part of allocated and deallocated bytes.
    signed(stats.bytes_allocated) - signed(stats.bytes_deallocated)
}

/// Pods of many Deployments in 50 namespaces on 30-pod nodes; every identity, time and hash differs between pods.
fn write_pod(out: &mut String, i: usize) {
    let app = i / REPLICAS;
    let second = |offset: usize| {
        format!(
            "2026-11-{:02}T{:02}:{:02}:{:02}Z",
            1 + i % 14,
            i / 3600 % 24,
            i / 60 % 60,
            (i + offset) % 60
        )
    };
    let env: Vec<String> = (0..14)
        .map(|k| format!(r#"{{"name":"SETTING_NUMBER_{k}","value":"a-configured-value-{k}-of-{app}"}}"#))
        .collect();
    let uid = |seed: usize| {
        format!(
            "{:08x}-7a43-4c0f-9d1b-{:012x}",
            seed.wrapping_mul(2_654_435_761) % 0xffff_ffff,
            seed
        )
    };
    out.clear();
    write!(
        out,
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"service-{app}-6d4cf56db6-x{i:07}","generateName":"service-{app}-6d4cf56db6-","namespace":"team-{ns}",
        "uid":"{uid}","resourceVersion":"{rv}","generation":1,"creationTimestamp":"{created}",
        "labels":{{"app.kubernetes.io/name":"service-{app}","app.kubernetes.io/instance":"service-{app}-prod","app.kubernetes.io/managed-by":"Helm","pod-template-hash":"6d4cf56db6","team":"team-{ns}"}},
        "annotations":{{"checksum/config":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","prometheus.io/scrape":"true","prometheus.io/port":"9090","kubectl.kubernetes.io/restartedAt":"2026-11-01T00:00:00Z"}},
        "ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"service-{app}-6d4cf56db6","uid":"{owner}","controller":true,"blockOwnerDeletion":true}}],
        "managedFields":[{manager},{kubelet}]}},
        "spec":{{"nodeName":"ip-10-{n1}-{n2}-17.eu-central-1.compute.internal","serviceAccountName":"service-{app}","serviceAccount":"service-{app}","schedulerName":"default-scheduler","restartPolicy":"Always","dnsPolicy":"ClusterFirst","enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority","priority":0,"securityContext":{{"runAsNonRoot":true,"runAsUser":1000,"fsGroup":1000}},"terminationGracePeriodSeconds":30,
        "containers":[{{"name":"app","image":"images.example.com/team-{ns}/service-{app}:1.{app}.3","imagePullPolicy":"IfNotPresent","env":[{env}],"resources":{{"requests":{{"cpu":"250m","memory":"512Mi"}},"limits":{{"memory":"512Mi"}}}},"ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}},{{"name":"metrics","containerPort":9090,"protocol":"TCP"}}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
        "livenessProbe":{{"httpGet":{{"path":"/healthz","port":8080,"scheme":"HTTP"}},"initialDelaySeconds":10,"periodSeconds":10,"timeoutSeconds":1,"successThreshold":1,"failureThreshold":3}},"readinessProbe":{{"httpGet":{{"path":"/ready","port":8080,"scheme":"HTTP"}},"periodSeconds":5,"timeoutSeconds":1,"successThreshold":1,"failureThreshold":3}},"volumeMounts":[{{"name":"config","mountPath":"/etc/service"}},{{"name":"kube-api-access-x{i:04}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}]}},
        {{"name":"proxy","image":"images.example.com/mesh/proxy:2.0","resources":{{"requests":{{"cpu":"100m","memory":"128Mi"}},"limits":{{"cpu":"2","memory":"1Gi"}}}}}}],
        "tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}},{{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],
        "topologySpreadConstraints":[{{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{{"matchLabels":{{"app.kubernetes.io/name":"service-{app}"}}}}}}],
        "volumes":[{{"name":"config","configMap":{{"name":"service-{app}","defaultMode":420}}}},{{"name":"kube-api-access-x{i:04}","projected":{{"defaultMode":420,"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}},{{"downwardAPI":{{"items":[{{"path":"namespace","fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.namespace"}}}}]}}}}]}}}}]}},
        "status":{{"phase":"Running","observedGeneration":1,"hostIP":"10.{n1}.{n2}.17","hostIPs":[{{"ip":"10.{n1}.{n2}.17"}}],"podIP":"10.1.{n1}.{n2}","podIPs":[{{"ip":"10.1.{n1}.{n2}"}}],"startTime":"{created}","qosClass":"Burstable",
        "conditions":[{{"type":"PodReadyToStartContainers","status":"True","observedGeneration":1,"lastProbeTime":null,"lastTransitionTime":"{ready}"}},{{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"{created}"}},{{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"{ready}"}},{{"type":"ContainersReady","status":"True","lastProbeTime":null,"lastTransitionTime":"{ready}"}},{{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"{created}"}}],
        "containerStatuses":[{{"name":"app","ready":true,"started":true,"restartCount":0,"image":"images.example.com/team-{ns}/service-{app}:1.{app}.3","imageID":"images.example.com/team-{ns}/service-{app}@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","containerID":"containerd://{i:064x}","state":{{"running":{{"startedAt":"{ready}"}}}},"lastState":{{}},"allocatedResources":{{"cpu":"250m","memory":"512Mi"}},"resources":{{"requests":{{"cpu":"250m","memory":"512Mi"}},"limits":{{"memory":"512Mi"}}}},"volumeMounts":[{{"name":"config","mountPath":"/etc/service"}}]}},
        {{"name":"proxy","ready":true,"started":true,"restartCount":0,"image":"images.example.com/mesh/proxy:2.0","imageID":"images.example.com/mesh/proxy@sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752","containerID":"containerd://{i:064x}","state":{{"running":{{"startedAt":"{ready}"}}}},"lastState":{{}},"allocatedResources":{{"cpu":"100m","memory":"128Mi"}},"resources":{{"requests":{{"cpu":"100m","memory":"128Mi"}},"limits":{{"cpu":"2","memory":"1Gi"}}}}}}]}}}}"#,
        ns = app % 50,
        uid = uid(i),
        owner = uid(1_000_000 + app),
        rv = 10_000_000 + i,
        created = second(0),
        ready = second(7),
        n1 = i / 30 / 256,
        n2 = i / 30 % 256,
        env = env.join(","),
        manager = MANAGED_BY_CONTROLLER,
        kubelet = MANAGED_BY_KUBELET,
    )
    .unwrap();
}
