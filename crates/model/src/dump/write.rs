//! Writes the self-contained file: the same snapshot always gives the same bytes, one object per line.

use std::io::{self, Write};

use serde::Serialize;

use super::parse::SNAPSHOT;
use crate::{
    object::{NodeClass, Object},
    snapshot::{Snapshot, Visit},
};

/// Writes a snapshot as one JSON document.
pub fn write(snapshot: &Snapshot, mut out: impl Write) -> io::Result<()> {
    let (api_version, kind) = (SNAPSHOT.api_version, SNAPSHOT.kind);
    write!(
        out,
        "{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\",\n\"metadata\":"
    )?;
    serde_json::to_writer(&mut out, snapshot.title())?;
    out.write_all(b",\n\"settings\":")?;
    serde_json::to_writer(&mut out, snapshot.settings())?;
    out.write_all(b",\n\"objects\":")?;
    let mut objects = Lines::new(&mut out);
    snapshot.objects().visit(&mut objects)?;
    objects.finish()?;
    let catalog = snapshot.catalog();
    out.write_all(b",\n\"instanceTypes\":")?;
    let mut types = Lines::new(&mut out);
    catalog.instance_types.iter().try_for_each(|entry| types.line(entry))?;
    types.finish()?;
    out.write_all(b",\n\"nodePoolInstanceTypes\":")?;
    serde_json::to_writer(&mut out, &catalog.node_pool_instance_types)?;
    if !catalog.node_pool_variants.is_empty() {
        out.write_all(b",\n\"nodePoolVariants\":")?;
        serde_json::to_writer(&mut out, &catalog.node_pool_variants)?;
    }
    out.write_all(b",\n\"wellKnownLabels\":")?;
    serde_json::to_writer(&mut out, &catalog.well_known_labels)?;
    out.write_all(b"}\n")
}

/// Writes a snapshot gzipped, without a time stamp in the header.
pub fn write_gz(snapshot: &Snapshot, out: impl Write) -> io::Result<()> {
    let mut packer = flate2::GzBuilder::new()
        .mtime(0)
        .write(out, flate2::Compression::default());
    write(snapshot, io::BufWriter::new(&mut packer))?;
    packer.finish()?.flush()
}

/// A JSON array with one element per line.
struct Lines<W> {
    out: W,
    separator: &'static str,
}

impl<W: Write> Lines<W> {
    fn new(out: W) -> Self {
        Self { out, separator: "[\n" }
    }

    fn line(&mut self, element: &impl Serialize) -> io::Result<()> {
        self.out.write_all(self.separator.as_bytes())?;
        self.separator = ",\n";
        serde_json::to_writer(&mut self.out, element).map_err(io::Error::from)
    }

    fn finish(mut self) -> io::Result<()> {
        self.out.write_all(if self.separator == "[\n" { b"[]" } else { b"]" })
    }
}

impl<W: Write> Visit for Lines<W> {
    type Error = io::Error;

    fn object<T: Object>(&mut self, object: &T) -> io::Result<()> {
        self.line(&object.document())
    }

    fn node_class(&mut self, class: &NodeClass) -> io::Result<()> {
        self.line(class)
    }
}
