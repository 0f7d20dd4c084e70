//! When a node ends: spread out so that nodes born together do not die together, and inside its pool's budgets if the
//! pool asks for that.

use api::duration::Duration;
use jiff::{SignedDuration, Timestamp};
use model::object::{NodeClaim, NodePool};

use crate::guard::digest;

/// By how much of its life a node may end earlier, such as `10%`: each node of the pool by another share of it. Ours, on a
/// NodePool; without it nodes end when upstream's do.
pub const EXPIRY_SPREAD: &str = "dovetail.dev/expiry-spread";

/// For how long a node whose life is over waits for its pool's budgets to let it go, such as `48h`; then it ends
/// regardless. Ours, on a NodePool; without it budgets are not asked, as upstream's.
pub const EXPIRY_GRACE: &str = "dovetail.dev/expiry-grace";

/// How finely a spread is divided.
const STEPS: i128 = 1000;

/// When a claim's life is over; none when it never is.
pub fn expires_at(claim: &NodeClaim, pool: Option<&NodePool>) -> Option<Timestamp> {
    let span = claim.spec.expire_after.as_ref()?.span()?.to_signed();
    let born = claim.metadata.creation_timestamp?;
    born.checked_add(span - earlier(claim, span, spread(pool))).ok()
}

/// Until when a claim whose life is over may wait for the budgets of its pool; none when it may not.
pub fn waits_for_budgets_until(claim: &NodeClaim, pool: &NodePool) -> Option<Timestamp> {
    let grace: Duration = pool.metadata.annotations.get(EXPIRY_GRACE)?.parse().ok()?;
    expires_at(claim, Some(pool))?.checked_add(grace.to_signed()).ok()
}

fn spread(pool: Option<&NodePool>) -> i128 {
    let annotation = pool.and_then(|pool| pool.metadata.annotations.get(EXPIRY_SPREAD));
    let percent = annotation.and_then(|text| text.strip_suffix('%')?.parse::<u8>().ok());
    i128::from(percent.unwrap_or(0).min(50))
}

/// The same claim ends at the same time whoever asks.
fn earlier(claim: &NodeClaim, span: SignedDuration, percent: i128) -> SignedDuration {
    let uid = claim.metadata.uid.to_string();
    let share = i128::from(digest(uid.bytes())) % STEPS;
    let nanos = span.as_nanos() * percent / 100 * share / STEPS;
    SignedDuration::from_nanos(i64::try_from(nanos).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(uid: &str, expire_after: &str) -> NodeClaim {
        let claim = json!({
            "metadata": { "name": "c", "uid": uid, "creationTimestamp": "2026-11-16T10:00:00Z" },
            "spec": { "requirements": [], "expireAfter": expire_after },
        });
        serde_json::from_value(claim).unwrap()
    }

    fn pool(spread: &str) -> NodePool {
        annotated(EXPIRY_SPREAD, spread)
    }

    fn annotated(key: &str, value: &str) -> NodePool {
        let pool = json!({ "metadata": { "name": "p", "annotations": { key: value } } });
        serde_json::from_value(pool).unwrap()
    }

    #[test]
    fn a_node_ends_when_its_claim_says_unless_its_pool_spreads_the_ends() {
        let due: Timestamp = "2026-11-17T10:00:00Z".parse().unwrap();
        assert_eq!(expires_at(&claim("a", "24h"), None), Some(due));
        assert_eq!(expires_at(&claim("a", "Never"), Some(&pool("10%"))), None);
        assert_eq!(expires_at(&claim("a", "24h"), Some(&pool("soon"))), Some(due));
        let ends: std::collections::BTreeSet<Timestamp> = (0..20)
            .filter_map(|at| expires_at(&claim(&format!("uid-{at}"), "24h"), Some(&pool("10%"))))
            .collect();
        assert!(ends.len() > 15, "they end apart: {ends:?}");
        let earliest: Timestamp = "2026-11-17T07:36:00Z".parse().unwrap();
        assert!(ends.iter().all(|end| earliest <= *end && *end <= due), "{ends:?}");
    }

    #[test]
    fn a_node_waits_for_budgets_only_if_its_pool_says_how_long() {
        let until = |pool: &NodePool| waits_for_budgets_until(&claim("a", "24h"), pool);
        assert_eq!(until(&pool("0%")), None);
        assert_eq!(until(&annotated(EXPIRY_GRACE, "soon")), None);
        let two_hours = until(&annotated(EXPIRY_GRACE, "2h"));
        assert_eq!(two_hours, Some("2026-11-17T12:00:00Z".parse().unwrap()));
    }
}
