//! What a command needs of a running cluster: a connection, and objects as a dump would have them.

use anyhow::Context;
use model::object::Object;
use runtime::{Api, Resource};
use serde_json::{Value, json};

/// How commands name themselves to the API server.
pub(crate) const USER_AGENT: &str = concat!("dovetail-cli/", env!("CARGO_PKG_VERSION"));

/// Runs something that waits, to its end.
pub(crate) fn wait_for<R>(work: impl Future<Output = anyhow::Result<R>>) -> anyhow::Result<R> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(work)
}

/// All objects of a cluster-scoped kind, each with its kind written on it, as `kubectl get -o json` prints them.
pub(crate) async fn list<T: Object>(api: &Api) -> anyhow::Result<Vec<Value>> {
    let path = Resource::of::<T>().collection("");
    let bytes = api.call(http::Method::GET, &path, None, "application/json").await?;
    let mut list: Value = serde_json::from_slice(&bytes).with_context(|| format!("read {path}"))?;
    let items = match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let named = items.into_iter().map(|mut item| {
        item["apiVersion"] = json!(T::API_VERSION);
        item["kind"] = json!(T::KIND);
        item
    });
    Ok(named.collect())
}
