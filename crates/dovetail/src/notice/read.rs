//! Where notices are read from: Events and decisions of a cluster, or a dump that holds some.

use http::Method;
use runtime::Api;
use tokio::task::JoinSet;

use super::{Ledger, reasons};
use crate::{
    decisions::{ShelfArgs, records_of},
    live,
    place::Place,
    raw,
    source::{Input, Origin},
};

/// How files of a directory are named that may hold Events.
const DUMPS: [&str; 3] = ["yaml", "yml", "json"];

/// What the source of an answer says about notices. Nothing fails for want of it.
pub(crate) fn read(place: &Place, input: &Input) -> Ledger {
    match &input.origin {
        Origin::Live { .. } => live::wait_for(async { Ok(of_cluster(place).await) }).unwrap_or_default(),
        Origin::Dump { has_records: true, .. } => of_dump(place),
        Origin::Dump { .. } | Origin::Catalogue => Ledger::default(),
    }
}

fn of_dump(place: &Place) -> Ledger {
    let mut ledger = Ledger::default();
    if place.from.iter().any(|path| path.as_os_str() == "-") {
        let gap = "Events and decisions on standard input are not read: give a file for what the cloud said";
        ledger.gaps.push(gap.to_owned());
        return ledger;
    }
    let walked = raw::texts(&place.from, &DUMPS, &mut |_, text, _| {
        // Most of a dump is pods; what holds no notice is not even parsed.
        if !reasons().any(|reason| text.contains(reason)) {
            return;
        }
        for value in raw::values(text).unwrap_or_default() {
            ledger.event(&value);
        }
    });
    if let Err(failure) = walked {
        ledger.gaps.push(failure.why);
    }
    let shelf = ShelfArgs {
        place: place.clone(),
        namespace: None,
    };
    ledger.records = records_of(&shelf);
    ledger
}

async fn of_cluster(place: &Place) -> Ledger {
    let mut ledger = Ledger::default();
    let Ok((api, _)) = raw::connected(&place.cluster(), raw::OR_A_DUMP).await else {
        return ledger;
    };
    let (found, gap) = events(&api).await;
    for event in &found {
        ledger.event(event);
    }
    ledger.gaps.extend(gap);
    ledger.records = crate::decisions::records_in(&api).await;
    ledger
}

/// The Events of every reason that counts, and why not where they cannot be had.
async fn events(api: &Api) -> (Vec<serde_json::Value>, Option<String>) {
    let mut answers = JoinSet::new();
    for reason in reasons() {
        let api = api.clone();
        let path = events_path(reason);
        answers.spawn(async move { api.call(Method::GET, &path, None, "application/json").await });
    }
    let (mut found, mut gap) = (Vec::new(), None);
    for answer in answers.join_all().await {
        match answer {
            Ok(page) => found.extend(raw::items(&page, "v1", "Event")),
            Err(error) => {
                gap = Some(format!(
                    "cannot list Events ({error}): what the cloud said is not known"
                ));
            }
        }
    }
    (found, gap)
}

/// Where the Events of a reason are.
pub(crate) fn events_path(reason: &str) -> String {
    format!("/api/v1/events?fieldSelector=reason%3D{reason}")
}
