//! Plays a story to its end, and says what came of it.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    Flaw, Life, Profile, Scenario, Setup, Strike, Tally, Witness, World,
    expectation::{Expectation, Scene, When},
    fault::{Engine, FaultLine, Kind as FaultKind, Point},
    objects::node_class,
    prefill::{Fullness, prefill},
    process::Wrap,
};

/// How a story is played.
#[derive(Clone, Default)]
pub struct Play {
    /// Of everything that chance decides.
    pub seed: u64,
    /// How hostile it is beyond what the story says.
    pub profile: Profile,
    /// Exactly what goes wrong, instead of what is drawn.
    pub strikes: Option<Vec<Strike>>,
    /// Whether everything that happens is written down.
    pub is_written: bool,
    /// What is put between the autoscaler and the cloud.
    pub wrap: Option<Wrap>,
}

/// What came of a story.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What should not be, a sentence each.
    pub failures: Vec<String>,
    /// What went wrong on purpose.
    pub strikes: Vec<Strike>,
    /// Every write, and every call to the cloud that changes something: where a process may die.
    pub points: Vec<Point>,
    /// The counts.
    pub tally: Tally,
    /// What was spent, in 10⁻¹² dollars.
    pub spent_picos: u128,
    /// How often the autoscaler died.
    pub deaths: usize,
    /// Everything that happened, if it was asked for.
    pub log: String,
    /// How many processes elected a leader; none: one that asked nobody.
    pub replicas: Option<u8>,
    /// What went wrong for a while, instead of striking requests one by one.
    pub lasting: Vec<FaultLine>,
}

/// Something that is due in a story.
enum Due<'a> {
    Step(&'a crate::action::Step),
    /// The faults change.
    Faults,
    Judge(&'a Expectation),
}

/// Plays a story. To be called inside a runtime, on a clock that nobody else needs.
pub async fn play(scenario: &Scenario, how: &Play) -> Result<Outcome, Flaw> {
    let flaw = |field: &str, message: String| Flaw {
        file: scenario.name.clone(),
        field: field.to_owned(),
        message,
    };
    let lasts = scenario.lasts().map_err(|error| flaw("lasts", error))?;
    let world = world(scenario, how.seed).map_err(|error| flaw("cloud", error))?;
    let changes = world.server.changes();
    let witness = Witness::new(how.is_written);
    let strikes = how
        .strikes
        .as_deref()
        .or(Some(&*scenario.strikes).filter(|strikes| !strikes.is_empty()));
    let engine = Engine::new(how.seed, strikes);
    engine.install(&world, witness.listener(&world));
    furnish(scenario, &world).map_err(|error| flaw("manifests", error))?;
    let mut lines = scenario.faults.clone();
    lines.extend(how.profile.lines(lasts));
    let contest = how.profile.contest(how.seed, lasts);
    let replicas = scenario.replicas.or(contest.as_ref().map(|_| 2));
    lines.extend(contest.into_iter().flatten());
    let expectations: Vec<Expectation> = scenario
        .expect
        .iter()
        .filter_map(|text| Expectation::read(text).ok())
        .collect();
    let mut told = Story {
        timeline: timeline(scenario, &lines, &expectations),
        lines: lines.clone(),
        lasts,
        is_still: false,
        failures: Vec::new(),
        life: Life::begin_with(
            &world,
            how.wrap.clone(),
            usize::from(replicas.unwrap_or(0)),
            replicas.map(|_| witness.caller(&world)),
        ),
    };
    tokio::select! {
        biased;
        () = witness.watch(&world, changes) => {}
        () = told.play(&world, &witness, &engine) => {}
    }
    told.close(&world, &witness, &expectations);
    if let Some(flight) = &world.flight {
        flight.finish();
    }
    Ok(Outcome {
        failures: told.failures,
        strikes: engine.struck(),
        points: engine.points(),
        tally: witness.tally(),
        spent_picos: world.region.bill().spent_picos,
        deaths: told.life.deaths,
        log: witness.take_log(),
        replicas,
        lasting: lines.into_iter().filter(|line| line.kind.is_lasting()).collect(),
    })
}

fn world(scenario: &Scenario, seed: u64) -> Result<World, String> {
    let setup = Setup {
        source: scenario.source()?,
        rules: scenario.rules(seed)?,
        settings: scenario.settings()?,
        start: scenario.start(),
        is_checked: false,
    };
    World::new(&setup).map_err(|error| error.to_string())
}

/// Tells the steps of a story to a world at their times, for people to watch; faults and sentences are left out.
pub async fn tell(scenario: &Scenario, world: &World, say: impl Fn(&str)) {
    let began = Instant::now();
    let mut steps: Vec<_> = scenario
        .steps
        .iter()
        .filter_map(|step| Some((step.at().ok()?, step)))
        .collect();
    steps.sort_by_key(|(at, _)| *at);
    for (at, step) in steps {
        tokio::time::sleep_until(began + at).await;
        say(&step.say);
        step.act(world);
    }
}

/// Puts into a world what a story begins with.
pub fn furnish(scenario: &Scenario, world: &World) -> Result<(), String> {
    let source = world.region.market().source();
    let mut manifests = vec![node_class(source)];
    manifests.extend(scenario.pools.iter().map(|pool| pool.manifest(source)));
    manifests.extend(
        scenario
            .workloads
            .iter()
            .flat_map(|workload| workload.manifests(world.keeper)),
    );
    manifests.extend(scenario.manifests.iter().cloned());
    for manifest in manifests {
        let name = manifest["metadata"]["name"].to_string();
        world
            .server
            .create(manifest)
            .map_err(|failure| format!("{name}: {}", failure.message))?;
    }
    if let (Some(filled), Some(pool)) = (&scenario.filled, scenario.pools.first()) {
        prefill(world, pool, filled.nodes, filled.pods, Fullness::Spare).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What is due when, in order; what is due at once happens before it is judged.
fn timeline<'a>(
    scenario: &'a Scenario,
    lines: &[FaultLine],
    expectations: &'a [Expectation],
) -> Vec<(Duration, Due<'a>)> {
    let steps = scenario
        .steps
        .iter()
        .filter_map(|step| Some((step.at().ok()?, Due::Step(step))));
    let faults = lines.iter().flat_map(|line| [line.from(), line.until()]).flatten();
    let judged = expectations.iter().filter_map(|expectation| match expectation.when {
        When::At(time) => Some((time, Due::Judge(expectation))),
        When::AtTheEnd => None,
    });
    let mut timeline: Vec<(Duration, Due<'a>)> =
        steps.chain(faults.map(|at| (at, Due::Faults))).chain(judged).collect();
    timeline.sort_by_key(|(at, due)| (*at, matches!(due, Due::Judge(_))));
    timeline
}

struct Story<'a> {
    timeline: Vec<(Duration, Due<'a>)>,
    lines: Vec<FaultLine>,
    lasts: Duration,
    /// Nothing was due for so long before the end that nothing should move any more.
    is_still: bool,
    failures: Vec<String>,
    life: Life,
}

/// How long before the end nothing may happen any more for the end to count as settled.
const SETTLED: Duration = Duration::from_mins(20);

impl Story<'_> {
    async fn play(&mut self, world: &World, witness: &Witness, engine: &Engine) {
        let began = Instant::now();
        let start = world.clock.now();
        let is_act = |due: &Due<'_>| !matches!(due, Due::Judge(_));
        let last = self
            .timeline
            .iter()
            .filter(|(_, due)| is_act(due))
            .map(|(at, _)| *at)
            .max();
        self.is_still = last.unwrap_or_default() + SETTLED <= self.lasts;
        for (at, due) in std::mem::take(&mut self.timeline) {
            self.life.until(world, began + at).await;
            match due {
                Due::Step(step) => {
                    witness.disturbed();
                    step.act(world);
                    if step.restart {
                        self.life.restart(world).await;
                    }
                }
                Due::Faults => {
                    let is_on = |line: &&FaultLine| {
                        line.from().is_ok_and(|from| from <= at) && line.until().is_ok_and(|until| at < until)
                    };
                    let on: Vec<FaultLine> = self.lines.iter().filter(is_on).cloned().collect();
                    witness.disturbed();
                    self.life
                        .stand_still(on.iter().any(|line| line.kind == FaultKind::Pause), world);
                    engine.set(on, world);
                }
                Due::Judge(expectation) => {
                    // What was asked for at this very moment is seen first.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    let tally = witness.tally();
                    let scene = Scene {
                        world,
                        tally: &tally,
                        began: start,
                    };
                    self.failures.extend(expectation.miss(&scene));
                }
            }
        }
        self.life.until(world, began + self.lasts).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    fn close(&mut self, world: &World, witness: &Witness, expectations: &[Expectation]) {
        let tally = witness.tally();
        let lasts = i64::try_from(self.lasts.as_secs()).unwrap_or(i64::MAX);
        let scene = Scene {
            world,
            tally: &tally,
            began: world.clock.now() - jiff::SignedDuration::from_secs(lasts),
        };
        let at_the_end = expectations.iter().filter(|it| it.when == When::AtTheEnd);
        self.failures
            .extend(at_the_end.filter_map(|expectation| expectation.miss(&scene)));
        witness.end(world, self.is_still);
        self.failures
            .extend(witness.violations().iter().map(ToString::to_string));
    }
}
