//! Node classes, claims and pools as the API server has them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use api::azure::AKSNodeClass;
use http::Method;
use model::object::{NodeClaim, NodeClassReference, ObjectKey};
use runtime::{
    Api, ApiError, Resource,
    watch::{Belief, Observed, Watched, follow},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

/// Group and version of node classes.
pub(crate) const API_VERSION: &str = "karpenter.azure.com/v1beta1";
/// Their kind.
pub(crate) const KIND: &str = "AKSNodeClass";

/// Node classes as they are now.
pub(crate) struct Objects {
    api: Api,
    classes: Mutex<Classes>,
}

#[derive(Default)]
struct Classes {
    by_name: BTreeMap<String, Arc<AKSNodeClass>>,
    are_listed: bool,
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

impl Objects {
    pub(crate) fn new(api: Api) -> Self {
        Self {
            api,
            classes: Mutex::default(),
        }
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    /// A class by name. Once classes are watched, nobody is asked.
    pub(crate) async fn class(&self, name: &str) -> Result<Option<Arc<AKSNodeClass>>, ApiError> {
        {
            let classes = self.lock();
            if classes.are_listed {
                return Ok(classes.by_name.get(name).cloned());
            }
        }
        self.fetch(name).await
    }

    /// A class by name, as the server has it.
    pub(crate) async fn fetch(&self, name: &str) -> Result<Option<Arc<AKSNodeClass>>, ApiError> {
        let path = item(name);
        let bytes = match self.api.call(Method::GET, &path, None, "application/json").await {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        match serde_json::from_slice(&bytes) {
            Ok(class) => Ok(Some(Arc::new(class))),
            Err(error) => {
                // The schema does not admit such an object: it is as good as not there.
                tracing::error!(AKSNodeClass.name = name, %error, "reading an AKSNodeClass");
                Ok(None)
            }
        }
    }

    /// All classes that are known.
    pub(crate) fn classes(&self) -> Vec<Arc<AKSNodeClass>> {
        self.lock().by_name.values().cloned().collect()
    }

    /// Follows classes until dropped, and names those that changed.
    pub(crate) async fn follow(&self, changed: UnboundedSender<String>) {
        let watched = Watched {
            resource: resource(),
            read: Box::new(|json: &[u8]| serde_json::from_slice::<AKSNodeClass>(json)),
            key: |class: &AKSNodeClass| ObjectKey::cluster_scoped(&name_of(class)),
        };
        let see = |observed: Observed<AKSNodeClass>| {
            match observed {
                Observed::Listing => {}
                Observed::Applied(class) => {
                    let name = name_of(&class);
                    self.lock().by_name.insert(name.clone(), Arc::new(class));
                    let _ = changed.send(name);
                }
                Observed::Deleted(class) => {
                    self.lock().by_name.remove(&name_of(&class));
                }
                Observed::Listed { named, .. } => {
                    let mut classes = self.lock();
                    let is_named = |name: &str| named.contains(&ObjectKey::cluster_scoped(name));
                    classes.by_name.retain(|name, _| is_named(name));
                    classes.are_listed = true;
                }
                Observed::Failed(error) => {
                    tracing::error!(%error, "watching AKSNodeClasses");
                }
            }
            Belief::Taken
        };
        follow(&self.api, watched, see).await;
    }

    /// Changes a class, or its status; none when it is gone.
    pub(crate) async fn patch(
        &self,
        name: &str,
        subresource: &str,
        patch: &Value,
    ) -> Result<Option<AKSNodeClass>, ApiError> {
        let path = format!("{}{subresource}", item(name));
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
        let is_of = |claim: &NodeClaim| refers(claim.spec.node_class_ref.as_ref(), class);
        Ok(claims.into_iter().filter(is_of).collect())
    }

    /// All claims of our kind of class.
    pub(crate) async fn claims(&self) -> Result<Vec<NodeClaim>, ApiError> {
        let claims: Vec<NodeClaim> = self.list(&Resource::of::<NodeClaim>()).await?;
        let is_ours = |claim: &NodeClaim| {
            let class = claim.spec.node_class_ref.as_ref();
            class.is_some_and(|it| *it.kind == *KIND)
        };
        Ok(claims.into_iter().filter(is_ours).collect())
    }

    /// Everything of a kind.
    pub(crate) async fn list<T: DeserializeOwned>(&self, resource: &Resource) -> Result<Vec<T>, ApiError> {
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
    pub(crate) async fn annotate_claim(
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

    fn lock(&self) -> MutexGuard<'_, Classes> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn resource() -> Resource {
    Resource::new(API_VERSION, KIND)
}

fn item(name: &str) -> String {
    resource().item(&ObjectKey::cluster_scoped(name))
}

/// A class's name.
pub(crate) fn name_of(class: &AKSNodeClass) -> String {
    class.metadata.name.clone().unwrap_or_default()
}

fn refers(reference: Option<&NodeClassReference>, class: &str) -> bool {
    reference.is_some_and(|it| *it.kind == *KIND && *it.name == *class)
}
