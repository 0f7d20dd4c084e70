//! Rules in the Common Expression Language: what a value must be, and how it may change.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use cel::{
    Context, DeclarationError, Env, ExecutionError, Program,
    common::types::{CelBool, CelString},
    extensions,
};
use regex::Regex;
use serde_json::Value;

use super::problem::{DUPLICATE, FORBIDDEN, Problem, REQUIRED};

/// A rule.
pub(super) struct Rule {
    text: String,
    message: String,
    message_expression: Option<Result<Program, String>>,
    reason: String,
    field: String,
    program: Result<Program, String>,
    is_transition: bool,
    is_optional: bool,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Rule {
    pub(super) fn read(rule: &Value) -> Self {
        let text = |field: &str| rule[field].as_str().unwrap_or_default().to_owned();
        let compile = |text: &str| environment().compile(text).map_err(|errors| errors.to_string());
        let program = compile(&text("rule"));
        let is_transition = program
            .as_ref()
            .is_ok_and(|program| program.references().has_variable("oldSelf"));
        Self {
            text: text("rule").trim().to_owned(),
            message: text("message").trim().to_owned(),
            message_expression: rule["messageExpression"].as_str().map(compile),
            reason: text("reason"),
            field: text("fieldPath"),
            program,
            is_transition,
            is_optional: rule["optionalOldSelf"].as_bool().unwrap_or(false),
        }
    }

    /// Whether it is about how a value changes.
    pub(super) fn is_transition(&self) -> bool {
        self.is_transition
    }

    /// What is wrong with a value by this rule; `shown` is what a problem shows of it, `form` what it is.
    pub(super) fn judge(
        &self,
        value: &Value,
        before: Option<&Value>,
        path: &str,
        shown: Option<Value>,
        form: &str,
    ) -> Option<Problem> {
        if self.is_transition && before.is_none() && !self.is_optional {
            return None;
        }
        let path = if path.is_empty() { "<nil>" } else { path };
        let program = match &self.program {
            Ok(program) => program,
            Err(error) => return Some(failed(path, form, &format!("rule compile error: {error}"))),
        };
        let context = context(value, before);
        match program.execute(&context) {
            Ok(cel::Value::Bool(true)) => None,
            Ok(_) => Some(self.broken(path, shown, &context)),
            Err(error) => {
                let detail = format!("{error} evaluating rule: {}", self.title());
                Some(failed(path, form, &detail))
            }
        }
    }

    fn broken(&self, path: &str, shown: Option<Value>, context: &Context<'_, '_>) -> Problem {
        let said = self.message_expression.as_ref().and_then(|program| {
            match program.as_ref().ok()?.execute(context).ok()? {
                cel::Value::String(text) => Some(text.to_string()),
                _ => None,
            }
        });
        let detail = said.unwrap_or_else(|| {
            if self.message.is_empty() {
                format!("failed rule: {}", self.text)
            } else {
                self.message.clone()
            }
        });
        let path = match (path, self.field.as_str()) {
            (path, "") => path.to_owned(),
            ("<nil>", field) => field.trim_start_matches('.').to_owned(),
            (path, field) => format!("{path}{field}"),
        };
        match self.reason.as_str() {
            FORBIDDEN => Problem::new(FORBIDDEN, &path, None, detail),
            REQUIRED => Problem::new(REQUIRED, &path, None, detail),
            DUPLICATE => Problem::new(DUPLICATE, &path, shown, ""),
            _ => Problem::new(super::problem::INVALID, &path, shown, detail),
        }
    }

    fn title(&self) -> &str {
        if self.message.is_empty() {
            &self.text
        } else {
            &self.message
        }
    }
}

/// A rule that cannot be evaluated shows what the value is, not the value.
fn failed(path: &str, form: &str, detail: &str) -> Problem {
    Problem::invalid(path, Value::from(form), detail)
}

fn context(value: &Value, before: Option<&Value>) -> Context<'static, 'static> {
    let mut context = Context::with_env(Arc::clone(environment()));
    context.add_variable_from_value("self", convert(value));
    if let Some(before) = before {
        context.add_variable_from_value("oldSelf", convert(before));
    }
    context
}

/// Whole numbers of JSON are integers, never unsigned.
fn convert(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(yes) => cel::Value::Bool(*yes),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => cel::Value::Int(whole),
            None => cel::Value::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => cel::Value::from(text.as_str()),
        Value::Array(items) => cel::Value::from(items.iter().map(convert).collect::<Vec<_>>()),
        Value::Object(fields) => {
            let fields: HashMap<String, cel::Value> = fields
                .iter()
                .map(|(name, value)| (name.clone(), convert(value)))
                .collect();
            cel::Value::from(fields)
        }
    }
}

/// What rules can use: CEL's own functions, strings, lists and Kubernetes' regular expressions.
fn environment() -> &'static Arc<Env> {
    static ENVIRONMENT: OnceLock<Arc<Env>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut env = Env::stdlib();
        // Declarations only fail when a name is taken, which the tests would show.
        let declared = env
            .add_extension(extensions::strings)
            .and_then(|()| env.add_extension(extensions::lists))
            .and_then(|()| declare(&mut env));
        debug_assert!(declared.is_ok(), "{declared:?}");
        Arc::new(env)
    })
}

fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_member_overload!(env, fn find: (CelString, CelString) -> Result<CelString>)?;
    cel::add_overload!(env, fn is_quantity: (CelString) -> CelBool)
}

fn find(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelString<'static>, ExecutionError> {
    let regex = Regex::new(pattern.inner()).map_err(|error| ExecutionError::function_error("find", error))?;
    let found = regex.find(text.inner()).map_or("", |found| found.as_str());
    Ok(CelString::from(found.to_owned()))
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    text.inner().parse::<model::quantity::Quantity>().is_ok().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(rule: &str, value: &Value, before: Option<&Value>) -> Option<String> {
        let rule = Rule::read(&json!({"rule": rule, "message": "no"}));
        rule.judge(value, before, "spec.x", None, "object")
            .map(|problem| problem.detail)
    }

    #[test]
    fn rules_use_what_kubernetes_adds_and_see_what_was() {
        let requirement = json!([{"key": "a", "operator": "In", "values": ["1"], "minValues": 1}]);
        let label = json!("sub.karpenter.sh/x");
        let cases = [
            (
                "self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)",
                &requirement,
                None,
                None,
            ),
            (
                r#"self in ["karpenter.sh/nodepool"] || !self.find("^([^/]+)").endsWith("karpenter.sh")"#,
                &label,
                None,
                Some("no".to_owned()),
            ),
            ("self == oldSelf", &label, None, None),
            ("self == oldSelf", &label, Some(&requirement), Some("no".to_owned())),
        ];
        for (rule, value, before, problem) in cases {
            assert_eq!(judge(rule, value, before), problem, "{rule}");
        }
    }

    #[test]
    fn a_rule_that_cannot_be_evaluated_is_a_problem() {
        let problem = judge("self[3] == 1", &json!([1]), None).unwrap();
        assert!(problem.ends_with("evaluating rule: no"), "{problem}");
    }
}
