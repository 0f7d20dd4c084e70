//! Whatever the order in which a lagging watch, lists in pages and the answers to our own writes arrive, the state ends as
//! the server's. The model is a server that keeps its whole history.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;
use model::object::{Metadata, NodeClaim, NodeName, Object, ObjectKey, Pod, ResourceVersion};
use proptest::prelude::*;
use state::{Change, State};

const NAMES: u8 = 4;
const NODES: u8 = 3;

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Somebody creates or changes an object.
    Write { name: u8, node: u8 },
    /// We do, and the answer is on its way.
    OwnWrite { name: u8, node: u8 },
    /// Somebody deletes an object.
    Remove { name: u8 },
    /// One of the answers arrives, any of them.
    Answer { which: usize },
    /// The next event of the watch arrives.
    Watch,
    /// The watch loses its place, and a list begins.
    BeginList,
    /// A list begins, and is answered by a server that lags so many writes.
    BeginStaleList { behind: usize },
    /// The next object of the list arrives; after the last one, its end.
    ListItem,
    /// A minute passes, in which all answers arrive.
    Minute,
    /// Somebody needs a snapshot.
    Snapshot,
}

fn step() -> impl Strategy<Value = Step> {
    let (name, node) = (0..NAMES, 0..NODES);
    prop_oneof![
        3 => (name.clone(), node.clone()).prop_map(|(name, node)| Step::Write { name, node }),
        4 => (name.clone(), node).prop_map(|(name, node)| Step::OwnWrite { name, node }),
        3 => name.prop_map(|name| Step::Remove { name }),
        4 => (0usize..8).prop_map(|which| Step::Answer { which }),
        8 => Just(Step::Watch),
        2 => Just(Step::BeginList),
        1 => (0usize..6).prop_map(|behind| Step::BeginStaleList { behind }),
        8 => Just(Step::ListItem),
        1 => Just(Step::Minute),
        1 => Just(Step::Snapshot),
    ]
}

/// How the server spells its versions.
type Spelling = fn(usize) -> ResourceVersion;

/// No server begins at zero.
fn numbers(revision: usize) -> ResourceVersion {
    (100 + revision).to_string().as_str().into()
}

fn opaque(revision: usize) -> ResourceVersion {
    format!("etag-{revision}").as_str().into()
}

/// One revision of the server's store.
#[derive(Debug, Clone)]
enum Event {
    Applied(Pod),
    Deleted(Pod),
}

/// A server that forgets nothing: its revision is the length of its log.
#[derive(Debug)]
struct Server {
    log: Vec<Event>,
    spelling: Spelling,
}

impl Server {
    fn objects_at(&self, revision: usize) -> BTreeMap<ObjectKey, Pod> {
        let mut objects = BTreeMap::new();
        for event in self.log.iter().take(revision) {
            match event {
                Event::Applied(pod) => objects.insert(pod.metadata.key(), pod.clone()),
                Event::Deleted(pod) => objects.remove(&pod.metadata.key()),
            };
        }
        objects
    }

    fn objects(&self) -> BTreeMap<ObjectKey, Pod> {
        self.objects_at(self.log.len())
    }

    fn write(&mut self, name: u8, node: u8) -> Pod {
        let revision = self.log.len() + 1;
        let fresh = Pod {
            metadata: Metadata {
                namespace: "ns".into(),
                name: format!("p{name}").into(),
                uid: format!("uid-{revision}").as_str().into(),
                ..Metadata::default()
            },
            ..Pod::default()
        };
        let mut pod = self.objects().remove(&fresh.metadata.key()).unwrap_or(fresh);
        pod.node_name = Some(NodeName::from(format!("n{node}").as_str()));
        pod.metadata.resource_version = (self.spelling)(revision);
        self.log.push(Event::Applied(pod.clone()));
        pod
    }

    fn remove(&mut self, name: u8) {
        let key = ObjectKey::new("ns", &format!("p{name}"));
        if let Some(mut pod) = self.objects().remove(&key) {
            pod.metadata.resource_version = (self.spelling)(self.log.len() + 1);
            self.log.push(Event::Deleted(pod));
        }
    }
}

/// A list under way: what is still to arrive, and as of when it is.
#[derive(Debug)]
struct Listing {
    items: VecDeque<Pod>,
    named: BTreeSet<ObjectKey>,
    revision: usize,
}

struct Run {
    server: Server,
    state: State,
    answers: Vec<Pod>,
    listing: Option<Listing>,
    /// What the watch has delivered.
    watched: usize,
    /// The newest version of each object incarnation that the state ever had.
    newest: BTreeMap<String, u64>,
    may_go_back: bool,
}

impl Run {
    fn new(spelling: Spelling) -> Self {
        let mut run = Self {
            server: Server {
                log: Vec::new(),
                spelling,
            },
            state: State::default(),
            answers: Vec::new(),
            listing: None,
            watched: 0,
            newest: BTreeMap::new(),
            may_go_back: false,
        };
        run.begin_list(0);
        run
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Write { name, node } => drop(self.server.write(name, node)),
            Step::OwnWrite { name, node } => {
                let answer = self.server.write(name, node);
                self.answers.push(answer);
            }
            Step::Remove { name } => self.server.remove(name),
            Step::Answer { which } => self.answer(which),
            Step::Watch => self.watch(),
            Step::BeginList => self.begin_list(0),
            Step::BeginStaleList { behind } => {
                self.may_go_back = true;
                self.begin_list(behind);
            }
            Step::ListItem => self.list_item(),
            Step::Minute => {
                while !self.answers.is_empty() {
                    self.answer(0);
                }
                self.state.tidy(Timestamp::UNIX_EPOCH);
            }
            Step::Snapshot => {
                let snapshot = self.state.snapshot(Timestamp::UNIX_EPOCH);
                let rows: Vec<_> = snapshot.objects().pods.iter().cloned().collect();
                assert_eq!(rows, self.rows());
            }
        }
    }

    fn answer(&mut self, which: usize) {
        if !self.answers.is_empty() {
            let pod = self.answers.remove(which % self.answers.len());
            let change = self.state.apply(pod);
            self.check(change);
        }
    }

    fn watch(&mut self) {
        if self.listing.is_some() {
            return;
        }
        let Some(event) = self.server.log.get(self.watched).cloned() else {
            return;
        };
        self.watched += 1;
        let change = match event {
            Event::Applied(pod) => self.state.apply(pod),
            Event::Deleted(pod) => self.state.delete(&pod),
        };
        self.check(change);
    }

    fn begin_list(&mut self, behind: usize) {
        self.state.begin_list::<Pod>(Timestamp::UNIX_EPOCH);
        let revision = self.server.log.len().saturating_sub(behind);
        let objects = self.server.objects_at(revision);
        self.listing = Some(Listing {
            named: objects.keys().cloned().collect(),
            items: objects.into_values().collect(),
            revision,
        });
    }

    fn list_item(&mut self) {
        let Some(mut listing) = self.listing.take() else { return };
        if let Some(pod) = listing.items.pop_front() {
            let change = self.state.apply(pod);
            self.check(change);
            self.listing = Some(listing);
            return;
        }
        let version = (self.server.spelling)(listing.revision);
        for change in self.state.end_list::<Pod>(&listing.named, &version) {
            self.check(Some(change));
        }
        self.watched = listing.revision;
    }

    /// No object goes back in time.
    fn check(&mut self, change: Option<Change>) {
        let Some(Change::Pod(transition)) = change else { return };
        let Some(after) = &transition.after else { return };
        let ResourceVersion::Number(version) = after.metadata.resource_version else {
            return;
        };
        let newest = self.newest.entry(after.metadata.uid.to_string()).or_default();
        assert!(self.may_go_back || version >= *newest, "{after:?} after {newest}");
        *newest = version.max(*newest);
    }

    /// Everything that is under way arrives.
    fn drain(&mut self) {
        while self.listing.is_some() {
            self.list_item();
        }
        let mut turn = 0;
        while !self.answers.is_empty() || self.watched < self.server.log.len() {
            turn += 1;
            if turn % 3 == 0 {
                self.answer(turn);
            } else {
                self.watch();
            }
            if self.watched == self.server.log.len() {
                self.answer(turn);
            }
        }
    }

    fn rows(&self) -> Vec<Arc<Pod>> {
        self.state.all::<Pod>().iter().cloned().collect()
    }

    fn check_end(&mut self) {
        let expected: Vec<Arc<Pod>> = self.server.objects().into_values().map(Arc::new).collect();
        assert_eq!(self.rows(), expected);
        for node in 0..NODES {
            let node = format!("n{node}");
            let is_on = |pod: &&Arc<Pod>| pod.node_name.as_ref().is_some_and(|name| name.as_str() == node);
            let on: Vec<_> = self.state.pods_on_node(&node).collect();
            assert_eq!(on, expected.iter().filter(is_on).collect::<Vec<_>>());
        }
        let mut restarted = listed(&self.server);
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(self.state.snapshot(now), restarted.snapshot(now));
    }
}

/// The state of a process that starts now: one list.
fn listed(server: &Server) -> State {
    let mut state = State::default();
    let objects = server.objects();
    let named = objects.keys().cloned().collect();
    for pod in objects.into_values() {
        state.apply(pod);
    }
    state.end_list::<Pod>(&named, &(server.spelling)(server.log.len()));
    state
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn state_ends_as_the_servers_whatever_arrives_late(steps in prop::collection::vec(step(), 0..80)) {
        let mut run = Run::new(numbers);
        for step in steps {
            run.take(step);
        }
        run.drain();
        run.check_end();
    }

    /// Without an order of versions the watch and lists are enough; only a late answer can then be wrong for a while.
    #[test]
    fn state_ends_as_the_servers_when_versions_say_nothing(steps in prop::collection::vec(step(), 0..80)) {
        let mut run = Run::new(opaque);
        for step in steps {
            match step {
                Step::OwnWrite { .. } | Step::BeginStaleList { .. } => {}
                step => run.take(step),
            }
        }
        run.drain();
        run.check_end();
    }
}

fn pod(uid: &str, version: &str) -> Pod {
    Pod {
        metadata: Metadata {
            namespace: "ns".into(),
            name: "p".into(),
            uid: uid.into(),
            resource_version: version.into(),
            ..Metadata::default()
        },
        ..Pod::default()
    }
}

fn known(state: &State) -> Option<(String, ResourceVersion)> {
    let pod = state.get::<Pod>(&ObjectKey::new("ns", "p"))?;
    Some((pod.metadata.uid.to_string(), pod.metadata.resource_version.clone()))
}

#[test]
fn late_answer_does_not_bring_back_what_the_watch_saw_go() {
    for (version, gone, answer) in [("7", "9", "8"), ("x7", "x9", "x8")] {
        let mut state = State::default();
        state.apply(pod("a", version));
        state.delete(&pod("a", gone));
        assert_eq!(state.apply(pod("a", answer)), None);
        assert_eq!(known(&state), None);
    }
}

#[test]
fn answer_to_a_create_counts_for_nothing_once_a_later_list_does_not_name_it() {
    let mut state = State::default();
    state.end_list::<Pod>(&BTreeSet::new(), &"10".into());
    assert_eq!(state.apply(pod("a", "5")), None);
    assert!(state.apply(pod("b", "11")).is_some());
}

#[test]
fn answer_to_a_create_counts_for_nothing_once_a_list_of_the_past_does_not_name_it() {
    let mut state = State::default();
    state.end_list::<Pod>(&BTreeSet::new(), &"10".into());
    state.apply(pod("b", "14"));
    state.begin_list::<Pod>(Timestamp::UNIX_EPOCH);
    // Older than what we know of the other pod, but newer than the answer.
    state.end_list::<Pod>(&BTreeSet::new(), &"13".into());
    assert_eq!(state.apply(pod("a", "11")), None);
}

#[test]
fn another_object_of_the_same_name_is_not_taken_for_the_one_that_went() {
    let mut state = State::default();
    state.apply(pod("a", "7"));
    // Our own create is answered before the watch tells that the former one is gone.
    let Some(Change::Pod(replaced)) = state.apply(pod("b", "9")) else {
        panic!("the new one is news")
    };
    assert!(replaced.ends_before() && !replaced.is_gone());
    assert_eq!(state.delete(&pod("a", "8")), None);
    assert_eq!(known(&state), Some(("b".to_owned(), "9".into())));
    assert!(state.delete(&pod("b", "10")).is_some());
    assert_eq!(known(&state), None);
}

#[test]
fn list_wins_over_a_tombstone_that_is_older() {
    let named = BTreeSet::from([ObjectKey::new("ns", "p")]);
    let cases = [("12", Some(("a".to_owned(), ResourceVersion::from("8")))), ("9", None)];
    for (listed, expected) in cases {
        let mut state = State::default();
        state.delete(&pod("a", "10"));
        assert_eq!(
            state.apply(pod("a", "8")),
            None,
            "an item of the list, or news from before the end"
        );
        state.end_list::<Pod>(&named, &listed.into());
        assert_eq!(known(&state), expected, "listed at {listed}");
    }
}

#[test]
fn server_that_was_set_back_is_believed_when_it_says_so_twice() {
    let named = BTreeSet::from([ObjectKey::new("ns", "p")]);
    let mut state = State::default();
    state.apply(pod("a", "100"));
    let list = |state: &mut State| {
        state.begin_list::<Pod>(Timestamp::UNIX_EPOCH);
        state.apply(pod("a", "40"));
        state.end_list::<Pod>(&named, &"50".into());
    };
    list(&mut state);
    assert!(state.is_list_in_doubt::<Pod>());
    assert_eq!(known(&state), Some(("a".to_owned(), "100".into())));
    list(&mut state);
    assert!(!state.is_list_in_doubt::<Pod>());
    assert_eq!(known(&state), Some(("a".to_owned(), "40".into())));
    assert!(state.apply(pod("a", "51")).is_some());
}

#[test]
fn late_answer_does_not_undo_what_a_believed_list_of_the_past_says() {
    let named = BTreeSet::from([ObjectKey::new("ns", "p")]);
    let mut state = State::default();
    state.apply(pod("a", "45"));
    let mut other = pod("o", "60");
    other.metadata.name = "other".into();
    state.apply(other);
    for _ in 0..2 {
        state.begin_list::<Pod>(Timestamp::UNIX_EPOCH);
        state.apply(pod("a", "45"));
        state.apply(pod("a", "44"));
        state.end_list::<Pod>(&named, &"50".into());
    }
    assert_eq!(known(&state), Some(("a".to_owned(), "45".into())));
}

#[test]
fn own_write_during_a_list_is_newer_than_the_list() {
    let mut state = State::default();
    state.begin_list::<Pod>(Timestamp::UNIX_EPOCH);
    state.apply(pod("a", "12"));
    assert_eq!(state.end_list::<Pod>(&BTreeSet::new(), &"10".into()), []);
    assert!(!state.is_list_in_doubt::<Pod>());
    assert_eq!(known(&state), Some(("a".to_owned(), "12".into())));
}

#[test]
fn object_without_a_version_is_taken_as_it_comes() {
    let mut state = State::default();
    state.apply(pod("a", ""));
    assert_eq!(state.apply(pod("a", "")), None, "nothing changed");
    let mut bound = pod("a", "");
    bound.node_name = Some(NodeName::from("n"));
    assert!(state.apply(bound.clone()).is_some());
    assert!(state.delete(&bound).is_some());
    assert_eq!(known(&state), None);
    assert_eq!(bound.metadata().name.as_ref(), "p");
}

#[test]
fn names_of_the_last_claims_that_went_are_remembered() {
    let mut state = State::default();
    let claim = |at: usize| -> NodeClaim {
        let metadata = serde_json::json!({ "name": format!("c{at}"), "uid": "u", "resourceVersion": "7" });
        serde_json::from_value(serde_json::json!({ "metadata": metadata, "spec": { "requirements": [] } })).unwrap()
    };
    for at in 0..=4096 {
        state.apply(claim(at));
        assert!(!state.is_gone(&format!("c{at}")));
        state.delete(&claim(at));
    }
    let gone = ["c0", "c1", "c4096", "c4097"].map(|name| state.is_gone(name));
    assert_eq!(gone, [false, true, true, false]);
}

#[test]
fn what_is_gone_is_remembered_for_one_to_two_minutes() {
    let mut state = State::default();
    state.apply(pod("a", "7"));
    state.delete(&pod("a", "8"));
    state.tidy(Timestamp::UNIX_EPOCH);
    assert_eq!((state.tombstones(), state.apply(pod("a", "7"))), (1, None));
    state.tidy(Timestamp::UNIX_EPOCH);
    assert_eq!(state.tombstones(), 0);
}
