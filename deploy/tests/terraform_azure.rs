//! The Terraform module for AKS: arguments the providers know, inputs that are shown and told, roles that have a scope.
//! Whether the roles are right is asked where they are played (`e2e/arm/tests/double/tour.rs`).
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{collections::BTreeSet, fs};

use deploy::{
    module::{Module, Schema},
    read, root,
};
use serde_json::Value;

const MODULE: &str = "terraform/azure";

fn module() -> Module {
    Module::read(&root().join(MODULE)).unwrap()
}

fn schemas() -> Vec<Schema> {
    ["azurerm", "helm"]
        .map(|name| serde_json::from_str(&read(&format!("terraform/schema/{name}.json")).unwrap()).unwrap())
        .into()
}

fn examples() -> Vec<(String, Module)> {
    let entries = fs::read_dir(root().join(MODULE).join("examples")).unwrap();
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let named = folders.iter().map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, Module::read(path).unwrap())
    });
    named.collect()
}

#[test]
fn every_argument_and_every_reference_exists() {
    assert_eq!(module().problems(&schemas()).unwrap(), Vec::<String>::new());
    for (name, example) in examples() {
        assert_eq!(example.problems(&schemas()).unwrap(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn only_what_nothing_can_tell_is_required() {
    let inputs = module().inputs();
    let required = inputs.iter().filter(|(_, input)| input.default.is_none());
    let required: Vec<&str> = required.map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        required,
        [
            "aks_cluster_name",
            "bootstrap_token_secret",
            "resource_group_name",
            "ssh_public_key",
            "vnet_subnet_id"
        ]
    );
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
        let required = inputs.iter().filter(|(_, declared)| declared.default.is_none());
        let lacks: Vec<_> = required.filter(|(input, _)| !given.contains(*input)).collect();
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
    let page = read("terraform/azure/README.md").unwrap();
    let module = module();
    let names = module.inputs().into_keys().chain(module.outputs());
    let missing: Vec<_> = names.filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(
        missing.is_empty(),
        "terraform/azure/README.md does not name {missing:?}"
    );
}

fn roles() -> Vec<Value> {
    serde_json::from_str(&read("deploy/azure/role.json").unwrap()).unwrap()
}

#[test]
fn every_role_of_the_file_is_given_somewhere_and_no_other() {
    let module = module();
    let hcl::Expression::Object(scopes) = module.local("scopes").unwrap() else {
        panic!("local.scopes is an object");
    };
    let given: BTreeSet<String> = scopes.keys().map(ToString::to_string).collect();
    let known: BTreeSet<String> = roles()
        .iter()
        .map(|role| role["key"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(given, known);
}

#[test]
fn roles_are_in_order_and_grant_no_more_than_they_say() {
    for role in roles() {
        let actions: Vec<&str> = role["actions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_str().unwrap())
            .collect();
        assert!(actions.is_sorted(), "{}", role["key"]);
        // A star stands for a kind of resource below one that is named, never for what may be done with everything.
        let wide = actions
            .iter()
            .filter(|action| action.split('/').nth(1).is_none_or(|part| part == "*"));
        assert_eq!(wide.count(), 0, "{}", role["key"]);
        let is_subscription = role["scope"] == "subscription";
        let only_reads = actions.iter().all(|action| action.ends_with("/read"));
        assert!(
            !is_subscription || only_reads,
            "{} writes on a subscription",
            role["key"]
        );
    }
}

#[test]
fn every_call_is_an_operation_of_the_contract_and_every_linked_action_is_in_a_role() {
    let contract: Vec<Value> = serde_json::from_str(&read("e2e/arm/schemas/operations.json").unwrap()).unwrap();
    let known: BTreeSet<&str> = contract.iter().map(|one| one["id"].as_str().unwrap()).collect();
    let list: Value = serde_json::from_str(&read("deploy/azure/calls.json").unwrap()).unwrap();
    let roles = roles();
    let granted: BTreeSet<&str> = roles
        .iter()
        .flat_map(|role| role["actions"].as_array().unwrap())
        .map(|action| action.as_str().unwrap())
        .collect();
    for call in list["calls"].as_array().unwrap() {
        let id = call["operation"].as_str().unwrap();
        assert!(known.contains(id), "{id} is no operation of the contract");
        assert!(!call["why"].as_str().unwrap().is_empty(), "{id}");
        for action in call["also"].as_array().into_iter().flatten() {
            assert!(
                granted.contains(action.as_str().unwrap()),
                "{id}: no role grants {action}"
            );
        }
    }
}
