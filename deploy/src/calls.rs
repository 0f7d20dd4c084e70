//! Which calls to AWS can the controller make? The list of them, and what the source of the provider calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, bail};
use regex::Regex;
use serde::Deserialize;

use crate::root;

/// `deploy/aws/calls.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// What the file is for.
    pub about: String,
    /// Whether every listed call is made; until then one that is not is only told.
    pub complete: bool,
    /// Calls the controller makes.
    pub calls: Vec<Call>,
    /// What AWS checks beside them.
    pub implied: Vec<Implied>,
    /// Calls that AWS allows by the action of another.
    pub same: BTreeMap<String, String>,
    /// The prefix of actions for each crate of the SDK.
    pub prefixes: BTreeMap<String, String>,
}

/// A call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Such as `ec2:CreateFleet`.
    pub action: String,
    /// What for.
    pub why: String,
}

/// An action nobody calls, which AWS checks in the course of others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Implied {
    /// Such as `iam:PassRole`.
    pub action: String,
    /// Calls that bring it about.
    pub by: Vec<String>,
    /// How.
    pub why: String,
}

/// Operations of the SDK by the method that begins them: `create_fleet` is `ec2:CreateFleet`.
pub type Operations = BTreeMap<String, BTreeSet<String>>;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

/// Every operation of the crates of the SDK that a crate of ours depends on: each has a file of its name in them.
pub fn operations(package: &str, list: &Calls) -> Result<Operations> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .context("starting cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    let find = |name: &str| metadata.packages.iter().find(|package| package.name == name);
    let ours = find(package).with_context(|| format!("{package} is not in the workspace"))?;
    let mut found = Operations::new();
    let sdk = ours.dependencies.iter().map(|one| one.name.as_str());
    let sdk: BTreeSet<&str> = sdk.filter(|name| name.starts_with("aws-sdk-")).collect();
    for name in sdk {
        let prefix = list
            .prefixes
            .get(name)
            .with_context(|| format!("deploy/aws/calls.json: prefixes does not say which actions {name} makes"))?;
        let manifest = find(name).with_context(|| format!("{name} is not locked"))?;
        let folder = Path::new(&manifest.manifest_path).with_file_name("src").join("client");
        let entries = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let Some(method) = path.file_stem().and_then(|stem| stem.to_str()) else {
                continue;
            };
            let action = format!("{prefix}:{}", pascal(method));
            let action = list.same.get(&action).cloned().unwrap_or(action);
            found.entry(method.to_owned()).or_default().insert(action);
        }
    }
    Ok(found)
}

/// `describe_instance_types` is `DescribeInstanceTypes`.
fn pascal(method: &str) -> String {
    let words = method.split('_').filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (first, rest) = word.split_at(word.char_indices().nth(1).map_or(word.len(), |(at, _)| at));
            first.to_uppercase() + rest
        })
        .collect()
}

/// The actions that the source files under a folder call, each with the files that do. Tests among them are left out.
pub fn called(folder: &Path, operations: &Operations) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
            if is_test {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                for action in of_source(&text, operations)? {
                    let files: &mut BTreeSet<String> = found.entry(action).or_default();
                    files.insert(path.display().to_string());
                }
            }
        }
    }
    Ok(found)
}

/// The actions a source text calls: the SDK begins a call with a method without arguments, or with an input that is built
/// apart and sent.
fn of_source(text: &str, operations: &Operations) -> Result<BTreeSet<String>> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let call = Regex::new(r"\.\s*([a-z][a-z0-9_]*)\s*\(\s*\)")?;
    let input = Regex::new(r"operation::([a-z][a-z0-9_]*)::builders")?;
    let methods = call.captures_iter(text).chain(input.captures_iter(text));
    let methods = methods.filter_map(|found| found.get(1));
    let actions = methods.filter_map(|method| operations.get(method.as_str()));
    Ok(actions.flatten().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations() -> Operations {
        ["create_fleet", "terminate_instances", "describe_subnets"]
            .into_iter()
            .map(|method| (method.to_owned(), BTreeSet::from([format!("ec2:{}", pascal(method))])))
            .collect()
    }

    #[test]
    fn a_call_is_found_however_it_is_broken_into_lines() {
        let source = "let a = self.clients\n    .ec2\n    .create_fleet()\n    .send();\nlet b = client.terminate_instances ( );";
        let found = of_source(source, &operations()).unwrap();
        assert_eq!(Vec::from_iter(found), ["ec2:CreateFleet", "ec2:TerminateInstances"]);
    }

    #[test]
    fn an_input_that_is_built_to_be_sent_is_a_call() {
        let source = "use aws_sdk_ec2::operation::create_fleet::builders::CreateFleetInputBuilder;";
        let found = of_source(source, &operations()).unwrap();
        assert_eq!(Vec::from_iter(found), ["ec2:CreateFleet"]);
        let shown = "use aws_sdk_ec2::operation::create_fleet::CreateFleetOutput;";
        assert!(of_source(shown, &operations()).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_operation_or_only_tested_is_no_call() {
        let source = "map.keys().next();\ndescribe_subnets(x);\n#[cfg(test)]\nmod tests {\n    fn a() { c.describe_subnets(); }\n}";
        assert!(of_source(source, &operations()).unwrap().is_empty());
    }

    #[test]
    fn a_method_has_the_name_of_its_action() {
        assert_eq!(
            pascal("describe_instance_type_offerings"),
            "DescribeInstanceTypeOfferings"
        );
        assert_eq!(pascal("get_queue_url"), "GetQueueUrl");
    }
}
