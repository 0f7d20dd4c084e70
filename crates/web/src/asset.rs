//! The files of the page, in the binary: nothing is built, and nothing is fetched from elsewhere.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io::Write,
    sync::OnceLock,
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
    packed: OnceLock<(Bytes, String)>,
}

macro_rules! assets {
    ($($path:literal $file:literal $kind:literal,)*) => {
        static ASSETS: [Asset; [$($path),*].len()] = [$(Asset {
            path: $path,
            kind: $kind,
            text: include_str!(concat!("../assets/", $file)),
            packed: OnceLock::new(),
        },)*];
    };
}

assets! {
    "/" "index.html" "text/html; charset=utf-8",
    "/style.css" "style.css" "text/css; charset=utf-8",
    "/favicon.svg" "favicon.svg" "image/svg+xml",
    "/app.js" "app.js" "text/javascript; charset=utf-8",
    "/dom.js" "dom.js" "text/javascript; charset=utf-8",
    "/store.js" "store.js" "text/javascript; charset=utf-8",
    "/format.js" "format.js" "text/javascript; charset=utf-8",
    "/parts.js" "parts.js" "text/javascript; charset=utf-8",
    "/overview.js" "overview.js" "text/javascript; charset=utf-8",
    "/fleet.js" "fleet.js" "text/javascript; charset=utf-8",
    "/canvas.js" "canvas.js" "text/javascript; charset=utf-8",
    "/node.js" "node.js" "text/javascript; charset=utf-8",
    "/pending.js" "pending.js" "text/javascript; charset=utf-8",
    "/decisions.js" "decisions.js" "text/javascript; charset=utf-8",
    "/pools.js" "pools.js" "text/javascript; charset=utf-8",
    "/whatif.js" "whatif.js" "text/javascript; charset=utf-8",
}

impl Asset {
    /// The file of a path.
    pub(crate) fn at(path: &str) -> Option<&'static Self> {
        let path = if path == "/index.html" { "/" } else { path };
        ASSETS.iter().find(|asset| asset.path == path)
    }

    /// Compressed, with a tag that changes with what is in it.
    pub(crate) fn packed(&self) -> &(Bytes, String) {
        self.packed.get_or_init(|| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            // Writing to memory does not fail.
            let _ = encoder.write_all(self.text.as_bytes());
            let mut hasher = DefaultHasher::new();
            self.text.hash(&mut hasher);
            let tag = format!("\"{:016x}\"", hasher.finish());
            (encoder.finish().unwrap_or_default().into(), tag)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_brings_style_or_code_in_its_text() {
        let page = Asset::at("/").unwrap().text;
        for forbidden in [
            "<style",
            " style=",
            " onclick=",
            " onload=",
            "javascript:",
            "http://",
            "https://",
        ] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert_eq!(
            page.matches("<script").count(),
            1,
            "one module, and nothing between its tags"
        );
        assert!(page.contains("<script type=\"module\" src=\"app.js\"></script>"));
        for asset in ASSETS.iter().filter(|asset| asset.kind.starts_with("text/javascript")) {
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "eval(",
                "document.write",
            ] {
                assert!(!asset.text.contains(forbidden), "{}: {forbidden}", asset.path);
            }
        }
    }

    #[test]
    fn every_module_that_is_imported_is_served() {
        for asset in ASSETS.iter().filter(|asset| asset.kind.starts_with("text/javascript")) {
            let imports = asset.text.lines().filter_map(|line| line.split_once("from './"));
            for (_, rest) in imports {
                let name = rest.split('\'').next().unwrap_or_default();
                assert!(Asset::at(&format!("/{name}")).is_some(), "{}: {name}", asset.path);
            }
        }
    }

    #[test]
    fn the_page_is_light() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.packed().0.len()).sum();
        assert!(bytes < 64 << 10, "{bytes} bytes compressed");
    }
}
