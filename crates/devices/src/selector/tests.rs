//! What expressions say of devices, as Kubernetes' own evaluation would have it.

use model::object::Device;
use serde_json::json;

use super::{Profile, Selectors};

fn gpu() -> Profile {
    let device: Device = serde_json::from_value(json!({
        "name": "gpu-0",
        "attributes": {
            "model": { "string": "H100" },
            "cores": { "int": 132 },
            "isHealthy": { "bool": true },
            "driverVersion": { "version": "12.4.1" },
            "fabric.example.com/rail": { "string": "r1" },
        },
        "capacity": { "memory": { "value": "80Gi" }, "fabric.example.com/lanes": { "value": "16" } },
        "allowMultipleAllocations": true,
    }))
    .unwrap();
    Profile::new(&"gpu.example.com".into(), &device)
}

/// Whether the expression is true of the GPU; none when it cannot be evaluated.
fn verdict(text: &str) -> Option<bool> {
    let mut selectors = Selectors::default();
    let number = selectors.intern(&text.into());
    selectors.seal(1);
    assert_eq!(selectors.fault(number), None, "{text}");
    selectors.matches(&[number], 0, &gpu()).ok()
}

#[test]
fn expressions_see_driver_attributes_capacity_and_sharing_of_a_device() {
    let cases = [
        (r#"device.driver == "gpu.example.com""#, true),
        (r#"device.driver == "nic.example.com""#, false),
        (r#"device.attributes["gpu.example.com"].model == "H100""#, true),
        (r#"device.attributes["gpu.example.com"].cores > 100"#, true),
        (r#"device.attributes["gpu.example.com"].isHealthy"#, true),
        (r#"device.attributes["fabric.example.com"].rail == "r1""#, true),
        (
            r#"device.attributes["gpu.example.com"].model in ["A100", "H100"]"#,
            true,
        ),
        (r#"device.capacity["fabric.example.com"].lanes.asInteger() == 16"#, true),
        ("device.allowMultipleAllocations == true", true),
    ];
    for (text, expected) in cases {
        assert_eq!(verdict(text), Some(expected), "{text}");
    }
}

#[test]
fn unknown_domain_is_an_empty_map_and_unknown_name_an_error() {
    let cases = [
        (r#"has(device.attributes["other.example.com"].model)"#, Some(false)),
        (r#"has(device.attributes["gpu.example.com"].model)"#, Some(true)),
        (r#""other.example.com" in device.attributes"#, Some(false)),
        (r#""gpu.example.com" in device.attributes"#, Some(true)),
        (r#"device.attributes["other.example.com"].model == "H100""#, None),
        (r#"device.attributes["gpu.example.com"].missing == 1"#, None),
        (
            r#"device.attributes["gpu.example.com"].missing == 1 || true"#,
            Some(true),
        ),
        (
            r#"device.attributes["gpu.example.com"].missing == 1 && false"#,
            Some(false),
        ),
        ("device.unheardOf", None),
    ];
    for (text, expected) in cases {
        assert_eq!(verdict(text), expected, "{text}");
    }
}

#[test]
fn quantities_compare_by_amount() {
    let cases = [
        (
            r#"device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))"#,
            true,
        ),
        (
            r#"device.capacity["gpu.example.com"].memory.isLessThan(quantity("40Gi"))"#,
            false,
        ),
        (
            r#"device.capacity["gpu.example.com"].memory.compareTo(quantity("81920Mi")) == 0"#,
            true,
        ),
        (r#"device.capacity["gpu.example.com"].memory == quantity("80Gi")"#, true),
        (
            r#"quantity("50k").add(20).sub(quantity("100k")).sub(-50000) == quantity("20")"#,
            true,
        ),
        (r#"quantity("-1").sign() == -1"#, true),
        (r#"quantity("500m").isInteger()"#, false),
        (r#"quantity("50k").sub(20000).asApproximateFloat() == 30000.0"#, true),
        (
            r#"isQuantity("1.3Gi") && !isQuantity("200K") && !isQuantity("Three")"#,
            true,
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(verdict(text), Some(expected), "{text}");
    }
}

#[test]
fn versions_compare_by_precedence() {
    let cases = [
        (
            r#"device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("12.4.0"))"#,
            true,
        ),
        (
            r#"device.attributes["gpu.example.com"].driverVersion.compareTo(semver("12.4.1")) == 0"#,
            true,
        ),
        (
            r#"device.attributes["gpu.example.com"].driverVersion == semver("12.4.1+build.7")"#,
            true,
        ),
        (
            r#"semver("1.2.3").major() == 1 && semver("1.2.3").minor() == 2 && semver("1.2.3").patch() == 3"#,
            true,
        ),
        (
            r#"semver("1.0.0-alpha.1").isLessThan(semver("1.0.0-alpha.beta"))"#,
            true,
        ),
        (r#"semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))"#, true),
        (r#"semver("v1.0", true) == semver("1.0.0")"#, true),
        (r#"semver("01.01.01", true) == semver("1.1.1")"#, true),
        (r#"isSemver("v1.0") || isSemver("01.1.1") || isSemver("200K")"#, false),
        (r#"isSemver("v1.0", true)"#, true),
    ];
    for (text, expected) in cases {
        assert_eq!(verdict(text), Some(expected), "{text}");
    }
}

#[test]
fn expressions_bind_iterate_and_work_on_strings() {
    let cases = [
        (
            r#"cel.bind(gpu, device.attributes["gpu.example.com"], gpu.cores == 132 && gpu.isHealthy)"#,
            true,
        ),
        (
            r#"device.attributes.exists(domain, domain == "fabric.example.com")"#,
            true,
        ),
        (
            r#"["A", "H"].exists(letter, device.attributes["gpu.example.com"].model.startsWith(letter))"#,
            true,
        ),
        (
            r#"[1, 2, 3].all(n, n < device.attributes["gpu.example.com"].cores)"#,
            true,
        ),
        (
            r#"device.attributes["gpu.example.com"].model.matches("^H[0-9]+$")"#,
            true,
        ),
        (
            r#"device.attributes["gpu.example.com"].model.lowerAscii() == "h100""#,
            true,
        ),
        ("size(device.attributes) == 2", true),
        (
            r#"sets.contains(["A100", "H100"], [device.attributes["gpu.example.com"].model])"#,
            true,
        ),
        (
            r#"sets.intersects(["A100"], [device.attributes["gpu.example.com"].model])"#,
            false,
        ),
        (
            "sets.equivalent([1, 2, 2], [2, 1]) && !sets.equivalent([1], [1, 2])",
            true,
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(verdict(text), Some(expected), "{text}");
    }
}

#[test]
fn expression_that_is_no_cel_says_so_by_name() {
    let mut selectors = Selectors::default();
    let number = selectors.intern(&"this is not valid CEL".into());
    let fault = selectors.fault(number).unwrap();
    assert!(
        fault.starts_with(r#"CEL expression "this is not valid CEL" failed to compile: "#),
        "{fault}"
    );
}

#[test]
fn expression_without_a_truth_value_is_an_error() {
    assert_eq!(verdict("device.driver"), None);
}

#[test]
fn list_attribute_makes_every_expression_fail() {
    let device: Device =
        serde_json::from_value(json!({ "name": "d", "attributes": { "sizes": { "ints": [1, 2] } } })).unwrap();
    let profile = Profile::new(&"gpu.example.com".into(), &device);
    let mut selectors = Selectors::default();
    let number = selectors.intern(&"true".into());
    selectors.seal(1);
    let answer = selectors.matches(&[number], 0, &profile);
    assert_eq!(
        answer,
        Err("CEL expression \"true\" evaluation failed: attribute sizes: unsupported attribute value".into())
    );
}
