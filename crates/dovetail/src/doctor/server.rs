//! What only the API server can say: which CRDs it serves, who may do what, who leads, and what time it is.

use http::Method;
use jiff::{SignedDuration, Timestamp};
use runtime::{Api, ApiError, Clock};
use serde_json::Value;

use super::{Check, Fix, State, access, mend::Act};
use crate::{failure::Failure, raw::text, terminal::counted};

/// The controller's lease, whoever holds it.
const LEASE: &str = "karpenter-leader-election";
/// Clocks further apart than this make leases and grace periods unreliable.
const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// What a dump cannot tell.
pub(super) fn skipped() -> Vec<Check> {
    let all = [
        ("D01", "CRDs are served by an API server: not asked on a dump"),
        ("D02", "permissions are known to an API server: not asked on a dump"),
        (
            "D03",
            "the lease and the clock are an API server's: not asked on a dump",
        ),
    ];
    all.map(|(id, text)| Check::new(id, State::Skipped, text)).to_vec()
}

pub(super) async fn checks(api: &Api, service_account: Option<&str>) -> Result<Vec<Check>, Failure> {
    let mut checks = vec![definitions(api).await?, permissions(api, service_account).await?];
    checks.extend(lease(api).await?);
    Ok(checks)
}

async fn get(api: &Api, path: &str) -> Result<Value, ApiError> {
    let bytes = api.call(Method::GET, path, None, "application/json").await?;
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

fn unreachable(error: &ApiError) -> Failure {
    Failure::unreachable(
        "cannot ask the API server",
        error.to_string(),
        "check that kubectl get nodes answers",
    )
}

/// D01: the core kinds are served, in the version we speak.
async fn definitions(api: &Api) -> Result<Check, Failure> {
    let ours = api::crds::installation(&[]);
    let mut missing = Vec::new();
    let mut stale = Vec::new();
    for definition in &ours {
        let name = definition.metadata.name.as_deref().unwrap_or_default();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let there = match get(api, &path).await {
            Ok(there) => there,
            // A buffer or an overlay is for those who want one.
            Err(error) if error.is_not_found() && !name.starts_with("node") => continue,
            Err(error) if error.is_not_found() && name.starts_with("nodeoverlays") => continue,
            Err(error) if error.is_not_found() => {
                missing.push(name.to_owned());
                continue;
            }
            Err(error) if error.is_forbidden() => {
                return Ok(Check::new(
                    "D01",
                    State::Skipped,
                    "may not read CustomResourceDefinitions: not asked",
                ));
            }
            Err(error) => return Err(unreachable(&error)),
        };
        let wanted: Vec<&str> = definition
            .spec
            .versions
            .iter()
            .filter(|one| one.served)
            .map(|one| one.name.as_str())
            .collect();
        let served = there["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|one| one["served"] == true);
        let served: Vec<&str> = served.filter_map(|one| one["name"].as_str()).collect();
        if wanted.iter().any(|version| !served.contains(version)) {
            stale.push(format!(
                "{name} serves {}, {} is needed",
                served.join(", "),
                wanted.join(", ")
            ));
        }
    }
    if missing.is_empty() && stale.is_empty() {
        return Ok(Check::ok(
            "D01",
            "the CRDs are served in the version this program speaks",
        ));
    }
    let mut check = Check::new("D01", State::Stop, "CRDs are missing or old");
    check.proof = missing
        .iter()
        .map(|name| format!("{name} is not installed"))
        .chain(stale)
        .collect();
    let check = check.fix(
        "dovetail crds --diff",
        "applying CRDs changes no object; versions that are stored stay",
    );
    Ok(check.act(Act::ApplyDefinitions))
}

/// D02: every verb of the shipped roles.
async fn permissions(api: &Api, service_account: Option<&str>) -> Result<Check, Failure> {
    let needed = access::needed(service_account);
    let path = match service_account {
        Some(_) => "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        None => "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    };
    let mut lacking = Vec::new();
    for permission in &needed {
        let body = permission.review(service_account);
        match api.call(Method::POST, path, Some(&body), "application/json").await {
            Ok(bytes) => {
                let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
                if answer["status"]["allowed"] != true {
                    lacking.push(permission.text());
                }
            }
            Err(error) if error.is_forbidden() || error.is_not_found() => {
                let told = format!("may not ask about permissions: {}", error.message);
                return Ok(Check::new("D02", State::Skipped, told));
            }
            Err(error) => return Err(unreachable(&error)),
        }
    }
    let who = service_account.map_or("you".to_owned(), |account| format!("service account {account}"));
    if lacking.is_empty() {
        return Ok(Check::ok(
            "D02",
            format!("{who} may do what the controller does: {0} of {0} verbs", needed.len()),
        ));
    }
    // That a person cannot do everything the controller does is as it should be.
    let state = if service_account.is_some() {
        State::Stop
    } else {
        State::Ok
    };
    let told = format!(
        "{who} may do {} of {} verbs of the controller",
        needed.len() - lacking.len(),
        needed.len()
    );
    let mut check = Check::new("D02", state, told);
    if service_account.is_some() {
        check.proof = lacking.iter().take(8).map(|one| format!("may not {one}")).collect();
        if lacking.len() > 8 {
            check.proof.push(format!("and {} more", lacking.len() - 8));
        }
        check.fix = Some(Fix {
            commands: vec!["kubectl apply -f deploy/rbac.yaml".to_owned()],
            safe_because: "it grants what the controller uses and no more".to_owned(),
            act: None,
        });
    }
    Ok(check)
}

/// D03 and D04: who leads, since when, by which clock.
async fn lease(api: &Api) -> Result<Vec<Check>, Failure> {
    let path = format!("/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3D{LEASE}");
    let leases = match get(api, &path).await {
        Ok(answer) => answer["items"].as_array().cloned().unwrap_or_default(),
        Err(error) if error.is_forbidden() => {
            return Ok(vec![Check::new(
                "D03",
                State::Skipped,
                "may not list leases: who leads is not known",
            )]);
        }
        Err(error) => return Err(unreachable(&error)),
    };
    let here = Clock::system().now();
    let there = api.server_time().unwrap_or(here);
    let leases: Vec<&Value> = leases
        .iter()
        .filter(|lease| text(lease, "metadata.name") == LEASE)
        .collect();
    let mut checks = held(&leases, there);
    checks.push(skewed(here, there));
    Ok(checks)
}

/// Whether a lease is held: renewed within its duration.
fn is_fresh(lease: &Value, now: Timestamp) -> bool {
    let renewed: Option<Timestamp> = text(lease, "spec.renewTime").parse().ok();
    let span = SignedDuration::from_secs(lease["spec"]["leaseDurationSeconds"].as_i64().unwrap_or(15));
    let holder = text(lease, "spec.holderIdentity");
    !holder.is_empty() && renewed.is_some_and(|renewed| now.duration_since(renewed) <= span + SKEW)
}

fn held(leases: &[&Value], now: Timestamp) -> Vec<Check> {
    let fresh: Vec<&&Value> = leases.iter().filter(|lease| is_fresh(lease, now)).collect();
    let holder = |lease: &Value| {
        format!(
            "{} in {}",
            text(lease, "spec.holderIdentity"),
            text(lease, "metadata.namespace")
        )
    };
    match (&fresh[..], leases) {
        ([lease], _) => vec![Check::ok("D03", format!("{} leads", holder(lease)))],
        ([], []) => vec![
            Check::new(
                "D03",
                State::Stop,
                format!("no Lease {LEASE} in any namespace: no controller has ever led"),
            )
            .fix(
                "kubectl get deployments -A | grep -e karpenter -e dovetail",
                "it only reads",
            ),
        ],
        ([], [stale, ..]) => vec![
            Check::new(
                "D03",
                State::Stop,
                format!(
                    "nobody leads: {} has not renewed since {}",
                    holder(stale),
                    text(stale, "spec.renewTime")
                ),
            )
            .fix("kubectl logs of the controller's pods say why", "it only reads"),
        ],
        (several, _) => {
            let mut check = Check::new(
                "D04",
                State::Stop,
                format!("{} lead at once", counted(several.len(), "controller")),
            );
            check.proof = several.iter().map(|lease| holder(lease)).collect();
            vec![check.fix(
                "kubectl scale deployment NAME -n NAMESPACE --replicas=0   on the one that is not meant",
                "the other goes on alone; no node is touched",
            )]
        }
    }
}

fn skewed(here: Timestamp, there: Timestamp) -> Check {
    let skew = here.duration_since(there);
    let told = format!("{:+} s", skew.as_secs());
    if skew.abs() <= SKEW {
        return Check::ok("D04", format!("this clock and the API server's agree ({told})"));
    }
    Check::new(
        "D04",
        State::Warn,
        format!("this clock differs from the API server's by {told}"),
    )
    .proof(format!("here {here}, there {there}"))
    .fix(
        "timedatectl status",
        "it only reads; leases and grace periods rely on clocks that agree",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-16T15:42:00Z".parse().unwrap()
    }

    fn lease(namespace: &str, renewed: &str) -> Value {
        json!({"metadata": {"name": LEASE, "namespace": namespace},
            "spec": {"holderIdentity": "dovetail-1", "leaseDurationSeconds": 15, "renewTime": renewed}})
    }

    fn states(leases: &[&Value]) -> Vec<(&'static str, State)> {
        held(leases, now())
            .iter()
            .map(|check| (check.id, check.state))
            .collect()
    }

    #[test]
    fn one_fresh_lease_is_a_leader_and_two_are_two() {
        let (fresh, other) = (
            lease("kube-system", "2026-11-16T15:41:55Z"),
            lease("karpenter", "2026-11-16T15:41:58Z"),
        );
        let stale = lease("karpenter", "2026-11-16T15:31:58Z");
        assert_eq!(states(&[&fresh, &stale]), [("D03", State::Ok)]);
        assert_eq!(states(&[&fresh, &other]), [("D04", State::Stop)]);
        assert_eq!(states(&[&stale]), [("D03", State::Stop)]);
        assert_eq!(states(&[]), [("D03", State::Stop)]);
    }

    #[test]
    fn clocks_that_differ_are_told_of() {
        let later = now() + SignedDuration::from_secs(90);
        assert_eq!(skewed(later, now()).state, State::Warn);
        assert_eq!(skewed(now(), now()).state, State::Ok);
    }
}
