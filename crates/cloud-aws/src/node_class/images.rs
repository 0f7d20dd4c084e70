//! The machine images that a node class selects: by alias, by ID, by SSM parameter, by name, owner and tags.

use std::{collections::BTreeMap, time::Duration};

use api::{
    aws::{Alias, Ami, AmiFamily, EC2NodeClass},
    image_requirement::ImageRequirement,
    karpenter::Operator,
    labels::{ARCH, OS, WINDOWS_BUILD, aws},
};
use aws_sdk_ec2::types::{ArchitectureValues, Filter, Image};
use catalogue::aws::{WINDOWS_2019, WINDOWS_2022, WINDOWS_2025};
use jiff::Timestamp;
use runtime::{Clock, remembered::Remembered};
use tokio::sync::Mutex;

use super::{
    filters::{filter, tag_filters},
    networks::question,
    parameters::Parameters,
};
use crate::{Clients, Failure};

/// Why images are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImagesError {
    /// The alias has no images for this version of Kubernetes, and never will.
    #[error("getting AMI queries, {0}")]
    UnsupportedAlias(String),
    /// The alias has no images that we can find.
    #[error("getting AMI queries, failed to discover any AMIs for alias (alias={0})")]
    NoneForAlias(String),
    /// SSM did not answer.
    #[error("getting AMI queries, resolving ssm parameter, {0}")]
    Parameter(Failure),
    /// EC2 did not answer.
    #[error("describing images, {0}")]
    Describe(Failure),
}

/// What kind of machine an image of a family is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Standard,
    Nvidia,
    Neuron,
    Windows(&'static str),
}

impl Variant {
    fn requirements(self) -> Vec<ImageRequirement> {
        match self {
            Self::Standard => vec![
                demand(aws::INSTANCE_ACCELERATOR_COUNT, Operator::DoesNotExist, &[]),
                demand(aws::INSTANCE_GPU_COUNT, Operator::DoesNotExist, &[]),
            ],
            Self::Nvidia => vec![demand(aws::INSTANCE_GPU_COUNT, Operator::Exists, &[])],
            Self::Neuron => vec![demand(aws::INSTANCE_ACCELERATOR_COUNT, Operator::Exists, &[])],
            Self::Windows(build) => vec![
                demand(OS, Operator::In, &["windows"]),
                demand(WINDOWS_BUILD, Operator::In, &[build]),
            ],
        }
    }
}

fn demand(key: &str, operator: Operator, values: &[&str]) -> ImageRequirement {
    ImageRequirement {
        key: key.to_owned(),
        operator,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    }
}

/// A question for EC2, and what is known beforehand about its answers.
#[derive(Debug, Default)]
struct Query {
    filters: Vec<Filter>,
    owners: Vec<String>,
    variants: BTreeMap<String, Vec<Variant>>,
}

/// An image, as far as it is compared with others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    id: String,
    name: String,
    created: Option<Timestamp>,
    is_deprecated: bool,
    requirements: Vec<ImageRequirement>,
}

impl Candidate {
    /// Whether this one is to be had instead of another for the same machines: not deprecated, then newer, then by name.
    fn is_better_than(&self, other: &Self) -> bool {
        let rank = |it: &Self| (!it.is_deprecated, it.created, it.name.clone());
        rank(self) > rank(other)
    }
}

/// Asks for images.
pub(crate) struct Images {
    ec2: aws_sdk_ec2::Client,
    pub(crate) parameters: Parameters,
    clock: Clock,
    known: Remembered<Vec<Ami>>,
    believed: Duration,
    asking: Mutex<()>,
}

impl Images {
    pub(crate) fn new(clients: &Clients, clock: &Clock, believed: Duration) -> Self {
        Self {
            ec2: clients.ec2.clone(),
            parameters: Parameters::new(clients.ssm.clone(), clock),
            clock: clock.clone(),
            known: Remembered::new(clock.clone()),
            believed,
            asking: Mutex::default(),
        }
    }

    /// The images of a class, the newest first. Of those for the same machines there is one.
    pub(crate) async fn list(&self, class: &EC2NodeClass, version: &str) -> Result<Vec<Ami>, ImagesError> {
        let _asking = self.asking.lock().await;
        let queries = self.queries(class, version).await?;
        let question = question(&(&class.spec.ami_selector_terms, version, ids(&queries)));
        if let Some(known) = self.known.get(&question) {
            return Ok(known);
        }
        let mut best: Vec<Candidate> = Vec::new();
        for query in &queries {
            for image in self.describe(query).await? {
                for candidate in self.candidates(&image, query) {
                    keep_the_better(&mut best, candidate);
                }
            }
        }
        best.sort_by(|one, two| two.created.cmp(&one.created).then_with(|| one.id.cmp(&two.id)));
        let images: Vec<Ami> = best.into_iter().map(status).collect();
        self.known.put(&question, images.clone(), self.believed);
        Ok(images)
    }

    async fn describe(&self, query: &Query) -> Result<Vec<Image>, ImagesError> {
        let mut filters = query.filters.clone();
        filters.push(filter("state", vec!["available".to_owned()]));
        let owners = (!query.owners.is_empty()).then(|| query.owners.clone());
        let mut pages = self
            .ec2
            .describe_images()
            .set_filters(Some(filters))
            .set_owners(owners)
            .include_deprecated(true)
            .max_results(1000)
            .into_paginator()
            .send();
        let mut images = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| ImagesError::Describe(Failure::of(&error)))?;
            images.extend(page.images.unwrap_or_default());
        }
        Ok(images)
    }

    /// The image once for each kind of machine it is for. One of an architecture we do not know is for none.
    fn candidates(&self, image: &Image, query: &Query) -> Vec<Candidate> {
        let arch = match image.architecture() {
            Some(ArchitectureValues::X8664) => "amd64",
            Some(ArchitectureValues::Arm64) => "arm64",
            _ => return Vec::new(),
        };
        let id = image.image_id().unwrap_or_default();
        let deprecated_at: Option<Timestamp> = image.deprecation_time().and_then(|text| text.parse().ok());
        let candidate = |mut requirements: Vec<ImageRequirement>| {
            requirements.push(demand(ARCH, Operator::In, &[arch]));
            requirements.sort_by(|one, two| (one.key.len(), &one.key).cmp(&(two.key.len(), &two.key)));
            Candidate {
                id: id.to_owned(),
                name: image.name().unwrap_or_default().to_owned(),
                created: image.creation_date().and_then(|text| text.parse().ok()),
                is_deprecated: deprecated_at.is_some_and(|at| at <= self.clock.now()),
                requirements,
            }
        };
        match query.variants.get(id) {
            Some(variants) => variants.iter().map(|it| candidate(it.requirements())).collect(),
            None => vec![candidate(Vec::new())],
        }
    }

    async fn queries(&self, class: &EC2NodeClass, version: &str) -> Result<Vec<Query>, ImagesError> {
        if let Some(alias) = class.alias() {
            return Ok(vec![self.alias_query(&alias, version).await?]);
        }
        let (mut queries, mut ids) = (Vec::new(), Vec::new());
        for term in &class.spec.ami_selector_terms {
            if let Some(id) = &term.id {
                ids.push(id.clone());
            } else if let Some(parameter) = &term.ssm_parameter {
                ids.extend(self.parameter(parameter).await?);
            } else {
                let mut query = Query {
                    owners: term.owner.iter().cloned().collect(),
                    filters: tag_filters(term.tags.as_ref()),
                    ..Query::default()
                };
                if let Some(name) = &term.name {
                    query.filters.push(filter("name", vec![name.clone()]));
                    // A name alone would find what anybody in the world shares under it.
                    if query.owners.is_empty() {
                        query.owners = vec!["self".to_owned(), "amazon".to_owned()];
                    }
                }
                queries.push(query);
            }
        }
        if !ids.is_empty() {
            queries.push(Query {
                filters: vec![filter("image-id", ids)],
                ..Query::default()
            });
        }
        Ok(queries)
    }

    /// The image that a user's parameter names; none when there is no such parameter, or it names no image.
    async fn parameter(&self, name: &str) -> Result<Option<String>, ImagesError> {
        match self.parameters.own(name).await {
            Ok(id) if id.starts_with("ami-") => Ok(Some(id)),
            Ok(id) => {
                tracing::error!("ssmParameter" = name, id, "parameter value is an invalid AMI ID");
                Ok(None)
            }
            Err(failure) if failure.is_not_found() => {
                tracing::error!("ssmParameter" = name, error = %failure, "parameter not found");
                Ok(None)
            }
            Err(failure) => Err(ImagesError::Parameter(failure)),
        }
    }

    async fn alias_query(&self, alias: &Alias, version: &str) -> Result<Query, ImagesError> {
        refuse_unsupported(alias, version)?;
        let is_latest = alias.version == Alias::LATEST;
        let mut variants: BTreeMap<String, Vec<Variant>> = BTreeMap::new();
        for (path, of) in alias_paths(alias, version) {
            match self.parameters.published(&path, is_latest).await {
                Ok(id) => variants.entry(id).or_default().extend(of),
                // What could not be asked for must not look as if it were gone: its nodes would be replaced.
                Err(failure) if failure.is_throttled() || failure.is_server_fault() => {
                    return Err(ImagesError::Parameter(failure));
                }
                // AWS publishes no such image.
                Err(_) => {}
            }
        }
        if variants.is_empty() {
            let name = format!("{}@{}", alias.family.as_str().to_lowercase(), alias.version);
            return Err(ImagesError::NoneForAlias(name));
        }
        Ok(Query {
            filters: vec![filter("image-id", variants.keys().cloned().collect())],
            owners: Vec::new(),
            variants,
        })
    }

    /// Of parameters that follow new releases, forgets those whose image is deprecated by now.
    pub(crate) async fn forget_deprecated(&self) -> Result<(), ImagesError> {
        let ids = self.parameters.mutable();
        if ids.is_empty() {
            return Ok(());
        }
        let query = Query {
            filters: vec![filter("image-id", ids)],
            ..Query::default()
        };
        let now = self.clock.now();
        let images = self.describe(&query).await?;
        let is_old = |image: &&Image| {
            let at: Option<Timestamp> = image.deprecation_time().and_then(|text| text.parse().ok());
            at.is_some_and(|at| at <= now)
        };
        let old: Vec<String> = images
            .iter()
            .filter(is_old)
            .filter_map(|image| image.image_id().map(str::to_owned))
            .collect();
        self.parameters.forget(&old);
        Ok(())
    }
}

fn ids(queries: &[Query]) -> Vec<&String> {
    queries.iter().flat_map(|query| query.variants.keys()).collect()
}

fn keep_the_better(best: &mut Vec<Candidate>, candidate: Candidate) {
    match best.iter_mut().find(|it| it.requirements == candidate.requirements) {
        Some(known) if candidate.is_better_than(known) => *known = candidate,
        Some(_) => {}
        None => best.push(candidate),
    }
}

fn status(image: Candidate) -> Ami {
    Ami {
        id: image.id,
        deprecated: image.is_deprecated.then_some(true),
        name: Some(image.name),
        requirements: image.requirements,
    }
}

fn refuse_unsupported(alias: &Alias, version: &str) -> Result<(), ImagesError> {
    let minor: Option<u32> = version.split('.').nth(1).and_then(|minor| minor.parse().ok());
    let text = match (&alias.family, minor) {
        (AmiFamily::AL2, Some(33..)) => {
            "AL2 aliases are no longer supported on EKS 1.33+ (see https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions-standard.html#kubernetes-1-33)".to_owned()
        }
        (AmiFamily::Windows2025, Some(..=34)) => {
            format!("Windows Server 2025 requires EKS version 1.35 or higher, current version: {version}")
        }
        _ => return Ok(()),
    };
    Err(ImagesError::UnsupportedAlias(text))
}

/// Where AWS publishes the images of an alias, and what for.
fn alias_paths(alias: &Alias, k8s: &str) -> Vec<(String, Vec<Variant>)> {
    use Variant::{Neuron, Nvidia, Standard};
    let version = &alias.version;
    let is_latest = version == Alias::LATEST;
    let release = |name: String| if is_latest { "recommended".to_owned() } else { name };
    match alias.family {
        AmiFamily::AL2023 => {
            let path = |arch: &str, variant: &str| {
                let release = release(format!("amazon-eks-node-al2023-{arch}-{variant}-{k8s}-{version}"));
                format!("/aws/service/eks/optimized-ami/{k8s}/amazon-linux-2023/{arch}/{variant}/{release}/image_id")
            };
            vec![
                (path("x86_64", "standard"), vec![Standard]),
                (path("x86_64", "nvidia"), vec![Nvidia]),
                (path("x86_64", "neuron"), vec![Neuron]),
                (path("arm64", "standard"), vec![Standard]),
                (path("arm64", "nvidia"), vec![Nvidia]),
            ]
        }
        AmiFamily::AL2 => {
            let path = |suffix: &str, word: &str| {
                let release = release(format!("amazon-eks{word}-node-{k8s}-{version}"));
                format!("/aws/service/eks/optimized-ami/{k8s}/amazon-linux-2{suffix}/{release}/image_id")
            };
            vec![
                (path("", ""), vec![Standard]),
                (path("-arm64", "-arm64"), vec![Standard]),
                (path("-gpu", "-gpu"), vec![Neuron, Nvidia]),
            ]
        }
        AmiFamily::Bottlerocket => {
            let version = version.trim_start_matches('v');
            let path = |suffix: &str, arch: &str| {
                format!("/aws/service/bottlerocket/aws-k8s-{k8s}{suffix}/{arch}/{version}/image_id")
            };
            vec![
                (path("", "x86_64"), vec![Standard, Neuron]),
                (path("", "arm64"), vec![Standard]),
                (path("-nvidia", "x86_64"), vec![Nvidia]),
                (path("-nvidia", "arm64"), vec![Nvidia]),
            ]
        }
        AmiFamily::Windows2019 => windows("2019", k8s, WINDOWS_2019),
        AmiFamily::Windows2022 => windows("2022", k8s, WINDOWS_2022),
        AmiFamily::Windows2025 => windows("2025", k8s, WINDOWS_2025),
        _ => Vec::new(),
    }
}

fn windows(year: &str, k8s: &str, build: &'static str) -> Vec<(String, Vec<Variant>)> {
    let path =
        format!("/aws/service/ami-windows-latest/Windows_Server-{year}-English-Core-EKS_Optimized-{k8s}/image_id");
    vec![(path, vec![Variant::Windows(build)])]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alias(family: AmiFamily, version: &str) -> Alias {
        Alias {
            family,
            version: version.to_owned(),
        }
    }

    fn paths(family: AmiFamily, version: &str) -> Vec<String> {
        let paths = alias_paths(&alias(family, version), "1.34");
        paths.into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn aliases_are_looked_up_where_aws_publishes_them() {
        assert_eq!(
            paths(AmiFamily::AL2023, "latest")[0],
            "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
        );
        assert_eq!(
            paths(AmiFamily::AL2023, "v20240807")[4],
            "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.34-v20240807/image_id"
        );
        assert_eq!(
            paths(AmiFamily::AL2, "v20240807")[1],
            "/aws/service/eks/optimized-ami/1.34/amazon-linux-2-arm64/amazon-eks-arm64-node-1.34-v20240807/image_id"
        );
        assert_eq!(
            paths(AmiFamily::Bottlerocket, "v1.20.0"),
            [
                "/aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.20.0/image_id",
                "/aws/service/bottlerocket/aws-k8s-1.34/arm64/1.20.0/image_id",
                "/aws/service/bottlerocket/aws-k8s-1.34-nvidia/x86_64/1.20.0/image_id",
                "/aws/service/bottlerocket/aws-k8s-1.34-nvidia/arm64/1.20.0/image_id",
            ]
        );
        assert_eq!(
            paths(AmiFamily::Windows2022, "latest"),
            ["/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id"]
        );
    }

    #[test]
    fn an_alias_without_images_for_this_kubernetes_is_refused() {
        let cases = [
            (AmiFamily::AL2, "1.32", true),
            (AmiFamily::AL2, "1.33", false),
            (AmiFamily::Windows2025, "1.34", false),
            (AmiFamily::Windows2025, "1.35", true),
            (AmiFamily::AL2023, "1.36", true),
        ];
        for (family, version, is_supported) in cases {
            let checked = refuse_unsupported(&alias(family.clone(), "latest"), version);
            assert_eq!(checked.is_ok(), is_supported, "{family:?} {version}");
        }
    }

    #[test]
    fn of_images_for_the_same_machines_the_newest_that_is_not_deprecated_is_kept() {
        let image = |id: &str, created: &str, is_deprecated| Candidate {
            id: id.to_owned(),
            name: id.to_owned(),
            created: created.parse().ok(),
            is_deprecated,
            requirements: Variant::Standard.requirements(),
        };
        let mut best = Vec::new();
        for candidate in [
            image("ami-old", "2026-01-01T00:00:00Z", false),
            image("ami-newest-deprecated", "2026-03-01T00:00:00Z", true),
            image("ami-new", "2026-02-01T00:00:00Z", false),
            image("ami-undated", "", false),
        ] {
            keep_the_better(&mut best, candidate);
        }
        assert_eq!(best.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["ami-new"]);
    }
}
