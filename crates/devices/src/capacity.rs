//! How much of a shared device does a request use up?

use model::{
    object::{CapacityRange, CapacityRequestPolicy, DeviceCapacity, Map, Text},
    quantity::Quantity,
};

/// What a request uses of each dimension of a shared device; none when it cannot be had: the request names a dimension
/// the device does not have, or an amount its policy does not allow.
pub(crate) fn consumed(requested: &Map<Quantity>, offered: &Map<DeviceCapacity>) -> Option<Vec<(Text, Quantity)>> {
    if requested.iter().any(|(name, _)| offered.get(name).is_none()) {
        return None;
    }
    let dimension = |(name, capacity): &(Text, DeviceCapacity)| {
        let amount = amount(requested.get(name), capacity);
        let policy = capacity.request_policy.as_ref();
        let is_allowed = policy.is_none_or(|policy| allows(policy, amount));
        is_allowed.then(|| (name.clone(), amount))
    };
    offered.iter().map(dimension).collect()
}

/// The amount asked for, rounded up to one that can be had; all of it, or the default, when nothing is asked.
fn amount(requested: Option<&Quantity>, capacity: &DeviceCapacity) -> Quantity {
    let policy = capacity.request_policy.as_ref();
    let Some(requested) = requested else {
        return policy.and_then(|policy| policy.default).unwrap_or(capacity.value);
    };
    let Some(policy) = policy else { return *requested };
    match &policy.valid_range {
        Some(range) if range.min.is_some() => rounded_up(*requested, range),
        _ => {
            let enough = policy.valid_values.iter().find(|value| *requested <= **value);
            enough.copied().unwrap_or(*requested)
        }
    }
}

fn rounded_up(requested: Quantity, range: &CapacityRange) -> Quantity {
    let min = range.min.unwrap_or_default();
    if requested < min {
        return min;
    }
    let Some(step) = range.step else { return requested };
    let (min, step) = (min.value(), step.value());
    let above = requested.value().saturating_sub(min);
    let steps = above.checked_div(step).unwrap_or_default();
    let is_between = above.checked_rem(step).unwrap_or_default() != 0;
    let steps = steps.saturating_add(i64::from(is_between));
    Quantity::from_bytes(min.saturating_add(step.saturating_mul(steps)))
}

/// The default is always allowed.
fn allows(policy: &CapacityRequestPolicy, amount: Quantity) -> bool {
    if policy.default == Some(amount) {
        return true;
    }
    match &policy.valid_range {
        Some(range) => is_in_range(range, amount),
        None => policy.valid_values.is_empty() || policy.valid_values.contains(&amount),
    }
}

fn is_in_range(range: &CapacityRange, amount: Quantity) -> bool {
    if range.max.is_some_and(|max| amount > max) {
        return false;
    }
    let Some(step) = range.step else { return true };
    let above = amount.value().saturating_sub(range.min.unwrap_or_default().value());
    above.checked_rem(step.value()).unwrap_or_default() == 0
}
