//! What is kept over a restart: a value that an earlier process wrote into a ConfigMap, and this one goes on writing.

use std::time::Duration;

use http::Method;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{Api, ApiError};

/// How often is looked whether something changed.
const LOOKED_AT: Duration = Duration::from_secs(30);

/// Where a value is kept.
pub struct Kept<'a> {
    /// The API server.
    pub api: &'a Api,
    /// The namespace.
    pub namespace: &'a str,
    /// The ConfigMap.
    pub name: &'static str,
}

impl Kept<'_> {
    /// Takes up what an earlier process wrote down, and writes down what changes, until dropped.
    pub async fn keep<K>(&self, take_up: impl Fn(K), known: impl Fn() -> K)
    where
        K: Serialize + DeserializeOwned + Default + Clone + PartialEq,
    {
        let (mut written, mut is_read) = (None::<K>, false);
        loop {
            if !is_read {
                match self.read().await {
                    Ok(kept) => {
                        kept.iter().cloned().for_each(&take_up);
                        (written, is_read) = (kept, true);
                    }
                    Err(error) => {
                        tracing::error!(ConfigMap.name = self.name, %error, "reading what an earlier process knew");
                    }
                }
            }
            sleep(LOOKED_AT).await;
            // What an earlier process learnt in a week is not written over because it could not be read at once.
            if !is_read {
                continue;
            }
            let now = known();
            if written.as_ref() == Some(&now) || (written.is_none() && now == K::default()) {
                continue;
            }
            match self.write(&now, written.is_some()).await {
                Ok(()) => written = Some(now),
                Err(error) => tracing::error!(ConfigMap.name = self.name, error, "writing down what is known"),
            }
        }
    }

    async fn read<K: DeserializeOwned + Default>(&self) -> Result<Option<K>, ApiError> {
        let bytes = match self.api.call(Method::GET, &self.item(), None, "application/json").await {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let map: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let text = map.pointer("/data/known").and_then(Value::as_str).unwrap_or_default();
        // What cannot be read is forgotten: it is learnt anew.
        Ok(Some(serde_json::from_str(text).unwrap_or_default()))
    }

    async fn write<K: Serialize>(&self, known: &K, exists: bool) -> Result<(), String> {
        let known = serde_json::to_string(known).map_err(|error| error.to_string())?;
        let data = json!({"known": known});
        let wrote = if exists {
            let (path, body) = (self.item(), json!({"data": data}));
            let call = self
                .api
                .call(Method::PATCH, &path, Some(&body), "application/merge-patch+json");
            match call.await {
                // Somebody has deleted it.
                Err(error) if error.is_not_found() => self.create(&data).await,
                wrote => wrote.map(drop),
            }
        } else {
            self.create(&data).await
        };
        wrote.map_err(|error| error.to_string())
    }

    async fn create(&self, data: &Value) -> Result<(), ApiError> {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name}, "data": data});
        let made = self
            .api
            .call(Method::POST, &self.all(), Some(&body), "application/json")
            .await;
        made.map(drop)
    }

    fn all(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    fn item(&self) -> String {
        format!("{}/{}", self.all(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::double::{Log, Step, scripted};

    const MAPS: &str = "/api/v1/namespaces/scaling/configmaps";

    /// What was taken up, and what was asked, when the known value is changed every minute for a while.
    async fn kept(steps: Vec<Step>, known: &[Vec<u32>]) -> (Vec<Vec<u32>>, Log) {
        let (client, log) = scripted(steps);
        let api = Api::new(client, "karpenter/test");
        let kept = Kept {
            api: &api,
            namespace: "scaling",
            name: "known",
        };
        let (taken, current) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let keep = kept.keep(
            |value: Vec<u32>| taken.lock().unwrap().push(value),
            || current.lock().unwrap().clone(),
        );
        let live = async {
            for value in known {
                current.lock().unwrap().clone_from(value);
                sleep(Duration::from_mins(1)).await;
            }
        };
        tokio::select! { () = keep => {}, () = live => {} }
        (taken.into_inner().unwrap(), log)
    }

    fn map(known: &str) -> Step {
        Step::Say(200, json!({"data": {"known": known}}).to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_earlier_process_wrote_is_taken_up_and_what_changes_is_written_once() {
        let steps = vec![map("[1]"), Step::Say(200, "{}".to_owned())];
        let (taken, log) = kept(steps, &[vec![1], vec![1, 2], vec![1, 2]]).await;
        assert_eq!(taken, [[1]]);
        assert_eq!(
            log.lines(),
            [format!("GET {MAPS}/known"), format!("PATCH {MAPS}/known")]
        );
        assert_eq!(log.all()[1].body, json!({"data": {"known": "[1,2]"}}));
    }

    #[tokio::test(start_paused = true)]
    async fn a_map_is_made_once_there_is_something_to_keep() {
        let steps = vec![Step::Say(404, "{}".to_owned()), Step::Say(201, "{}".to_owned())];
        let (taken, log) = kept(steps, &[vec![], vec![], vec![3]]).await;
        assert_eq!(taken, Vec::<Vec<u32>>::new());
        assert_eq!(log.lines(), [format!("GET {MAPS}/known"), format!("POST {MAPS}")]);
        assert_eq!(log.all()[1].body["data"], json!({"known": "[3]"}));
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_read_at_first_is_read_before_anything_is_written() {
        let steps = vec![
            Step::Say(500, "{}".to_owned()),
            map("[1]"),
            Step::Say(200, "{}".to_owned()),
        ];
        let (taken, log) = kept(steps, &[vec![1], vec![1, 2], vec![1, 2]]).await;
        assert_eq!(taken, [[1]]);
        let item = format!("{MAPS}/known");
        assert_eq!(
            log.lines(),
            [format!("GET {item}"), format!("GET {item}"), format!("PATCH {item}")]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_map_that_somebody_has_deleted_is_made_anew() {
        let steps = vec![
            map("[1]"),
            Step::Say(404, "{}".to_owned()),
            Step::Say(201, "{}".to_owned()),
        ];
        let (_, log) = kept(steps, &[vec![1], vec![1, 2], vec![1, 2]]).await;
        let item = format!("{MAPS}/known");
        assert_eq!(
            log.lines(),
            [format!("GET {item}"), format!("PATCH {item}"), format!("POST {MAPS}")]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_is_forgotten() {
        let (taken, _) = kept(vec![map("nonsense")], &[vec![]]).await;
        assert_eq!(taken, [Vec::<u32>::new()]);
    }
}
