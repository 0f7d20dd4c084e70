//! Who may see the cluster: anybody on this machine, or whom the cluster's API server knows and lets read NodePools.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use http::Method;
use runtime::Api;
use serde_json::{Value, json};
use tokio::{
    sync::{OnceCell, Semaphore},
    time::Instant,
};

/// Who may see the cluster.
#[derive(Clone)]
pub enum Access {
    /// Whoever can reach this machine's own address: for a simulation, or for somebody's own dump.
    ThisMachine,
    /// Whoever has a token that somebody vouches for.
    Reviewed(Arc<Gate>),
}

/// What a token is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its bearer may look.
    Allowed,
    /// Nobody knows it.
    Unknown,
    /// Its bearer is known, and may not look.
    Forbidden,
    /// Nobody could be asked.
    Unanswered,
}

/// Vouches for tokens.
#[async_trait]
pub trait Reviewer: Send + Sync + 'static {
    /// What a token is worth.
    async fn review(&self, token: &str) -> Verdict;
}

/// How long a yes counts; who loses the right loses the page this much later at most.
const YES: Duration = Duration::from_mins(1);
/// How long a no counts: long enough that guessing costs the API server nothing.
const NO: Duration = Duration::from_secs(10);
/// Verdicts that are remembered.
const REMEMBERED: usize = 256;
/// Tokens that are asked about at once.
const AT_ONCE: usize = 4;
/// A token is shorter.
const LONGEST: usize = 16 << 10;

/// Remembers verdicts for a little while.
pub struct Gate {
    reviewer: Arc<dyn Reviewer>,
    known: Mutex<BTreeMap<String, (Verdict, Instant)>>,
    slots: Semaphore,
}

impl Gate {
    /// Before this reviewer.
    pub fn new(reviewer: Arc<dyn Reviewer>) -> Self {
        Self {
            reviewer,
            known: Mutex::default(),
            slots: Semaphore::new(AT_ONCE),
        }
    }

    /// What the token of an `Authorization` header is worth.
    pub(crate) async fn verdict(&self, authorization: Option<&str>) -> Verdict {
        let token = authorization.and_then(|text| text.strip_prefix("Bearer "));
        let Some(token) = token.map(str::trim).filter(|it| !it.is_empty() && it.len() <= LONGEST) else {
            return Verdict::Unknown;
        };
        if let Some(known) = self.recall(token) {
            return known;
        }
        let Ok(_slot) = self.slots.acquire().await else {
            return Verdict::Unanswered;
        };
        // Somebody may have asked about it meanwhile.
        if let Some(known) = self.recall(token) {
            return known;
        }
        let verdict = self.reviewer.review(token).await;
        self.remember(token, verdict);
        verdict
    }

    fn recall(&self, token: &str) -> Option<Verdict> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (verdict, until) = known.get(token)?;
        (*until > Instant::now()).then_some(*verdict)
    }

    fn remember(&self, token: &str, verdict: Verdict) {
        let now = Instant::now();
        let until = now + if verdict == Verdict::Allowed { YES } else { NO };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (_, until)| *until > now);
        if known.len() < REMEMBERED {
            known.insert(token.to_owned(), (verdict, until));
        }
    }
}

/// Asks the cluster's API server: whose token it is (TokenReview), and whether they may list NodePools
/// (SubjectAccessReview).
pub struct ClusterReviewer {
    connect: Box<dyn Fn() -> Connecting + Send + Sync>,
    api: OnceCell<Api>,
}

type Connecting = std::pin::Pin<Box<dyn Future<Output = Result<Api, String>> + Send>>;

impl ClusterReviewer {
    /// Connects when the first token comes, on the page's own thread.
    pub fn new<F: Future<Output = Result<Api, String>> + Send + 'static>(
        connect: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        Self {
            connect: Box::new(move || Box::pin(connect())),
            api: OnceCell::new(),
        }
    }

    async fn ask(&self, token: &str) -> Result<Verdict, String> {
        let api = self.api.get_or_try_init(|| (self.connect)()).await?;
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
        });
        let answer = post(api, "/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
        let status = &answer["status"];
        if status["authenticated"] != true {
            return Ok(Verdict::Unknown);
        }
        let answer = post(
            api,
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            &access_review(&status["user"]),
        )
        .await?;
        Ok(if answer["status"]["allowed"] == true {
            Verdict::Allowed
        } else {
            Verdict::Forbidden
        })
    }
}

/// May this user list NodePools? Who may read those may read the page.
fn access_review(user: &Value) -> Value {
    json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": user["username"], "groups": user["groups"], "uid": user["uid"], "extra": user["extra"],
            "resourceAttributes": {"group": "karpenter.sh", "resource": "nodepools", "verb": "list"},
        },
    })
}

async fn post(api: &Api, path: &str, body: &Value) -> Result<Value, String> {
    let bytes = api.call(Method::POST, path, Some(body), "application/json").await;
    let bytes = bytes.map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))
}

#[async_trait]
impl Reviewer for ClusterReviewer {
    async fn review(&self, token: &str) -> Verdict {
        match self.ask(token).await {
            Ok(verdict) => verdict,
            Err(error) => {
                tracing::error!(
                    error,
                    "a token of the page could not be reviewed; deploy/page.yaml has the rights it takes"
                );
                Verdict::Unanswered
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    #[async_trait]
    impl Reviewer for Counted {
        async fn review(&self, token: &str) -> Verdict {
            self.0.fetch_add(1, Ordering::SeqCst);
            match token {
                "good" => Verdict::Allowed,
                "stranger" => Verdict::Forbidden,
                _ => Verdict::Unknown,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_verdict_is_asked_for_once_and_again_when_it_is_old() {
        let counted = Arc::new(Counted::default());
        let gate = Gate::new(Arc::clone(&counted) as _);
        for _ in 0..3 {
            assert_eq!(gate.verdict(Some("Bearer good")).await, Verdict::Allowed);
            assert_eq!(gate.verdict(Some("Bearer stranger")).await, Verdict::Forbidden);
        }
        assert_eq!(counted.0.load(Ordering::SeqCst), 2);
        tokio::time::advance(YES).await;
        assert_eq!(gate.verdict(Some("Bearer good")).await, Verdict::Allowed);
        assert_eq!(counted.0.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn without_a_bearer_token_nobody_is_asked() {
        let counted = Arc::new(Counted::default());
        let gate = Gate::new(Arc::clone(&counted) as _);
        let long = format!("Bearer {}", "x".repeat(LONGEST + 1));
        for header in [
            None,
            Some("Basic Z29vZA=="),
            Some("Bearer "),
            Some("good"),
            Some(long.as_str()),
        ] {
            assert_eq!(gate.verdict(header).await, Verdict::Unknown, "{header:?}");
        }
        assert_eq!(counted.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn the_right_that_is_asked_for_is_to_list_node_pools_as_that_user() {
        let user = json!({"username": "ada", "groups": ["ops"], "uid": "7", "extra": {"a": ["b"]}});
        let spec = &access_review(&user)["spec"];
        assert_eq!((&spec["user"], &spec["groups"]), (&json!("ada"), &json!(["ops"])));
        assert_eq!((&spec["uid"], &spec["extra"]), (&json!("7"), &json!({"a": ["b"]})));
        assert_eq!(
            spec["resourceAttributes"],
            json!({"group": "karpenter.sh", "resource": "nodepools", "verb": "list"})
        );
    }
}
