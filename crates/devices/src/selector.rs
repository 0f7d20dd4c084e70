//! Does a device match an expression of a DeviceClass or a request?
//!
//! The language is CEL with Kubernetes' additions; the interpreter is the crate `cel`, taught here what a device is.
//! Each expression is compiled once. Whether a device matches depends only on what selectors can see of it, its
//! [`Profile`], and is asked once per expression and profile, however many devices share the profile.

mod library;
mod profile;
mod semver;
mod value;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use cel::{Context, Env, Program, Value};
use model::object::Text;

pub(crate) use self::profile::Profile;

/// The answer for one profile: whether it matches, or why that cannot be said.
type Verdict = Result<bool, Arc<str>>;

/// The expressions of one run and their answers so far.
#[derive(Default)]
pub(crate) struct Selectors {
    /// Built with the first expression: most runs have none.
    environment: OnceLock<Arc<Env>>,
    expressions: Vec<Expression>,
    numbers: BTreeMap<Text, ExpressionNumber>,
}

/// An expression of a [`Selectors`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpressionNumber(usize);

struct Expression {
    text: Text,
    program: Result<Program, String>,
    /// By profile; grown before the first question is asked.
    answers: Vec<OnceLock<Verdict>>,
}

impl Selectors {
    /// The expression's number, compiled on first sight.
    pub(crate) fn intern(&mut self, text: &Text) -> ExpressionNumber {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = ExpressionNumber(self.expressions.len());
        let program = library::compile(self.environment(), text);
        self.expressions.push(Expression {
            text: text.clone(),
            program,
            answers: Vec::new(),
        });
        self.numbers.insert(text.clone(), number);
        number
    }

    /// Why the expression does not compile, if it does not.
    pub(crate) fn fault(&self, number: ExpressionNumber) -> Option<String> {
        let expression = self.expressions.get(number.0)?;
        let reason = expression.program.as_ref().err()?;
        Some(format!(
            "CEL expression {:?} failed to compile: {reason}",
            expression.text
        ))
    }

    /// Makes room for the answers; no expression may be added after.
    pub(crate) fn seal(&mut self, profiles: usize) {
        for expression in &mut self.expressions {
            expression.answers.resize_with(profiles, OnceLock::new);
        }
    }

    /// Whether all the expressions are true of the profile; the first that cannot be evaluated is an error.
    pub(crate) fn matches(&self, numbers: &[ExpressionNumber], at: usize, profile: &Profile) -> Result<bool, Arc<str>> {
        for number in numbers {
            if !self.answer(*number, at, profile)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn answer(&self, number: ExpressionNumber, at: usize, profile: &Profile) -> Verdict {
        let Some(expression) = self.expressions.get(number.0) else {
            return Ok(false);
        };
        let compute = || self.evaluate(expression, profile);
        match expression.answers.get(at) {
            Some(answer) => answer.get_or_init(compute).clone(),
            None => compute(),
        }
    }

    fn evaluate(&self, expression: &Expression, profile: &Profile) -> Verdict {
        let failed = |reason: String| {
            Arc::from(format!(
                "CEL expression {:?} evaluation failed: {reason}",
                expression.text
            ))
        };
        let program = expression.program.as_ref().map_err(|reason| failed(reason.clone()))?;
        let device = profile.value().map_err(failed)?;
        let mut context = Context::with_env(Arc::clone(self.environment()));
        context.add_variable_as_val("device", Box::new(device));
        match program.execute(&context) {
            Ok(Value::Bool(answer)) => Ok(answer),
            Ok(other) => Err(failed(format!("the result is not a bool but {other:?}"))),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn environment(&self) -> &Arc<Env> {
        self.environment.get_or_init(|| Arc::new(library::environment()))
    }
}

impl std::fmt::Debug for Selectors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.numbers.keys()).finish()
    }
}
