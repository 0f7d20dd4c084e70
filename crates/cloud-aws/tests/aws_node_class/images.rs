//! Which images a class finds, by alias, ID, parameter, name and tags.

use aws_sdk_ec2::types::ArchitectureValues;
use serde_json::{Value, json};

use crate::{
    double,
    world::{World, condition, image},
};

#[tokio::test]
async fn an_image_that_could_not_be_asked_for_does_not_count_as_gone() {
    let world = World::new("ap-northeast-2").await;
    let of_gpus = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/nvidia/recommended/image_id";
    let parameters = world
        .clients
        .ssm
        .get_parameter()
        .name("/moto-control/aws-params")
        .send()
        .await
        .unwrap();
    let known: Value = serde_json::from_str(parameters.parameter().unwrap().value().unwrap()).unwrap();
    let mut cut = known.clone();
    cut[of_gpus] = json!("error:ThrottlingException");
    double::tell(&world.clients, "aws-params", &cut).await;
    world.create("default", json!({}));
    let refused = world.fail("default").await;
    assert!(
        refused.contains("getting amis") && refused.contains("ThrottlingException"),
        "{refused}"
    );
    double::tell(&world.clients, "aws-params", &known).await;
    let class = world.settle("default").await;
    assert_eq!(class["status"]["amis"].as_array().unwrap().len(), 3, "{class:#}");
}

#[tokio::test]
async fn images_are_found_by_id_parameter_name_and_tags() {
    let world = World::new("eu-west-1").await;
    let (old, new) = (
        "created=2026-01-01T00:00:00Z",
        "created=2026-02-01T00:00:00Z;deprecated=2026-03-01T00:00:00Z",
    );
    let kept = image(&world.clients, "mine-1", ArchitectureValues::X8664, old).await;
    let deprecated = image(&world.clients, "mine-2", ArchitectureValues::X8664, new).await;
    let put = world.clients.ssm.put_parameter().name("/my/image").value(&deprecated);
    put.r#type(aws_sdk_ssm::types::ParameterType::String)
        .send()
        .await
        .unwrap();
    let cases = [
        ("by-id", json!([{"id": deprecated}]), vec![&deprecated]),
        (
            "by-parameter",
            json!([{"ssmParameter": "/my/image"}]),
            vec![&deprecated],
        ),
        ("by-name", json!([{"name": "mine-*"}]), vec![&kept]),
        (
            "by-tags",
            json!([{"tags": {"team": "*"}, "name": "mine-*"}]),
            vec![&kept],
        ),
        (
            "by-missing-parameter",
            json!([{"ssmParameter": "/not/there"}, {"id": kept}]),
            vec![&kept],
        ),
    ];
    for (name, terms, expected) in cases {
        world.create(name, json!({"amiSelectorTerms": terms, "amiFamily": "AL2023"}));
        let class = world.settle(name).await;
        let ids: Vec<_> = class["status"]["amis"]
            .as_array()
            .unwrap_or_else(|| panic!("{name}: {class:#}"))
            .iter()
            .map(|it| it["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, expected, "{name}");
    }
    let class = world.stored("by-id");
    assert_eq!(class["status"]["amis"][0]["deprecated"], true);
}

#[tokio::test]
async fn an_alias_without_images_for_this_kubernetes_is_refused_for_good() {
    let world = World::new("eu-north-1").await;
    world.create("default", json!({"amiSelectorTerms": [{"alias": "al2@latest"}]}));
    let error = world.fail("default").await;
    assert!(
        error.contains("AL2 aliases are no longer supported on EKS 1.33+"),
        "{error}"
    );
    let [status, reason, _] = condition(&world.stored("default"), "AMIsReady").map(str::to_owned);
    assert_eq!([status.as_str(), reason.as_str()], ["False", "UnsupportedAlias"]);
}
