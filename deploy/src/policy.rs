//! Would AWS allow this request? The part of IAM's evaluation that our policy uses.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// An identity policy.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Policy {
    /// The grammar's date.
    pub version: String,
    /// What it grants.
    pub statement: Vec<Statement>,
}

/// One grant.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Statement {
    /// Its name.
    pub sid: String,
    /// `Allow`.
    pub effect: String,
    /// What may be done.
    pub action: Vec<String>,
    /// To what.
    pub resource: Vec<String>,
    /// On which conditions: by operator, then by key.
    #[serde(default)]
    pub condition: BTreeMap<String, BTreeMap<String, Values>>,
}

/// A value of a condition, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Values {
    /// One.
    One(String),
    /// Any of them.
    Any(Vec<String>),
}

impl Values {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Any(values) => values,
        }
    }
}

/// What is asked of AWS.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Such as `ec2:TerminateInstances`.
    pub action: String,
    /// The ARN, or `*` for actions that are not about one.
    pub resource: String,
    /// What AWS knows about request and resource, by condition key.
    pub context: BTreeMap<String, Vec<String>>,
}

/// The policy of a file with `${NAME}` replaced.
pub fn parse(template: &str, names: &[(&str, &str)]) -> Result<Policy> {
    let mut text = template.to_owned();
    for (name, value) in names {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    if let Some(at) = text.find("${") {
        let rest = text.get(at..).unwrap_or_default();
        bail!(
            "{} is given no value",
            rest.split_inclusive('}').next().unwrap_or_default()
        );
    }
    serde_json::from_str(&text).context("not an IAM policy")
}

impl Policy {
    /// The statement that allows a request; what nothing allows is denied.
    pub fn allows(&self, request: &Request) -> Result<Option<&str>> {
        for statement in &self.statement {
            if statement.effect != "Allow" {
                bail!("{}: effect {} is not understood here", statement.sid, statement.effect);
            }
            let is_meant = statement.action.contains(&request.action)
                && statement.resource.iter().any(|one| is_like(&request.resource, one));
            if is_meant && statement.holds(request)? {
                return Ok(Some(&statement.sid));
            }
        }
        Ok(None)
    }
}

impl Statement {
    fn holds(&self, request: &Request) -> Result<bool> {
        for (operator, conditions) in &self.condition {
            for (key, wanted) in conditions {
                let given = request.context.get(key).map(Vec::as_slice);
                let wanted = wanted.as_slice();
                let holds = match (operator.as_str(), given) {
                    ("StringEquals" | "StringLike", None) => false,
                    ("StringEqualsIfExists" | "ForAllValues:StringEquals", None) => true,
                    ("StringEquals" | "StringEqualsIfExists", Some([value])) => wanted.contains(value),
                    ("StringLike", Some([value])) => wanted.iter().any(|pattern| is_like(value, pattern)),
                    ("ForAllValues:StringEquals", Some(values)) => values.iter().all(|value| wanted.contains(value)),
                    _ => bail!("{}: {operator} on {key} is not understood here", self.sid),
                };
                if !holds {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Whether a text is like a pattern, in which `*` stands for any text.
fn is_like(text: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return text == pattern;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = rest.split('*').collect();
    let Some((last, middle)) = parts.split_last() else {
        return true;
    };
    for part in middle {
        match text.find(part) {
            Some(at) => text = text.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_nothing_else_does() {
        let cases = [
            ("arn:aws:ec2:r:1:instance/i-1", "arn:aws:ec2:r:*:instance/*", true),
            ("arn:aws:ec2:r:1:volume/i-1", "arn:aws:ec2:r:*:instance/*", false),
            ("", "*", true),
            ("aa", "a*a", true),
            ("a", "a*a", false),
            ("abc", "abc", true),
            ("abcd", "abc", false),
        ];
        for (text, pattern, want) in cases {
            assert_eq!(is_like(text, pattern), want, "{text:?} like {pattern:?}");
        }
    }

    #[test]
    fn a_name_without_a_value_is_told() {
        let error = parse(r#"{"Version": "${WHO}", "Statement": []}"#, &[("OTHER", "x")]).unwrap_err();
        assert_eq!(error.to_string(), "${WHO} is given no value");
    }

    #[test]
    fn an_operator_that_is_not_known_is_an_error_and_not_a_verdict() {
        let text = r#"{"Version": "1", "Statement": [{"Sid": "S", "Effect": "Allow", "Action": ["a:B"], "Resource": ["*"],
            "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}]}"#;
        let request = Request {
            action: "a:B".to_owned(),
            resource: "*".to_owned(),
            ..Request::default()
        };
        let error = parse(text, &[]).unwrap().allows(&request).unwrap_err();
        assert_eq!(error.to_string(), "S: IpAddress on aws:SourceIp is not understood here");
    }
}
