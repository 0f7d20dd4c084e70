//! Runs the double of Azure Resource Manager as a process of its own and says where it answers.

use std::{fs, io::Write, path::PathBuf};

use anyhow::{Context, Result};
use arm::{Double, Setup};
use clap::Parser;

/// A double of Azure Resource Manager for tests.
#[derive(Parser)]
struct Arguments {
    /// The address to listen at; port 0 takes a free one.
    #[arg(long)]
    listen: Option<String>,
    /// A JSON file with the names of the world (see `arm::Setup`); what it leaves out has its default.
    #[arg(long)]
    setup: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut setup = match &arguments.setup {
        Some(file) => {
            let text = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
            serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))?
        }
        None => Setup::default(),
    };
    if let Some(listen) = arguments.listen {
        setup.listen = listen;
    }
    let double = Double::start(setup).await?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", double.url())?;
    out.flush()?;
    double.run().await;
    Ok(())
}
