//! Jobs: pods until enough of them have succeeded. And CronJobs: a Job whenever it is time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    News,
    cron::Cron,
    is_deleting, key, pods, text,
    workload::{Owned, controller, is_gone, new_pod, owner_of, tell, whole},
};
use crate::{ApiServer, Resource, write::time};

fn jobs() -> Resource {
    Resource::new("batch", "jobs")
}

/// Runs jobs.
pub(super) async fn work(server: ApiServer) {
    let mut news = News::of(&server);
    let mut forgotten = BTreeSet::new();
    let mut ends = JoinSet::new();
    while news.next(&[pods(), jobs()]).await.is_some() {
        let all = server.all(&jobs());
        if all.is_empty() {
            continue;
        }
        let owned = Owned::of(&server);
        for job in all.iter().filter(|job| !is_deleting(job)) {
            if !is_finished(job) {
                reconcile(&server, job, &owned);
            } else if let Some(seconds) = job["spec"]["ttlSecondsAfterFinished"].as_u64()
                && forgotten.insert(text(job, "/metadata/uid").to_owned())
            {
                ends.spawn(forget(server.clone(), key(job), seconds));
            }
        }
    }
}

async fn forget(server: ApiServer, job: String, seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let _ = server.delete("Job", &job);
}

fn is_finished(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .into_iter()
        .any(|one| (one["type"] == "Complete" || one["type"] == "Failed") && one["status"] == "True")
}

fn reconcile(server: &ApiServer, job: &Value, owned: &Owned) {
    let phase = |wanted: &str| {
        owned
            .by(job)
            .iter()
            .filter(|pod| text(pod, "/status/phase") == wanted)
            .count()
    };
    let (succeeded, failed) = (phase("Succeeded"), phase("Failed"));
    let active = owned.alive(job);
    let wanted = whole(job, "/spec/completions", 1);
    let now = time(server.now());
    let mut status = vec![
        ("succeeded", json!(succeeded)),
        ("failed", json!(failed)),
        (
            "startTime",
            if job["status"]["startTime"].is_null() {
                now.clone()
            } else {
                job["status"]["startTime"].clone()
            },
        ),
    ];
    let end = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message});
    if succeeded >= wanted {
        status.push(("active", json!(0)));
        status.push(("ready", json!(0)));
        status.push(("completionTime", now));
        let message = "Reached expected number of succeeded pods";
        return tell(server, job, &status, &[end("Complete", "CompletionsReached", message)]);
    }
    if failed > whole(job, "/spec/backoffLimit", 6) {
        for pod in &active {
            let _ = server.delete("Pod", &key(pod));
        }
        status.push(("active", json!(0)));
        let message = "Job has reached the specified backoff limit";
        return tell(server, job, &status, &[end("Failed", "BackoffLimitExceeded", message)]);
    }
    let is_suspended = job["spec"]["suspend"] == true;
    let room = if is_suspended {
        0
    } else {
        whole(job, "/spec/parallelism", 1).min(wanted - succeeded)
    };
    for _ in active.len()..room {
        let mut pod = new_pod(job, &job["spec"]["template"]);
        pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = job["metadata"]["name"].clone();
        pod["metadata"]["labels"]["job-name"] = job["metadata"]["name"].clone();
        let _ = server.create(pod);
    }
    for pod in active.iter().skip(room) {
        let _ = server.delete("Pod", &key(pod));
    }
    status.push(("active", json!(active.len().max(room))));
    status.push((
        "ready",
        json!(active.iter().filter(|pod| crate::pod::is_ready(pod)).count()),
    ));
    tell(server, job, &status, &[]);
}

/// Ends pods of jobs that have run long enough: they succeed.
pub(super) async fn succeed(server: ApiServer, after: Duration) {
    let mut news = News::of(&server);
    let mut known = BTreeSet::new();
    let mut ends = JoinSet::new();
    while let Some(changed) = news.next(&[pods()]).await {
        while ends.try_join_next().is_some() {}
        for (_, pod) in changed {
            let is_of_job = pod["metadata"]["ownerReferences"][0]["kind"] == "Job";
            let is_running = text(&pod, "/status/phase") == "Running";
            if is_of_job && is_running && known.insert(text(&pod, "/metadata/uid").to_owned()) {
                let said = text(&pod, "/metadata/annotations/simulator~1run-seconds").parse().ok();
                let after = said.map_or(after, Duration::from_secs);
                ends.spawn(finish(server.clone(), key(&pod), after));
            }
        }
    }
}

async fn finish(server: ApiServer, pod: String, after: Duration) {
    tokio::time::sleep(after).await;
    if server.get("Pod", &pod).is_some_and(|pod| !is_gone(&pod)) {
        let now = server.now();
        let _ = server.update("Pod", &pod, |pod| {
            pod["status"]["phase"] = json!("Succeeded");
            for kind in ["Ready", "ContainersReady"] {
                let condition = json!({"type": kind, "status": "False", "reason": "PodCompleted"});
                crate::pod::set_condition(pod, condition, now);
            }
            for status in pod["status"]["containerStatuses"].as_array_mut().into_iter().flatten() {
                status["ready"] = json!(false);
                status["state"] =
                    json!({"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": time(now)}});
            }
        });
    }
}

/// Starts jobs when it is time.
pub(super) async fn start_in_time(server: ApiServer) {
    let crons = Resource::new("batch", "cronjobs");
    let mut news = News::of(&server);
    let mut alarms = JoinSet::new();
    // Per schedule, the generation its alarm is set for.
    let mut set: BTreeMap<String, Value> = BTreeMap::new();
    while news.next(&[crons.clone(), jobs()]).await.is_some() {
        while alarms.try_join_next().is_some() {}
        for cron in server.all(&crons) {
            tidy(&server, &cron);
            let (uid, generation) = (text(&cron, "/metadata/uid"), &cron["metadata"]["generation"]);
            if set.get(uid) != Some(generation) {
                alarms.spawn(ring(server.clone(), key(&cron), generation.clone()));
                set.insert(uid.to_owned(), generation.clone());
            }
        }
    }
}

/// Starts a job at every time of a schedule, until the schedule changes or is gone.
async fn ring(server: ApiServer, name: String, generation: Value) {
    loop {
        let Some(cron) = server.get("CronJob", &name) else {
            return;
        };
        if cron["metadata"]["generation"] != generation {
            return;
        }
        let zone = TimeZone::get(text(&cron, "/spec/timeZone")).unwrap_or(TimeZone::UTC);
        let now = server.now();
        let next = Cron::parse(text(&cron, "/spec/schedule")).and_then(|schedule| schedule.next(now, &zone));
        let Some(next) = next else { return };
        let wait = next.duration_since(now);
        tokio::time::sleep(Duration::try_from(wait).unwrap_or_default()).await;
        let Some(cron) = server.get("CronJob", &name) else {
            return;
        };
        if cron["metadata"]["generation"] != generation {
            return;
        }
        if cron["spec"]["suspend"] != true {
            begin(&server, &cron, next);
        }
    }
}

fn begin(server: &ApiServer, cron: &Value, at: Timestamp) {
    let running: Vec<String> = of(server, cron)
        .iter()
        .filter(|job| !is_finished(job))
        .map(|job| key(job))
        .collect();
    match text(cron, "/spec/concurrencyPolicy") {
        "Forbid" if !running.is_empty() => return,
        "Replace" => running.iter().for_each(|job| drop(server.delete("Job", job))),
        _ => {}
    }
    let template = &cron["spec"]["jobTemplate"];
    let mut job =
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": template["metadata"], "spec": template["spec"]});
    job["metadata"]["name"] = json!(format!("{}-{}", text(cron, "/metadata/name"), at.as_second() / 60));
    job["metadata"]["namespace"] = cron["metadata"]["namespace"].clone();
    job["metadata"]["ownerReferences"] = json!([owner_of(cron)]);
    let _ = server.create(job);
    let _ = server.update("CronJob", &key(cron), |cron| {
        cron["status"]["lastScheduleTime"] = time(at);
    });
}

fn of(server: &ApiServer, cron: &Value) -> Vec<std::sync::Arc<Value>> {
    let mut own = server.all(&jobs());
    own.retain(|job| controller(job) == text(cron, "/metadata/uid") && !is_deleting(job));
    own.sort_by_key(|job| text(job, "/metadata/creationTimestamp").to_owned());
    own
}

/// Keeps few finished jobs, and tells of those that run.
fn tidy(server: &ApiServer, cron: &Value) {
    let own = of(server, cron);
    let has = |job: &Value, kind: &str| {
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        conditions
            .into_iter()
            .any(|one| one["type"] == kind && one["status"] == "True")
    };
    for (kind, limit, other) in [
        ("Complete", "/spec/successfulJobsHistoryLimit", 3),
        ("Failed", "/spec/failedJobsHistoryLimit", 1),
    ] {
        let done: Vec<_> = own.iter().filter(|job| has(job, kind)).collect();
        let surplus = done.len().saturating_sub(whole(cron, limit, other));
        for job in &done[..surplus] {
            let _ = server.delete("Job", &key(job));
        }
    }
    let active: Vec<Value> = own
        .iter()
        .filter(|job| !is_finished(job))
        .map(|job| {
            json!({"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"],
            "namespace": job["metadata"]["namespace"], "uid": job["metadata"]["uid"]})
        })
        .collect();
    if cron["status"]["active"].as_array().map_or(0, Vec::len) != active.len() {
        let _ = server.update("CronJob", &key(cron), |cron| cron["status"]["active"] = json!(active));
    }
}
