//! Node classes, claims and pools as the API server has them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use api::node_class::NodeClass;
use http::Method;
use model::object::{NodeClaim, NodeClassReference, NodePool, ObjectKey};
use runtime::{
    Api, ApiError, Resource,
    watch::{Belief, Observed, Watched, follow},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

/// Node classes as they are now.
pub struct Objects<C> {
    api: Api,
    classes: Mutex<Classes<C>>,
}

struct Classes<C> {
    by_name: BTreeMap<String, Arc<C>>,
    are_listed: bool,
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

impl<C: NodeClass> Objects<C> {
    /// None are known yet.
    pub fn new(api: Api) -> Self {
        let classes = Classes {
            by_name: BTreeMap::new(),
            are_listed: false,
        };
        Self {
            api,
            classes: Mutex::new(classes),
        }
    }

    /// The API server.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// A class by name. Once classes are watched, nobody is asked.
    pub async fn class(&self, name: &str) -> Result<Option<Arc<C>>, ApiError> {
        {
            let classes = self.lock();
            if classes.are_listed {
                return Ok(classes.by_name.get(name).cloned());
            }
        }
        self.fetch(name).await
    }

    /// A class by name, as the server has it.
    pub(crate) async fn fetch(&self, name: &str) -> Result<Option<Arc<C>>, ApiError> {
        let path = Self::item(name);
        let bytes = match self.api.call(Method::GET, &path, None, "application/json").await {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        match serde_json::from_slice(&bytes) {
            Ok(class) => Ok(Some(Arc::new(class))),
            Err(error) => {
                // The schema does not admit such an object: it is as good as not there.
                tracing::error!(kind = C::KIND, name, %error, "reading a node class");
                Ok(None)
            }
        }
    }

    /// All classes that are known.
    pub fn classes(&self) -> Vec<Arc<C>> {
        self.lock().by_name.values().cloned().collect()
    }

    /// Follows classes until dropped, and names those that changed.
    pub(crate) async fn follow(&self, changed: UnboundedSender<String>) {
        let watched = Watched {
            resource: Self::resource(),
            read: Box::new(|json: &[u8]| serde_json::from_slice::<C>(json)),
            key: |class: &C| ObjectKey::cluster_scoped(class.name()),
        };
        let see = |observed: Observed<C>| {
            match observed {
                Observed::Listing => {}
                Observed::Applied(class) => {
                    let name = class.name().to_owned();
                    self.lock().by_name.insert(name.clone(), Arc::new(class));
                    let _ = changed.send(name);
                }
                Observed::Deleted(class) => {
                    self.lock().by_name.remove(class.name());
                }
                Observed::Listed { named, .. } => {
                    let mut classes = self.lock();
                    let is_named = |name: &str| named.contains(&ObjectKey::cluster_scoped(name));
                    classes.by_name.retain(|name, _| is_named(name));
                    classes.are_listed = true;
                }
                Observed::Failed(error) => tracing::error!(kind = C::KIND, %error, "watching node classes"),
            }
            Belief::Taken
        };
        follow(&self.api, watched, see).await;
    }

    /// Follows claims until dropped, and names the classes that wait for one that is gone.
    pub(crate) async fn follow_claims(&self, changed: UnboundedSender<String>) {
        let watched = Watched {
            resource: Resource::of::<NodeClaim>(),
            read: Box::new(|json: &[u8]| serde_json::from_slice::<NodeClaim>(json)),
            key: |claim: &NodeClaim| claim.metadata.key(),
        };
        let see = |observed: Observed<NodeClaim>| {
            let gone = match observed {
                Observed::Deleted(claim) => Some(claim),
                // Some may have gone unseen.
                Observed::Listed { .. } => None,
                Observed::Listing | Observed::Applied(_) | Observed::Failed(_) => return Belief::Taken,
            };
            for class in self.classes() {
                let is_meant = |claim: &NodeClaim| Self::refers(claim.spec.node_class_ref.as_ref(), class.name());
                if class.is_deleting() && gone.as_ref().is_none_or(is_meant) {
                    let _ = changed.send(class.name().to_owned());
                }
            }
            Belief::Taken
        };
        follow(&self.api, watched, see).await;
    }

    /// Changes a class, or its status; none when it is gone.
    pub(crate) async fn patch(&self, name: &str, subresource: &str, patch: &Value) -> Result<Option<C>, ApiError> {
        let path = format!("{}{subresource}", Self::item(name));
        let call = self
            .api
            .call(Method::PATCH, &path, Some(patch), "application/merge-patch+json");
        match call.await {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The claims that use a class.
    pub(crate) async fn claims_of(&self, class: &str) -> Result<Vec<NodeClaim>, ApiError> {
        let claims: Vec<NodeClaim> = self.list(&Resource::of::<NodeClaim>()).await?;
        let is_of = |claim: &NodeClaim| Self::refers(claim.spec.node_class_ref.as_ref(), class);
        Ok(claims.into_iter().filter(is_of).collect())
    }

    /// All claims of our kind of class.
    pub async fn claims(&self) -> Result<Vec<NodeClaim>, ApiError> {
        let claims: Vec<NodeClaim> = self.list(&Resource::of::<NodeClaim>()).await?;
        let is_ours = |claim: &NodeClaim| {
            let class = claim.spec.node_class_ref.as_ref();
            class.is_some_and(|it| *it.kind == *C::KIND)
        };
        Ok(claims.into_iter().filter(is_ours).collect())
    }

    /// The pools that use a class.
    pub async fn pools_of(&self, class: &str) -> Result<Vec<NodePool>, ApiError> {
        let pools: Vec<NodePool> = self.list(&Resource::of::<NodePool>()).await?;
        let is_of = |pool: &NodePool| Self::refers(pool.spec.template.spec.node_class_ref.as_ref(), class);
        Ok(pools.into_iter().filter(is_of).collect())
    }

    /// Everything of a kind.
    pub async fn list<T: DeserializeOwned>(&self, resource: &Resource) -> Result<Vec<T>, ApiError> {
        let mut all = Vec::new();
        for page in self.api.pages(resource).await? {
            match serde_json::from_slice::<List<T>>(&page) {
                Ok(list) => all.extend(list.items),
                Err(error) => tracing::error!(%error, "reading a list"),
            }
        }
        Ok(all)
    }

    /// Writes annotations of a claim; fine when it is gone.
    pub async fn annotate_claim(
        &self,
        claim: &NodeClaim,
        annotations: &BTreeMap<&str, String>,
    ) -> Result<(), ApiError> {
        let path = Resource::of::<NodeClaim>().item(&claim.metadata.key());
        let body = json!({"metadata": {"annotations": annotations}});
        let call = self
            .api
            .call(Method::PATCH, &path, Some(&body), "application/merge-patch+json");
        match call.await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// The kind, as the API server is asked for it.
    pub fn resource() -> Resource {
        Resource::new(C::API_VERSION, C::KIND)
    }

    fn item(name: &str) -> String {
        Self::resource().item(&ObjectKey::cluster_scoped(name))
    }

    fn refers(reference: Option<&NodeClassReference>, class: &str) -> bool {
        reference.is_some_and(|it| *it.kind == *C::KIND && *it.name == *class)
    }

    fn lock(&self) -> MutexGuard<'_, Classes<C>> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
