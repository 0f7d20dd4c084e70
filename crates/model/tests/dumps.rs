//! Dumps are read however they were printed, and faults are told so that their author can put them right.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and may print"
)]

use std::{collections::BTreeMap, fs, io::Write};

use jiff::Timestamp;
use model::{
    dump::{self, Fault, Faults, Mode, ObjectLabel, Options, Place, Report, Source},
    snapshot::Snapshot,
};
use serde_json::{Value, json};

const TAKEN_AT: Timestamp = Timestamp::UNIX_EPOCH;

fn stream(bytes: impl Into<Vec<u8>>) -> Source {
    Source::Stream("input".into(), Box::new(std::io::Cursor::new(bytes.into())))
}

fn read(text: &str, mode: Mode) -> Result<(Snapshot, Report), Faults> {
    dump::read(
        [stream(text)],
        Options {
            mode,
            taken_at: TAKEN_AT,
        },
    )
}

fn bytes(snapshot: &Snapshot) -> Vec<u8> {
    let mut out = Vec::new();
    dump::write(snapshot, &mut out).unwrap();
    out
}

fn pod(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "team" }, "spec": { "priority": 7, "containers": [] } })
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

const YAML: &str = r#"# printed by kubectl
apiVersion: v1
kind: Pod
metadata:
  name: a
  namespace: team
spec:
  priority: 7
  containers: []
---
---
apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: b, namespace: team}
  spec: {priority: 7, containers: []}
kind: List
metadata:
  resourceVersion: ""
...
"#;

#[test]
fn the_same_objects_give_the_same_snapshot_however_they_are_printed() {
    let (a, b) = (pod("a"), pod("b"));
    let bare = |name: &str| json!({ "metadata": { "name": name, "namespace": "team" }, "spec": { "priority": 7, "containers": [] } });
    let inputs = [
        (
            "list",
            json!({ "apiVersion": "v1", "kind": "List", "items": [a, b] })
                .to_string()
                .into_bytes(),
        ),
        (
            "typed list",
            json!({ "apiVersion": "v1", "kind": "PodList", "items": [bare("b"), bare("a")] })
                .to_string()
                .into_bytes(),
        ),
        (
            "array of lists",
            json!([{ "apiVersion": "v1", "kind": "List", "items": [b] }, [a]])
                .to_string()
                .into_bytes(),
        ),
        ("stream", format!("{b}\n{a}").into_bytes()),
        ("byte order mark", format!("\u{feff}{a}{b}").into_bytes()),
        ("gzip", gzipped(&format!("{a}{b}"))),
        ("yaml", YAML.as_bytes().to_vec()),
        ("windows yaml", YAML.replace('\n', "\r\n").into_bytes()),
        (
            "flow yaml",
            format!("{{apiVersion: v1, kind: List, items: [{a}, {b}]}}").into_bytes(),
        ),
        ("json between markers of yaml", format!("{a}\n---\n{b}\n").into_bytes()),
        (
            "yaml after json",
            format!("{a}\n---\n{}", YAML.split("---\n").last().unwrap_or_default()).into_bytes(),
        ),
    ];
    let expected = read(&format!("{a}{b}"), Mode::Strict).unwrap().0;
    assert_eq!(expected.objects().pods.len(), 2);
    for (name, input) in inputs {
        let (snapshot, report) = dump::read(
            [stream(input)],
            Options {
                mode: Mode::Strict,
                taken_at: TAKEN_AT,
            },
        )
        .unwrap();
        assert_eq!(
            String::from_utf8(bytes(&snapshot)),
            String::from_utf8(bytes(&expected)),
            "{name}"
        );
        assert_eq!(
            report,
            Report {
                sources: 1,
                objects: 2,
                ..Report::default()
            },
            "{name}"
        );
    }
}

#[test]
fn a_directory_is_read_in_the_order_of_names_and_other_files_are_left_alone() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("nested")).unwrap();
    let with_priority = |priority: i32| {
        let mut pod = pod("a");
        pod["spec"]["priority"] = json!(priority);
        pod.to_string()
    };
    fs::write(root.path().join("1.json"), with_priority(1)).unwrap();
    fs::write(root.path().join("2.YAML"), with_priority(2)).unwrap();
    fs::write(root.path().join("nested/3.json.gz"), gzipped(&with_priority(3))).unwrap();
    fs::write(root.path().join("notes.txt"), "not a dump").unwrap();

    let source = Source::Path(root.path().to_path_buf());
    let (snapshot, report) = dump::read(
        [source],
        Options {
            mode: Mode::Strict,
            taken_at: TAKEN_AT,
        },
    )
    .unwrap();
    let priorities: Vec<_> = snapshot.objects().pods.iter().map(|pod| pod.spec.priority).collect();
    assert_eq!(priorities, [Some(3)]);
    assert_eq!(
        report,
        Report {
            sources: 3,
            ignored_files: 1,
            objects: 3,
            repeated: 2,
            ..Report::default()
        }
    );
}

#[test]
fn kinds_no_decision_reads_are_counted() {
    let kind =
        |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "x" } });
    let objects = json!([
        kind("v1", "ConfigMap"),
        kind("v1", "ConfigMap"),
        kind("karpenter.sh/v1beta1", "NodePool"),
        pod("a")
    ]);
    let (_, report) = read(&objects.to_string(), Mode::Strict).unwrap();
    let skipped = BTreeMap::from([
        (("karpenter.sh/v1beta1".to_string(), "NodePool".to_string()), 1),
        (("v1".to_string(), "ConfigMap".to_string()), 2),
    ]);
    assert_eq!(
        report,
        Report {
            sources: 1,
            objects: 1,
            skipped,
            ..Report::default()
        }
    );
}

fn fault(item: Option<usize>, object: Option<(&str, &str, &str)>, [field, value, problem, fix]: [&str; 4]) -> Fault {
    let label = |(kind, namespace, name): (&str, &str, &str)| ObjectLabel {
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
    };
    Fault {
        place: Place {
            source: "input".into(),
            document: Some(1),
            item,
            line: None,
        },
        object: object.map(label),
        field: field.into(),
        value: value.into(),
        problem: problem.into(),
        fix: fix.into(),
    }
}

#[test]
fn a_fault_names_object_field_value_and_fix() {
    let team_pod = Some(("Pod", "team", "a"));
    let changed = |pointer: &str, value: Value| {
        let mut object = pod("a");
        object["spec"]["containers"] = json!([{ "name": "c", "resources": { "requests": {} } }]);
        *object.pointer_mut(pointer).unwrap() = value;
        object
    };
    let cases = [
        (
            changed("/spec/priority", json!("high")),
            fault(
                None,
                team_pod,
                [
                    "spec.priority",
                    "\"high\"",
                    "invalid type: string \"high\", expected i32",
                    "write a whole number",
                ],
            ),
        ),
        (
            changed("/spec/containers", json!({ "name": "c" })),
            fault(
                None,
                team_pod,
                [
                    "spec.containers",
                    "{\"name\":\"c\"}",
                    "invalid type: map, expected a list",
                    "write a list",
                ],
            ),
        ),
        (
            changed("/metadata/name", json!("")),
            fault(
                None,
                Some(("Pod", "team", "")),
                ["metadata.name", "", "is missing", "give the object a name"],
            ),
        ),
        (
            json!({ "apiVersion": "v1", "kind": "List", "items": [pod("b"), changed("/spec/priority", json!(true))] }),
            fault(
                Some(2),
                team_pod,
                [
                    "spec.priority",
                    "true",
                    "invalid type: boolean `true`, expected i32",
                    "write a whole number",
                ],
            ),
        ),
        (
            json!({ "name": "a" }),
            fault(
                None,
                None,
                [
                    "",
                    "",
                    "is not a Kubernetes object",
                    "every object needs apiVersion and kind, as kubectl prints them",
                ],
            ),
        ),
        (
            json!({ "apiVersion": "dovetail.dev/v1alpha1", "kind": "Snapshot", "settings": { "preferencePolicy": "Maybe" } }),
            fault(
                None,
                None,
                [
                    "settings.preferencePolicy",
                    "\"Maybe\"",
                    "unknown variant `Maybe`, expected `Respect` or `Ignore`",
                    "write `Respect` or `Ignore`",
                ],
            ),
        ),
        (
            json!({ "apiVersion": "dovetail.dev/v1alpha1", "kind": "Snapshot", "instanceTypes": [{ "name": "t" }, { "name": "t" }] }),
            fault(
                None,
                None,
                [
                    "instanceTypes[1].name",
                    "\"t\"",
                    "appears twice",
                    "give each instance type its own name",
                ],
            ),
        ),
        (
            json!({ "apiVersion": "dovetail.dev/v1alpha1", "kind": "Snapshot", "nodePoolInstanceTypes": { "arm": ["t"] } }),
            fault(
                None,
                None,
                [
                    "nodePoolInstanceTypes.arm",
                    "\"t\"",
                    "names no instance type of the file",
                    "add the type to instanceTypes or take the name out",
                ],
            ),
        ),
    ];
    for (input, expected) in cases {
        assert_eq!(
            read(&input.to_string(), Mode::Strict),
            Err(Faults(vec![expected])),
            "{input}"
        );
    }
}

#[test]
fn a_bad_quantity_is_shown_with_its_path_and_value() {
    let mut object = pod("a");
    object["spec"]["containers"] = json!([{ "name": "c", "resources": { "requests": { "cpu": "lots" } } }]);
    let faults = read(&object.to_string(), Mode::Strict).unwrap_err();
    let shown = faults.to_string();
    let expected = "1 fault in the dump (read leniently to leave the faulty objects out):\n  \
                    input: document 1: Pod team/a: spec.containers[0].resources.requests.cpu: ";
    assert!(
        shown.starts_with(expected) && shown.contains("(value \"lots\")"),
        "{shown}"
    );
}

#[test]
fn lenient_reading_keeps_every_object_that_can_be_read() {
    let text = format!("{YAML}---\nkind: Pod\n  bad: indent\n---\n{}\n", pod("c"));
    let faults = read(&text, Mode::Strict).unwrap_err();
    let (snapshot, report) = read(&text, Mode::Lenient).unwrap();
    let names: Vec<_> = snapshot
        .objects()
        .pods
        .iter()
        .map(|pod| pod.metadata.name.to_string())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(report.faults, faults.0);
    let places: Vec<_> = faults.0.into_iter().map(|fault| fault.place).collect();
    assert_eq!(
        places,
        [Place {
            source: "input".into(),
            document: Some(3),
            item: None,
            line: Some(24)
        }]
    );
}

#[test]
fn what_is_no_dump_at_all_is_a_fault_and_never_a_panic() {
    let cases: [(&str, Vec<u8>, &str); 6] = [
        (
            "truncated json",
            br#"{"apiVersion":"v1","#.to_vec(),
            "is not valid JSON",
        ),
        ("not text", vec![0xff, 0xfe, 0x00], "is not UTF-8 text at byte 0"),
        ("cut gzip", gzipped("{}")[..12].to_vec(), "cannot be read"),
        ("scalar", b"hello".to_vec(), "invalid type"),
        (
            "deep lists",
            format!("{}{}", "[".repeat(60), "]".repeat(60)).into_bytes(),
            "nests lists too deeply",
        ),
        (
            "two snapshots",
            r#"{"apiVersion":"dovetail.dev/v1alpha1","kind":"Snapshot"}"#
                .repeat(2)
                .into_bytes(),
            "is a second snapshot file",
        ),
    ];
    for (name, input, expected) in cases {
        let faults = dump::read(
            [stream(input)],
            Options {
                mode: Mode::Strict,
                taken_at: TAKEN_AT,
            },
        )
        .unwrap_err();
        assert!(
            faults.0.iter().any(|fault| fault.problem.starts_with(expected)),
            "{name}: {faults}"
        );
    }
    let missing = Source::Path("does/not/exist.json".into());
    let faults = dump::read(
        [missing],
        Options {
            mode: Mode::Strict,
            taken_at: TAKEN_AT,
        },
    )
    .unwrap_err();
    assert_eq!(faults.0[0].place.source, "does/not/exist.json");
}

#[test]
fn nothing_read_is_an_empty_snapshot_at_the_given_time() {
    for text in [
        "",
        "\n# only a comment\n---\n",
        "null",
        "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":null}",
    ] {
        let (snapshot, report) = read(text, Mode::Strict).unwrap();
        assert_eq!(
            (snapshot.objects().is_empty(), snapshot.taken_at()),
            (true, TAKEN_AT),
            "{text:?}"
        );
        assert_eq!(
            report,
            Report {
                sources: 1,
                ..Report::default()
            },
            "{text:?}"
        );
    }
}

fn snapshot_file() -> Value {
    let zone = json!([{ "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-a"] }]);
    json!({
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "Snapshot",
        "metadata": { "name": "small", "takenAt": "2026-11-15T12:00:00Z", "origin": "by hand" },
        "settings": {
            "preferencePolicy": "Ignore", "minValuesPolicy": "BestEffort", "ignoreDRARequests": false,
            "featureGates": {
                "NodeRepair": true, "ReservedCapacity": false, "SpotToSpotConsolidation": true, "NodeOverlay": true, "StaticCapacity": true,
                "CapacityBuffer": true, "TerminateFirstDrift": true, "TerminateFirstRepair": true, "PodDeletionCostManagement": true
            },
            "defaultConstraints": [{ "maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway" }]
        },
        "objects": [
            { "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "arm" }, "spec": {
                "template": { "spec": { "requirements": [] } }, "disruption": {} }, "status": {} }
        ],
        "instanceTypes": [
            {
                "name": "z-first", "requirements": zone, "capacity": { "cpu": "4", "memory": "8Gi" },
                "overhead": { "kubeReserved": { "cpu": "100m" }, "systemReserved": {}, "evictionThreshold": { "memory": "100Mi" } },
                "offerings": [{
                    "requirements": zone, "price": "0.0761", "available": true, "reservationCapacity": 3,
                    "capacityOverride": { "example.com/fuse": "2" },
                    "overheadOverride": { "kubeReserved": { "cpu": "200m" }, "systemReserved": {}, "evictionThreshold": {} }
                }],
                "volumeAttachmentLimits": { "ebs.csi.aws.com": 26 },
                "dynamicResources": {
                    "resourceSliceTemplates": [{
                        "driver": "gpu.example.com", "pool": { "name": "node", "generation": 0, "resourceSliceCount": 0 },
                        "devices": [{ "name": "gpu-0", "attributes": { "model": { "string": "a100" } } }]
                    }],
                    "attributeBindings": [{ "attribute": "example.com/numa", "devices": [{ "driver": "gpu.example.com", "pool": "node", "device": "gpu-0" }] }]
                }
            },
            { "name": "a-second", "requirements": [], "capacity": {}, "overhead": { "kubeReserved": {}, "systemReserved": {}, "evictionThreshold": {} }, "offerings": [] }
        ],
        "nodePoolInstanceTypes": { "arm": ["a-second"] },
        "nodePoolVariants": { "arm": [
            { "name": "a-second", "requirements": [], "capacity": { "cpu": "2" }, "overhead": { "kubeReserved": {}, "systemReserved": {}, "evictionThreshold": {} }, "offerings": [] }
        ] },
        "wellKnownLabels": ["size", "special"]
    })
}

#[test]
fn a_snapshot_file_comes_back_with_every_field_and_the_order_of_its_types() {
    let (snapshot, _) = read(&snapshot_file().to_string(), Mode::Strict).unwrap();
    let actual: Value = serde_json::from_slice(&bytes(&snapshot)).unwrap();
    assert_eq!(actual, snapshot_file());
    let pool = "arm".into();
    let offered: Vec<_> = snapshot
        .catalog()
        .of_pool(&pool)
        .map(|entry| (entry.name.to_string(), entry.capacity.amount("cpu").to_string()))
        .collect();
    assert_eq!(
        (offered, snapshot.catalog().of_pool(&"other".into()).count()),
        (vec![("a-second".to_string(), "2".to_string())], 2)
    );
}

#[test]
fn dumps_add_to_a_snapshot_file() {
    let options = Options {
        mode: Mode::Strict,
        taken_at: TAKEN_AT,
    };
    let (snapshot, _) = dump::read(
        [stream(pod("a").to_string()), stream(snapshot_file().to_string())],
        options,
    )
    .unwrap();
    assert_eq!((snapshot.objects().len(), snapshot.title().name.as_str()), (2, "small"));
}

#[test]
fn the_same_snapshot_gives_the_same_bytes_whatever_order_it_was_read_in() {
    let mut objects: Vec<Value> = serde_json::from_str(include_str!("data/objects.json")).unwrap();
    let forwards = read(&Value::Array(objects.clone()).to_string(), Mode::Strict)
        .unwrap()
        .0;
    objects.reverse();
    let backwards = read(&Value::Array(objects).to_string(), Mode::Strict).unwrap().0;
    assert_eq!(
        String::from_utf8(bytes(&forwards)),
        String::from_utf8(bytes(&backwards))
    );

    let packed = |snapshot: &Snapshot| {
        let mut out = Vec::new();
        dump::write_gz(snapshot, &mut out).unwrap();
        out
    };
    assert_eq!(packed(&forwards), packed(&backwards));
    let (unpacked, _) = dump::read(
        [stream(packed(&forwards))],
        Options {
            mode: Mode::Strict,
            taken_at: TAKEN_AT,
        },
    )
    .unwrap();
    assert_eq!(unpacked, forwards);
}

/// A list so long that several threads read it, with everything in it that could be taken for the end of an item.
fn long_list() -> Vec<Value> {
    let odd = "a \"quoted\" },\n        {\n\u{e9} ]} \\";
    let object = |at: usize| match at % 50 {
        0 => {
            json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": format!("n{at}"), "labels": { "a": odd } } })
        }
        1 => json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("s{at}") } }),
        2 => {
            json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": format!("c{at}") } })
        }
        _ => {
            let mut pod = pod(&format!("p{at}"));
            pod["metadata"]["annotations"] = json!({ "note": odd.repeat(40), "list": "- x\nkind: List\n" });
            pod["metadata"]["managedFields"] = json!([{ "fieldsV1": { "f:spec": {} } }]);
            pod["spec"]["containers"] = json!([
                { "name": "a", "env": [{ "name": odd, "value": "]" }], "args": [odd], "command": [] },
                { "name": "b", "resources": { "requests": { "cpu": "1" } }, "readinessProbe": { "httpGet": {} } },
            ]);
            pod
        }
    };
    (0..6_000).map(object).collect()
}

fn listed(kind: &str, items: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "items": items, "kind": kind, "metadata": { "resourceVersion": "" } })
}

fn printed(list: &Value) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    serde::Serialize::serialize(list, &mut serde_json::Serializer::with_formatter(&mut out, formatter)).unwrap();
    String::from_utf8(out).unwrap()
}

/// An item a line, as a flow mapping under its dash.
fn in_yaml(items: &[Value]) -> String {
    let lines: String = items.iter().map(|item| format!("- {item}\n")).collect();
    format!("apiVersion: v1\nitems:\n{lines}kind: List\nmetadata:\n  resourceVersion: \"\"\n")
}

#[test]
fn a_long_list_is_read_at_once_and_gives_what_its_objects_give_one_by_one() {
    let items = long_list();
    let one_by_one: String = items.iter().map(ToString::to_string).collect();
    let (expected, by_one) = read(&one_by_one, Mode::Strict).unwrap();
    let list = listed("List", &items);
    let twice = listed("List", &[&items[..], &items[3..5]].concat());
    for (name, text, repeated) in [
        ("compact", list.to_string(), 0),
        ("as kubectl prints it", printed(&list), 0),
        ("in yaml", in_yaml(&items), 0),
        ("two of them in one stream", format!("{list}\n{list}"), by_one.objects),
        ("some twice", printed(&twice), 2),
    ] {
        assert!(text.len() > 9_000_000, "{name} is long: {}", text.len());
        let (snapshot, report) = read(&text, Mode::Strict).unwrap();
        assert!(snapshot.objects() == expected.objects(), "{name}");
        assert_eq!(
            (report.repeated, report.objects),
            (repeated, by_one.objects + repeated),
            "{name}"
        );
        let times = if name.starts_with("two") { 2 } else { 1 };
        let secrets = ("v1".to_owned(), "Secret".to_owned());
        assert_eq!(report.skipped[&secrets], by_one.skipped[&secrets] * times, "{name}");
    }
}

/// Large files are read block by block; one object of this one is larger than two blocks.
#[test]
fn a_long_list_in_a_file_gives_what_it_gives_from_a_stream() {
    let mut items = long_list();
    items[4_000]["metadata"]["annotations"] = json!({ "large": "x".repeat(9 << 20) });
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("long-list.json");
    let texts = [printed(&listed("List", &items)), listed("List", &items).to_string()];
    for (text, name) in texts.iter().zip(["indented", "compact"]) {
        std::fs::write(&path, text).unwrap();
        let options = Options {
            mode: Mode::Strict,
            taken_at: TAKEN_AT,
        };
        let (from_file, file) = dump::read([Source::Path(path.clone())], options).unwrap();
        let (expected, stream) = read(text, Mode::Strict).unwrap();
        assert!(from_file.objects() == expected.objects(), "{name}");
        let told = |report: &dump::Report| (report.sources, report.objects, report.skipped.clone());
        assert_eq!(told(&file), told(&stream), "{name}");
        assert!(file.objects > 5_000);
    }
}

#[test]
fn a_broken_list_in_a_file_is_told_with_its_place() {
    let mut items = long_list();
    items[4_711]["spec"]["priority"] = json!("high");
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken-list.json");
    std::fs::write(&path, printed(&listed("List", &items))).unwrap();
    let options = Options {
        mode: Mode::Strict,
        taken_at: TAKEN_AT,
    };
    let faults = dump::read([Source::Path(path)], options).unwrap_err().0;
    let places: Vec<_> = faults
        .iter()
        .map(|fault| (fault.place.item, fault.field.as_str()))
        .collect();
    assert_eq!(places, [(Some(4_712), "spec.priority")]);
}

#[test]
fn a_fault_in_a_long_list_is_told_with_its_place_and_the_rest_is_read() {
    let mut items = long_list();
    items[4_711]["spec"]["priority"] = json!("high");
    items[4_712]["metadata"]["name"] = json!("");
    for text in [printed(&listed("List", &items)), listed("List", &items).to_string()] {
        let faults = read(&text, Mode::Strict).unwrap_err().0;
        let places: Vec<_> = faults
            .iter()
            .map(|fault| (fault.place.item, fault.field.as_str()))
            .collect();
        assert_eq!(places, [(Some(4_712), "spec.priority"), (Some(4_713), "metadata.name")]);
        let (snapshot, report) = read(&text, Mode::Lenient).unwrap();
        assert_eq!(
            (report.faults.len(), snapshot.objects().pods.len()),
            (2, 6_000 / 50 * 47 - 2)
        );
    }
}

#[test]
fn a_field_that_is_null_is_a_field_that_is_not_there_as_for_the_api_server() {
    let written = |empty: &str| {
        format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: a}}\nspec:\n{empty}  template:\n    spec: {{requirements: []}}\n"
        )
    };
    let bare = read(&written(""), Mode::Strict).unwrap().0;
    let left_empty = "  weight:\n  limits:\n  disruption:\n    budgets:\n";
    let empty = read(&written(left_empty), Mode::Strict).unwrap().0;
    let spec =
        |snapshot: &Snapshot| serde_json::to_value(&snapshot.objects().node_pools.iter().next().unwrap().spec).unwrap();
    assert_eq!(spec(&empty), spec(&bare));
    let template = written("").replace("    spec:", "    metadata:\n    spec:");
    assert_eq!(spec(&read(&template, Mode::Strict).unwrap().0), spec(&bare));
}
