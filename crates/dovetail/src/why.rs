//! `dovetail why`: why a pod is pending or sits where it does, why a node came and stays, why a NodePool launches nothing.

mod history;
mod node;
mod object;
mod pod;
mod pool;

use insight::{
    View,
    outlook::Reach,
    why::{
        node::NodeExplanation,
        pod::{PodExplanation, PodState},
        pool::NodePoolExplanation,
    },
};

use self::{
    history::Explained,
    node::Part,
    object::{Kind, Object},
    pod::Pools,
};
use crate::{
    answer::Answer,
    decisions::{self, ShelfArgs},
    failure::Failure,
    notice::{self, Ledger},
    plan::threads,
    reply::{Format, Reply, formats},
    source::{self, Input, Needs, SourceArgs},
};

/// Print why a pod is pending, why a node came or stays, or why a NodePool launches nothing; and the smallest change that helps.
///
/// Kinds and namespaces are written as kubectl has them, and a name may be the beginning of one:
///
///     dovetail why pod shop/checkout-api-58c6d97b4-x2k8q
///     dovetail why no ip-10-0-2-84
///     dovetail why np/general
///
/// A decision is asked for by its id, or the first digits of it: the log line, the event and the NodeClaim have it.
///
///     dovetail why 6c59
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "a flag each, as the command line has them")]
pub(crate) struct Args {
    /// What about: pod|node|nodeclaim|nodepool NAME, or KIND/NAME; a pod also as NAMESPACE/NAME; or a decision's id.
    #[arg(required = true, num_args = 1..=2, value_name = "OBJECT")]
    object: Vec<String>,
    /// The namespace of the pod, or of the controller that decided; otherwise all are looked through.
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Look through all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// The object with these labels instead of a name, as kubectl has them: `app=web`, `tier in (a,b)`, `!canary`. Of several
    /// pods the first that waits.
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = tui::Selector::read)]
    selector: Option<tui::Selector>,
    /// Of a pod that waits: how far it comes in every NodePool, not only where it comes furthest.
    #[arg(long, conflicts_with = "pool")]
    all_pools: bool,
    /// Of a pod that waits: how far it comes in this NodePool.
    #[arg(long, value_name = "NODEPOOL")]
    pool: Option<String>,
    /// Of a node: only why it came, with what else could have been bought.
    #[arg(long, conflicts_with_all = ["stays", "fix"])]
    came: bool,
    /// Of a node: only why it stays or goes, and what removing it would take.
    #[arg(long, conflicts_with = "fix")]
    stays: bool,
    /// Print only the change that helps, as YAML for `kubectl patch`.
    #[arg(long)]
    fix: bool,
    /// How to print it.
    #[arg(short, long, default_value = "table", value_parser = formats(&["table", "json", "yaml", "name"]))]
    output: Format,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) reply: Reply,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    if let [id] = args.object.as_slice()
        && args.selector.is_none()
        && is_decision(id)
    {
        let shelf = ShelfArgs::of(&args.source, args.namespace.as_deref());
        return decisions::why(id, &shelf, args.output, args.reply.presentation);
    }
    let mut object = Object::parsed(&args.object, args.selector.is_some())?;
    let is_machine = matches!(object.kind, Kind::Node | Kind::NodeClaim);
    if (args.came || args.stays) && !is_machine {
        return Err(Failure::usage(
            "--came and --stays are about nodes",
            "pods and NodePools do not come and stay",
            "dovetail why node NAME --came",
        )
        .into());
    }
    let mut input = source::read(&args.source, Needs::Decisions)?;
    let ledger = if is_machine {
        notice::read(&args.source.place, &input)
    } else {
        Ledger::default()
    };
    input.assumed.extend(ledger.gaps.iter().cloned());
    if let Some(selector) = &args.selector {
        let (name, told) = object::labelled(&input.view(), object.kind, selector, args.namespace.as_deref())?;
        object.name = name;
        input.assumed.extend(told);
    }
    let view = input.view();
    match object.kind {
        Kind::Pod => pod_answer(args, &input, &view, &object.name),
        Kind::Node | Kind::NodeClaim => node_answer(args, &input, &view, (&object, &ledger)),
        Kind::NodePool => pool_answer(args, &input, &view, &object.name),
    }
}

/// Whether a word is the id of a decision or the beginning of one.
fn is_decision(word: &str) -> bool {
    (4..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn options() -> packing::Options {
    packing::Options {
        threads: threads(),
        ..packing::Options::default()
    }
}

fn pod_answer(args: &Args, input: &Input, view: &View<'_>, name: &str) -> anyhow::Result<Answer> {
    let pod = object::pod(view, name, args.namespace.as_deref())?;
    let why = PodExplanation::of(view, pod, &options());
    let pools = match &args.pool {
        Some(pool) => Pools::One(object::pool(view, pool)?.metadata.name.to_string()),
        None if args.all_pools => Pools::All,
        None => Pools::Furthest,
    };
    if args.fix {
        return Ok(pod::fix(&why)?.into());
    }
    let is_no = matches!(why.state, PodState::Blocked);
    args.reply
        .answer(input, ("PodExplanation", &why), args.output, is_no, |screen| {
            if args.output == Format::Name {
                return format!("pod/{}\n", why.pod);
            }
            pod::render(&why, &pools, screen)
        })
}

fn node_answer(
    args: &Args,
    input: &Input,
    view: &View<'_>,
    (object, ledger): (&Object, &Ledger),
) -> anyhow::Result<Answer> {
    let machine = object::machine(view, object).map_err(|failure| history::gone(failure, &object.name, ledger))?;
    let reach = Reach::for_machines(view.machines.len(), threads());
    let why = NodeExplanation::of(view, machine, reach);
    if args.fix {
        return Ok(node::fix(&why)?.into());
    }
    let is_no = why.goes.is_none();
    let why = Explained::of(why, machine, ledger);
    let part = match (args.came, args.stays) {
        (true, _) => Part::Came,
        (_, true) => Part::Stays,
        _ => Part::All,
    };
    args.reply
        .answer(input, ("NodeExplanation", &why), args.output, is_no, |screen| {
            if args.output == Format::Name {
                return format!("node/{}\n", why.node.node.name);
            }
            node::render(&why, view.now, part, screen)
        })
}

fn pool_answer(args: &Args, input: &Input, view: &View<'_>, name: &str) -> anyhow::Result<Answer> {
    let pool = object::pool(view, name)?;
    let options = options();
    let plan = packing::planned(view.snapshot, &options).plan;
    let pending: Vec<_> = plan.unplaced.iter().map(|it| it.pod.metadata.key()).collect();
    let explanations = if pending.is_empty() {
        Vec::new()
    } else {
        packing::explain::explain(view.snapshot, &packing::Options::default(), &pending)
    };
    let why = NodePoolExplanation::of(view, pool, &explanations);
    if args.fix {
        let fix = why
            .fix
            .as_ref()
            .ok_or_else(|| nothing_to_fix(&format!("nodepool/{name}")))?;
        return Ok(object::patch(&fix.patch).into());
    }
    let is_no = !why.pool.ready || why.limits.iter().any(|limit| !limit.blocks.is_empty());
    args.reply
        .answer(input, ("NodePoolExplanation", &why), args.output, is_no, |screen| {
            if args.output == Format::Name {
                return format!("nodepool/{}\n", why.pool.name);
            }
            pool::render(&why, screen)
        })
}

fn nothing_to_fix(object: &str) -> Failure {
    Failure::new(
        format!("no change to print for {object}"),
        "nothing is in its way, or no single change was found that helps",
        format!("dovetail why {object} says what is the case"),
    )
}
