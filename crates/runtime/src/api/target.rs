//! What a path of the API server is about.

use http::Method;

/// The parts of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Target<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    /// The plural; empty when the path is not a resource's.
    pub(crate) resource: &'a str,
    pub(crate) name: &'a str,
    pub(crate) subresource: &'a str,
    /// Everything behind the question mark.
    query: &'a str,
}

impl<'a> Target<'a> {
    pub(crate) fn of(path: &'a str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut parts = path.trim_start_matches('/').split('/');
        let group = match parts.next() {
            Some("api") => "",
            Some("apis") => parts.next().unwrap_or_default(),
            _ => return Self::default(),
        };
        let version = parts.next().unwrap_or_default();
        let rest: Vec<&str> = parts.collect();
        let within = match *rest {
            // A namespace itself is a resource too.
            ["namespaces", _, _, ..] => rest.get(2..).unwrap_or_default(),
            _ => &rest,
        };
        let part = |index: usize| within.get(index).copied().unwrap_or_default();
        Self {
            group,
            version,
            resource: part(0),
            name: part(1),
            subresource: part(2),
            query,
        }
    }

    /// The verb that a role must allow.
    pub(crate) fn verb(&self, method: &Method) -> &'static str {
        match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ if self.is_watch() => "watch",
            _ if self.name.is_empty() => "list",
            _ => "get",
        }
    }

    /// The resource as a role names it.
    pub(crate) fn resource_in_role(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    fn is_watch(&self) -> bool {
        self.query.split('&').any(|part| part == "watch=true")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_verb_and_resource() {
        let cases = [
            (Method::GET, "/api/v1/pods?limit=500", ("list", "", "pods")),
            (Method::GET, "/api/v1/pods?watch=true&x=1", ("watch", "", "pods")),
            (Method::GET, "/api/v1/namespaces/a", ("get", "", "namespaces")),
            (Method::GET, "/api/v1/namespaces/a/pods", ("list", "", "pods")),
            (
                Method::POST,
                "/api/v1/namespaces/a/pods/b/eviction",
                ("create", "", "pods/eviction"),
            ),
            (
                Method::PATCH,
                "/apis/karpenter.sh/v1/nodeclaims/a/status",
                ("patch", "karpenter.sh", "nodeclaims/status"),
            ),
            (
                Method::PUT,
                "/apis/coordination.k8s.io/v1/namespaces/n/leases/l",
                ("update", "coordination.k8s.io", "leases"),
            ),
            (Method::GET, "/version", ("list", "", "")),
        ];
        for (method, path, (verb, group, resource)) in cases {
            let target = Target::of(path);
            let found = (target.verb(&method), target.group, target.resource_in_role());
            assert_eq!(found, (verb, group, resource.to_owned()), "{method} {path}");
        }
    }
}
