//! Where a kind lives on the API server.

use model::object::{Object, ObjectKey};

/// A kind's place on the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    prefix: String,
    plural: String,
}

impl Resource {
    /// The place of a kind that the model knows.
    pub fn of<T: Object>() -> Self {
        Self::new(T::API_VERSION, T::KIND)
    }

    /// The place of any kind.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let prefix = if api_version.contains('/') { "/apis" } else { "/api" };
        let lower = kind.to_lowercase();
        let ending = if lower.ends_with('s') { "es" } else { "s" };
        Self {
            prefix: format!("{prefix}/{api_version}"),
            plural: format!("{lower}{ending}"),
        }
    }

    /// All objects of a namespace, or of the cluster when it is empty.
    pub fn collection(&self, namespace: &str) -> String {
        let Self { prefix, plural } = self;
        if namespace.is_empty() {
            format!("{prefix}/{plural}")
        } else {
            format!("{prefix}/namespaces/{namespace}/{plural}")
        }
    }

    /// One object.
    pub fn item(&self, key: &ObjectKey) -> String {
        format!("{}/{}", self.collection(&key.namespace), key.name)
    }
}

#[cfg(test)]
mod tests {
    use model::object::{CSINode, NodeClaim, Pod, StorageClass};

    use super::*;

    #[test]
    fn every_kind_has_its_path() {
        let paths = [
            Resource::of::<Pod>().item(&ObjectKey::new("team", "web-1")),
            Resource::of::<Pod>().collection(""),
            Resource::of::<NodeClaim>().item(&ObjectKey::cluster_scoped("a")),
            Resource::of::<StorageClass>().collection(""),
            Resource::of::<CSINode>().collection(""),
        ];
        let expected = [
            "/api/v1/namespaces/team/pods/web-1",
            "/api/v1/pods",
            "/apis/karpenter.sh/v1/nodeclaims/a",
            "/apis/storage.k8s.io/v1/storageclasses",
            "/apis/storage.k8s.io/v1/csinodes",
        ];
        assert_eq!(paths, expected);
    }
}
