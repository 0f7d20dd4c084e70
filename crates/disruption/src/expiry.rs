//! When a node ends, spread out so that nodes born together do not die together.

use jiff::{SignedDuration, Timestamp};
use model::object::{NodeClaim, NodePool};

use crate::guard::digest;

/// By how much of its life a node may end earlier, such as `10%`: each node of the pool by another share of it. Ours, on a
/// NodePool; without it nodes end when upstream's do.
pub const EXPIRY_SPREAD: &str = "dovetail.dev/expiry-spread";

/// How finely a spread is divided.
const STEPS: i128 = 1000;

/// When a claim's life is over; none when it never is.
pub fn expires_at(claim: &NodeClaim, pool: Option<&NodePool>) -> Option<Timestamp> {
    let span = claim.spec.expire_after.as_ref()?.span()?.to_signed();
    let born = claim.metadata.creation_timestamp?;
    born.checked_add(span - earlier(claim, span, spread(pool))).ok()
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
        let pool = json!({ "metadata": { "name": "p", "annotations": { EXPIRY_SPREAD: spread } } });
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
}
