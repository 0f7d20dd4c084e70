//! Which images are there? Versions in the community galleries and in AKS's own list, and what an image can boot.

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Refusal},
    knob::ImageVersion,
    request::Asked,
    world::World,
};

const IMAGES: &str = include_str!("../data/images.json");

/// The public name of a gallery by the name that AKS gives it.
const GALLERIES: [(&str, &str); 2] = [
    ("AKSUbuntu", "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2"),
    ("AKSAzureLinux", "AKSAzureLinux-f7c7cda5-1c9a-4bdc-a222-9614c968580b"),
];

/// What the versions of the data are called, and when they came out; older ones came before, in their order.
const NEWEST: &str = "202512.18.0";

#[derive(Clone, Deserialize)]
struct Image {
    #[serde(rename = "fullName")]
    full_name: String,
    os: String,
    sku: String,
    version: String,
    #[serde(skip)]
    published: Timestamp,
}

pub(crate) struct Gallery {
    images: Vec<Image>,
}

/// What of an image decides which sizes boot it.
pub(crate) struct Traits {
    pub(crate) is_second_generation: bool,
    pub(crate) is_arm: bool,
}

impl Gallery {
    pub(crate) fn load() -> Result<Self> {
        let mut images: Vec<Image> = serde_json::from_str(IMAGES).context("reading images.json")?;
        let newest: Timestamp = "2025-12-18T12:00:00Z".parse().context("reading a time")?;
        for image in &mut images {
            image.published = newest;
            if image.version != NEWEST {
                image.published = newest - SignedDuration::from_hours(24 * 365);
            }
        }
        let week = SignedDuration::from_hours(24 * 7);
        let older = images
            .iter()
            .filter(|image| image.version == NEWEST)
            .map(|image| Image {
                version: "202512.06.0".to_owned(),
                full_name: format!("{}-{}-202512.06.0", image.os, image.sku),
                published: newest - week,
                ..image.clone()
            });
        let older: Vec<Image> = older.collect();
        // Newest not last: nobody promises an order.
        images.extend(older);
        Ok(Self { images })
    }

    pub(crate) fn publish(&mut self, knob: &ImageVersion) -> Result<(), String> {
        let known = self
            .images
            .iter()
            .find(|image| image.sku == knob.image && GALLERIES.iter().any(|one| one.0 == image.os));
        let known = known.ok_or_else(|| format!("no image is called `{}`", knob.image))?;
        let image = Image {
            full_name: format!("{}-{}-{}", known.os, known.sku, knob.version),
            os: known.os.clone(),
            sku: known.sku.clone(),
            version: knob.version.clone(),
            published: knob.published,
        };
        self.images.push(image);
        Ok(())
    }

    /// What a reference leads to, or that it leads nowhere.
    pub(crate) fn traits(&self, reference: &Value) -> Result<Traits, Refusal> {
        let community = reference["communityGalleryImageId"].as_str();
        let id = community.or_else(|| reference["id"].as_str()).unwrap_or_default();
        let parts: Vec<&str> = id.split('/').collect();
        let after = |name: &str| {
            let at = parts.iter().position(|part| part.eq_ignore_ascii_case(name))?;
            parts.get(at + 1).copied()
        };
        let gallery = after(if community.is_some() {
            "CommunityGalleries"
        } else {
            "galleries"
        })
        .unwrap_or_default();
        let (image, version) = (
            after("images").unwrap_or_default(),
            after("versions").unwrap_or_default(),
        );
        let os = GALLERIES.iter().find(|(os, public)| {
            let name = if community.is_some() { public } else { os };
            name.eq_ignore_ascii_case(gallery)
        });
        let is_known = os.is_some_and(|(os, _)| {
            let mut own = self.images.iter().filter(|one| one.os == *os);
            own.any(|one| one.sku == image && one.version == version)
        });
        if !is_known || (community.is_some() && is_fips(image)) {
            return Err(Refusal::new(
                404,
                "GalleryImageNotFound",
                format!("The gallery image {id} is not available."),
            ));
        }
        Ok(Traits {
            is_second_generation: image.contains("gen2"),
            is_arm: image.contains("arm64"),
        })
    }
}

fn is_fips(image: &str) -> bool {
    image.contains("fips")
}

impl World {
    pub(crate) fn list_gallery(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        self.in_region(asked.name("location"))?;
        let (gallery, image) = (asked.name("gallery"), asked.name("image"));
        let os = GALLERIES
            .iter()
            .find(|(_, public)| public.eq_ignore_ascii_case(gallery));
        let versions = self
            .gallery
            .images
            .iter()
            .filter(|one| os.is_some_and(|(os, _)| one.os == *os));
        let versions = versions.filter(|one| one.sku == image && !is_fips(&one.sku));
        let versions: Vec<Value> = versions.map(|one| self.version_json(gallery, one)).collect();
        if versions.is_empty() {
            let message = format!("The community gallery image {gallery}/{image} is not found.");
            return Err(Refusal::new(404, "CommunityGalleryImageNotFound", message));
        }
        self.paged(asked, versions)
    }

    fn version_json(&self, gallery: &str, image: &Image) -> Value {
        let unique = format!(
            "/CommunityGalleries/{gallery}/Images/{}/Versions/{}",
            image.sku, image.version
        );
        json!({
            "name": image.version, "location": self.setup.region, "type": "Microsoft.Compute/CommunityGalleryImageVersion",
            "identifier": {"uniqueId": unique},
            "properties": {
                "publishedDate": image.published.to_string(), "excludeFromLatest": false,
                "storageProfile": {"osDiskImage": {"diskSizeGB": 30, "hostCaching": "None"}},
            },
        })
    }

    pub(crate) fn list_node_images(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        self.in_region(asked.name("location"))?;
        let images = self.gallery.images.iter();
        let images =
            images.map(|one| json!({"fullName": one.full_name, "os": one.os, "sku": one.sku, "version": one.version}));
        self.paged(asked, images.collect())
    }
}
