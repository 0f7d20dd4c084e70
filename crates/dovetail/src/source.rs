//! Where a command that only reads has its cluster from: dumps, or the API server kubectl speaks to; completed with a
//! catalogue, and with word of what the source could not know.

mod check;
mod committed;
mod dump;
mod envelope;
mod gates;
mod live;
mod offers;
mod prices;
pub(crate) mod time;
mod untold;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use insight::{Prices, View, commitment::Coverage};
use jiff::Timestamp;
use model::{
    dump::Report,
    object::{Job, NodeClassReference},
    snapshot::{Catalog, Objects, Settings, Snapshot, Title},
};
use runtime::Clock;
use serde_json::Value;

pub(crate) use self::offers::Offers;
use crate::{failure::Failure, place::Place, terminal::counted};

/// Flags about where a cluster is read from.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Source")]
pub(crate) struct SourceArgs {
    #[command(flatten)]
    pub(crate) place: Place,
    /// What the cloud offers: aws, azure, kwok or a file with instanceTypes; otherwise as the node classes suggest.
    #[arg(long, value_name = "aws|azure|kwok|FILE")]
    pub(crate) catalogue: Option<String>,
    /// The region whose prices count; otherwise the one of the nodes.
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// Prices instead of those that come with the catalogue: what `aws ec2 describe-spot-price-history` or Azure's retail
    /// prices print, or lines of instance_type,capacity_type,zone,usd_per_hour.
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// What was bought in advance: savings plans and reservations, as docs/commitments.md has them.
    #[arg(long, value_name = "FILE")]
    pub(crate) commitments: Option<PathBuf>,
}

/// How much of a cluster a command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Everything a decision is made from: at least a NodePool, and a catalogue.
    Decisions,
    /// A catalogue, and what of a cluster says which: NodePools and nodes. A catalogue that is named needs no cluster.
    Offers,
    /// NodePools and nodes.
    Pools,
}

/// A cluster, and where it comes from.
#[derive(Debug)]
pub(crate) struct Input {
    /// With the catalogue, where decisions are asked for.
    pub(crate) snapshot: Snapshot,
    /// Where the objects come from.
    pub(crate) origin: Origin,
    /// Where the instance types come from; none where nobody asked for them.
    pub(crate) catalogue: Option<Offers>,
    /// What the source could not know, a sentence each.
    pub(crate) assumed: Vec<String>,
    /// How long reading took.
    pub(crate) took: Duration,
    /// What commitments cover; nothing where none are named.
    pub(crate) coverage: Coverage,
    /// The cluster with what launches cost beside commitments; none where that is no other one.
    beside: Option<Snapshot>,
}

/// Node classes with every field they have.
type Classes = BTreeMap<NodeClassReference, Value>;

/// What a source holds, before anybody says what its cloud offers.
struct Gathered {
    snapshot: Snapshot,
    classes: Classes,
    /// Those whose pods nobody has made.
    jobs: Vec<Job>,
    origin: Origin,
    assumed: Vec<String>,
}

/// Where objects come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Files.
    Dump {
        /// As they were named.
        name: String,
        files: usize,
        objects: usize,
        /// Whether there are Events or ConfigMaps, which no plan reads and which may tell what was said and decided.
        has_records: bool,
    },
    /// An API server.
    Live {
        /// As the kubeconfig calls it.
        cluster: String,
        objects: usize,
        /// Who holds the lease of the controller; none when nobody does, or when we may not see it.
        leader: Option<String>,
        /// What the API server says it is.
        version: Option<String>,
    },
    /// No cluster at all: the question is about a catalogue.
    Catalogue,
}

impl Origin {
    /// The name of the cluster, where it has one.
    fn cluster(&self) -> Option<&str> {
        match self {
            Self::Dump { .. } | Self::Catalogue => None,
            Self::Live { cluster, .. } => Some(cluster),
        }
    }

    /// The word for what it is.
    fn place(&self) -> &'static str {
        match self {
            Self::Dump { .. } => "dump",
            Self::Live { .. } => "cluster",
            Self::Catalogue => "catalogue",
        }
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Dump { name, .. } => name,
            Self::Live { cluster, .. } => cluster,
            Self::Catalogue => "the catalogue",
        }
    }
}

/// What a dump needs, as a command to type.
pub(crate) const DUMP_COMMAND: &str = "kubectl get nodes,pods,nodepools,nodeclaims,daemonsets,deployments,replicasets,pdb,pvc,pv,storageclasses,csinodes -A -o yaml > dump.yaml";

/// What answers about moves take for granted: neither a dump nor the API server tells.
const FRESH: &str = "a controller that has just started, with its default settings: no move is under way, nothing was learnt, no node is under repair";

impl Input {
    /// Says that the answer is about moves.
    #[must_use]
    pub(crate) fn about_moves(mut self) -> Self {
        self.assumed.push(FRESH.to_owned());
        self
    }

    /// What is planned with: the cluster, where what commitments pay for already costs next to nothing.
    pub(crate) fn planning(&self) -> &Snapshot {
        self.beside.as_ref().unwrap_or(&self.snapshot)
    }

    /// The cluster as plans see it, with what is paid for machines.
    pub(crate) fn view(&self) -> View<'_> {
        self.looked_at(&Prices::of(&self.snapshot))
    }

    /// The same where prices are known.
    pub(crate) fn looked_at(&self, prices: &Prices) -> View<'_> {
        View::priced(self.planning(), prices).covered(&self.coverage)
    }

    /// The cluster as accounts see it: at listed prices, but for what commitments cover.
    pub(crate) fn priced(&self, prices: &Prices) -> View<'_> {
        View::priced(&self.snapshot, prices).covered(&self.coverage)
    }
}

/// Reads the cluster that the flags name.
pub(crate) fn read(args: &SourceArgs, needs: Needs) -> anyhow::Result<Input> {
    let clock = Clock::system();
    let began = clock.now();
    let gathered = if needs == Needs::Offers && args.names_no_cluster() {
        Gathered {
            snapshot: no_cluster(began),
            classes: Classes::new(),
            jobs: Vec::new(),
            origin: Origin::Catalogue,
            assumed: Vec::new(),
        }
    } else if args.place.from.is_empty() {
        if args.place.at.is_some() {
            return Err(no_history().into());
        }
        live::read(&args.place.cluster(), needs, &clock)?
    } else {
        dump::read(args, needs)?
    };
    let Gathered {
        snapshot: raw,
        classes,
        jobs,
        origin,
        mut assumed,
    } = gathered;
    let (snapshot, catalogue) = match needs {
        Needs::Decisions => {
            if raw.objects().node_pools.is_empty() {
                return Err(no_node_pools(origin.name(), raw.objects().len(), &assumed).into());
            }
            let (raw, told) = gates::assumed(raw);
            let (snapshot, offers) = completed(args, &raw, &classes, &origin)?;
            assumed.extend(told);
            assumed.extend(missing_kinds(&snapshot, origin.place()));
            assumed.extend(offers.assumed.iter().cloned());
            (snapshot, Some(offers))
        }
        Needs::Offers => {
            let (raw, told) = gates::assumed(raw);
            assumed.extend(told);
            let (snapshot, offers) = completed(args, &raw, &classes, &origin)?;
            assumed.extend(offers.assumed.iter().cloned());
            (snapshot, Some(offers))
        }
        Needs::Pools => (raw, None),
    };
    let (snapshot, dated) = time::dated(args.place.at, snapshot, began);
    assumed.extend(dated);
    let is_made = needs == Needs::Decisions && matches!(origin, Origin::Dump { .. });
    let (snapshot, made) = if is_made {
        untold::with_pods(snapshot, &jobs)
    } else {
        (snapshot, Vec::new())
    };
    assumed.extend(made);
    let (beside, coverage) = match &args.commitments {
        None => (None, Coverage::default()),
        Some(file) => {
            let (beside, coverage, told) = committed::applied(file, &snapshot)?;
            assumed.extend(told);
            (Some(beside), coverage)
        }
    };
    let took = clock.now().duration_since(began);
    Ok(Input {
        snapshot,
        origin,
        catalogue,
        assumed,
        took: Duration::try_from(took).unwrap_or_default(),
        coverage,
        beside,
    })
}

impl SourceArgs {
    /// Whether a catalogue is named and no cluster beside it.
    fn names_no_cluster(&self) -> bool {
        let Place {
            from,
            kubeconfig,
            context,
            ..
        } = &self.place;
        self.catalogue.is_some() && from.is_empty() && kubeconfig.is_none() && context.is_none()
    }
}

/// A snapshot of nothing.
fn no_cluster(now: Timestamp) -> Snapshot {
    let title = Title {
        name: String::new(),
        taken_at: now,
        origin: String::new(),
    };
    Snapshot::new(title, Settings::default(), Objects::default(), Catalog::default())
}

fn no_history() -> Failure {
    Failure::usage(
        "--at needs --from",
        "an API server knows its objects as they are now",
        "leave --at out, or give a dump of that time with --from",
    )
}

/// The snapshot with what its cloud offers, unless it holds what no API server accepts.
fn completed(
    args: &SourceArgs,
    raw: &Snapshot,
    classes: &Classes,
    origin: &Origin,
) -> Result<(Snapshot, Offers), Failure> {
    let mut offers = offers::choose(raw, classes, args.catalogue.as_deref(), args.region.as_deref())?;
    if let Some(file) = &args.prices {
        let (catalog, told, of) = prices::applied(file, offers.catalog.as_ref().unwrap_or(raw.catalog()))?;
        offers.catalog = Some(catalog);
        offers.assumed.push(told);
        // Of the day of the newest of them; the day of those that come with the program no longer says anything.
        offers.prices_of = of;
    }
    let snapshot = match &offers.catalog {
        None => raw.clone(),
        Some(catalog) => rebuilt(raw, raw.title().clone(), Some(catalog.clone())),
    };
    let faults = check::faults(&snapshot);
    if !faults.is_empty() {
        return Err(impossible(origin.name(), &faults));
    }
    Ok((snapshot, offers))
}

/// The snapshot with another title, and another catalogue if there is one.
fn rebuilt(snapshot: &Snapshot, title: Title, catalog: Option<Catalog>) -> Snapshot {
    let (settings, objects) = (snapshot.settings().clone(), snapshot.objects().clone());
    let catalog = catalog.map_or_else(|| snapshot.shared_catalog().clone(), Into::into);
    Snapshot::sharing(title, settings.into(), objects, catalog)
}

fn no_node_pools(name: &str, objects: usize, assumed: &[String]) -> Failure {
    let other = assumed.iter().find(|sentence| sentence.contains(" NodePool of "));
    let next = match other {
        Some(_) => {
            format!("convert what is of an old version: dovetail lint -f {name} prints what each becomes (NP25)")
        }
        None => "add them to the dump: kubectl get nodepools -o yaml > nodepools.yaml".to_owned(),
    };
    let other = other.map(|sentence| format!("; {sentence}")).unwrap_or_default();
    Failure::new(
        format!("no NodePool in {name}"),
        format!(
            "{} read, none of kind NodePool in karpenter.sh/v1: without one nothing can be launched{other}",
            counted(objects, "object")
        ),
        next,
    )
}

/// So many faults are told; who has more has one cause for most of them.
const TOLD: usize = 20;

fn impossible(name: &str, faults: &[String]) -> Failure {
    let mut told: Vec<String> = faults.iter().take(TOLD).cloned().collect();
    if faults.len() > TOLD {
        told.push(format!("and {} more", faults.len() - TOLD));
    }
    Failure::new(
        format!("{name} holds what no API server accepts"),
        told.join("\n        "),
        "mend what is named above, or dump the cluster again",
    )
}

/// Kinds of a snapshot that other questions are answered from.
const READ_ELSEWHERE: [&str; 3] = ["CustomResourceDefinition", "Event", "Lease"];

/// What was read and does not count.
fn passed_over(report: &Report) -> Vec<String> {
    let kind = |((version, kind), count): (&(String, String), &usize)| format!("{count} {kind} of {version}");
    let is_told = |((_, kind), _): &(&(String, String), &usize)| !READ_ELSEWHERE.contains(&kind.as_str());
    let kinds: Vec<String> = report.skipped.iter().filter(is_told).map(kind).collect();
    let skipped = (!kinds.is_empty()).then(|| format!("no plan reads {}: passed over", kinds.join(", ")));
    let repeated = (report.repeated > 0).then(|| {
        let objects = counted(report.repeated, "object");
        format!("{objects} of a kind and name read before: the last one counts")
    });
    let faults = report.faults.iter().map(|fault| format!("left out: {fault}"));
    skipped.into_iter().chain(repeated).chain(faults).collect()
}

/// Kinds that matter and of which there are none: the answer would differ if the source only lacked them.
fn missing_kinds(snapshot: &Snapshot, place: &str) -> Vec<String> {
    let objects = snapshot.objects();
    let claims_volumes = snapshot.provisionable_pods().any(|pod| {
        pod.spec
            .volumes
            .iter()
            .any(|volume| volume.persistent_volume_claim.is_some())
    });
    let missing = [
        (
            objects.daemon_sets.is_empty(),
            "no DaemonSets in the PLACE: nodes run none",
        ),
        (
            objects.nodes.is_empty(),
            "no Nodes in the PLACE: every pod needs a new node",
        ),
        (
            claims_volumes && objects.persistent_volume_claims.is_empty(),
            "no PersistentVolumeClaims in the PLACE: pods that use one cannot be placed",
        ),
    ];
    missing
        .into_iter()
        .filter(|(is_missing, _)| *is_missing)
        .map(|(_, text)| text.replace("PLACE", place))
        .collect()
}
