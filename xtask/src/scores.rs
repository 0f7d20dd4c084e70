//! How did each program of tests end? One line each as they end; all that a failed one printed.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use crate::run;

/// No program of tests takes as long, unless it hangs.
const DEADLINE: Duration = Duration::from_mins(40);

/// How many tests ended how, read from the closing lines of `cargo test`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, more: Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.ignored += more.ignored;
    }
}

/// What has run so far, in all tiers at once.
#[derive(Default)]
pub(crate) struct Scores {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tally: Tally,
    broken: Vec<String>,
    skipped: Vec<&'static str>,
    unsteady: Vec<String>,
}

/// How a program ended.
struct Ran {
    has_passed: bool,
    printed: String,
    tally: Tally,
    took: f64,
}

#[expect(clippy::disallowed_methods, reason = "people are told how long it took")]
fn ran(name: &str, command: &mut Command) -> Result<Ran> {
    let log = log_of(name)?;
    let began = Instant::now();
    // What a test expected says more than where an error was turned into another.
    let has_passed = run::logged(command.env("RUST_LIB_BACKTRACE", "0"), &log, DEADLINE)?;
    let printed = fs::read_to_string(&log).with_context(|| format!("read {}", log.display()))?;
    let mut tally = Tally::default();
    printed.lines().filter_map(parse).for_each(|more| tally += more);
    Ok(Ran {
        has_passed,
        printed,
        tally,
        took: began.elapsed().as_secs_f64(),
    })
}

impl Scores {
    /// Runs one program to its end and writes its line.
    pub(crate) fn run(&self, name: &str, command: &mut Command) -> Result<()> {
        self.judge(name, &mut ran(name, command)?);
        Ok(())
    }

    /// Runs a program whose tests wait for other processes, and so for the machine. Those that failed may be run
    /// [again](Self::again) when it is quiet; until then they are not counted.
    pub(crate) fn run_waiting(&self, name: &str, command: &mut Command) -> Result<Vec<String>> {
        let mut ran = ran(name, command)?;
        let failed = failures(&ran.printed);
        if failed.is_empty() {
            self.judge(name, &mut ran);
            return Ok(failed);
        }
        ran.tally.failed = 0;
        self.score(ran.tally);
        let Ran { printed, took, .. } = ran;
        let count = failed.len();
        say(&format!(
            "{printed}\nAGAIN   {name:<44} {count:>5} failed {took:>7.1} s"
        ));
        Ok(failed)
    }

    /// Runs tests once more that failed on a busy machine. Those that pass now are named: they are a fault, too.
    pub(crate) fn again(&self, name: &str, tests: &[String], command: &mut Command) -> Result<()> {
        let mut ran = ran(&format!("{name} again"), command.arg("--exact").args(tests))?;
        if ran.has_passed {
            let tests = tests.iter().map(|test| format!("{name}: {test}"));
            self.state().unsteady.extend(tests);
        }
        self.judge(name, &mut ran);
        Ok(())
    }

    fn judge(&self, name: &str, ran: &mut Ran) {
        let took = ran.took;
        if ran.has_passed {
            self.score(ran.tally);
            say(&format!(
                "ok      {name:<44} {:>5} passed {took:>7.1} s",
                ran.tally.passed
            ));
            return;
        }
        // A program that ends before it closes has failed as well.
        ran.tally.failed = ran.tally.failed.max(1);
        self.score(ran.tally);
        self.state().broken.push(name.to_owned());
        let (printed, failed) = (&ran.printed, ran.tally.failed);
        say(&format!(
            "{printed}\nFAILED  {name:<44} {failed:>5} failed {took:>7.1} s"
        ));
    }

    /// Counts tests that ran elsewhere.
    pub(crate) fn add(&self, name: &str, tally: Tally) {
        self.score(tally);
        if tally.failed > 0 {
            self.state().broken.push(name.to_owned());
        }
    }

    /// A tier that could not run here.
    pub(crate) fn skip(&self, tier: &'static str) {
        self.state().skipped.push(tier);
    }

    /// The closing line, and the names of what failed.
    pub(crate) fn close(self) -> (String, Vec<String>) {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (closing(state.tally, &state.skipped, &state.unsteady), state.broken)
    }

    fn score(&self, more: Tally) {
        self.state().tally += more;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a program's output is kept.
fn log_of(name: &str) -> Result<PathBuf> {
    let folder = run::root().join("target").join("tests");
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    Ok(folder.join(format!("{}.log", name.replace(['/', ' '], "-"))))
}

/// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn parse(line: &str) -> Option<Tally> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |word: &str| {
        let part = counts.split("; ").find_map(|part| part.strip_suffix(word))?;
        part.trim().parse().ok()
    };
    Some(Tally {
        passed: count("passed")?,
        failed: count("failed")?,
        ignored: count("ignored")?,
    })
}

/// The tests that failed, by the list at the end of what `cargo test` prints.
fn failures(printed: &str) -> Vec<String> {
    let Some((_, list)) = printed.rsplit_once("\nfailures:\n") else {
        return Vec::new();
    };
    let names = list.lines().take_while(|line| !line.starts_with("test result: "));
    names
        .filter_map(|line| line.strip_prefix("    "))
        .map(str::to_owned)
        .collect()
}

fn closing(tally: Tally, skipped: &[&str], unsteady: &[String]) -> String {
    let Tally {
        passed,
        failed,
        ignored,
    } = tally;
    let note: String = skipped
        .iter()
        .map(|tier| format!("the tier {tier} did not run\n"))
        .collect();
    let unsteady: String = unsteady
        .iter()
        .map(|test| format!("passed only when it was run again, alone: {test}\n"))
        .collect();
    format!("{note}{unsteady}{passed} passed, {failed} failed, {ignored} skipped")
}

#[expect(clippy::print_stdout, reason = "a task runner talks to a person")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn a_closing_line_of_cargo_test_is_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        let expected = Tally {
            passed: 12,
            failed: 3,
            ignored: 1,
        };
        assert_eq!(parse(line), Some(expected));
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(parse("test hash::tests::a_map_is_order_free ... ok"), None);
    }

    #[test]
    fn the_closing_line_admits_a_tier_that_did_not_run() {
        let tally = Tally {
            passed: 7,
            ..Tally::default()
        };
        assert_eq!(
            closing(tally, &["in a browser", "on a real control plane"], &[]),
            "the tier in a browser did not run\nthe tier on a real control plane did not run\n7 passed, 0 failed, 0 skipped"
        );
    }

    const ONE_FAILS: &str = "printf 'failures:\\n\\n---- slow stdout ----\\ntoo slow\\n\\n\\nfailures:\\n    slow\\n\\ntest result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured\\n'; exit 101";

    #[test]
    fn a_test_that_passes_only_when_it_is_run_again_counts_once_and_is_named() {
        let scores = Scores::default();
        let failed = scores.run_waiting("xtask scores three", &mut shell(ONE_FAILS)).unwrap();
        assert_eq!(failed, ["slow"]);
        let passes = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured'";
        scores.again("xtask scores three", &failed, &mut shell(passes)).unwrap();
        let (closing, broken) = scores.close();
        assert_eq!(
            closing,
            "passed only when it was run again, alone: xtask scores three: slow\n5 passed, 0 failed, 0 skipped"
        );
        assert!(broken.is_empty());
    }

    #[test]
    fn a_test_that_fails_again_has_failed() {
        let scores = Scores::default();
        let failed = scores.run_waiting("xtask scores four", &mut shell(ONE_FAILS)).unwrap();
        let fails = "echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured'; exit 101";
        scores.again("xtask scores four", &failed, &mut shell(fails)).unwrap();
        let (closing, broken) = scores.close();
        assert_eq!(closing, "4 passed, 1 failed, 0 skipped");
        assert_eq!(broken, ["xtask scores four"]);
    }

    #[test]
    fn a_program_that_dies_before_it_closes_has_failed_by_name() {
        let scores = Scores::default();
        let closes = "echo 'test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured'";
        scores.run("xtask scores one", &mut shell(closes)).unwrap();
        scores.run("xtask scores two", &mut shell("kill -9 $$")).unwrap();
        let (closing, broken) = scores.close();
        assert_eq!(closing, "2 passed, 1 failed, 1 skipped");
        assert_eq!(broken, ["xtask scores two"]);
    }
}
