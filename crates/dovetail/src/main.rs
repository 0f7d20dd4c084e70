//! The `dovetail` binary: reads the command line and hands over.

use std::io::Write;

fn main() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for crd in api::crds::installation(&api::provider::Provider::ALL) {
        writeln!(out, "---\n{}", serde_saphyr::to_string(&crd)?)?;
    }
    Ok(())
}
