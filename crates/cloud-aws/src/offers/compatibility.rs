//! Which types a node class can use at all. The others stay listed, without an available offering.

use api::aws::{AmiFamily, EC2NodeClass, Enablement, InterfaceType};

use crate::border::{PlacementGroupFacts, TypeFacts};

/// Whether machines of the type can be set up as the class asks.
pub fn is_compatible(facts: &TypeFacts, class: &EC2NodeClass, group: Option<&PlacementGroupFacts>) -> bool {
    let spec = &class.spec;
    // AL2023 does not run on the first Graviton.
    let boots = class.ami_family() != AmiFamily::AL2023 || !facts.name.starts_with("a1.");
    let nested = spec
        .cpu_options
        .as_ref()
        .and_then(|it| it.nested_virtualization.as_ref());
    let can_nest = nested != Some(&Enablement::Enabled) || facts.is_nested_virtualization_supported;
    let can_group = group.is_none_or(|group| facts.placement_strategies.contains(&group.strategy));
    let can_track = spec.connection_tracking.is_none() || facts.hypervisor == "nitro";
    boots && can_nest && can_group && can_track && has_interfaces(facts, class)
}

fn has_interfaces(facts: &TypeFacts, class: &EC2NodeClass) -> bool {
    let Some(wanted) = &class.spec.network_interfaces else {
        return true;
    };
    let fits = |card: i32, device: i32| {
        let card = usize::try_from(card)
            .ok()
            .and_then(|card| facts.network_cards.get(card));
        card.is_some_and(|most| device < *most)
    };
    let efa_only = wanted
        .iter()
        .filter(|it| it.interface_type == InterfaceType::EfaOnly)
        .count();
    facts.is_ena_supported
        && !facts.network_cards.is_empty()
        && wanted.iter().all(|it| fits(it.network_card_index, it.device_index))
        && efa_only <= usize::try_from(facts.efa_interfaces).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Two network cards, eight interfaces on each, two EFA interfaces.
    fn facts(name: &str) -> TypeFacts {
        TypeFacts {
            name: name.to_owned(),
            hypervisor: "nitro".to_owned(),
            is_ena_supported: true,
            network_cards: vec![8, 8],
            efa_interfaces: 2,
            placement_strategies: vec!["cluster".to_owned(), "partition".to_owned()],
            ..TypeFacts::default()
        }
    }

    fn class(family: &str, spec: Value) -> EC2NodeClass {
        let mut whole = json!({
            "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [], "amiFamily": family,
        });
        if let Value::Object(fields) = spec {
            whole.as_object_mut().unwrap().extend(fields);
        }
        EC2NodeClass::new("default", serde_json::from_value(whole).unwrap())
    }

    fn fits(facts: &TypeFacts, spec: Value) -> bool {
        is_compatible(facts, &class("AL2023", spec), None)
    }

    #[test]
    fn the_first_graviton_runs_anything_but_al2023() {
        let cases = [
            ("a1.medium", "Custom", true),
            ("a1.large", "Custom", true),
            ("t3.medium", "Custom", true),
            ("a1.medium", "AL2023", false),
            ("t3.medium", "AL2023", true),
            ("a1.large", "Bottlerocket", true),
        ];
        for (name, family, expected) in cases {
            let found = is_compatible(&facts(name), &class(family, json!({})), None);
            assert_eq!(found, expected, "{name} {family}");
        }
    }

    #[test]
    fn a_type_must_have_the_cards_the_devices_and_the_efa_interfaces_that_are_configured() {
        let interface = |card: i32, device: i32, kind: &str| json!({"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind});
        let primary = || interface(0, 0, "interface");
        let efa = |card, device| interface(card, device, "efa-only");
        let with = |interfaces: &[Value]| json!({"networkInterfaces": interfaces});
        let usual = facts("c6in.32xlarge");
        assert!(fits(&usual, with(&[primary(), efa(0, 1)])));
        assert!(fits(&usual, with(&[primary(), efa(0, 1), efa(1, 1)])));
        let one = TypeFacts {
            efa_interfaces: 1,
            ..usual.clone()
        };
        assert!(
            !fits(&one, with(&[primary(), efa(0, 1), efa(1, 1)])),
            "more than it has"
        );
        let none = TypeFacts {
            efa_interfaces: 0,
            ..usual.clone()
        };
        assert!(!fits(&none, with(&[primary(), efa(0, 1)])), "none at all");
        let old = TypeFacts {
            is_ena_supported: false,
            ..usual.clone()
        };
        assert!(!fits(&old, with(&[primary()])));
        assert!(fits(&old, json!({})), "nothing is asked of it");
        assert!(!fits(&usual, with(&[primary(), efa(2, 1)])), "no such card");
        assert!(
            !fits(&usual, with(&[primary(), interface(0, 8, "interface")])),
            "no such device"
        );
    }

    #[test]
    fn a_placement_group_asks_for_its_strategy() {
        let group = |strategy: &str| PlacementGroupFacts {
            id: "pg-1".to_owned(),
            name: "near".to_owned(),
            strategy: strategy.to_owned(),
            partitions: 0,
        };
        let fits =
            |group: Option<&PlacementGroupFacts>| is_compatible(&facts("m5.large"), &class("AL2023", json!({})), group);
        assert!(fits(None));
        for (strategy, expected) in [("cluster", true), ("partition", true), ("spread", false)] {
            assert_eq!(fits(Some(&group(strategy))), expected, "{strategy}");
        }
    }

    #[test]
    fn machines_within_machines_need_a_processor_that_allows_them() {
        let able = TypeFacts {
            is_nested_virtualization_supported: true,
            ..facts("m8i.large")
        };
        let nested = |word: &str| json!({"cpuOptions": {"nestedVirtualization": word}});
        assert!(fits(&able, nested("enabled")));
        assert!(!fits(&facts("m5.large"), nested("enabled")));
        assert!(fits(&facts("m5.large"), nested("disabled")));
        assert!(fits(&facts("m5.large"), json!({})));
    }

    #[test]
    fn connections_are_tracked_on_nitro_only() {
        let xen = TypeFacts {
            hypervisor: "xen".to_owned(),
            ..facts("m4.large")
        };
        let tracking = || json!({"connectionTracking": {"udpTimeout": 45}});
        assert!(fits(&facts("m5.large"), tracking()));
        assert!(!fits(&xen, tracking()));
        assert!(fits(&xen, json!({})));
    }
}
