//! Which images may a class's nodes boot now? The newest version of each definition, in the order of preference.

use std::time::Duration;

use api::azure::{AKSNodeClass, NodeImage};
use runtime::{Clock, remembered::Remembered, settings::AzureSettings};

use super::families::{Definition, Gallery, Release};
use crate::{
    arm::{Arm, Failure, wire::NodeImageVersion},
    class::Class,
};

/// How long an answer is believed.
const BELIEVED: Duration = Duration::from_hours(72);

/// Finds images.
pub(crate) struct Images {
    arm: Arm,
    region: String,
    shared_subscription: Option<String>,
    known: Remembered<Vec<NodeImage>>,
}

impl Images {
    pub(crate) fn new(arm: Arm, settings: &AzureSettings, clock: &Clock) -> Self {
        Self {
            arm,
            region: settings.location.to_lowercase(),
            shared_subscription: settings.use_sig.then(|| settings.sig_subscription_id.clone()),
            known: Remembered::new(clock.clone()),
        }
    }

    /// Whether images come from shared galleries, which alone have FIPS.
    pub(crate) fn are_shared(&self) -> bool {
        self.shared_subscription.is_some()
    }

    /// The newest images of a class. The version of Kubernetes is part of the question: an upgrade asks anew.
    pub(crate) async fn newest(&self, class: &AKSNodeClass, kubernetes: &str) -> Result<Vec<NodeImage>, Failure> {
        let release = Release::of(class, kubernetes);
        let class = Class(class);
        if class.is_fips() && !self.are_shared() {
            return Ok(Vec::new());
        }
        let definitions = release.definitions(class.is_fips(), class.is_trusted_launch());
        let names: Vec<&str> = definitions.iter().map(|it| it.name).collect();
        let question = format!("{kubernetes} {}", names.join(" "));
        if let Some(known) = self.known.get(&question) {
            return Ok(known);
        }
        let found = match &self.shared_subscription {
            Some(subscription) => self.shared(subscription, release.gallery(), definitions).await?,
            None => self.community(release.gallery(), definitions).await?,
        };
        self.known.put(&question, found.clone(), BELIEVED);
        Ok(found)
    }

    async fn community(&self, gallery: Gallery, definitions: &[Definition]) -> Result<Vec<NodeImage>, Failure> {
        let mut images = Vec::new();
        for definition in definitions {
            let versions = self
                .arm
                .community_versions(&self.region, gallery.community, definition.name)
                .await?;
            let newest = versions.iter().max_by_key(|it| it.properties.published_date);
            if let Some(newest) = newest {
                images.push(NodeImage {
                    id: format!(
                        "/CommunityGalleries/{}/images/{}/versions/{}",
                        gallery.community, definition.name, newest.name
                    ),
                    requirements: definition.requirements(),
                });
            }
        }
        Ok(images)
    }

    async fn shared(
        &self,
        subscription: &str,
        gallery: Gallery,
        definitions: &[Definition],
    ) -> Result<Vec<NodeImage>, Failure> {
        let versions = self.arm.node_image_versions(&self.region).await?;
        let image = |definition: &Definition| {
            let newest = newest_of(&versions, gallery.name, definition.name)?;
            Some(NodeImage {
                id: format!(
                    "/subscriptions/{subscription}/resourceGroups/{}/providers/Microsoft.Compute/galleries/{}/images/{}/versions/{newest}",
                    gallery.resource_group, gallery.name, definition.name
                ),
                requirements: definition.requirements(),
            })
        };
        Ok(definitions.iter().filter_map(image).collect())
    }
}

/// The newest version of an image: numbers between dots, and of equal ones the longer.
fn newest_of<'a>(all: &'a [NodeImageVersion], os: &str, sku: &str) -> Option<&'a str> {
    let of_definition = all.iter().filter(|it| it.os == os && it.sku == sku);
    let number = |version: &str| {
        version
            .split('.')
            .map(|part| part.parse().unwrap_or(0))
            .collect::<Vec<u64>>()
    };
    let newest = of_definition.max_by_key(|it| number(&it.version))?;
    Some(&newest.version)
}

/// An image without its version.
pub(crate) fn base(id: &str) -> &str {
    let cut = id.rfind("/versions/").unwrap_or(id.len());
    id.get(..cut).unwrap_or(id)
}

/// The newest images, but where an image is in the status already, the version that is there.
pub(crate) fn keep_known(newest: Vec<NodeImage>, known: &[NodeImage]) -> Vec<NodeImage> {
    let kept = |image: NodeImage| {
        let same = known.iter().find(|it| base(&it.id) == base(&image.id));
        same.cloned().unwrap_or(image)
    };
    newest.into_iter().map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number_and_then_by_length() {
        let version = |version: &str| NodeImageVersion {
            os: "AKSUbuntu".to_owned(),
            sku: "2204gen2containerd".to_owned(),
            version: version.to_owned(),
        };
        let newest = |versions: &[&str]| {
            let all: Vec<_> = versions.iter().map(|it| version(it)).collect();
            newest_of(&all, "AKSUbuntu", "2204gen2containerd").unwrap().to_owned()
        };
        assert_eq!(newest(&["202512.18.0", "2022.10.03"]), "202512.18.0");
        assert_eq!(newest(&["202512.9.0", "202512.18.0"]), "202512.18.0");
        assert_eq!(newest(&["202512.18", "202512.18.0"]), "202512.18.0");
        assert_eq!(newest_of(&[version("1")], "AKSAzureLinux", "2204gen2containerd"), None);
    }

    #[test]
    fn outside_a_window_known_images_stay_and_new_ones_come() {
        let image = |id: &str| NodeImage {
            id: id.to_owned(),
            requirements: Vec::new(),
        };
        let newest = vec![image("/g/images/a/versions/2"), image("/g/images/b/versions/2")];
        let known = [image("/g/images/c/versions/1"), image("/g/images/a/versions/1")];
        let kept: Vec<String> = keep_known(newest, &known).into_iter().map(|it| it.id).collect();
        assert_eq!(kept, ["/g/images/a/versions/1", "/g/images/b/versions/2"]);
    }
}
