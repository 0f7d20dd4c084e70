//! Launches and their ends: what Azure is asked, what becomes of refusals, and what is left behind.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use cloud::{CloudError, CloudProvider};
use model::object::NodeClaim;
use serde_json::{Value, json};

use crate::world::World;

pub(crate) const A: &str = "aks-a";

pub(crate) fn recorded(claim: &NodeClaim, launched: &cloud::Launched) -> NodeClaim {
    let mut claim = claim.clone();
    claim.status.provider_id = Some(launched.provider_id.clone().into());
    claim.metadata.annotations = launched.annotations.clone();
    claim.status.image_id = launched.image_id.clone();
    claim
}

#[tokio::test(start_paused = true)]
async fn a_launch_makes_interface_machine_and_extension_with_the_same_tags() {
    let world = World::new().await;
    let claim = World::sized("a", "Standard_D2s_v3", "on-demand");
    let launched = world.launch(&claim).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let state = world.azure.lock();
    let (vm, nic) = (&state.vms[A].body, &state.nics[A].body);
    let extension = &state.extensions[&(A.to_owned(), "computeAksLinuxBilling".to_owned())];
    for body in [vm, nic, extension] {
        assert_eq!(body["tags"]["karpenter.azure.com_cluster"], "prod");
        assert_eq!(body["tags"]["karpenter.sh_nodepool"], "general");
        assert_eq!(body["tags"]["compute.aks.billing"], "linux");
        assert_eq!(body["tags"]["dovetail.dev_launch"], "uid-a-1");
    }
    let addresses = &nic["properties"]["ipConfigurations"];
    assert_eq!(
        addresses[0]["properties"]["loadBalancerBackendAddressPools"],
        json!([{"id": "/pools/kubernetes"}, {"id": "/pools/aksOutboundBackendPool"}])
    );
    assert_eq!(
        nic["properties"]["networkSecurityGroup"]["id"],
        "/nsgs/aks-agentpool-12345678-nsg"
    );
    assert_eq!(extension["properties"]["type"], "Compute.AKS.Linux.Billing");
    assert_eq!(
        launched.labels.get("karpenter.azure.com/sku-name").map(|it| &**it),
        Some("Standard_D2s_v3")
    );
    assert_eq!(
        launched.labels.get("kubernetes.azure.com/priority").map(|it| &**it),
        Some("regular")
    );
    assert!(
        launched
            .image_id
            .ends_with("/images/2404gen2containerd/versions/202512.18.0")
    );
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_told_how_to_join() {
    let world = World::new().await;
    let mut claim = World::sized("a", "Standard_D2s_v3", "spot");
    claim.spec.taints =
        serde_json::from_value(json!([{"key": "team", "value": "blue", "effect": "NoSchedule"}])).unwrap();
    world.launch(&claim).await.unwrap();
    let data = world.azure.lock().vms[A].body["properties"]["osProfile"]["customData"].clone();
    let script = String::from_utf8(STANDARD.decode(data.as_str().unwrap()).unwrap()).unwrap();
    for line in [
        "API_SERVER_NAME=\"c.hcp.example\"",
        "TLS_BOOTSTRAP_TOKEN=\"abcdef.0123456789abcdef\"",
        "KUBE_CA_CRT=\"Y2E=\"",
        "RESOURCE_GROUP=\"MC_rg\"",
        "SUBNET=\"nodes\"",
        "VIRTUAL_NETWORK=\"vnet\"",
        "VIRTUAL_NETWORK_RESOURCE_GROUP=\"rg\"",
        "NETWORK_SECURITY_GROUP=\"aks-agentpool-12345678-nsg\"",
        "ROUTE_TABLE=\"aks-agentpool-12345678-routetable\"",
        "NETWORK_PLUGIN=\"none\"",
        "GPU_NODE=\"false\"",
        "CSE_TIMEOUT=\"15m\"",
    ] {
        assert!(script.lines().any(|it| it == line), "{line} in {script}");
    }
    let of = |name: &str| {
        let line = script
            .lines()
            .find(|line| line.starts_with(&format!("{name}=")))
            .unwrap();
        line.split_once('=').unwrap().1.trim_matches('"').to_owned()
    };
    let flags = of("KUBELET_FLAGS");
    assert!(
        flags.contains("--register-with-taints=team=blue:NoSchedule,karpenter.sh/unregistered:NoExecute"),
        "{flags}"
    );
    assert!(
        flags.contains("--max-pods=250") && flags.contains("--cluster-dns=10.0.0.10"),
        "{flags}"
    );
    let labels = of("KUBELET_NODE_LABELS");
    for label in [
        "kubernetes.azure.com/role=agent",
        "kubernetes.azure.com/cluster=MC_rg",
        "kubernetes.azure.com/mode=user",
        "kubernetes.azure.com/scalesetpriority=spot",
        "kubernetes.azure.com/ebpf-dataplane=cilium",
        "kubernetes.azure.com/nodenetwork-vnetguid=00000000-0000-0000-0000-0000000000aa",
        "kubernetes.azure.com/network-subnet=nodes",
        "kubernetes.azure.com/os-sku-effective=Ubuntu2404",
        "karpenter.sh/do-not-sync-taints=true",
        "karpenter.sh/nodepool=general",
        "karpenter.sh/capacity-type=spot",
        "node.kubernetes.io/instance-type=Standard_D2s_v3",
    ] {
        assert!(labels.split(',').any(|it| it == label), "{label} in {labels}");
    }
    assert!(
        script
            .trim_end()
            .ends_with("/opt/azure/containers/provision_start.sh\""),
        "{script}"
    );
}

#[tokio::test(start_paused = true)]
async fn gpus_get_a_driver_unless_the_class_wants_none() {
    let world = World::new().await;
    world
        .launch(&World::sized("a", "Standard_NC24ads_A100_v4", "on-demand"))
        .await
        .unwrap();
    world.create("bare", json!({"gpu": {"mode": "None"}}));
    world.settle("bare").await;
    let mut bare = World::sized("b", "Standard_NC24ads_A100_v4", "on-demand");
    bare.spec.node_class_ref.as_mut().unwrap().name = "bare".into();
    world.launch(&bare).await.unwrap();
    let state = world.azure.lock();
    let script = |name: &str| {
        let data = state.vms[name].body["properties"]["osProfile"]["customData"].clone();
        String::from_utf8(STANDARD.decode(data.as_str().unwrap()).unwrap()).unwrap()
    };
    assert!(
        script("aks-a").contains("GPU_NODE=\"true\"\n") && script("aks-a").contains("GPU_DRIVER_TYPE=\"cuda-lts\"\n")
    );
    assert!(script("aks-b").contains("GPU_NODE=\"false\"\n") && script("aks-b").contains("GPU_DRIVER_VERSION=\"\"\n"));
}

#[tokio::test(start_paused = true)]
async fn a_shortage_that_shows_late_gives_machine_and_claim_up_and_is_avoided() {
    let world = World::new().await;
    let claim = World::sized("a", "Standard_D2s_v3", "on-demand");
    world
        .server
        .create(
            serde_json::to_value(&claim)
                .map(|mut it| {
                    it["apiVersion"] = json!("karpenter.sh/v1");
                    it["kind"] = json!("NodeClaim");
                    it["metadata"].as_object_mut().unwrap().remove("uid");
                    it
                })
                .unwrap(),
        )
        .unwrap();
    let stored = world.server.get("NodeClaim", "a").unwrap();
    let claim: NodeClaim = serde_json::from_value(stored).unwrap();
    world
        .azure
        .lock()
        .late_errors
        .push_back(json!({"code": "AllocationFailed", "message": "Allocation failed."}));
    let version = world.provider.offers_version();
    world.launch(&claim).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(world.azure.lock().vms.is_empty() && world.azure.lock().nics.is_empty());
    assert!(world.server.get("NodeClaim", "a").is_none());
    assert_ne!(world.provider.offers_version(), version);
    let event = world.events.lock().await.try_recv().unwrap();
    assert!(format!("{event:?}").contains("AsyncProvisioningError"));
    let text = world.counted();
    assert!(
        text.contains("karpenter_instance_vm_create_failure_total{") && text.contains("phase=\"async\""),
        "{text}"
    );
    let is_of_image =
        |line: &&str| line.contains("phase=\"async\"") && line.contains("/images/2404gen2containerd/versions/");
    assert!(text.lines().any(|line| is_of_image(&line)), "{text}");
    let is_given_up = |line: &str| {
        line.starts_with("karpenter_nodeclaims_disrupted_total{")
            && line.contains("reason=\"async_provisioning\"")
            && line.contains("nodepool=\"general\"")
    };
    assert!(text.lines().any(is_given_up), "{text}");
    // In every zone it is out; without a zone it may still be had.
    let again = world
        .launch(&World::sized("b", "Standard_D2s_v3", "on-demand"))
        .await
        .unwrap();
    assert_eq!(
        again.labels.get("topology.kubernetes.io/zone").map(|it| &**it),
        Some("0")
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_quota_is_told_in_words_before_azure_is_asked() {
    let world = World::new().await;
    world.azure.lock().usages = vec![json!({"name": {"value": "standardDSv3Family"}, "currentValue": 9, "limit": 10})];
    world.provider.reads().offers().read_quotas().await.unwrap();
    let refused = world
        .launch(&World::sized("a", "Standard_D2s_v3", "on-demand"))
        .await
        .unwrap_err();
    assert!(matches!(refused, CloudError::InsufficientCapacity { .. }));
    let words = refused.to_string();
    assert!(
        words.contains("standardDSv3Family: 9 of 10 vCPUs are used, and 2 more are needed"),
        "{words}"
    );
    assert!(world.azure.lock().asked.is_empty());
    // Spot has a quota of its own.
    world
        .launch(&World::sized("b", "Standard_D2s_v3", "spot"))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_gone_is_noticed_and_the_launch_goes_on_with_those_that_are_there() {
    let world = World::new().await;
    world
        .launch(&World::sized("a", "Standard_D2s_v3", "spot"))
        .await
        .unwrap();
    world.azure.lock().pools = vec!["kubernetes", "new"];
    world
        .launch(&World::sized("b", "Standard_D2s_v3", "spot"))
        .await
        .unwrap();
    let state = world.azure.lock();
    let pools =
        &state.nics["aks-b"].body["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"];
    assert_eq!(pools, &json!([{"id": "/pools/kubernetes"}, {"id": "/pools/new"}]));
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_pool_waits_for_its_machine() {
    let world = World::new().await;
    let mut claim = World::sized("a", "Standard_D2s_v3", "spot");
    claim.metadata.labels = model::object::Map::default();
    world
        .azure
        .lock()
        .late_errors
        .push_back(json!({"code": "SkuNotAvailable", "message": "none"}));
    let refused = world.launch(&claim).await.unwrap_err();
    assert!(
        matches!(&refused, CloudError::Create { reason, .. } if reason == "SKUNotAvailable"),
        "{refused}"
    );
    assert!(world.azure.lock().vms.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_asked_for_is_adopted_by_its_name_and_followed() {
    let world = World::new().await;
    let claim = World::sized("a", "Standard_D2s_v3", "spot");
    let first = world.launch(&claim).await.unwrap();
    // Nothing is remembered of a launch: its machine is found by its name.
    let again = world.provider.create(&claim, &World::token(&claim, 1)).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(world.azure.lock().asked.len(), 1);
    world
        .provider
        .resume(&[Arc::new(recorded(&claim, &first))])
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_name_that_somebody_else_has_taken_is_not_adopted() {
    let world = World::new().await;
    world.azure.add_vm(
        A,
        json!({"karpenter.azure.com_cluster": "other", "karpenter.sh_nodepool": "general"}),
    );
    let refused = world
        .launch(&World::sized("a", "Standard_D2s_v3", "spot"))
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("name another cluster or claim"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_class_that_is_not_ready_or_not_there_launches_nothing() {
    let world = World::with(|_| {}).await;
    let gone = world.launch(&World::sized("a", "Standard_D2s_v3", "spot")).await;
    assert!(matches!(gone, Err(CloudError::InsufficientCapacity { .. })), "{gone:?}");
    world.azure.lock().subnet_status = Some(404);
    world.create("default", json!({}));
    world.settle("default").await;
    let refused = world.launch(&World::sized("a", "Standard_D2s_v3", "spot")).await;
    assert!(matches!(refused, Err(CloudError::NodeClassNotReady(_))), "{refused:?}");
    assert!(world.azure.lock().nics.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_class_that_is_not_there_is_told_on_the_claim_and_on_the_pool_that_name_it() {
    let world = World::with(|_| {}).await;
    world
        .launch(&World::sized("a", "Standard_D2s_v3", "spot"))
        .await
        .unwrap_err();
    let pool = crate::cluster::pool();
    let refused = world.provider.instance_types(&pool).await.unwrap_err().to_string();
    assert!(
        refused.contains("AKSNodeClass") || refused.contains("aksnodeclasses"),
        "{refused}"
    );
    world.create("default", json!({}));
    world.settle("default").await;
    assert!(!world.provider.instance_types(&pool).await.unwrap().is_empty());
    let mut events = world.events.lock().await;
    for about in ["NodeClaim", "NodePool"] {
        let event = events.try_recv().unwrap();
        assert_eq!(
            (&*event.reason, &*event.message),
            ("NodeClassResolutionError", "Failed resolving NodeClass")
        );
        assert!(format!("{event:?}").contains(about), "{event:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_drifts_with_its_class() {
    let world = World::new().await;
    let claim = World::sized("a", "Standard_D2s_v3", "spot");
    let claim = recorded(&claim, &world.launch(&claim).await.unwrap());
    assert_eq!(world.provider.is_drifted(&claim).await, Ok(None));
    // Tags are given in place, and drift nothing.
    world
        .server
        .update("AKSNodeClass", "default", |class| {
            class["spec"]["tags"] = json!({"team": "blue"});
        })
        .unwrap();
    world.settle("default").await;
    assert_eq!(world.provider.is_drifted(&claim).await, Ok(None));
    let mut old = claim.clone();
    old.status.image_id = "/CommunityGalleries/x/images/y/versions/1".into();
    assert_eq!(world.provider.is_drifted(&old).await, Ok(Some("ImageDrift".to_owned())));
    world
        .server
        .update("AKSNodeClass", "default", |class| {
            class["spec"]["osDiskSizeGB"] = json!(256);
        })
        .unwrap();
    world.settle("default").await;
    assert_eq!(
        world.provider.is_drifted(&claim).await,
        Ok(Some("NodeClassDrift".to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_version_or_identity_has_drifted() {
    let world = World::with(|settings| {
        settings.azure.kubelet_identity_client_id = "00000000-0000-0000-0000-000000000001".to_owned();
    })
    .await;
    world.create("default", json!({}));
    let version = world.settle("default").await["status"]["kubernetesVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    let claim = World::sized("a", "Standard_D2s_v3", "spot");
    let mut claim = recorded(&claim, &world.launch(&claim).await.unwrap());
    claim.status.node_name = Some("aks-a".into());
    assert_eq!(
        world.provider.is_drifted(&claim).await,
        Ok(None),
        "there is no node yet"
    );
    let node = |version: &str, identity: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "aks-a",
            "labels": {"kubernetes.azure.com/kubelet-identity-client-id": identity}},
        "status": {"nodeInfo": {"kubeletVersion": format!("v{version}")}}})
    };
    let identity = "00000000-0000-0000-0000-000000000001";
    world.server.create(node(&version, identity)).unwrap();
    assert_eq!(world.provider.is_drifted(&claim).await, Ok(None));
    let change = |of: Value| {
        world
            .server
            .update("Node", "aks-a", |it| {
                it["metadata"]["labels"] = of["metadata"]["labels"].clone();
                it["status"] = of["status"].clone();
            })
            .unwrap()
    };
    change(node("1.30.0", identity));
    assert_eq!(
        world.provider.is_drifted(&claim).await,
        Ok(Some("K8sVersionDrift".to_owned()))
    );
    change(node(&version, "other"));
    assert_eq!(
        world.provider.is_drifted(&claim).await,
        Ok(Some("KubeletIdentityDrift".to_owned()))
    );
    change(node(&version, ""));
    assert_eq!(world.provider.is_drifted(&claim).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn the_one_security_group_of_the_nodes_must_be_there() {
    let world = World::new().await;
    for (groups, words) in [
        (vec!["mine"], "has no network security group"),
        (
            vec!["aks-agentpool-12345678-nsg", "aks-agentpool-87654321-nsg"],
            "has several network security groups",
        ),
    ] {
        world.azure.lock().security_groups = groups;
        let refused = world
            .launch(&World::sized("a", "Standard_D2s_v3", "spot"))
            .await
            .unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
    assert!(world.azure.lock().nics.is_empty());
    let counted = world.counted();
    assert!(
        counted.contains("karpenter_instance_vm_create_start_total{"),
        "{counted}"
    );
    assert!(counted.contains("phase=\"sync\""), "{counted}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_resource_graph_does_not_show_for_minutes_is_listed_all_the_same() {
    let world = World::new().await;
    world.azure.lock().hidden_until = Some(tokio::time::Instant::now() + Duration::from_mins(8));
    let claim = World::sized("a", "Standard_D2s_v3", "spot");
    let launched = world.launch(&claim).await.unwrap();
    tokio::time::sleep(Duration::from_mins(5)).await;
    let listed = world.provider.list().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(*listed[0].provider_id.as_str(), *launched.provider_id);
    // One that was taken away meanwhile is not.
    world.azure.lock().vms.clear();
    assert!(world.provider.list().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_class_can_have_a_subnet_and_an_installation_an_administrator_of_its_own() {
    let world = World::with(|settings| settings.azure.linux_admin_username = "ops".to_owned()).await;
    let subnet = crate::world::SUBNET.replace("/nodes", "/others");
    world.create("default", json!({"vnetSubnetID": subnet}));
    world.settle("default").await;
    world
        .launch(&World::sized("a", "Standard_D2s_v3", "spot"))
        .await
        .unwrap();
    let state = world.azure.lock();
    let (vm, nic) = (&state.vms[A].body["properties"], &state.nics[A].body["properties"]);
    assert_eq!(nic["ipConfigurations"][0]["properties"]["subnet"]["id"], subnet);
    assert_eq!(nic["networkSecurityGroup"]["id"], "/nsgs/aks-agentpool-12345678-nsg");
    assert_eq!(vm["osProfile"]["adminUsername"], "ops");
    let key = &vm["osProfile"]["linuxConfiguration"]["ssh"]["publicKeys"][0];
    assert_eq!(key["path"], "/home/ops/.ssh/authorized_keys");
    let script = STANDARD
        .decode(vm["osProfile"]["customData"].as_str().unwrap())
        .unwrap();
    let script = String::from_utf8(script).unwrap();
    assert!(
        script.contains("SUBNET=\"others\"\n") && script.contains("network-subnet=others"),
        "{script}"
    );
}
