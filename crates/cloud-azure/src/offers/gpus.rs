//! Which sizes with GPUs AKS has drivers or images for.

/// A size with GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GpuSize {
    /// Its name in lower case.
    name: &'static str,
    /// `nvidia` or `amd`.
    pub(crate) manufacturer: &'static str,
    /// Azure Linux boots on it; Ubuntu boots on all of them.
    pub(crate) has_azure_linux: bool,
}

/// What is known of a size, whatever the case of its name; a promotion changes the price only.
pub(crate) fn gpu_size(name: &str) -> Option<&'static GpuSize> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix("_promo").unwrap_or(&name);
    let at = GPU_SIZES.binary_search_by(|size| size.name.cmp(name)).ok()?;
    GPU_SIZES.get(at)
}

const fn nvidia(name: &'static str, has_azure_linux: bool) -> GpuSize {
    GpuSize {
        name,
        manufacturer: "nvidia",
        has_azure_linux,
    }
}

const fn amd(name: &'static str) -> GpuSize {
    GpuSize {
        name,
        manufacturer: "amd",
        has_azure_linux: false,
    }
}

/// By name.
const GPU_SIZES: &[GpuSize] = &[
    nvidia("standard_nc12", false),
    nvidia("standard_nc12s_v2", false),
    nvidia("standard_nc12s_v3", true),
    nvidia("standard_nc144ds_xl_rtxpro6000bse_v6", false),
    nvidia("standard_nc144lds_xl_rtxpro6000bse_v6", false),
    nvidia("standard_nc16ads_a10_v4", true),
    nvidia("standard_nc16as_t4_v3", true),
    nvidia("standard_nc24", false),
    nvidia("standard_nc24ads_a100_v4", true),
    nvidia("standard_nc24lds_xl_rtxpro6000bse_v6", false),
    nvidia("standard_nc24r", false),
    nvidia("standard_nc24rs_v2", false),
    nvidia("standard_nc24rs_v3", true),
    nvidia("standard_nc24s_v2", false),
    nvidia("standard_nc24s_v3", true),
    nvidia("standard_nc288ds_xl_rtxpro6000bse_v6", false),
    nvidia("standard_nc288lds_xl_rtxpro6000bse_v6", false),
    nvidia("standard_nc32ads_a10_v4", true),
    nvidia("standard_nc36ds_xl_rtxpro6000bse_v6", false),
    nvidia("standard_nc36lds_xl_rtxpro6000bse_v6", false),
    nvidia("standard_nc40ads_h100_v5", true),
    nvidia("standard_nc48ads_a100_v4", true),
    nvidia("standard_nc4as_t4_v3", true),
    nvidia("standard_nc6", false),
    nvidia("standard_nc64as_t4_v3", true),
    nvidia("standard_nc6s_v2", false),
    nvidia("standard_nc6s_v3", true),
    nvidia("standard_nc72ds_xl_rtxpro6000bse_v6", false),
    nvidia("standard_nc72lds_xl_rtxpro6000bse_v6", false),
    nvidia("standard_nc80adis_h100_v5", true),
    nvidia("standard_nc8ads_a10_v4", true),
    nvidia("standard_nc8as_t4_v3", true),
    nvidia("standard_nc96ads_a100_v4", true),
    nvidia("standard_nd112amsr_a100_v4", true),
    nvidia("standard_nd112asr_a100_v4", true),
    nvidia("standard_nd120amsr_a100_v4", true),
    nvidia("standard_nd120asr_a100_v4", true),
    nvidia("standard_nd128isr_gb300_v6", false),
    nvidia("standard_nd128isr_ndr_gb200_v6", false),
    nvidia("standard_nd12s", false),
    nvidia("standard_nd24rs", false),
    nvidia("standard_nd24s", false),
    nvidia("standard_nd40rs_v2", true),
    nvidia("standard_nd40s_v3", true),
    nvidia("standard_nd6s", false),
    nvidia("standard_nd96ams_a100_flex_v4", true),
    nvidia("standard_nd96ams_a100_v4", true),
    nvidia("standard_nd96ams_v4", true),
    nvidia("standard_nd96amsf_a100_v4", true),
    nvidia("standard_nd96amsr_a100_v4", true),
    nvidia("standard_nd96amsrf_a100_v4", true),
    nvidia("standard_nd96asr_v4", true),
    nvidia("standard_nd96is_flex_h100_v5", true),
    nvidia("standard_nd96is_h100_v5", true),
    nvidia("standard_nd96is_h200_v5", true),
    amd("standard_nd96is_mi300x_v5"),
    nvidia("standard_nd96is_noib_h100_v5", true),
    nvidia("standard_nd96isf_h100_v5", true),
    nvidia("standard_nd96isf_h200_v5", true),
    nvidia("standard_nd96isr_h100_v5", true),
    nvidia("standard_nd96isr_h200_v5", true),
    amd("standard_nd96isr_mi300x_v5"),
    nvidia("standard_nd96isrf_h100_v5", true),
    nvidia("standard_nd96isrf_h200_v5", true),
    nvidia("standard_nv12", false),
    nvidia("standard_nv12ads_a10_v5", true),
    amd("standard_nv12ads_v710_v5"),
    nvidia("standard_nv12s_v3", false),
    nvidia("standard_nv18ads_a10_v5", true),
    nvidia("standard_nv24", false),
    amd("standard_nv24ads_v710_v5"),
    nvidia("standard_nv24r", false),
    nvidia("standard_nv24s_v3", false),
    amd("standard_nv28adms_v710_v5"),
    nvidia("standard_nv36adms_a10_v5", true),
    nvidia("standard_nv36ads_a10_v5", true),
    nvidia("standard_nv48s_v3", false),
    amd("standard_nv4ads_v710_v5"),
    nvidia("standard_nv6", false),
    nvidia("standard_nv6ads_a10_v5", true),
    nvidia("standard_nv72ads_a10_v5", true),
    amd("standard_nv8ads_v710_v5"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_whatever_the_case_of_their_name() {
        let is_sorted = GPU_SIZES.windows(2).all(|pair| pair[0].name < pair[1].name);
        assert!(is_sorted, "the table is searched by halves");
        assert_eq!(
            gpu_size("Standard_NC24ads_A100_v4").map(|it| it.manufacturer),
            Some("nvidia")
        );
        assert_eq!(
            gpu_size("Standard_NV12_Promo").map(|it| it.has_azure_linux),
            Some(false)
        );
        assert_eq!(
            gpu_size("Standard_ND96isr_MI300X_v5").map(|it| it.manufacturer),
            Some("amd")
        );
        assert_eq!(gpu_size("Standard_D4s_v5"), None);
    }
}
