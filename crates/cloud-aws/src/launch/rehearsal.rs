//! Would EC2 let us launch? A launch template for real, then dry runs of the two calls a launch is made of.

use std::sync::Arc;

use api::labels::CAPACITY_TYPE_ON_DEMAND;
use aws_sdk_ec2::types::{
    InstanceNetworkInterfaceSpecification, LaunchTemplateSpecification, ResourceType, TagSpecification,
};
use model::{object::NodeClaim, vocabulary::Vocabulary};

use super::{
    fleet::{Config, Fleet, Override},
    plan::Launcher,
    tags,
    template::{Resolved, Scene, resolve, wire_tags},
};
use crate::{
    Failure,
    border::{ClusterFacts, Rehearsal, RehearsalFailure},
};

impl Launcher {
    /// Tries a launch without launching.
    pub(crate) async fn rehearse(&self, it: &Rehearsal<'_>, cluster: &ClusterFacts) -> Result<(), RehearsalFailure> {
        let resolved = self.rehearsed(it, cluster)?;
        self.note_size(it.class, &resolved.template.user_data);
        let ensured = self.templates.ensure(&resolved.template).await;
        ensured.map_err(RehearsalFailure::CreateLaunchTemplate)?;
        self.rehearse_fleet(it, &resolved).await?;
        self.rehearse_run(it, &resolved).await
    }

    fn rehearsed(&self, it: &Rehearsal<'_>, cluster: &ClusterFacts) -> Result<Resolved, RehearsalFailure> {
        let unprepared = |message: String| RehearsalFailure::Unprepared(message);
        let mut class = it.class.clone();
        class.status.get_or_insert_default().amis = vec![it.image.clone()];
        // No pool: the tag is sent empty, which a policy that wants it to be there accepts.
        let tags = tags::of_class(&class, "", &cluster.name);
        let claim = NodeClaim::default();
        let scene = Scene {
            class: &class,
            claim: &claim,
            cluster,
            tags: &tags,
            capacity_type: CAPACITY_TYPE_ON_DEMAND,
            tenancy: it.tenancy,
            placement_group: None,
            may_reserve: self.may_reserve,
        };
        let mut vocabulary = Vocabulary::new();
        let entry = it.instance_type.instance_type(&mut vocabulary);
        let catalogue = [Arc::clone(it.instance_type)];
        let resolved = resolve(&scene, &[entry], &catalogue, &mut vocabulary);
        let resolved = resolved.map_err(|error| unprepared(error.to_string()))?;
        resolved
            .into_iter()
            .next()
            .ok_or_else(|| unprepared("no launch template".to_owned()))
    }

    async fn rehearse_fleet(&self, it: &Rehearsal<'_>, resolved: &Resolved) -> Result<(), RehearsalFailure> {
        let subnets = it.class.status.iter().flat_map(|status| &status.subnets);
        let overrides = subnets.map(|subnet| Override {
            instance_type: it.instance_type.name.to_string(),
            zone: subnet.zone.clone(),
            subnet: subnet.id.clone(),
            image: resolved.template.image.clone(),
            price: model::price::Price::ZERO,
        });
        let fleet = Fleet {
            capacity_type: CAPACITY_TYPE_ON_DEMAND,
            reservation: None,
            configs: vec![Config {
                template: resolved.template.name(),
                overrides: overrides.collect(),
            }],
            context: it.class.spec.context.clone(),
            has_price_overlay: false,
            tags: resolved.template.tags.clone(),
        };
        let answer = fleet.input(None).dry_run(true).send_with(&self.ec2).await;
        tried(answer.err().map(|error| Failure::of(&error))).map_err(RehearsalFailure::CreateFleet)
    }

    /// One subnet that would do is enough; if none would, the first one's answer is told.
    async fn rehearse_run(&self, it: &Rehearsal<'_>, resolved: &Resolved) -> Result<(), RehearsalFailure> {
        let subnets = it.class.status.iter().flat_map(|status| &status.subnets);
        let mut first = None;
        for subnet in subnets {
            match self.rehearse_in(it, resolved, &subnet.id).await {
                Ok(()) => return Ok(()),
                Err(failure) => {
                    first.get_or_insert(failure);
                }
            }
        }
        first.map_or(Ok(()), |failure| Err(RehearsalFailure::RunInstances(failure)))
    }

    async fn rehearse_in(&self, it: &Rehearsal<'_>, resolved: &Resolved, subnet: &str) -> Result<(), Failure> {
        let template = LaunchTemplateSpecification::builder()
            .launch_template_name(resolved.template.name())
            .version("$Latest");
        let tagged = [
            ResourceType::Instance,
            ResourceType::Volume,
            ResourceType::NetworkInterface,
        ];
        let tag = |kind: ResourceType| {
            let tags = Some(wire_tags(&resolved.template.tags));
            TagSpecification::builder().resource_type(kind).set_tags(tags).build()
        };
        let interfaces = resolved.template.interfaces.iter().map(|interface| {
            InstanceNetworkInterfaceSpecification::builder()
                .set_network_card_index(interface.card)
                .device_index(interface.device)
                .set_interface_type(interface.kind.clone())
                .set_associate_public_ip_address(interface.has_public_address)
                .subnet_id(subnet)
                .build()
        });
        let request = self
            .ec2
            .run_instances()
            .dry_run(true)
            .min_count(1)
            .max_count(1)
            .launch_template(template.build())
            .instance_type(it.instance_type.name.as_str().into())
            .set_network_interfaces(Some(interfaces.collect()))
            .set_tag_specifications(Some(tagged.map(tag).into()));
        tried(request.send().await.err().map(|error| Failure::of(&error)))
    }
}

/// A dry run that would have worked is an error of its own.
fn tried(failure: Option<Failure>) -> Result<(), Failure> {
    match failure {
        Some(failure) if !failure.is_dry_run_success() => Err(failure),
        _ => Ok(()),
    }
}
