//! Which programs of the distribution do the tests need? Installed where we may, named where not.

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::run;

/// A program that comes with the distribution rather than with cargo, Go, npm or pip.
struct Program {
    /// Where it may be, by name or by path.
    found_as: &'static [&'static str],
    /// Debian's package of it.
    package: &'static str,
    /// How it says that it is there.
    asked: &'static str,
}

const BROWSER: [Program; 3] = [
    Program {
        found_as: &["node"],
        package: "nodejs",
        asked: "--version",
    },
    Program {
        found_as: &["npm"],
        package: "npm",
        asked: "--version",
    },
    Program {
        found_as: &[
            "/usr/bin/chromium",
            "/usr/bin/chromium-browser",
            "/usr/bin/google-chrome",
        ],
        package: "chromium",
        asked: "--version",
    },
];

const TERMINAL: [Program; 1] = [Program {
    found_as: &["tmux"],
    package: "tmux",
    asked: "-V",
}];

impl Program {
    fn is_there(&self) -> bool {
        let answers = |name: &&str| {
            let output = Command::new(name).arg(self.asked).output();
            output.is_ok_and(|output| output.status.success())
        };
        // A browser may refuse to answer root; that its file is there is enough.
        let exists = |name: &&str| name.starts_with('/') && Path::new(name).exists();
        self.found_as.iter().any(|name| exists(name) || answers(name))
    }
}

/// Packages that the tests of the page lack.
pub(crate) fn missing_for_the_page() -> Vec<&'static str> {
    missing(&BROWSER)
}

/// Packages that the tests of the terminal view lack.
pub(crate) fn missing_for_the_terminal() -> Vec<&'static str> {
    missing(&TERMINAL)
}

fn missing(programs: &[Program]) -> Vec<&'static str> {
    let absent = programs.iter().filter(|program| !program.is_there());
    absent.map(|program| program.package).collect()
}

/// Installs what is missing. For machines that are there for tests; a person's is left alone.
pub(crate) fn install() -> Result<()> {
    let packages = [missing_for_the_page(), missing_for_the_terminal()].concat();
    if packages.is_empty() {
        return Ok(());
    }
    run::run(Command::new("apt-get").args(["update", "--quiet"]))?;
    run::run(
        Command::new("apt-get")
            .args(["install", "--yes", "--quiet", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}
