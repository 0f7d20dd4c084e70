//! Rules on node classes, NC01 to NC09. What only the cloud knows is read from the status that a controller wrote.

use std::collections::BTreeSet;

use api::labels::ARCH;
use serde_json::Value;

use crate::{finding::Found, supply::architectures, world::World};

/// The AL2023 release that examples name; any release that exists will do.
const RELEASE: &str = "v20261110";

impl World {
    fn ec2_classes(&self) -> impl Iterator<Item = (usize, &Value)> {
        let classes = self.classes.iter().map(|at| (*at, self.value(*at)));
        classes.filter(|(_, class)| class["kind"] == "EC2NodeClass")
    }
}

/// The terms of a class's image selector, with their places.
fn image_terms(class: &Value) -> impl Iterator<Item = (usize, &Value)> {
    class["spec"]["amiSelectorTerms"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
}

/// The image a class is pinned to, where it says one.
pub(crate) fn pinned_image(class: &Value) -> Option<String> {
    let mut terms = image_terms(class).map(|(_, term)| term);
    let pinned = |term: &Value| {
        let alias = term["alias"]
            .as_str()
            .filter(|alias| alias.contains('@') && !alias.ends_with("@latest"));
        alias.or_else(|| term["id"].as_str()).map(str::to_owned)
    };
    let of_aws = terms.find_map(pinned);
    let of_azure = class["spec"]["imageID"].as_str().map(str::to_owned);
    of_aws.or(of_azure)
}

pub(crate) fn ami_alias(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for (at, class) in world.ec2_classes() {
        for (number, term) in image_terms(class) {
            let Some(alias) = term["alias"].as_str().filter(|alias| !alias.contains('@')) else {
                continue;
            };
            let path = format!("spec.amiSelectorTerms[{number}].alias");
            let text = format!("alias \"{alias}\" has no version: the API server rejects it");
            let pinned = format!("{alias}@{RELEASE}");
            found.push(
                Found::new(at, path, text)
                    .why("the API server rejects it: an alias is family@version. The class is not created, so its NodePools are never ready.")
                    .fix(format!("alias: {pinned}, with the release you tested: it rolls when you change it; {alias}@latest rolls the fleet on each release (NC02)"))
                    .replacing(alias, pinned),
            );
        }
    }
    found
}

pub(crate) fn ami_latest(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for (at, class) in world.ec2_classes() {
        for (number, term) in image_terms(class) {
            let Some(alias) = term["alias"].as_str() else { continue };
            let Some(family) = alias.strip_suffix("@latest") else {
                continue;
            };
            let text = format!("alias {alias}: every release of the image rolls the fleet");
            found.push(
                Found::new(at, format!("spec.amiSelectorTerms[{number}].alias"), text)
                    .fix(format!(
                        "alias: {family}@{RELEASE}, with the release you tested, and change it by pull request"
                    ))
                    .replacing("@latest", format!("@{RELEASE}")),
            );
        }
    }
    found
}

/// A condition of a class that does not hold: its message.
fn broken<'a>(class: &'a Value, condition: &str) -> Option<&'a str> {
    let conditions = class["status"]["conditions"].as_array().into_iter().flatten();
    let mut of_kind = conditions.filter(|one| one["type"] == *condition && one["status"] == "False");
    of_kind.next().map(|one| one["message"].as_str().unwrap_or_default())
}

pub(crate) fn selector_empty(world: &World) -> Vec<Found> {
    let selectors = [
        ("SubnetsReady", "spec.subnetSelectorTerms", "subnets"),
        (
            "SecurityGroupsReady",
            "spec.securityGroupSelectorTerms",
            "security groups",
        ),
        ("AMIsReady", "spec.amiSelectorTerms", "images"),
    ];
    let mut found = Vec::new();
    for (at, class) in world.ec2_classes() {
        for (condition, path, what) in selectors {
            if let Some(message) = broken(class, condition) {
                let told = if message.is_empty() {
                    String::new()
                } else {
                    format!(": {message}")
                };
                found.push(Found::new(at, path, format!("its selector finds no {what}{told}")));
            }
        }
    }
    found
}

pub(crate) fn one_zone(world: &World) -> Vec<Found> {
    let found = world.ec2_classes().filter_map(|(at, class)| {
        let subnets = class["status"]["subnets"].as_array()?;
        let zones: BTreeSet<_> = subnets.iter().filter_map(|subnet| subnet["zone"].as_str()).collect();
        let [zone] = zones.into_iter().collect::<Vec<_>>()[..] else {
            return None;
        };
        let text = format!(
            "all {} of its subnets are in {zone}: losing the zone loses every node",
            subnets.len()
        );
        Some(Found::new(at, "spec.subnetSelectorTerms", text))
    });
    found.collect()
}

pub(crate) fn few_ips(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for pool in &world.pools {
        let Some((class, _)) = world.class_of(pool) else {
            continue;
        };
        let is_short = |claim: &&std::sync::Arc<model::object::NodeClaim>| {
            let of_pool = claim
                .node_pool()
                .is_some_and(|of| *of.as_str() == *pool.pool.metadata.name);
            of_pool
                && claim
                    .status
                    .conditions
                    .iter()
                    .any(|one| one.message.contains("InsufficientFreeAddressesInSubnet"))
        };
        if let Some(claim) = world.claims.iter().find(is_short) {
            let text = format!(
                "its subnets ran out of addresses: NodeClaim {} could not be launched",
                claim.metadata.name
            );
            found.push(Found::new(class, "spec.subnetSelectorTerms", text));
        }
    }
    found
}

pub(crate) fn role_missing(world: &World) -> Vec<Found> {
    let found = world.ec2_classes().filter_map(|(at, class)| {
        let message = broken(class, "InstanceProfileReady")?;
        let field = if class["spec"]["instanceProfile"].is_string() {
            "instanceProfile"
        } else {
            "role"
        };
        let name = class["spec"][field].as_str().unwrap_or_default();
        let told = if message.is_empty() {
            String::new()
        } else {
            format!(": {message}")
        };
        Some(Found::new(
            at,
            format!("spec.{field}"),
            format!("{field} {name} is not usable{told}"),
        ))
    });
    found.collect()
}

pub(crate) fn imds_open(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for (at, class) in world.ec2_classes() {
        let options = &class["spec"]["metadataOptions"];
        if options["httpTokens"] == "optional" {
            let text = "httpTokens: optional lets any pod ask the instance for its credentials without a token";
            found.push(
                Found::new(at, "spec.metadataOptions.httpTokens", text)
                    .fix("httpTokens: required")
                    .replacing("optional", "required"),
            );
        }
        let hops = options["httpPutResponseHopLimit"].as_i64().filter(|hops| *hops > 1);
        if let Some(hops) = hops {
            let text = format!("httpPutResponseHopLimit: {hops} lets pods reach the node's credentials");
            found.push(
                Found::new(at, "spec.metadataOptions.httpPutResponseHopLimit", text)
                    .fix("httpPutResponseHopLimit: 1; pods that need a role get one by Pod Identity")
                    .replacing(hops.to_string(), "1"),
            );
        }
    }
    found
}

pub(crate) fn root_volume(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for (at, class) in world.ec2_classes() {
        let mappings = class["spec"]["blockDeviceMappings"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate();
        for (number, mapping) in mappings {
            let disk = &mapping["ebs"];
            let path = format!("spec.blockDeviceMappings[{number}].ebs");
            let is_keyed = disk["kmsKeyID"].is_string() || disk["snapshotID"].is_string();
            if disk["encrypted"] == false {
                let text = "encrypted: false: the disk can be read by whoever gets it next";
                found.push(
                    Found::new(at, format!("{path}.encrypted"), text)
                        .fix("encrypted: true")
                        .replacing("false", "true"),
                );
            } else if disk["encrypted"].is_null() && disk.is_object() && !is_keyed {
                let text = "the disk is not said to be encrypted: it is not, unless the account's default says so";
                found.push(
                    Found::new(at, path, text)
                        .fix("encrypted: true")
                        .adding_inside("encrypted: true"),
                );
            }
        }
    }
    found
}

pub(crate) fn image_arch(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for (at, class) in world.ec2_classes() {
        let images = class["status"]["amis"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let of_image = |image: &Value| -> Option<Vec<String>> {
            let mut requirements = image["requirements"].as_array()?.iter();
            let arch = requirements.find(|one| one["key"] == ARCH && one["operator"] == "In")?;
            Some(
                arch["values"]
                    .as_array()?
                    .iter()
                    .filter_map(|one| one.as_str().map(str::to_owned))
                    .collect(),
            )
        };
        let known: Option<Vec<Vec<String>>> = images.iter().map(of_image).collect();
        // An image that does not say what it runs on may run on anything.
        let Some(known) = known.filter(|known| !known.is_empty()) else {
            continue;
        };
        let known: BTreeSet<String> = known.into_iter().flatten().collect();
        for pool in world.pools_of(at) {
            let Some(supply) = world.supply(pool) else { continue };
            let allowed = architectures(world.left(pool).into_iter(), &supply.vocabulary);
            for arch in allowed.into_iter().filter(|arch| !known.contains(*arch)) {
                let name = class["metadata"]["name"].as_str().unwrap_or_default();
                let text = format!("allows {arch}, for which EC2NodeClass {name} has no image: such nodes never join");
                found.push(
                    Found::new(pool.document, "spec.template.spec.requirements", text).fix(format!(
                        "a requirement {ARCH} In [{}], or an image for {arch}",
                        join(&known)
                    )),
                );
            }
        }
    }
    found
}

fn join(words: &BTreeSet<String>) -> String {
    words.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
