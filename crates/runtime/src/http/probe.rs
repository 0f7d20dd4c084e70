//! Is the controller alive, and is it ready? Checks by name, answered in controller-runtime's words.

use std::{collections::BTreeSet, fmt, fmt::Write};

/// Says what is wrong, if something is.
type Passes = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// One check.
pub struct Check {
    name: &'static str,
    passes: Passes,
}

impl fmt::Debug for Check {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Check").field(&self.name).finish()
    }
}

impl Check {
    /// A check by this name. It must answer at once.
    pub fn new(name: &'static str, passes: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        let passes = Box::new(passes);
        Self { name, passes }
    }

    /// Passes whenever it is asked.
    pub fn ping(name: &'static str) -> Self {
        Self::new(name, || Ok(()))
    }
}

/// The checks of one probe.
#[derive(Debug)]
pub struct Probes(Vec<Check>);

/// Status and text of an answer.
pub(super) type Verdict = (u16, String);

impl Probes {
    /// These checks.
    pub fn new(mut checks: Vec<Check>) -> Self {
        checks.sort_by_key(|check| check.name);
        Self(checks)
    }

    /// One check by itself; none when there is none of this name.
    pub(super) fn one(&self, name: &str) -> Option<Verdict> {
        let check = self.0.iter().find(|check| check.name == name)?;
        Some(match (check.passes)() {
            Ok(()) => (200, "ok".to_owned()),
            Err(why) => (500, format!("internal server error: {why}\n")),
        })
    }

    /// All checks. Success is brief unless asked otherwise; failure names the check and keeps the reason for the log.
    pub(super) fn all(&self, query: &str) -> Verdict {
        let mut excluded: BTreeSet<&str> = values_of(query, "exclude").collect();
        let is_verbose = values_of(query, "verbose").next().is_some();
        let mut text = String::new();
        let mut failed = false;
        for check in &self.0 {
            let name = check.name;
            let _ = if excluded.remove(name) {
                writeln!(text, "[+]{name} excluded: ok")
            } else if let Err(why) = (check.passes)() {
                failed = true;
                tracing::debug!(checker = name, error = why, "healthz check failed");
                writeln!(text, "[-]{name} failed: reason withheld")
            } else {
                writeln!(text, "[+]{name} ok")
            };
        }
        if !failed && !is_verbose {
            return (200, "ok".to_owned());
        }
        if !excluded.is_empty() {
            let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
            let _ = writeln!(
                text,
                "warn: some health checks cannot be excluded: no matches for {}",
                names.join(",")
            );
        }
        text.push_str(if failed {
            "healthz check failed\n"
        } else {
            "healthz check passed\n"
        });
        (if failed { 500 } else { 200 }, text)
    }
}

/// What a query says of a name, each time it does.
fn values_of<'a>(query: &'a str, wanted: &'static str) -> impl Iterator<Item = &'a str> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.filter(move |(name, _)| *name == wanted).map(|(_, value)| value)
}
