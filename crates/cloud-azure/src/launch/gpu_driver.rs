//! Which driver does a size with NVIDIA GPUs need? It is installed from an image of AKS's, named by these.

/// A driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Driver {
    pub(super) version: &'static str,
    /// Which of AKS's images.
    pub(super) kind: &'static str,
    /// The build of that image.
    pub(super) build: &'static str,
}

/// The driver of a size.
pub(super) fn driver(size: &str) -> Driver {
    let size = size.to_ascii_lowercase();
    let is_first_nc = size.starts_with("standard_nc") && !size.contains("_v");
    let (version, kind, build) = if size.contains("_rtxpro6000bse_") {
        ("595.58.03", "grid-v20", "20260609172331")
    } else if size.contains("_a10_v") {
        ("570.211.01", "grid", "20260522192315")
    } else if is_first_nc {
        ("470.82.01", "cuda", "20260629214430")
    } else {
        ("580.159.04", "cuda-lts", "20260629214430")
    };
    Driver { version, kind, build }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_follow_the_gpu() {
        let cases = [
            ("Standard_NC24ads_A100_v4", "cuda-lts", "580.159.04"),
            ("Standard_NV36ads_A10_v5", "grid", "570.211.01"),
            ("Standard_NC8ads_A10_v4", "grid", "570.211.01"),
            ("Standard_NC6", "cuda", "470.82.01"),
            ("Standard_NC24lds_xl_RTXPRO6000BSE_v6", "grid-v20", "595.58.03"),
        ];
        for (size, kind, version) in cases {
            let driver = driver(size);
            assert_eq!((driver.kind, driver.version), (kind, version), "{size}");
        }
    }
}
