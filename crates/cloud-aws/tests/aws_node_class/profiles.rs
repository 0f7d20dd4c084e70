//! The instance profiles of a class that names a role.

use std::sync::Arc;

use api::aws::EC2NodeClass;
use cloud_aws::{Controller, Machines};
use serde_json::{Value, json};

use crate::world::{ROLE, World, condition, connect};

#[tokio::test]
async fn a_role_that_is_written_with_its_path_keeps_its_profile_over_a_restart() {
    let world = World::new("eu-central-1").await;
    world.create("default", json!({"role": format!("team/{ROLE}")}));
    let class = world.settle("default").await;
    let profile = class["status"]["instanceProfile"].as_str().unwrap().to_owned();
    // The next process remembers nothing of IAM.
    let (server, _events, read, _) = connect(&world.clients, &world.cluster, |_| {}).await.unwrap();
    let controller = Controller::new(read, Arc::clone(&world.machines) as Arc<dyn Machines>);
    server.create(class.clone()).unwrap();
    let class: EC2NodeClass = serde_json::from_value(server.get("EC2NodeClass", "default").unwrap()).unwrap();
    controller.reconcile(&class).await.unwrap();
    let class = server.get("EC2NodeClass", "default").unwrap();
    assert_eq!(class["status"]["instanceProfile"], profile);
}

#[tokio::test]
async fn a_role_that_does_not_exist_leaves_no_profile_behind() {
    let world = World::new("us-west-1").await;
    world.create("default", json!({"role": "nobody"}));
    let error = world.fail("default").await;
    assert!(error.contains("creating instance profile"), "{error}");
    assert_eq!(
        condition(&world.stored("default"), "InstanceProfileReady")[0],
        "Unknown"
    );
    let profiles = world
        .clients
        .iam
        .list_instance_profiles()
        .path_prefix("/karpenter/us-west-1/");
    assert_eq!(profiles.send().await.unwrap().instance_profiles().len(), 0);
    let error = world.fail("default").await;
    assert!(
        error.contains("role not found"),
        "IAM is not asked again within a minute: {error}"
    );
}

#[tokio::test]
async fn another_role_gets_another_profile_and_a_named_profile_is_taken_as_it_is() {
    let world = World::new("eu-west-2").await;
    let trust = json!({"Version": "2012-10-17", "Statement": []}).to_string();
    let other = world.clients.iam.create_role().role_name("other-eu-west-2");
    other.assume_role_policy_document(trust).send().await.unwrap();
    world.create("default", json!({}));
    let profile = |class: &Value| class["status"]["instanceProfile"].as_str().unwrap().to_owned();
    let first = profile(&world.settle("default").await);
    let change = |role: Option<&str>, named: Option<&str>| {
        world
            .server
            .update("EC2NodeClass", "default", |class| {
                class["spec"]["role"] = json!(role);
                class["spec"]["instanceProfile"] = json!(named);
                class["spec"]
                    .as_object_mut()
                    .unwrap()
                    .retain(|_, value| !value.is_null());
            })
            .unwrap();
    };
    change(Some("other-eu-west-2"), None);
    let second = profile(&world.settle("default").await);
    assert_ne!(first, second);
    // The first still serves machines that run: it stays.
    let still = world
        .clients
        .iam
        .get_instance_profile()
        .instance_profile_name(&first)
        .send()
        .await;
    assert!(still.is_ok());
    change(None, Some("mine"));
    assert_eq!(profile(&world.settle("default").await), "mine");
}

async fn roles_of(world: &World, profile: &str) -> Vec<String> {
    let answer = world
        .clients
        .iam
        .get_instance_profile()
        .instance_profile_name(profile)
        .send()
        .await
        .unwrap();
    let roles = answer.instance_profile().unwrap().roles().iter();
    roles.map(|role| role.role_name().to_owned()).collect()
}

#[tokio::test]
async fn a_profile_without_the_role_is_replaced_and_no_two_classes_share_one() {
    let world = World::new("me-central-1").await;
    let trust = json!({"Version": "2012-10-17", "Statement": []}).to_string();
    let other = world.clients.iam.create_role().role_name("other-me-central-1");
    other.assume_role_policy_document(trust).send().await.unwrap();
    let mut profiles = Vec::new();
    for (name, role) in [("bare", None), ("wrong", Some("other-me-central-1"))] {
        let before = format!("{name}-me-central-1");
        let made = world
            .clients
            .iam
            .create_instance_profile()
            .instance_profile_name(&before);
        made.send().await.unwrap();
        if let Some(role) = role {
            let added = world
                .clients
                .iam
                .add_role_to_instance_profile()
                .instance_profile_name(&before);
            added.role_name(role).send().await.unwrap();
        }
        world.create(name, json!({}));
        let known = |class: &mut Value| class["status"] = json!({"instanceProfile": before});
        world.server.update("EC2NodeClass", name, known).unwrap();
        let class = world.settle(name).await;
        let after = class["status"]["instanceProfile"].as_str().unwrap().to_owned();
        assert_ne!(after, before);
        assert_eq!(roles_of(&world, &after).await, [ROLE], "{name}");
        assert_eq!(
            roles_of(&world, &before).await,
            role.into_iter().collect::<Vec<_>>(),
            "machines may still use it"
        );
        profiles.push(after);
    }
    assert_ne!(profiles[0], profiles[1], "two classes with one role within a minute");
}
