//! Which permissions the controller needs: the rules it ships with, one question to the API server each.

use serde_json::{Value, json};

/// What the controller may do, as it is installed.
const ROLES: &str = include_str!("../../../../deploy/rbac.yaml");
/// The roles that every installation binds.
const NEEDED: [&str; 3] = ["dovetail-core", "dovetail-lease", "dovetail-node-leases"];

/// A verb on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Permission {
    pub(super) verb: String,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) subresource: String,
    pub(super) name: String,
    pub(super) namespace: String,
}

impl Permission {
    /// The question whether somebody has it; oneself without a name.
    pub(super) fn review(&self, service_account: Option<&str>) -> Value {
        let attributes = json!({
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "name": self.name,
            "namespace": self.namespace,
        });
        match service_account {
            None => json!({
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            }),
            Some(account) => json!({
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "user": format!("system:serviceaccount:{}", account.replace('/', ":")),
                    "groups": ["system:serviceaccounts", "system:authenticated"],
                    "resourceAttributes": attributes,
                },
            }),
        }
    }

    /// `patch nodeclaims/status.karpenter.sh`
    pub(super) fn text(&self) -> String {
        let sub = if self.subresource.is_empty() {
            String::new()
        } else {
            format!("/{}", self.subresource)
        };
        let group = if self.group.is_empty() {
            String::new()
        } else {
            format!(".{}", self.group)
        };
        let place = if self.namespace.is_empty() {
            String::new()
        } else {
            format!(" in {}", self.namespace)
        };
        format!("{} {}{sub}{group}{place}", self.verb, self.resource)
    }
}

/// Where the roles as they are shipped install the controller.
const SHIPPED_TO: &str = "kube-system";

/// All permissions of the roles that every installation binds, for the controller of a service account: the lease is beside
/// it, wherever the chart put it.
pub(super) fn needed(service_account: Option<&str>) -> Vec<Permission> {
    let beside = service_account.and_then(|account| account.split_once('/'));
    let beside = beside.map_or(SHIPPED_TO, |(namespace, _)| namespace);
    let (documents, _) = lint::document::read("deploy/rbac.yaml", ROLES);
    let mut all = Vec::new();
    for document in documents {
        let role = &document.value;
        if !role["metadata"]["name"]
            .as_str()
            .is_some_and(|name| NEEDED.contains(&name))
            || role["rules"].is_null()
        {
            continue;
        }
        let namespace = match role["metadata"]["namespace"].as_str().unwrap_or_default() {
            SHIPPED_TO => beside,
            other => other,
        };
        for rule in role["rules"].as_array().into_iter().flatten() {
            all.extend(of_rule(rule, namespace));
        }
    }
    all.sort();
    all.dedup();
    all
}

fn of_rule(rule: &Value, namespace: &str) -> Vec<Permission> {
    let words = |field: &str| -> Vec<String> {
        let words = rule[field].as_array().into_iter().flatten();
        words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let names = match words("resourceNames") {
        names if names.is_empty() => vec![String::new()],
        names => names,
    };
    let mut all = Vec::new();
    for group in words("apiGroups") {
        for resource in words("resources") {
            let (resource, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
            for verb in words("verbs") {
                for name in &names {
                    all.push(Permission {
                        verb: verb.clone(),
                        group: group.clone(),
                        resource: resource.to_owned(),
                        subresource: subresource.to_owned(),
                        name: name.clone(),
                        namespace: namespace.to_owned(),
                    });
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roles_that_are_shipped_are_read_verb_by_verb() {
        let all: Vec<String> = needed(None).iter().map(Permission::text).collect();
        for wanted in [
            "patch nodeclaims/status.karpenter.sh",
            "create pods/eviction",
            "update leases.coordination.k8s.io in kube-system",
            "list cronjobs.batch",
        ] {
            assert!(all.iter().any(|one| one == wanted), "{wanted} is not in {all:#?}");
        }
        assert!(
            !all.iter().any(|one| one.contains("binding")),
            "what only an option needs is not asked for"
        );
    }

    #[test]
    fn the_lease_of_a_service_account_is_in_its_own_namespace() {
        let all: Vec<String> = needed(Some("karpenter/dovetail"))
            .iter()
            .map(Permission::text)
            .collect();
        for wanted in [
            "update leases.coordination.k8s.io in karpenter",
            "delete leases.coordination.k8s.io in kube-node-lease",
        ] {
            assert!(all.iter().any(|one| one == wanted), "{wanted} is not in {all:#?}");
        }
        assert!(!all.iter().any(|one| one.ends_with("in kube-system")), "{all:#?}");
    }

    #[test]
    fn a_service_account_is_asked_about_by_its_full_name() {
        let review = needed(None)[0].review(Some("kube-system/dovetail"));
        assert_eq!(review["kind"], "SubjectAccessReview");
        assert_eq!(review["spec"]["user"], "system:serviceaccount:kube-system:dovetail");
        assert_eq!(needed(None)[0].review(None)["kind"], "SelfSubjectAccessReview");
    }
}
