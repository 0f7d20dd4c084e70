//! Which functions expressions can use beyond CEL's own: Kubernetes' quantities and versions, strings, lists, sets
//! and `cel.bind`.
//!
//! Not there: durations and timestamps, URLs, addresses, named formats and authorisation, none of which a device has
//! a use for; and types are not checked before evaluation, so what Kubernetes refuses as ill-typed fails here when it
//! is evaluated.
#![expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "functions of expressions take references by contract"
)]

use cel::{
    DeclarationError, Env, ExecutionError, IdedExpr, Program,
    common::{
        ast::{ComprehensionExpr, Expr, ListExpr, LiteralValue},
        types::{CelBool, CelDouble, CelInt, CelString, LIST_TYPE, Type},
        value::{CowVal, Val},
    },
    extensions,
    parser::Macro,
};
use model::quantity::Quantity;

use super::{
    semver::Version,
    value::{Amount, Release},
};

/// Compiles an expression.
pub(super) fn compile(environment: &Env, text: &str) -> Result<Program, String> {
    environment.compile(text).map_err(|errors| errors.to_string())
}

/// All that expressions can use.
pub(super) fn environment() -> Env {
    let mut env = Env::stdlib();
    // Declarations only fail when a name is taken, which the tests would show.
    let declared = env
        .add_extension(extensions::strings)
        .and_then(|()| env.add_extension(extensions::lists))
        .and_then(|()| declare_quantities(&mut env))
        .and_then(|()| declare_versions(&mut env))
        .and_then(|()| declare_sets(&mut env))
        .and_then(|()| env.add_macro(bind()));
    debug_assert!(declared.is_ok(), "{declared:?}");
    env
}

fn declare_quantities(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(Type::new_unspecified_type("kubernetes.Quantity"))?;
    cel::add_overload!(env, fn quantity: (CelString) -> Result<Amount>)?;
    cel::add_overload!(env, fn is_quantity: (CelString) -> CelBool)?;
    cel::add_member_overload!(env, fn sign: (Amount) -> CelInt)?;
    cel::add_member_overload!(env, fn is_integer: (Amount) -> CelBool)?;
    cel::add_member_overload!(env, fn as_integer: (Amount) -> Result<CelInt>)?;
    cel::add_member_overload!(env, fn as_approximate_float: (Amount) -> CelDouble)?;
    cel::add_member_overload!(env, fn add: (Amount, Amount) -> Amount)?;
    cel::add_member_overload!(env, fn add_int: (Amount, CelInt) -> Amount, name = "add")?;
    cel::add_member_overload!(env, fn sub: (Amount, Amount) -> Amount)?;
    cel::add_member_overload!(env, fn sub_int: (Amount, CelInt) -> Amount, name = "sub")?;
    cel::add_member_overload!(env, fn is_less_than: (Amount, Amount) -> CelBool)?;
    cel::add_member_overload!(env, fn is_greater_than: (Amount, Amount) -> CelBool)?;
    cel::add_member_overload!(env, fn compare_to: (Amount, Amount) -> CelInt)
}

fn declare_versions(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(Type::new_unspecified_type("kubernetes.Semver"))?;
    cel::add_overload!(env, fn semver: (CelString) -> Result<Release>)?;
    cel::add_overload!(env, fn semver_normalized: (CelString, CelBool) -> Result<Release>, name = "semver")?;
    cel::add_overload!(env, fn is_semver: (CelString) -> CelBool)?;
    cel::add_overload!(env, fn is_semver_normalized: (CelString, CelBool) -> CelBool, name = "isSemver")?;
    cel::add_member_overload!(env, fn major: (Release) -> CelInt)?;
    cel::add_member_overload!(env, fn minor: (Release) -> CelInt)?;
    cel::add_member_overload!(env, fn patch: (Release) -> CelInt)?;
    cel::add_member_overload!(env, fn is_older_than: (Release, Release) -> CelBool, name = "isLessThan")?;
    cel::add_member_overload!(env, fn is_newer_than: (Release, Release) -> CelBool, name = "isGreaterThan")?;
    cel::add_member_overload!(env, fn compare_versions: (Release, Release) -> CelInt, name = "compareTo")
}

fn declare_sets(env: &mut Env) -> Result<(), DeclarationError> {
    let lists = || vec![LIST_TYPE, LIST_TYPE];
    env.add_overload("sets.contains", "list_sets_contains_list", lists(), |args| {
        on_lists(&args, |list, part| has_all(list, part))
    })?;
    env.add_overload("sets.equivalent", "list_sets_equivalent_list", lists(), |args| {
        on_lists(&args, |one, other| has_all(one, other) && has_all(other, one))
    })?;
    env.add_overload("sets.intersects", "list_sets_intersects_list", lists(), |args| {
        on_lists(&args, |one, other| one.iter().any(|item| has(other, *item)))
    })
}

fn on_lists<'b, 'v>(
    args: &[CowVal<'b, 'v>],
    test: fn(&[&dyn Val], &[&dyn Val]) -> bool,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [one, other] = args else {
        return Err(ExecutionError::invalid_argument_count(2, args.len()));
    };
    let answer = test(&items(one.as_ref()), &items(other.as_ref()));
    Ok(CowVal::owned(CelBool::from(answer)))
}

fn items<'b>(list: &'b (dyn Val + '_)) -> Vec<&'b dyn Val> {
    let mut items = Vec::new();
    if let Some(list) = list.as_iterable() {
        let mut rest = list.iter();
        while let Some(item) = rest.next() {
            items.push(item);
        }
    }
    items
}

fn has(list: &[&dyn Val], item: &dyn Val) -> bool {
    list.iter().any(|other| other.equals(item))
}

fn has_all(list: &[&dyn Val], part: &[&dyn Val]) -> bool {
    part.iter().all(|item| has(list, *item))
}

fn quantity(text: &CelString<'_>) -> Result<Amount, ExecutionError> {
    let amount: Result<Quantity, _> = text.inner().parse();
    amount
        .map(Amount)
        .map_err(|error| ExecutionError::function_error("quantity", error))
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    text.inner().parse::<Quantity>().is_ok().into()
}

fn sign(amount: &Amount) -> CelInt {
    i64::from(amount.0.cmp(&Quantity::ZERO) as i8).into()
}

fn is_integer(amount: &Amount) -> CelBool {
    integer(*amount).is_some().into()
}

fn as_integer(amount: &Amount) -> Result<CelInt, ExecutionError> {
    integer(*amount)
        .map(CelInt::from)
        .ok_or_else(|| ExecutionError::function_error("asInteger", "cannot convert value to integer"))
}

/// The amount, if it is a whole number that a 64-bit integer holds.
fn integer(amount: Amount) -> Option<i64> {
    let whole = amount.0.value();
    (Quantity::from_units(whole) == amount.0).then_some(whole)
}

#[expect(clippy::cast_precision_loss, reason = "the function's name says so")]
fn as_approximate_float(amount: &Amount) -> CelDouble {
    (amount.0.nanos() as f64 / 1e9).into()
}

fn add(left: &Amount, right: &Amount) -> Amount {
    Amount(left.0 + right.0)
}

fn add_int(left: &Amount, right: &CelInt) -> Amount {
    Amount(left.0 + Quantity::from_units(*right.inner()))
}

fn sub(left: &Amount, right: &Amount) -> Amount {
    Amount(left.0 - right.0)
}

fn sub_int(left: &Amount, right: &CelInt) -> Amount {
    Amount(left.0 - Quantity::from_units(*right.inner()))
}

fn is_less_than(left: &Amount, right: &Amount) -> CelBool {
    (left.0 < right.0).into()
}

fn is_greater_than(left: &Amount, right: &Amount) -> CelBool {
    (left.0 > right.0).into()
}

fn compare_to(left: &Amount, right: &Amount) -> CelInt {
    i64::from(left.0.cmp(&right.0) as i8).into()
}

fn semver(text: &CelString<'_>) -> Result<Release, ExecutionError> {
    semver_normalized(text, &CelBool::FALSE)
}

fn semver_normalized(text: &CelString<'_>, normalize: &CelBool) -> Result<Release, ExecutionError> {
    version(text, *normalize.inner())
        .map(Release)
        .ok_or_else(|| ExecutionError::function_error("semver", format!("invalid semantic version {:?}", text.inner())))
}

fn is_semver(text: &CelString<'_>) -> CelBool {
    version(text, false).is_some().into()
}

fn is_semver_normalized(text: &CelString<'_>, normalize: &CelBool) -> CelBool {
    version(text, *normalize.inner()).is_some().into()
}

fn version(text: &CelString<'_>, normalize: bool) -> Option<Version> {
    if normalize {
        Version::parse_normalized(text.inner())
    } else {
        Version::parse(text.inner())
    }
}

fn major(release: &Release) -> CelInt {
    release.0.major.cast_signed().into()
}

fn minor(release: &Release) -> CelInt {
    release.0.minor.cast_signed().into()
}

fn patch(release: &Release) -> CelInt {
    release.0.patch.cast_signed().into()
}

fn is_older_than(left: &Release, right: &Release) -> CelBool {
    (left.0 < right.0).into()
}

fn is_newer_than(left: &Release, right: &Release) -> CelBool {
    (left.0 > right.0).into()
}

fn compare_versions(left: &Release, right: &Release) -> CelInt {
    i64::from(left.0.cmp(&right.0) as i8).into()
}

/// `cel.bind(name, value, body)`: the body with a name for the value, as a comprehension that never loops.
fn bind() -> Macro {
    Macro::receiver("bind", 3, |helper, target, args| {
        let is_cel = |target: &IdedExpr| matches!(&target.expr, Expr::Ident(name) if name == "cel");
        if !target.as_ref().is_some_and(is_cel) {
            return Ok(None);
        }
        let (Some(body), Some(value), Some(name)) = (args.pop(), args.pop(), args.pop()) else {
            return Err(helper.new_error(0, "cel.bind() needs a name, a value and an expression"));
        };
        let Expr::Ident(name) = name.expr else {
            return Err(helper.new_error(name.id, "cel.bind() variable names must be simple identifiers"));
        };
        let never = LiteralValue::Boolean(CelBool::FALSE);
        let nothing = Expr::List(ListExpr::default());
        let bound = ComprehensionExpr {
            iter_range: helper.next_expr(nothing),
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            accu_var: name.clone(),
            accu_init: value,
            loop_cond: helper.next_expr(Expr::Literal(never)),
            loop_step: helper.next_expr(Expr::Ident(name)),
            result: body,
        };
        Ok(Some(helper.next_expr(Expr::Comprehension(Box::new(bound)))))
    })
}
