//! Which images a class finds, by alias, ID, parameter, name and tags.

use aws_sdk_ec2::types::{ArchitectureValues, Tag};
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
    // A parameter that cannot be read is another matter than one that is not there.
    let broken = json!({"/aws/service/mine": "error:AccessDeniedException"});
    double::tell(&world.clients, "aws-params", &broken).await;
    let terms = json!([{"ssmParameter": "/aws/service/mine"}, {"id": kept}]);
    world.create(
        "by-broken-parameter",
        json!({"amiSelectorTerms": terms, "amiFamily": "AL2023"}),
    );
    let error = world.fail("by-broken-parameter").await;
    assert!(
        error.contains("getting amis") && error.contains("AccessDeniedException"),
        "{error}"
    );
}

#[tokio::test]
async fn tags_of_a_term_must_all_be_there_terms_are_alternatives_and_an_owner_alone_is_enough() {
    let world = World::new("ap-east-1").await;
    let dated = |day: u32| format!("created=2099-01-{day:02}T00:00:00Z");
    let intel = image(&world.clients, "intel", ArchitectureValues::X8664, &dated(2)).await;
    let arm = image(&world.clients, "arm", ArchitectureValues::Arm64, &dated(1)).await;
    for (id, color) in [(&intel, "blue"), (&arm, "red")] {
        let tag = Tag::builder().key("color").value(color).build();
        world
            .clients
            .ec2
            .create_tags()
            .resources(id)
            .tags(tag)
            .send()
            .await
            .unwrap();
    }
    let color = |value: &str| json!({"team": "nodes", "color": value});
    let cases = [
        ("both-tags", json!([{"tags": color("blue")}]), vec!["intel"]),
        (
            "either-term",
            json!([{"tags": color("blue")}, {"tags": color("red")}]),
            vec!["arm", "intel"],
        ),
        (
            "other-owner",
            json!([{"tags": color("blue"), "owner": "210987654321"}]),
            vec![],
        ),
        ("only-owner", json!([{"owner": "123456789012"}]), vec!["arm", "intel"]),
    ];
    for (name, terms, expected) in cases {
        world.create(name, json!({"amiSelectorTerms": terms, "amiFamily": "Custom"}));
        let class = world.settle(name).await;
        let amis = class["status"]["amis"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<&str> = amis.iter().map(|it| it["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{name}");
        for image in &amis {
            let keys: Vec<_> = image["requirements"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| &it["key"])
                .collect();
            assert_eq!(keys, ["kubernetes.io/arch"], "its tags are no requirements");
        }
    }
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
