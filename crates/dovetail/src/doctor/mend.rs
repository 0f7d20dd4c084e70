//! `dovetail doctor --fix`: carries out what mends a finding, where that is safe without a person's judgement.
//!
//! Everything is checked anew just before, and written only to the very object that was looked at.

use model::object::{Node, NodeClaim, ObjectKey};
use runtime::{Api, ApiError, Delete, Patch};
use serde_json::json;

use super::{Check, State};
use crate::{
    answer::Answer,
    crds,
    failure::Failure,
    terminal::{agreed, aside, counted},
};

/// Stands for every finding that has a fix of this kind.
pub(super) const ALL: &str = "all";

/// What can be done without asking the cloud or knowing what somebody meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Missing and old CRDs are applied.
    ApplyDefinitions,
    /// A claim whose node is gone is deleted; its finalizer sees to the machine.
    DeleteClaim { name: String, uid: String },
    /// A node that nobody claims is no longer called a pool's.
    ReleaseNode { name: String, uid: String },
}

impl Act {
    /// What it does, in words that go before it is done.
    fn intent(&self) -> String {
        match self {
            Self::ApplyDefinitions => "applies the CRDs that are missing or old".to_owned(),
            Self::DeleteClaim { name, .. } => format!("deletes NodeClaim {name}"),
            Self::ReleaseNode { name, .. } => format!("takes the label {} off Node {name}", api::labels::NODEPOOL),
        }
    }

    async fn done(&self, api: &Api) -> anyhow::Result<String> {
        let wrote = match self {
            Self::ApplyDefinitions => return Ok(crds::brought_up(api).await?.trim_end().replace('\n', ", ")),
            Self::DeleteClaim { name, uid } => {
                let options = Delete {
                    uid: Some(uid.as_str().into()),
                    ..Delete::default()
                };
                api.delete::<NodeClaim>(&ObjectKey::cluster_scoped(name), &options)
                    .await
            }
            Self::ReleaseNode { name, uid } => {
                let labels = json!({api::labels::NODEPOOL: null});
                let change = Patch::Merge(json!({"metadata": {"uid": uid, "labels": labels}}));
                let key = ObjectKey::cluster_scoped(name);
                api.patch::<Node>(&key, None, &change).await.map(drop)
            }
        };
        Ok(told(self, wrote)?)
    }
}

fn told(act: &Act, wrote: Result<(), ApiError>) -> Result<String, Failure> {
    match wrote {
        Ok(()) => Ok(match act {
            Act::ApplyDefinitions => String::new(),
            Act::DeleteClaim { name, .. } => format!("NodeClaim {name} is deleted; its finalizer asks the cloud"),
            Act::ReleaseNode { name, .. } => format!("Node {name} is no longer called a NodePool's"),
        }),
        Err(error) if error.is_not_found() => Ok("it is gone by itself".to_owned()),
        Err(error) if error.is_conflict() => Ok("it is another object by now: left alone".to_owned()),
        Err(error) => Err(Failure::new(
            format!("doctor could not do it: {}", act.intent()),
            error.to_string(),
            "ask for the right to, or type the command that dovetail doctor prints",
        )),
    }
}

/// Does what was asked for, after saying what.
pub(super) async fn mended(api: &Api, checks: &[Check], wanted: &str, is_agreed: bool) -> anyhow::Result<Answer> {
    let chosen = chosen(checks, wanted)?;
    if chosen.is_empty() {
        return Ok(Answer::from(
            "nothing to fix that is safe without a person.\n".to_owned(),
        ));
    }
    for (id, act) in &chosen {
        aside(&format!("{id}  {}\n", act.intent()));
    }
    let asks = format!("Writes {}.", counted(chosen.len(), "change"));
    if !is_agreed && !agreed(&asks)? {
        return Ok(Answer::from("nothing was written\n".to_owned()));
    }
    let mut text = String::new();
    for (id, act) in &chosen {
        text.push_str(&format!("{id}  {}\n", act.done(api).await?));
    }
    Ok(text.into())
}

/// The acts that are meant.
fn chosen<'a>(checks: &'a [Check], wanted: &str) -> Result<Vec<(&'static str, &'a Act)>, Failure> {
    let is_meant = |check: &&Check| wanted == ALL || check.id.eq_ignore_ascii_case(wanted);
    let of_id: Vec<&Check> = checks.iter().filter(is_meant).collect();
    let acts: Vec<_> = of_id
        .iter()
        .filter_map(|check| Some((check.id, check.fix.as_ref()?.act.as_ref()?)))
        .collect();
    if !acts.is_empty() || wanted == ALL {
        return Ok(acts);
    }
    let mut known: Vec<&str> = checks.iter().map(|check| check.id).collect();
    known.dedup();
    let Some(found) = of_id.iter().find(|check| check.state <= State::Warn) else {
        if of_id.is_empty() {
            let why = format!("checks are {}", known.join(", "));
            return Err(Failure::usage(
                format!("no check {wanted}"),
                why,
                "dovetail doctor lists them",
            ));
        }
        return Ok(acts);
    };
    let fix = found.fix.as_ref();
    let why = fix.map_or("nobody knows one", |fix| fix.safe_because.as_str());
    let next = fix
        .and_then(|fix| fix.commands.first())
        .map_or("dovetail doctor", String::as_str);
    Err(Failure::new(
        format!("{} has no fix that is safe without a person", found.id),
        why,
        next,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Vec<Check> {
        let act = Act::DeleteClaim {
            name: "general-1".into(),
            uid: "u".into(),
        };
        vec![
            Check::ok("D05", "fine"),
            Check::new("D10", State::Warn, "lost")
                .fix("kubectl delete", "safe")
                .act(act),
            Check::new("D12", State::Warn, "stuck").fix("look", "it only reads"),
        ]
    }

    #[test]
    fn only_what_is_safe_without_a_person_is_done() {
        let checks = checks();
        let ids = |wanted: &str| {
            let chosen = chosen(&checks, wanted)?;
            Ok::<_, Failure>(chosen.into_iter().map(|(id, _)| id).collect::<Vec<_>>())
        };
        assert_eq!(ids(ALL).unwrap(), ["D10"]);
        assert_eq!(ids("d10").unwrap(), ["D10"]);
        assert_eq!(ids("D05").unwrap(), [""; 0], "what is fine needs no fix");
        let refused = ids("D12").unwrap_err();
        assert_eq!(refused.next, "look");
        assert_eq!(ids("D99").unwrap_err().why, "checks are D05, D10, D12");
    }
}
