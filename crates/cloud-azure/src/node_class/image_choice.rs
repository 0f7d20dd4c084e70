//! Which image does a size boot from? The first of the class's whose requirements it meets.

use api::{azure::NodeImage, image_requirement::ImageRequirement};
use model::{
    requirement::{Operator, RequirementSpec, Requirements, UndefinedLabels},
    snapshot::CatalogType,
    vocabulary::Vocabulary,
};

/// The image of a size; none where none fits.
pub(crate) fn image_of_type<'a>(images: &'a [NodeImage], entry: &CatalogType) -> Option<&'a NodeImage> {
    let mut vocabulary = Vocabulary::new();
    let has = Requirements::from_specs(&entry.requirements, &mut vocabulary);
    images.iter().find(|image| {
        let specs: Vec<RequirementSpec> = image.requirements.iter().map(spec).collect();
        let wanted = Requirements::from_specs(&specs, &mut vocabulary);
        has.is_compatible(&wanted, UndefinedLabels::Denied, &vocabulary)
    })
}

/// A requirement as the algebra reads it. An operator from a future release meets nothing.
fn spec(requirement: &ImageRequirement) -> RequirementSpec {
    let operator = requirement.operator.as_str().parse().unwrap_or(Operator::In);
    let values: Vec<&str> = requirement.values.iter().map(String::as_str).collect();
    RequirementSpec::new(&requirement.key, operator, &values)
}
