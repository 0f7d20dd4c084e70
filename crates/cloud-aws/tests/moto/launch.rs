//! Launches: what EC2 is asked for, and what becomes of those that go wrong half way.

use aws_sdk_ec2::types::Filter;
use cloud::{CloudError, CloudProvider, conformance::Harness};
use cloud_aws::Machines;
use serde_json::json;

use crate::world::World;

fn label<'a>(launched: &'a cloud::Launched, key: &str) -> &'a str {
    launched.labels.get(key).map_or("", |value| value)
}

#[tokio::test]
async fn the_cheapest_spot_offering_is_launched_and_tagged_for_its_claim() {
    let world = World::new("us-east-2").await;
    let launched = world.create(&world.claim("a")).await.unwrap();
    assert_eq!(label(&launched, "node.kubernetes.io/instance-type"), "m5.large");
    assert_eq!(label(&launched, "karpenter.sh/capacity-type"), "spot");
    assert!(
        !label(&launched, "topology.k8s.aws/zone-id").is_empty(),
        "{:?}",
        launched.labels
    );
    let running = world.running().await;
    let tag = |key: &str| {
        let found = running[0].tags().iter().find(|tag| tag.key() == Some(key));
        found.and_then(|tag| tag.value()).unwrap_or_default().to_owned()
    };
    assert_eq!(running.len(), 1);
    assert_eq!(tag("eks:eks-cluster-name"), world.cluster());
    assert_eq!(tag(&format!("kubernetes.io/cluster/{}", world.cluster())), "owned");
    assert_eq!(tag("karpenter.sh/nodepool"), "general");
    assert_eq!(tag("karpenter.k8s.aws/ec2nodeclass"), "default");
    assert_eq!(tag("karpenter.sh/nodeclaim"), "a");
}

#[tokio::test]
async fn a_shortage_of_the_first_choice_moves_on_and_is_remembered() {
    let world = World::new("eu-west-1").await;
    let rule = json!({"instance_type": "m5.large", "code": "InsufficientInstanceCapacity", "message": "none left"});
    world.once("fleet-errors", json!([rule])).await;
    let launched = world.create(&world.claim("a")).await.unwrap();
    assert_eq!(label(&launched, "node.kubernetes.io/instance-type"), "c5.xlarge");
    let shortages = world.provider.reads.shortages.lock().unwrap().clone();
    assert!(!shortages.is_empty());
    for shortage in shortages {
        assert_eq!(
            shortage.instance_type.map(|it| it.to_string()).as_deref(),
            Some("m5.large")
        );
        assert_eq!(shortage.capacity_type.as_deref(), Some("spot"));
        assert_eq!(shortage.reason, "InsufficientInstanceCapacity");
    }
}

#[tokio::test]
async fn without_any_spot_the_next_claim_gets_on_demand() {
    let world = World::new("eu-west-2").await;
    let rule = json!({"capacity_type": "spot", "code": "MaxSpotInstanceCountExceeded", "message": "quota"});
    world.once("fleet-errors", json!([rule])).await;
    let refused = world.create(&world.claim("a")).await;
    assert!(
        matches!(refused, Err(CloudError::InsufficientCapacity { .. })),
        "{refused:?}"
    );
    let launched = world.create(&world.claim("b")).await.unwrap();
    assert_eq!(label(&launched, "karpenter.sh/capacity-type"), "on-demand");
}

#[tokio::test]
async fn a_launch_that_failed_for_a_reason_can_be_asked_for_again() {
    let world = World::new("eu-west-3").await;
    let rule = json!({"code": "UnauthorizedOperation", "message": "no", "times": 100});
    world.once("fleet-errors", json!([rule])).await;
    let claim = world.claim("a");
    let refused = world.create(&claim).await;
    assert!(
        matches!(&refused, Err(CloudError::Create { reason, .. }) if reason == "Unauthorized"),
        "{refused:?}"
    );
    // A request that EC2 answered is over: the same token would only bring its answer back.
    world.control("fleet-errors", &json!([])).await;
    world.create(&claim).await.unwrap();
    assert_eq!(world.running().await.len(), 1);
}

#[tokio::test]
async fn a_process_that_dies_around_create_fleet_launches_once() {
    let mut world = World::new("ap-south-1").await;
    let claim = world.claim("a");
    world.once("fleet-fault", json!({"mode": "lost"})).await;
    let lost = world.create(&claim).await;
    assert!(lost.is_err(), "{lost:?}");
    world.control("fleet-fault", &json!(null)).await;
    assert_eq!(
        world.running().await.len(),
        1,
        "the machine was launched, only the answer was lost"
    );
    world.restart();
    world.provider.machines.resume(&[claim.clone().into()]).await.unwrap();
    let found = world.create(&claim).await.unwrap();
    assert_eq!(world.machines().await, [found.provider_id.clone().into()]);
}

#[tokio::test]
async fn a_launch_that_reads_do_not_show_yet_is_found_by_its_token() {
    let mut world = World::new("ap-northeast-1").await;
    let claim = world.claim("a");
    world.once("fleet-fault", json!({"mode": "lost"})).await;
    world.control("hide-new", &json!(true)).await;
    assert!(world.create(&claim).await.is_err());
    world.control("fleet-fault", &json!(null)).await;
    world.restart();
    world.control("hide-new", &json!(true)).await;
    let found = world.create(&claim).await.unwrap();
    world.control("hide-new", &json!(false)).await;
    assert_eq!(world.machines().await, [found.provider_id.clone().into()]);
}

#[tokio::test]
async fn a_launch_whose_contents_changed_meanwhile_is_never_done_twice() {
    let mut world = World::new("ap-northeast-2").await;
    let claim = world.claim("a");
    world.once("fleet-fault", json!({"mode": "lost"})).await;
    world.control("hide-new", &json!(true)).await;
    assert!(world.create(&claim).await.is_err());
    world.control("fleet-fault", &json!(null)).await;
    world.restart();
    world.change_class(|class| class.spec.detailed_monitoring = Some(true));
    let waiting = world.create(&claim).await;
    assert!(
        matches!(&waiting, Err(CloudError::Other(message)) if message.contains("other contents")),
        "{waiting:?}"
    );
    world.control("hide-new", &json!(false)).await;
    let found = world.create(&claim).await.unwrap();
    assert_eq!(world.machines().await, [found.provider_id.clone().into()]);
}

#[tokio::test]
async fn a_template_that_somebody_deleted_is_made_again() {
    let world = World::new("ca-central-1").await;
    world.create(&world.claim("a")).await.unwrap();
    let ec2 = &world.clients.ec2;
    let templates = ec2.describe_launch_templates().send().await.unwrap();
    assert!(!templates.launch_templates().is_empty());
    for template in templates.launch_templates() {
        assert!(
            template
                .launch_template_name()
                .unwrap()
                .starts_with("karpenter.k8s.aws/")
        );
        ec2.delete_launch_template()
            .launch_template_id(template.launch_template_id().unwrap())
            .send()
            .await
            .unwrap();
    }
    world.create(&world.claim("b")).await.unwrap();
    assert_eq!(world.running().await.len(), 2);
}

#[tokio::test]
async fn the_templates_of_a_class_go_with_it_and_those_of_others_stay() {
    let world = World::new("sa-east-1").await;
    world.create(&world.claim("a")).await.unwrap();
    let filter = Filter::builder()
        .name("tag:karpenter.k8s.aws/ec2nodeclass")
        .values("default")
        .build();
    let ec2 = &world.clients.ec2;
    ec2.create_launch_template()
        .launch_template_name("somebody-elses")
        .launch_template_data(
            aws_sdk_ec2::types::RequestLaunchTemplateData::builder()
                .image_id("ami-1")
                .build(),
        )
        .send()
        .await
        .unwrap();
    world
        .provider
        .machines
        .delete_launch_templates("default")
        .await
        .unwrap();
    let ours = ec2.describe_launch_templates().filters(filter).send().await.unwrap();
    assert_eq!(ours.launch_templates(), []);
    assert_eq!(
        ec2.describe_launch_templates()
            .send()
            .await
            .unwrap()
            .launch_templates()
            .len(),
        1
    );
    // What was forgotten is made anew when it is needed.
    world.create(&world.claim("b")).await.unwrap();
}

#[tokio::test]
async fn a_machine_in_a_zone_that_is_shifted_away_from_is_left_as_it_is() {
    let world = World::new("eu-central-1").await;
    let mut claim = world.claim("a");
    let launched = world.create(&claim).await.unwrap();
    claim.status.provider_id = Some(launched.provider_id.clone().into());
    world.provider.list().await.unwrap();
    let zone = label(&launched, "topology.kubernetes.io/zone").to_owned();
    let shifted = &world.provider.reads.shifted;
    shifted.lock().unwrap().insert(zone.clone(), "euc1-az1".to_owned());
    // What EC2 says of the zone is not asked for.
    let broken = json!({"DescribeInstances": {"code": "InternalError", "message": "impaired"}});
    world.control("api-errors", &broken).await;
    let id = launched.provider_id.clone().into();
    assert!(world.provider.get(&id).await.is_ok());
    let refused = world.provider.delete(&claim).await.unwrap_err().to_string();
    assert!(
        refused.contains(&format!("zonally shifted availability zone {zone} (euc1-az1)")),
        "{refused}"
    );
    world.control("api-errors", &json!({})).await;
    assert_eq!(world.running().await.len(), 1);
    shifted.lock().unwrap().clear();
    world.provider.delete(&claim).await.unwrap();
    assert_eq!(world.running().await.len(), 0);
}

#[tokio::test]
async fn many_launches_and_ends_at_once_each_get_their_own() {
    let world = World::new("eu-north-1").await;
    let claims: Vec<_> = (0..12).map(|number| world.claim(&format!("c{number}"))).collect();
    let launched = futures_util::future::join_all(claims.iter().map(|claim| world.create(claim))).await;
    let ids: std::collections::BTreeSet<String> = launched
        .iter()
        .map(|it| it.as_ref().unwrap().provider_id.to_string())
        .collect();
    assert_eq!(ids.len(), claims.len());
    let ended = futures_util::future::join_all(claims.iter().zip(&launched).map(|(claim, launched)| {
        let mut claim = claim.clone();
        claim.status.provider_id = Some(launched.as_ref().unwrap().provider_id.clone().into());
        let world = &world;
        async move { world.provider.delete(&claim).await }
    }))
    .await;
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    assert_eq!(world.running().await.len(), 0);
}

#[tokio::test]
async fn a_claim_whose_class_is_missing_or_going_is_given_up_and_told() {
    let world = World::new("us-west-1").await;
    let told = || world.provider.reads.told.lock().unwrap().clone();
    let mut claim = world.claim("a");
    claim.spec.node_class_ref.as_mut().unwrap().name = "other".into();
    let refused = world.create(&claim).await.unwrap_err();
    let words = "insufficient capacity, resolving nodeclass, ec2nodeclasses.karpenter.k8s.aws \"other\" not found";
    assert_eq!(refused.to_string(), words);
    assert_eq!(told(), ["a"]);
    world.change_class(|class| {
        class.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-17T10:00:00Z")).unwrap();
    });
    let refused = world.create(&world.claim("b")).await.unwrap_err();
    assert!(matches!(refused, CloudError::InsufficientCapacity { .. }), "{refused}");
    assert_eq!(told(), ["a", "b"]);
}

#[tokio::test]
async fn a_machine_that_cannot_be_ended_is_counted_by_zone_and_zone_id() {
    let world = World::new("us-east-1").await;
    let mut claim = world.claim("a");
    let launched = world.create(&claim).await.unwrap();
    claim.status.provider_id = Some(launched.provider_id.clone().into());
    let zone = label(&launched, "topology.kubernetes.io/zone");
    let id = label(&launched, "topology.k8s.aws/zone-id");
    let denied = json!({"TerminateInstances": {"code": "UnauthorizedOperation", "message": "no"}});
    world.control("api-errors", &denied).await;
    world.provider.delete(&claim).await.unwrap_err();
    let counted = world.counted();
    let name = "karpenter_cloudprovider_instance_termination_failures_total{";
    let line = counted.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(!id.is_empty() && line.contains(&format!("zone=\"{zone}\"")), "{line}");
    assert!(line.contains(&format!("zone_id=\"{id}\"")), "{line}");
}

#[tokio::test]
async fn capacity_that_an_overlay_adds_is_on_the_claim_of_its_machine_and_keeps_no_type_away() {
    let world = World::new("us-east-2").await;
    let mut claim = world.claim("a");
    let fuse = "example.com/fuse";
    claim.spec.resources.requests.set(fuse.into(), "2".parse().unwrap());
    let refused = world.create(&claim).await;
    assert!(
        matches!(refused, Err(CloudError::InsufficientCapacity { .. })),
        "no type has it: {refused:?}"
    );
    let overlaid = vec![("karpenter.sh/capacity-overlay-applied".into(), "true".into())];
    claim.metadata.annotations = model::object::Map::from_pairs(overlaid);
    let launched = world.create(&claim).await.unwrap();
    for list in [&launched.capacity, &launched.allocatable] {
        assert_eq!((list.amount(fuse).value(), list.amount("cpu").is_zero()), (2, false));
    }
}
