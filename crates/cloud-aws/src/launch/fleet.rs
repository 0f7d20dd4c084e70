//! What is EC2 asked for? One fleet of one machine, with every way to get it, and a token that makes the request the
//! same when it is sent again.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use api::{annotations, labels};
use aws_sdk_ec2::{
    operation::create_fleet::builders::CreateFleetInputBuilder,
    types::{
        CreateFleetError, CreateFleetInstance, DefaultTargetCapacityType, FleetLaunchTemplateConfigRequest,
        FleetLaunchTemplateOverridesRequest, FleetLaunchTemplateSpecificationRequest, FleetOnDemandAllocationStrategy,
        FleetType, InstanceType, OnDemandOptionsRequest, ReservedCapacityOptionsRequest, ResourceType,
        SpotAllocationStrategy, SpotOptionsRequest, TagSpecification, TargetCapacitySpecificationRequest,
    },
};
use model::{
    instance_type::InstanceType as Shape,
    object::NodeClaim,
    price::Price,
    requirement::{Requirement, Requirements},
    vocabulary::{KeyId, Vocabulary},
};

use super::{
    choice::{Choice, ReservationKeys, ReservationKind},
    refusal::FleetError,
    tags::Tags,
    template::{Reservations, Resolved, wire_tags},
};

/// One way to get the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Override {
    pub(super) instance_type: String,
    pub(super) zone: String,
    pub(super) subnet: String,
    pub(super) image: String,
    pub(super) price: Price,
}

/// The ways that share a launch template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) template: String,
    pub(super) overrides: Vec<Override>,
}

/// A request for one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fleet {
    pub(super) capacity_type: &'static str,
    pub(super) reservation: Option<ReservationKind>,
    pub(super) configs: Vec<Config>,
    pub(super) context: Option<String>,
    /// A NodeOverlay set prices: EC2 is to heed ours instead of its own.
    pub(super) has_price_overlay: bool,
    pub(super) tags: Tags,
}

impl Fleet {
    /// The request for a claim; none when no offering is left that has a subnet.
    pub(super) fn of(
        claim: &NodeClaim,
        context: Option<&str>,
        choice: &Choice,
        resolved: &[Resolved],
        subnets: &BTreeMap<String, String>,
        tags: Tags,
        vocabulary: &mut Vocabulary,
    ) -> Option<Self> {
        let keys = ReservationKeys::of(vocabulary);
        let config = |it: &Resolved| Config {
            template: it.template.name(),
            overrides: overrides(it, choice, subnets, keys, vocabulary),
        };
        let configs: Vec<Config> = resolved
            .iter()
            .map(config)
            .filter(|it| !it.overrides.is_empty())
            .collect();
        let annotation = |key: &str| claim.metadata.annotations.get(key).map(|value| &**value);
        // EC2's context stands for the flexibility that was asked for; a claim that has less of it does not carry it.
        let is_relaxed = annotation(annotations::NODECLAIM_MIN_VALUES_RELAXED) == Some("true");
        let reservation = resolved.iter().find_map(|it| match &it.template.reservations {
            Reservations::Only { kind, .. } => Some(*kind),
            _ => None,
        });
        (!configs.is_empty()).then(|| Self {
            capacity_type: choice.capacity_type,
            reservation,
            configs,
            context: context.filter(|_| !is_relaxed).map(str::to_owned),
            has_price_overlay: annotation(annotations::PRICE_OVERLAY_APPLIED).is_some(),
            tags,
        })
    }

    /// As the SDK sends it.
    pub(super) fn input(&self, client_token: Option<String>) -> CreateFleetInputBuilder {
        let capacity = TargetCapacitySpecificationRequest::builder()
            .default_target_capacity_type(self.target())
            .total_target_capacity(1);
        let tagged = [ResourceType::Instance, ResourceType::Volume, ResourceType::Fleet];
        let tag = |kind: ResourceType| {
            let tags = Some(wire_tags(&self.tags));
            TagSpecification::builder().resource_type(kind).set_tags(tags).build()
        };
        let mut input = CreateFleetInputBuilder::default()
            .r#type(FleetType::Instant)
            .set_client_token(client_token)
            .set_context(self.context.clone())
            .set_launch_template_configs(Some(self.configs.iter().map(Config::wire).collect()))
            .target_capacity_specification(capacity.build())
            .set_tag_specifications(Some(tagged.map(tag).into()));
        if self.capacity_type == labels::CAPACITY_TYPE_SPOT {
            let strategy = if self.has_price_overlay {
                SpotAllocationStrategy::CapacityOptimizedPrioritized
            } else {
                SpotAllocationStrategy::PriceCapacityOptimized
            };
            input = input.spot_options(SpotOptionsRequest::builder().allocation_strategy(strategy).build());
        } else if self.reservation == Some(ReservationKind::Interruptible) {
            let options = ReservedCapacityOptionsRequest::builder();
            let options = options.reservation_types("interruptible-capacity-reservation".into());
            input = input.reserved_capacity_options(options.build());
        } else if self.reservation != Some(ReservationKind::CapacityBlock) {
            let strategy = if self.has_price_overlay {
                FleetOnDemandAllocationStrategy::Prioritized
            } else {
                FleetOnDemandAllocationStrategy::LowestPrice
            };
            input = input.on_demand_options(OnDemandOptionsRequest::builder().allocation_strategy(strategy).build());
        }
        input
    }

    fn target(&self) -> DefaultTargetCapacityType {
        match (self.capacity_type, self.reservation) {
            (labels::CAPACITY_TYPE_SPOT, _) => DefaultTargetCapacityType::Spot,
            (_, Some(ReservationKind::CapacityBlock)) => DefaultTargetCapacityType::CapacityBlock,
            (_, Some(ReservationKind::Interruptible)) => "reserved-capacity".into(),
            _ => DefaultTargetCapacityType::OnDemand,
        }
    }
}

impl Config {
    fn wire(&self) -> FleetLaunchTemplateConfigRequest {
        let template = FleetLaunchTemplateSpecificationRequest::builder()
            .launch_template_name(&self.template)
            .version("$Latest");
        let overrides = self.overrides.iter().map(Override::wire).collect();
        FleetLaunchTemplateConfigRequest::builder()
            .launch_template_specification(template.build())
            .set_overrides(Some(overrides))
            .build()
    }
}

impl Override {
    fn wire(&self) -> FleetLaunchTemplateOverridesRequest {
        FleetLaunchTemplateOverridesRequest::builder()
            .instance_type(self.instance_type.as_str().into())
            .subnet_id(&self.subnet)
            .image_id(&self.image)
            // The subnet says so too; this spares a look-up when EC2 names the offering in an error.
            .availability_zone(&self.zone)
            .priority(dollars(self.price))
            .build()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "EC2 takes a float, and compares no finer than that"
)]
fn dollars(price: Price) -> f64 {
    price.picos() as f64 / 1e12
}

/// Every type and zone of a template that can be had and has a subnet, each once, the cheapest first.
fn overrides(
    resolved: &Resolved,
    choice: &Choice,
    subnets: &BTreeMap<String, String>,
    keys: ReservationKeys,
    vocabulary: &Vocabulary,
) -> Vec<Override> {
    let wanted = wanted(resolved, &choice.requirements, keys, vocabulary);
    let mut found = Vec::new();
    let is_meant = |entry: &&Shape| resolved.types.contains(&entry.name);
    for entry in choice.types.iter().filter(is_meant) {
        let mut zones = BTreeSet::new();
        for offering in &entry.offerings {
            if !offering.is_available || !offering.is_compatible(&wanted, vocabulary) {
                continue;
            }
            let Some(zone) = offering
                .value(KeyId::ZONE)
                .map(|it| vocabulary.value_name(KeyId::ZONE, it))
            else {
                continue;
            };
            // Offerings that differ by the partition only make one way: the template names the partition.
            if let Some(subnet) = subnets.get(zone).filter(|_| zones.insert(zone.to_owned())) {
                found.push(Override {
                    instance_type: entry.name.to_string(),
                    zone: zone.to_owned(),
                    subnet: subnet.clone(),
                    image: resolved.template.image.clone(),
                    price: offering.price,
                });
            }
        }
    }
    found
}

/// What an offering must meet: the claim's wishes, and the reservation that the template uses.
fn wanted(resolved: &Resolved, claim: &Requirements, keys: ReservationKeys, vocabulary: &Vocabulary) -> Requirements {
    let mut wanted = claim.clone();
    if let Reservations::Only { id, .. } = &resolved.template.reservations {
        match vocabulary.value(keys.id, id) {
            Some(value) => wanted.add(Requirement::one_of(keys.id, [value]), vocabulary),
            None => wanted.replace(Requirement::does_not_exist(keys.id)),
        }
    }
    wanted
}

/// What a fleet could not launch.
pub(super) fn errors(answer: &[CreateFleetError]) -> Vec<FleetError> {
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let error = |it: &CreateFleetError| {
        let overrides = it.launch_template_and_overrides().and_then(|it| it.overrides());
        FleetError {
            code: text(it.error_code()),
            message: text(it.error_message()),
            instance_type: text(overrides.and_then(|it| it.instance_type()).map(InstanceType::as_str)),
            zone: text(overrides.and_then(|it| it.availability_zone())),
            subnet: text(overrides.and_then(|it| it.subnet_id())),
        }
    };
    answer.iter().map(error).collect()
}

/// A machine that a fleet launched, as its answer has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) id: String,
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) subnet: String,
    pub(crate) image: String,
}

/// The machine of a fleet of one.
pub(super) fn started(answer: &[CreateFleetInstance]) -> Option<Started> {
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    answer.iter().find_map(|it| {
        let id = it.instance_ids().first()?;
        let overrides = it.launch_template_and_overrides().and_then(|it| it.overrides());
        let of_override = overrides.and_then(|it| it.instance_type()).map(InstanceType::as_str);
        Some(Started {
            id: id.clone(),
            instance_type: text(it.instance_type().map(InstanceType::as_str).or(of_override)),
            zone: text(overrides.and_then(|it| it.availability_zone())),
            subnet: text(overrides.and_then(|it| it.subnet_id())),
            image: text(overrides.and_then(|it| it.image_id())),
        })
    })
}
