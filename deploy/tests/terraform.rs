//! The Terraform module: the inputs and outputs that were promised, arguments the providers know, policies that fit.
//! Formatting is checked in the tier that has Go (`e2e/tests/terraform_format.rs`); `terraform validate` runs nowhere here,
//! since it needs the provider plugins.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{collections::BTreeSet, fs};

use deploy::{
    module::{Module, Schema},
    policy, read, root,
};
use hcl::Expression;
use serde_json::Value;

const MODULE: &str = "terraform/aws";

fn module() -> Module {
    Module::read(&root().join(MODULE)).unwrap()
}

fn schemas() -> Vec<Schema> {
    ["aws", "helm"]
        .map(|name| serde_json::from_str(&read(&format!("terraform/schema/{name}.json")).unwrap()).unwrap())
        .into()
}

fn examples() -> Vec<(String, Module)> {
    let mut folders: Vec<_> = fs::read_dir(root().join(MODULE).join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    folders
        .iter()
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                Module::read(path).unwrap(),
            )
        })
        .collect()
}

#[test]
fn every_argument_and_every_reference_exists() {
    assert_eq!(module().problems(&schemas()).unwrap(), Vec::<String>::new());
    for (name, example) in examples() {
        assert_eq!(example.problems(&schemas()).unwrap(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_inputs_are_those_of_the_document_the_project_began_with() {
    let inputs = module().inputs();
    let text = |value: &str| Some(Expression::String(value.to_owned()));
    let promised = [
        ("eks_cluster_name", "string", None),
        ("eks_cluster_endpoint", "string", None),
        ("environment", "string", text("dev")),
        ("aws_region", "string", None),
        ("namespace", "string", text("karpenter")),
        ("service_account_name", "string", text("karpenter")),
        // The one default that cannot be the document's: it was a version of Karpenter's chart.
        ("helm_chart_version", "string", text(env!("CARGO_PKG_VERSION"))),
    ];
    for (name, kind, default) in promised {
        let input = inputs.get(name).unwrap_or_else(|| panic!("no input {name}"));
        assert_eq!((input.kind.as_str(), &input.default), (kind, &default), "{name}");
    }
    let tags = &inputs["resource_tag"];
    assert_eq!(tags.kind, "map(string)");
    assert!(matches!(&tags.default, Some(Expression::Object(tags)) if tags.is_empty()));
}

#[test]
fn nothing_but_what_the_document_requires_is_required() {
    let inputs = module().inputs();
    let required: Vec<_> = inputs
        .iter()
        .filter(|(_, input)| input.default.is_none())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(required, ["aws_region", "eks_cluster_endpoint", "eks_cluster_name"]);
}

#[test]
fn the_outputs_are_those_of_the_document_the_project_began_with() {
    let outputs = module().outputs();
    for name in [
        "iam_role_arn",
        "node_iam_role_arn",
        "node_iam_role_name",
        "instance_profile_name",
        "queue_name",
        "queue_url",
    ] {
        assert!(outputs.contains(name), "no output {name}");
    }
}

#[test]
fn examples_give_the_module_what_it_takes() {
    let inputs = module().inputs();
    let mut given_somewhere = BTreeSet::new();
    for (name, example) in examples() {
        let [(_, source, given)] = &example.calls()[..] else {
            panic!("example {name} calls one module");
        };
        assert_eq!(source, "../..", "{name}");
        let unknown: Vec<_> = given.iter().filter(|input| !inputs.contains_key(*input)).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?} are no inputs");
        let lacks: Vec<_> = inputs
            .iter()
            .filter(|(input, declared)| declared.default.is_none() && !given.contains(*input))
            .collect();
        assert!(lacks.is_empty(), "{name}: {lacks:?} are required");
        given_somewhere.extend(given.clone());
    }
    let unused: Vec<_> = inputs
        .keys()
        .filter(|input| !given_somewhere.contains(*input))
        .collect();
    assert!(unused.is_empty(), "no example shows {unused:?}");
}

#[test]
fn the_page_names_every_input_and_every_output() {
    let page = read("terraform/aws/README.md").unwrap();
    let module = module();
    let names = module.inputs().into_keys().chain(module.outputs());
    let missing: Vec<_> = names.filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(missing.is_empty(), "terraform/aws/README.md does not name {missing:?}");
}

#[test]
fn each_statement_of_the_policy_is_in_one_managed_policy_that_fits() {
    // The longest names there can be, in the longest partition.
    let cluster = "c".repeat(100);
    let (role, queue) = ("r".repeat(64), "q".repeat(64));
    let names = [
        ("AWS_ACCOUNT_ID", "123456789012"),
        ("AWS_PARTITION", "aws-us-gov"),
        ("AWS_REGION", "ap-southeast-2"),
        ("CLUSTER_NAME", &cluster),
        ("NODE_ROLE_NAME", &role),
        ("QUEUE_NAME", &queue),
    ];
    let mut text = read("deploy/aws/iam-policy.json").unwrap();
    policy::parse(&text, &names).unwrap();
    for (name, value) in names {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    let document: Value = serde_json::from_str(&text).unwrap();
    let statements = document["Statement"].as_array().unwrap();
    let module = module();
    let groups = module.local("policies").unwrap().clone();
    let groups = serde_json::to_value(hcl::Value::from(groups)).unwrap();
    let mut placed: Vec<&str> = Vec::new();
    for (group, sids) in groups.as_object().unwrap() {
        let sids: Vec<&str> = sids
            .as_array()
            .unwrap()
            .iter()
            .map(|sid| sid.as_str().unwrap())
            .collect();
        let inside: Vec<&Value> = statements
            .iter()
            .filter(|one| sids.contains(&one["Sid"].as_str().unwrap()))
            .collect();
        assert_eq!(
            inside.len(),
            sids.len(),
            "{group} names a statement that the policy does not have"
        );
        // AWS counts characters without white space.
        let size = serde_json::to_string(&inside).unwrap().len() + r#"{"Version":"2012-10-17","Statement":}"#.len();
        assert!(size <= 6144, "{group} has {size} characters, and AWS takes 6144");
        placed.extend(sids);
    }
    let mut all: Vec<&str> = statements.iter().map(|one| one["Sid"].as_str().unwrap()).collect();
    all.sort_unstable();
    placed.sort_unstable();
    assert_eq!(placed, all);
}
