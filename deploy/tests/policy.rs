//! The controller's policy on AWS: every call it can make is allowed where it must be, refused elsewhere, and nothing else
//! is granted.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;

use deploy::{
    calls::{self, Calls},
    policy::{self, Policy, Request},
    read, root,
};

const OWNED: &str = "kubernetes.io/cluster/dev";
const PROVIDER: &str = "cloud-aws";

fn policy() -> Policy {
    let names = [
        ("AWS_ACCOUNT_ID", "111"),
        ("AWS_PARTITION", "aws"),
        ("AWS_REGION", "us-west-2"),
        ("CLUSTER_NAME", "dev"),
        ("NODE_ROLE_NAME", "KarpenterNodeRole-dev"),
        ("QUEUE_NAME", "karpenter-dev"),
    ];
    policy::parse(&read("deploy/aws/iam-policy.json").unwrap(), &names).unwrap()
}

fn calls() -> Calls {
    serde_json::from_str(&read("deploy/aws/calls.json").unwrap()).unwrap()
}

/// A request, with context as `key=value`.
fn request(action: &str, resource: &str, context: &[&str]) -> Request {
    let mut request = Request {
        action: action.to_owned(),
        resource: resource.to_owned(),
        ..Request::default()
    };
    for pair in context {
        let (key, value) = pair.split_once('=').unwrap();
        request
            .context
            .entry(key.to_owned())
            .or_default()
            .push(value.to_owned());
    }
    request
}

fn ec2(what: &str) -> String {
    format!("arn:aws:ec2:us-west-2:111:{what}")
}

/// Tags as AWS shows them to a policy: `RequestTag` of what is made, `ResourceTag` of what is there.
fn tags(side: &str, tags: &[(&str, &str)]) -> Vec<String> {
    tags.iter()
        .map(|(key, value)| format!("aws:{side}/{key}={value}"))
        .collect()
}

fn with(base: &[String], more: &[&str]) -> Vec<String> {
    base.iter()
        .cloned()
        .chain(more.iter().map(|one| (*one).to_owned()))
        .collect()
}

fn asked(action: &str, resource: &str, context: &[String]) -> Request {
    let context: Vec<&str> = context.iter().map(String::as_str).collect();
    request(action, resource, &context)
}

/// Tags of a machine that is being launched for a pool.
fn launching() -> Vec<String> {
    tags(
        "RequestTag",
        &[
            (OWNED, "owned"),
            ("eks:eks-cluster-name", "dev"),
            ("karpenter.sh/nodepool", "general"),
        ],
    )
}

/// Tags of a machine of ours.
fn ours() -> Vec<String> {
    tags("ResourceTag", &[(OWNED, "owned"), ("karpenter.sh/nodepool", "general")])
}

/// Tags of an instance profile of ours, on either side.
fn profile(side: &str) -> Vec<String> {
    tags(
        side,
        &[
            (OWNED, "owned"),
            ("eks:eks-cluster-name", "dev"),
            ("topology.kubernetes.io/region", "us-west-2"),
            ("karpenter.k8s.aws/ec2nodeclass", "default"),
        ],
    )
}

/// What the controller asks for in the course of its work: at least one request for every action.
fn needed() -> Vec<Request> {
    let mut all = Vec::new();
    for action in ["ec2:RunInstances", "ec2:CreateFleet"] {
        let reads = [
            "arn:aws:ec2:us-west-2::image/ami-1".to_owned(),
            "arn:aws:ec2:us-west-2::snapshot/snap-1".to_owned(),
            ec2("subnet/subnet-1"),
            ec2("security-group/sg-1"),
            ec2("capacity-reservation/cr-1"),
            ec2("placement-group/pg"),
        ];
        all.extend(reads.iter().map(|resource| request(action, resource, &[])));
        all.push(asked(action, &ec2("launch-template/lt-1"), &ours()));
        for made in [
            "fleet/f",
            "instance/i-1",
            "volume/vol-1",
            "network-interface/eni-1",
            "spot-instances-request/sir-1",
        ] {
            all.push(asked(action, &ec2(made), &launching()));
            let tagging = with(&launching(), &[&format!("ec2:CreateAction={}", &action[4..])]);
            all.push(asked("ec2:CreateTags", &ec2(made), &tagging));
        }
        // The dry run of a node class is for no pool: the tag is there, and empty.
        let dry = tags(
            "RequestTag",
            &[
                (OWNED, "owned"),
                ("eks:eks-cluster-name", "dev"),
                ("karpenter.sh/nodepool", ""),
            ],
        );
        all.push(asked(action, &ec2("instance/i-1"), &dry));
    }
    all.push(asked(
        "ec2:CreateLaunchTemplate",
        &ec2("launch-template/lt-1"),
        &launching(),
    ));
    let tagging = with(&launching(), &["ec2:CreateAction=CreateLaunchTemplate"]);
    all.push(asked("ec2:CreateTags", &ec2("launch-template/lt-1"), &tagging));
    let naming = with(&ours(), &["aws:TagKeys=Name", "aws:TagKeys=karpenter.sh/nodeclaim"]);
    all.push(asked("ec2:CreateTags", &ec2("instance/i-1"), &naming));
    let adopting = with(
        &ours(),
        &[
            "aws:TagKeys=eks:eks-cluster-name",
            "aws:RequestTag/eks:eks-cluster-name=dev",
        ],
    );
    all.push(asked("ec2:CreateTags", &ec2("instance/i-1"), &adopting));
    all.push(asked("ec2:TerminateInstances", &ec2("instance/i-1"), &ours()));
    all.push(asked("ec2:DeleteLaunchTemplate", &ec2("launch-template/lt-1"), &ours()));
    for what in [
        "CapacityReservations",
        "Images",
        "Instances",
        "InstanceStatus",
        "InstanceTypeOfferings",
        "InstanceTypes",
        "LaunchTemplates",
        "PlacementGroups",
        "SecurityGroups",
        "SpotPriceHistory",
        "Subnets",
    ] {
        all.push(request(
            &format!("ec2:Describe{what}"),
            "*",
            &["aws:RequestedRegion=us-west-2"],
        ));
    }
    all.push(request(
        "iam:PassRole",
        "arn:aws:iam::111:role/KarpenterNodeRole-dev",
        &["iam:PassedToService=ec2.amazonaws.com"],
    ));
    let arn = "arn:aws:iam::111:instance-profile/karpenter/us-west-2/dev/u/dev_1";
    all.push(asked("iam:CreateInstanceProfile", arn, &profile("RequestTag")));
    let both: Vec<String> = [profile("RequestTag"), profile("ResourceTag")].concat();
    all.push(asked("iam:TagInstanceProfile", arn, &both));
    for action in [
        "AddRoleToInstanceProfile",
        "RemoveRoleFromInstanceProfile",
        "DeleteInstanceProfile",
    ] {
        all.push(asked(&format!("iam:{action}"), arn, &profile("ResourceTag")));
    }
    all.push(request("iam:GetInstanceProfile", arn, &[]));
    all.push(request("iam:ListInstanceProfiles", "*", &[]));
    all.push(request(
        "eks:DescribeCluster",
        "arn:aws:eks:us-west-2:111:cluster/dev",
        &[],
    ));
    all.push(request(
        "ssm:GetParameter",
        "arn:aws:ssm:us-west-2::parameter/aws/service/eks/optimized-ami/1.33/x",
        &[],
    ));
    for action in ["GetQueueUrl", "ReceiveMessage", "DeleteMessage"] {
        all.push(request(
            &format!("sqs:{action}"),
            "arn:aws:sqs:us-west-2:111:karpenter-dev",
            &[],
        ));
    }
    all.push(request("pricing:GetProducts", "*", &[]));
    let cluster = "arc-zonal-shift:ResourceIdentifier=arn:aws:eks:us-west-2:111:cluster/dev";
    all.push(request("arc-zonal-shift:GetManagedResource", "*", &[cluster]));
    all
}

#[test]
fn every_call_is_allowed_where_it_is_needed() {
    let policy = policy();
    let refused: Vec<_> = needed()
        .into_iter()
        .filter(|one| policy.allows(one).unwrap().is_none())
        .collect();
    assert!(refused.is_empty(), "refused: {refused:#?}");
}

#[test]
fn the_policy_grants_what_is_on_the_list_of_calls_and_nothing_else() {
    let policy = policy();
    let granted: BTreeSet<&str> = policy
        .statement
        .iter()
        .flat_map(|one| &one.action)
        .map(String::as_str)
        .collect();
    let calls = calls();
    let called = calls.calls.iter().map(|call| call.action.as_str());
    let implied = calls.implied.iter().map(|one| one.action.as_str());
    let listed: BTreeSet<&str> = called.chain(implied).collect();
    assert_eq!(granted, listed);
    let needed = needed();
    let tried: BTreeSet<&str> = needed.iter().map(|one| one.action.as_str()).collect();
    assert_eq!(tried, listed, "the requests of this test name every action");
}

#[test]
fn nothing_is_granted_by_a_wildcard_but_reading() {
    let reads = |action: &str| {
        let (_, name) = action.split_once(':').unwrap();
        ["Describe", "Get", "List"].iter().any(|verb| name.starts_with(verb))
    };
    for statement in &policy().statement {
        for action in &statement.action {
            assert!(!action.contains('*'), "{}: {action}", statement.sid);
            let is_everything = statement.resource.iter().any(|resource| resource == "*");
            assert!(
                !is_everything || reads(action),
                "{}: {action} on everything",
                statement.sid
            );
        }
    }
}

#[test]
fn implied_actions_are_brought_about_by_calls() {
    let calls = calls();
    let called: BTreeSet<&str> = calls.calls.iter().map(|call| call.action.as_str()).collect();
    for implied in &calls.implied {
        assert!(
            !called.contains(implied.action.as_str()),
            "{} is called",
            implied.action
        );
        assert!(
            !implied.by.is_empty() && implied.by.iter().all(|by| called.contains(by.as_str())),
            "{implied:?}"
        );
    }
}

#[test]
fn what_belongs_to_others_is_out_of_reach() {
    let other = |side: &str| {
        tags(
            side,
            &[
                ("kubernetes.io/cluster/other", "owned"),
                ("karpenter.sh/nodepool", "general"),
            ],
        )
    };
    let node_group = tags("ResourceTag", &[(OWNED, "owned"), ("eks:nodegroup-name", "system")]);
    let (role, profile_arn) = (
        "arn:aws:iam::111:role/KarpenterNodeRole-dev",
        "arn:aws:iam::111:instance-profile/mine",
    );
    let renaming = with(&ours(), &["aws:TagKeys=Owner"]);
    let taking = with(
        &ours(),
        &[
            "aws:TagKeys=eks:eks-cluster-name",
            "aws:RequestTag/eks:eks-cluster-name=other",
        ],
    );
    let cases = [
        (
            "end a machine without tags",
            request("ec2:TerminateInstances", &ec2("instance/i-1"), &[]),
        ),
        (
            "end a machine of another cluster",
            asked("ec2:TerminateInstances", &ec2("instance/i-1"), &other("ResourceTag")),
        ),
        (
            "end a machine of a node group",
            asked("ec2:TerminateInstances", &ec2("instance/i-1"), &node_group),
        ),
        (
            "delete a template of somebody",
            request("ec2:DeleteLaunchTemplate", &ec2("launch-template/lt-1"), &[]),
        ),
        (
            "launch from a template of somebody",
            request("ec2:RunInstances", &ec2("launch-template/lt-1"), &[]),
        ),
        (
            "launch without tags",
            request("ec2:RunInstances", &ec2("instance/i-1"), &[]),
        ),
        (
            "launch for another cluster",
            asked("ec2:CreateFleet", &ec2("instance/i-1"), &other("RequestTag")),
        ),
        (
            "launch in another region",
            asked(
                "ec2:CreateFleet",
                "arn:aws:ec2:eu-west-1:111:instance/i-1",
                &launching(),
            ),
        ),
        (
            "tag a machine of somebody",
            request("ec2:CreateTags", &ec2("instance/i-1"), &["aws:TagKeys=Name"]),
        ),
        (
            "tag what is being made by another call",
            asked(
                "ec2:CreateTags",
                &ec2("volume/vol-1"),
                &with(&launching(), &["ec2:CreateAction=CreateVolume"]),
            ),
        ),
        (
            "set other tags on an own machine",
            asked("ec2:CreateTags", &ec2("instance/i-1"), &renaming),
        ),
        (
            "hand an own machine to another cluster",
            asked("ec2:CreateTags", &ec2("instance/i-1"), &taking),
        ),
        (
            "pass another role",
            request(
                "iam:PassRole",
                "arn:aws:iam::111:role/Admin",
                &["iam:PassedToService=ec2.amazonaws.com"],
            ),
        ),
        (
            "pass the node role to another service",
            request("iam:PassRole", role, &["iam:PassedToService=lambda.amazonaws.com"]),
        ),
        (
            "delete a profile of somebody",
            request("iam:DeleteInstanceProfile", profile_arn, &[]),
        ),
        (
            "put a role into a profile of somebody",
            request("iam:AddRoleToInstanceProfile", profile_arn, &[]),
        ),
        (
            "make a profile without tags",
            request("iam:CreateInstanceProfile", profile_arn, &[]),
        ),
        (
            "read another queue",
            request("sqs:ReceiveMessage", "arn:aws:sqs:us-west-2:111:orders", &[]),
        ),
        (
            "describe another cluster",
            request("eks:DescribeCluster", "arn:aws:eks:us-west-2:111:cluster/other", &[]),
        ),
        (
            "read a parameter of somebody",
            request("ssm:GetParameter", "arn:aws:ssm:us-west-2:111:parameter/password", &[]),
        ),
        (
            "describe machines in another region",
            request("ec2:DescribeInstances", "*", &["aws:RequestedRegion=eu-west-1"]),
        ),
    ];
    let policy = policy();
    for (what, request) in &cases {
        assert_eq!(policy.allows(request).unwrap(), None, "the controller may {what}");
    }
}

#[test]
fn the_provider_calls_what_is_on_the_list() {
    let folder = root().join("crates").join(PROVIDER).join("src");
    if !folder.is_dir() {
        eprintln!("NOT RUN: crates/{PROVIDER} is not there, so its calls are held against nothing");
        return;
    }
    let list = calls();
    let operations = calls::operations(PROVIDER, &list).unwrap();
    let called = calls::called(&folder, &operations).unwrap();
    let listed: BTreeSet<&str> = list.calls.iter().map(|call| call.action.as_str()).collect();
    let unlisted: Vec<_> = called
        .iter()
        .filter(|(action, _)| !listed.contains(action.as_str()))
        .collect();
    assert!(
        unlisted.is_empty(),
        "called, and not in deploy/aws/calls.json: {unlisted:#?}"
    );
    let idle: Vec<_> = listed.iter().filter(|action| !called.contains_key(**action)).collect();
    if list.complete {
        assert!(
            idle.is_empty(),
            "in deploy/aws/calls.json, and called by nothing: {idle:?}"
        );
    } else {
        eprintln!("listed, and not called yet: {idle:?}; deploy/aws/calls.json says that it is not complete");
    }
}
