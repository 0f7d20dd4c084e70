//! When is an answer a failure? Conditions such as `delta_usd_mo > 200 or unplaced > 0`.

use std::str::FromStr;

/// A condition on figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// One of these, each all of those.
    any: Vec<Vec<Comparison>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Comparison {
    name: String,
    operator: Operator,
    value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operator {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Unequal,
}

/// A condition that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` is no comparison: {why}")]
pub struct ExpressionError {
    part: String,
    why: String,
}

const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<", Operator::Less),
    (">", Operator::More),
];

impl Expression {
    /// The figures it names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.any.iter().flatten().map(|comparison| comparison.name.as_str())
    }

    /// Whether it holds; a figure that is not known makes its comparison false.
    pub fn holds(&self, figure: impl Fn(&str) -> Option<f64>) -> bool {
        let is_true = |comparison: &Comparison| {
            let figure = figure(&comparison.name);
            figure.is_some_and(|figure| comparison.operator.compares(figure, comparison.value))
        };
        self.any.iter().any(|all| all.iter().all(is_true))
    }
}

impl Operator {
    #[expect(clippy::float_cmp, reason = "people compare with the number they wrote")]
    fn compares(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::More => left > right,
            Self::AtLeast => left >= right,
            Self::Equal => left == right,
            Self::Unequal => left != right,
        }
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let alternatives = text.split(" or ").flat_map(|part| part.split("||"));
        let any = alternatives.map(|all| {
            let parts = all.split(" and ").flat_map(|part| part.split("&&"));
            parts.map(comparison).collect()
        });
        Ok(Self {
            any: any.collect::<Result<_, _>>()?,
        })
    }
}

fn comparison(part: &str) -> Result<Comparison, ExpressionError> {
    let refuse = |why: &str| ExpressionError {
        part: part.trim().to_owned(),
        why: why.to_owned(),
    };
    let found = OPERATORS.iter().find_map(|(sign, operator)| {
        let (name, value) = part.split_once(sign)?;
        Some((name.trim(), *operator, value.trim()))
    });
    let (name, operator, value) = found.ok_or_else(|| refuse("it needs one of < <= > >= == !="))?;
    let value = value.trim_start_matches('$').replace(',', "");
    Ok(Comparison {
        name: name.to_owned(),
        operator,
        value: value.parse().map_err(|_| refuse("the right side is no number"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> bool {
        let expression: Expression = text.parse().unwrap();
        expression.holds(|name| match name {
            "delta_usd_mo" => Some(250.0),
            "unplaced" => Some(0.0),
            _ => None,
        })
    }

    #[test]
    fn any_alternative_is_enough_and_all_of_its_parts_are_needed() {
        let cases = [
            ("delta_usd_mo > 200", true),
            ("delta_usd_mo > $1,200", false),
            ("delta_usd_mo > 300 or unplaced > 0", false),
            ("delta_usd_mo > 300 or unplaced >= 0", true),
            ("delta_usd_mo > 200 and unplaced != 0", false),
            ("unplaced == 0 and delta_usd_mo <= 250", true),
            ("moved > 0", false),
        ];
        for (text, expected) in cases {
            assert_eq!(holds(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_comparison_is_named() {
        for (text, part) in [("delta", "delta"), ("a > b", "a > b"), ("a > 1 or", "a > 1 or")] {
            let error = text.parse::<Expression>().unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
