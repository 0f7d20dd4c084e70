//! What does a path name? Group, resource, namespace, name and subresource.

/// A kind of object as paths name it. Versions of one group share their objects, so a version is no part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    /// As in the path.
    pub plural: String,
}

impl Resource {
    /// A resource.
    pub fn new(group: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            plural: plural.to_owned(),
        }
    }

    /// As messages of the API server name it: `nodes`, `nodeclaims.karpenter.sh`.
    pub fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }
}

/// Namespace (empty for cluster-scoped objects) and name.
pub(crate) type Key = (String, String);

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) resource: Resource,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl Address {
    /// Reads a path; none when it is none of a resource.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, inner @ ..] if !inner.is_empty() => (Some((*namespace).to_owned()), inner),
            _ => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(name), None),
            [plural, name, subresource] => (plural, Some(name), Some(subresource)),
            _ => return None,
        };
        Some(Self {
            resource: Resource::new(group, plural),
            version: version.to_owned(),
            namespace,
            name: name.map(|name| decode(name)),
            subresource: subresource.map(|name| (*name).to_owned()),
        })
    }

    pub(crate) fn key(&self) -> Key {
        (
            self.namespace.clone().unwrap_or_default(),
            self.name.clone().unwrap_or_default(),
        )
    }

    pub(crate) fn api_version(&self) -> String {
        match self.resource.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// The parameters of a query string, decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Self(pairs.collect())
    }

    /// A parameter that is given and not empty.
    pub(crate) fn get(&self, wanted: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(crate) fn is_set(&self, wanted: &str) -> bool {
        self.get(wanted).is_some_and(|value| value == "true" || value == "1")
    }
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => u8::try_from(high * 16 + low).unwrap_or(b'?'),
                _ => b'?',
            },
            plain => plain,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Option<[String; 5]> {
        let address = Address::parse(path)?;
        Some([
            address.api_version(),
            address.resource.plural,
            address.namespace.unwrap_or_default(),
            address.name.unwrap_or_default(),
            address.subresource.unwrap_or_default(),
        ])
    }

    #[test]
    fn a_path_names_group_resource_namespace_name_and_subresource() {
        let cases = [
            ("/api/v1/nodes", ["v1", "nodes", "", "", ""]),
            ("/api/v1/nodes/a/status", ["v1", "nodes", "", "a", "status"]),
            ("/api/v1/namespaces", ["v1", "namespaces", "", "", ""]),
            ("/api/v1/namespaces/a", ["v1", "namespaces", "", "a", ""]),
            ("/api/v1/namespaces/a/status", ["v1", "namespaces", "", "a", "status"]),
            (
                "/api/v1/namespaces/a/pods/b/eviction",
                ["v1", "pods", "a", "b", "eviction"],
            ),
            (
                "/apis/karpenter.sh/v1/nodeclaims/x",
                ["karpenter.sh/v1", "nodeclaims", "", "x", ""],
            ),
        ];
        for (path, expected) in cases {
            assert_eq!(parts(path), Some(expected.map(str::to_owned)), "{path}");
        }
        assert_eq!(parts("/healthz"), None);
    }

    #[test]
    fn query_values_are_decoded() {
        let query = Query::parse("watch=true&labelSelector=a%3Db%2Cc%21%3Dd&continue=");
        assert_eq!(query.get("watch"), Some("true"));
        assert_eq!(query.get("labelSelector"), Some("a=b,c!=d"));
        assert_eq!(query.get("continue"), None);
    }
}
