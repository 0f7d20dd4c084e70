//! Does a Terraform module name only what exists? Arguments against the providers' published schema, references against
//! what the module declares. It evaluates nothing: `terraform validate` does, where provider plugins can be had.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use hcl::{Block, Body, Expression};
use regex::Regex;
use serde::Deserialize;

/// Arguments of every resource, whatever its provider.
const META: &[&str] = &["count", "depends_on", "for_each", "lifecycle", "provider"];

/// What a provider takes, from `terraform/schema`.
#[derive(Debug, Deserialize)]
pub struct Schema {
    /// Its name.
    pub provider: String,
    /// The release it was read from.
    pub version: String,
    /// Where it was read.
    pub from: String,
    /// By type.
    pub resource: BTreeMap<String, Kind>,
    /// By type.
    pub data: BTreeMap<String, Kind>,
}

/// A resource or a data source.
#[derive(Debug, Deserialize)]
pub struct Kind {
    /// What may be given.
    pub arguments: BTreeMap<String, Field>,
    /// What may be read.
    pub attributes: BTreeSet<String>,
}

/// An argument.
#[derive(Debug, Default, Deserialize)]
pub struct Field {
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// Its own fields, if it is a block or a list of objects.
    pub fields: Option<BTreeMap<String, Self>>,
}

/// A folder of `.tf` files.
#[derive(Debug)]
pub struct Module {
    /// Its files, by name: the text and what it says.
    files: BTreeMap<String, (String, Body)>,
}

/// An input of a module.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Its type as it is written.
    pub kind: String,
    /// What it is if nobody says; none if somebody must.
    pub default: Option<Expression>,
}

impl Module {
    /// Reads the `.tf` files of a folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "tf") {
                let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                files.insert(name, text);
            }
        }
        Self::parse(files)
    }

    /// The module of these texts, by file.
    pub fn parse(files: BTreeMap<String, String>) -> Result<Self> {
        let parsed = files.into_iter().map(|(name, text)| {
            let body = hcl::parse(&text).with_context(|| format!("{name} is not HCL"))?;
            Ok((name, (text, body)))
        });
        Ok(Self {
            files: parsed.collect::<Result<_>>()?,
        })
    }

    /// Blocks of a kind, with their file.
    fn blocks<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a str, &'a Block)> {
        self.files.iter().flat_map(move |(file, (_, body))| {
            let blocks = body.blocks().filter(move |block| block.identifier() == kind);
            blocks.map(|block| (file.as_str(), block))
        })
    }

    /// What may be given to it.
    pub fn inputs(&self) -> BTreeMap<String, Input> {
        let inputs = self.blocks("variable").map(|(_, block)| {
            let expression = |key| argument(block, key).cloned();
            let input = Input {
                kind: expression("type").map(|kind| kind.to_string()).unwrap_or_default(),
                default: expression("default"),
            };
            (label(block, 0), input)
        });
        inputs.collect()
    }

    /// What it tells.
    pub fn outputs(&self) -> BTreeSet<String> {
        self.blocks("output").map(|(_, block)| label(block, 0)).collect()
    }

    /// A local value.
    pub fn local(&self, name: &str) -> Option<&Expression> {
        self.blocks("locals").find_map(|(_, block)| argument(block, name))
    }

    /// Calls of other modules: by name, the source and what is given.
    pub fn calls(&self) -> Vec<(String, String, BTreeSet<String>)> {
        let calls = self.blocks("module").map(|(_, block)| {
            let source = match argument(block, "source") {
                Some(Expression::String(source)) => source.clone(),
                _ => String::new(),
            };
            let given = block.body().attributes().map(|one| one.key().to_owned());
            let given = given.filter(|key| !META.contains(&key.as_str()) && key != "source" && key != "version");
            (label(block, 0), source, given.collect())
        });
        calls.collect()
    }

    /// What is wrong with it, one sentence each.
    pub fn problems(&self, schemas: &[Schema]) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for kind in ["resource", "data"] {
            for (file, block) in self.blocks(kind) {
                found.extend(block_problems(kind, file, block, schemas));
            }
        }
        found.extend(self.reference_problems(schemas)?);
        Ok(found)
    }

    fn reference_problems(&self, schemas: &[Schema]) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let declared = self.declared();
        let plain = Regex::new(r"\b(var|local)\.([A-Za-z_]\w*)")?;
        let resource = Regex::new(r"(?:\b(data)\.)?\b((?:aws|azurerm|helm)_\w+)\.(\w+)(?:\[[^\]]*\])?(?:\.(\w+))?")?;
        let mut used = BTreeSet::new();
        for (file, (text, _)) in &self.files {
            let code: Vec<&str> = text
                .lines()
                .filter(|line| !line.trim_start().starts_with('#'))
                .collect();
            let code = code.join("\n");
            for reference in plain.captures_iter(&code) {
                let name = reference[0].to_owned();
                if !declared.contains(&name) {
                    found.push(format!("{file}: {name} is not declared"));
                }
                used.insert(name);
            }
            for reference in resource.captures_iter(&code) {
                let kind = if reference.get(1).is_some() { "data" } else { "resource" };
                let (of, name) = (&reference[2], &reference[3]);
                if !declared.contains(&format!("{kind} {of}.{name}")) {
                    found.push(format!("{file}: {kind} {of}.{name} is not declared"));
                    continue;
                }
                let attribute = reference.get(4).map(|attribute| attribute.as_str());
                let known = find(schemas, kind, of)
                    .is_none_or(|kind| attribute.is_none_or(|one| kind.attributes.contains(one)));
                if !known {
                    found.push(format!(
                        "{file}: {kind} {of} has no attribute {}",
                        attribute.unwrap_or_default()
                    ));
                }
            }
        }
        let idle = declared
            .iter()
            .filter(|name| name.starts_with("var.") || name.starts_with("local."));
        let idle = idle.filter(|name| !used.contains(*name));
        found.extend(idle.map(|name| format!("{name} is used by nothing")));
        Ok(found)
    }

    /// Everything that can be referred to.
    fn declared(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        all.extend(
            self.blocks("variable")
                .map(|(_, block)| format!("var.{}", label(block, 0))),
        );
        for (_, block) in self.blocks("locals") {
            all.extend(block.body().attributes().map(|one| format!("local.{}", one.key())));
        }
        for kind in ["resource", "data"] {
            all.extend(
                self.blocks(kind)
                    .map(|(_, block)| format!("{kind} {}.{}", label(block, 0), label(block, 1))),
            );
        }
        all
    }
}

fn find<'a>(schemas: &'a [Schema], kind: &str, of: &str) -> Option<&'a Kind> {
    schemas.iter().find_map(|schema| {
        let kinds = if kind == "data" { &schema.data } else { &schema.resource };
        kinds.get(of)
    })
}

fn block_problems(kind: &str, file: &str, block: &Block, schemas: &[Schema]) -> Vec<String> {
    let (of, name) = (label(block, 0), label(block, 1));
    let place = format!("{file}: {kind} {of}.{name}");
    match find(schemas, kind, &of) {
        Some(schema) => field_problems(&place, block.body(), &schema.arguments, META),
        None => vec![format!(
            "{place}: {of} is in no file of terraform/schema: add it to extract.mjs"
        )],
    }
}

/// What a body lacks and what it has too much.
fn field_problems(place: &str, body: &Body, fields: &BTreeMap<String, Field>, also: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut given = BTreeSet::new();
    for attribute in body.attributes() {
        given.insert(attribute.key());
        if !fields.contains_key(attribute.key()) && !also.contains(&attribute.key()) {
            found.push(format!("{place}: no argument {}", attribute.key()));
        }
    }
    for block in body.blocks() {
        given.insert(block.identifier());
        match fields.get(block.identifier()) {
            Some(Field {
                fields: Some(inner), ..
            }) => {
                let place = format!("{place}.{}", block.identifier());
                found.extend(field_problems(&place, block.body(), inner, &[]));
            }
            None if also.contains(&block.identifier()) => {}
            _ => found.push(format!("{place}: no block {}", block.identifier())),
        }
    }
    let missing = fields
        .iter()
        .filter(|(key, field)| field.required && !given.contains(key.as_str()));
    found.extend(missing.map(|(key, _)| format!("{place}: {key} is required")));
    found
}

fn label(block: &Block, at: usize) -> String {
    block
        .labels()
        .get(at)
        .map(|label| label.as_str().to_owned())
        .unwrap_or_default()
}

fn argument<'a>(block: &'a Block, key: &str) -> Option<&'a Expression> {
    let mut attributes = block.body().attributes();
    attributes.find(|one| one.key() == key).map(hcl::Attribute::expr)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let schema = r#"{"provider": "aws", "version": "1", "from": "here", "data": {}, "resource": {"aws_queue": {
            "arguments": {"name": {"required": true}, "rule": {"fields": {"port": {"required": true}}}},
            "attributes": ["arn", "name"]}}}"#;
        let module = Module::parse(BTreeMap::from([("main.tf".to_owned(), text.to_owned())])).unwrap();
        module.problems(&[serde_json::from_str(schema).unwrap()]).unwrap()
    }

    #[test]
    fn arguments_that_a_resource_lacks_or_does_not_know_are_named() {
        assert_eq!(
            problems("resource \"aws_queue\" \"q\" {\n  size = 3\n  rule {}\n}"),
            [
                "main.tf: resource aws_queue.q: no argument size",
                "main.tf: resource aws_queue.q.rule: port is required",
                "main.tf: resource aws_queue.q: name is required",
            ]
        );
    }

    #[test]
    fn references_to_nothing_are_named() {
        let text =
            "locals {\n  a = var.b\n  c = aws_queue.q[0].url\n}\nresource \"aws_queue\" \"q\" {\n  name = local.a\n}";
        assert_eq!(
            problems(text),
            [
                "main.tf: var.b is not declared",
                "main.tf: resource aws_queue has no attribute url",
                "local.c is used by nothing",
            ]
        );
    }

    #[test]
    fn what_is_right_is_not_told() {
        let text = "variable \"n\" {}\nresource \"aws_queue\" \"q\" {\n  count = 1\n  name = var.n\n  lifecycle {}\n}\noutput \"o\" {\n  value = aws_queue.q[0].arn\n}";
        assert_eq!(problems(text), Vec::<String>::new());
    }
}
