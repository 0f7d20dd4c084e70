//! Which image each instance type boots from.

use std::{collections::BTreeMap, sync::Arc};

use api::{aws::Ami, image_requirement::ImageRequirement, labels::aws::WELL_KNOWN};
use model::{
    requirement::{Operator, RequirementSpec, Requirements, UndefinedLabels},
    snapshot::CatalogType,
    vocabulary::Vocabulary,
};

/// Each type with the first image whose requirements it meets. Types that no image fits are left out.
pub(crate) fn images_of_types<'a>(
    images: &'a [Ami],
    types: &'a [Arc<CatalogType>],
) -> BTreeMap<&'a str, Vec<&'a Arc<CatalogType>>> {
    let mut vocabulary = Vocabulary::new();
    for key in WELL_KNOWN {
        vocabulary.add_well_known(key);
    }
    let wanted: Vec<(&Ami, Requirements)> = images
        .iter()
        .map(|image| {
            let specs: Vec<RequirementSpec> = image.requirements.iter().map(spec).collect();
            (image, Requirements::from_specs(&specs, &mut vocabulary))
        })
        .collect();
    let mut chosen: BTreeMap<&str, Vec<&Arc<CatalogType>>> = BTreeMap::new();
    for entry in types {
        let has = Requirements::from_specs(&entry.requirements, &mut vocabulary);
        let fits = |wanted: &Requirements| has.is_compatible(wanted, UndefinedLabels::Denied, &vocabulary);
        if let Some((image, _)) = wanted.iter().find(|(_, wanted)| fits(wanted)) {
            chosen.entry(image.id.as_str()).or_default().push(entry);
        }
    }
    chosen
}

/// A requirement as the algebra reads it. An operator from a future release meets nothing.
fn spec(requirement: &ImageRequirement) -> RequirementSpec {
    let operator = requirement.operator.as_str().parse().unwrap_or(Operator::In);
    let values: Vec<&str> = requirement.values.iter().map(String::as_str).collect();
    RequirementSpec::new(&requirement.key, operator, &values)
}
