//! What does the name of a size say? `Standard_NC24ads_A100_v4` is of family N, series NCads_v4, version 4, with A100.

/// The parts of a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SizeName {
    /// The first letter.
    pub(crate) family: String,
    /// Family, subfamily, features and version.
    pub(crate) series: String,
    /// The number after `v`; 1 where there is none.
    pub(crate) version: String,
    /// What the machine is accelerated by, as the name has it.
    pub(crate) accelerator: Option<String>,
    /// Some of its cores are switched off.
    pub(crate) is_constrained: bool,
    /// Its memory is kept from whoever runs it.
    pub(crate) is_confidential: bool,
}

impl SizeName {
    /// The parts of a name; none where it has no such parts.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let name = name
            .strip_prefix("Standard_")
            .or_else(|| name.strip_prefix("Basic_"))
            .unwrap_or(name);
        let mut parts = name.split('_');
        let head = parts.next()?;
        let letters = head.len() - head.trim_start_matches(|c: char| c.is_ascii_uppercase()).len();
        let (letters, rest) = head.split_at_checked(letters)?;
        if !(1..=3).contains(&letters.len()) {
            return None;
        }
        let cores = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if cores.len() == rest.len() {
            return None;
        }
        let (features, is_constrained) = match cores.strip_prefix('-') {
            Some(rest) => (rest.trim_start_matches(|c: char| c.is_ascii_digit()), true),
            None => (cores, false),
        };
        if !features.chars().all(|c| c.is_ascii_alphabetic()) {
            return None;
        }
        let (mut version, mut accelerators) = (None, Vec::new());
        for part in parts {
            match part.strip_prefix('v').filter(|digits| is_number(digits)) {
                Some(number) => version = Some(number),
                None if part == "Promo" || part == "cc" => {}
                None => accelerators.push(part),
            }
        }
        let suffix = version.map(|version| format!("_v{version}")).unwrap_or_default();
        Some(Self {
            family: letters.get(..1)?.to_owned(),
            series: format!("{letters}{features}{suffix}"),
            version: version.unwrap_or("1").to_owned(),
            accelerator: accelerators.last().map(|it| (*it).to_owned()),
            is_constrained,
            is_confidential: letters.starts_with("DC") || letters.starts_with("EC"),
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use api::labels::azure;

    use super::*;

    fn parsed(name: &str) -> [String; 4] {
        let name = SizeName::parse(name).unwrap();
        [
            name.family,
            name.series,
            name.version,
            name.accelerator.unwrap_or_default(),
        ]
    }

    #[test]
    fn names_have_the_parts_that_labels_show() {
        let cases = [
            ("Standard_D4s_v5", ["D", "Ds_v5", "5", ""]),
            ("Standard_NC24ads_A100_v4", ["N", "NCads_v4", "4", "A100"]),
            ("Standard_HB120rs_v3", ["H", "HBrs_v3", "3", ""]),
            ("Standard_D11_v2_Promo", ["D", "D_v2", "2", ""]),
            ("Standard_DS2_v2", ["D", "DS_v2", "2", ""]),
            ("Standard_B2s", ["B", "Bs", "1", ""]),
        ];
        for (name, expected) in cases {
            assert_eq!(parsed(name), expected.map(str::to_owned), "{name}");
        }
        assert_eq!(SizeName::parse("Standard_128bds_3_v4"), None);
    }

    #[test]
    fn what_is_refused_can_be_told_by_the_name() {
        let name = |name| SizeName::parse(name).unwrap();
        assert!(name("Standard_M8-2ms").is_constrained);
        assert!(name("Standard_DC8s_v3").is_confidential && name("Standard_EC4as_v5").is_confidential);
        assert!(!name("Standard_E4s_v5").is_confidential);
    }

    /// The table was made from records of the API by another reader of these names.
    #[test]
    fn every_size_of_the_catalogue_has_the_labels_of_its_table() {
        let loaded = catalogue::load(catalogue::Source::Azure, None, &[]).unwrap();
        let mut compared = 0;
        for entry in &loaded.catalog.instance_types {
            let label = |key: &str| {
                let found = entry.requirements.iter().find(|it| it.key == key).unwrap();
                found.values.first().cloned().unwrap_or_default()
            };
            if label(azure::SKU_SERIES).is_empty() {
                continue;
            }
            let expected = [
                label(azure::SKU_FAMILY),
                label(azure::SKU_SERIES),
                label(azure::SKU_VERSION),
            ];
            let [family, series, version, _] = parsed(entry.name.as_str());
            assert_eq!([family, series, version], expected, "{}", entry.name);
            compared += 1;
        }
        assert!(compared > 800, "{compared}");
    }
}
