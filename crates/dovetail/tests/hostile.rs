//! `dovetail plan` on input nobody should have: each is answered or refused by name, with its exit code, and never ends in
//! a panic.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    fs,
    io::Write,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output, Stdio},
};

const POOL: &str = r"apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  weight: 10
  template:
    spec:
      requirements: []
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
status: {conditions: [{type: Ready, status: 'True'}]}
";
const ASKS: &str = "containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]";
const ANSWERED: i32 = 0;
const REFUSED: i32 = 1;

/// A pod that waits, with more in its metadata and this spec.
fn pod(metadata: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{namespace: shop, name: web-0{metadata}}}\nspec: {{{spec}}}\n\
         status: {{phase: Pending, conditions: [{{type: PodScheduled, status: 'False', reason: Unschedulable}}]}}\n"
    )
}

fn usual() -> String {
    POOL.to_owned() + &pod("", ASKS)
}

/// The pool and a pod with this spec.
fn asking(spec: &str) -> String {
    POOL.to_owned() + &pod("", spec)
}

fn requesting(requests: &str) -> String {
    asking(&format!(
        "containers: [{{name: c, resources: {{requests: {{{requests}}}}}}}]"
    ))
}

/// The usual dump with a part of its NodePool replaced.
fn with_pool(old: &str, new: &str) -> String {
    assert!(POOL.contains(old));
    usual().replace(old, new)
}

fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .arg("plan")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Who refuses early does not read to the end.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// What came of it: exit code, and all that was printed.
fn said(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

fn check(name: &str, output: &Output, code: i32, parts: &[&str]) {
    let (found, text) = said(output);
    assert!(!text.contains("panicked"), "{name}: {text}");
    assert_eq!(found, Some(code), "{name}: {text}");
    for part in parts {
        assert!(text.contains(part), "{name}: {part:?} in {text}");
    }
    if code == REFUSED {
        for line in ["error   ", "\nwhy     ", "\nnext    "] {
            assert!(text.contains(line), "{name}: {line:?} in {text}");
        }
        assert!(output.stdout.is_empty(), "{name}: {text}");
    }
}

/// Plans a directory with one file of this name.
fn plan_of(file: &str, content: &[u8], more: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(file), content).unwrap();
    run(&[&["--from", directory.path().to_str().unwrap()], more].concat(), b"")
}

fn each(cases: &[(&str, String, i32, &[&str])]) {
    for (name, content, code, parts) in cases {
        check(name, &plan_of("a.yaml", content.as_bytes(), &[]), *code, parts);
    }
}

#[test]
fn what_is_no_dump_is_refused_with_its_place() {
    let bomb: Vec<String> = (0..9_u8)
        .map(|at| {
            let (own, before) = (char::from(b'b' + at), char::from(b'a' + at));
            format!("{own}: &{own} [{}]\n", vec![format!("*{before}"); 9].join(","))
        })
        .collect();
    each(&[
        ("empty", String::new(), REFUSED, &["holds no object", "read 1 file"]),
        ("null", "null\n".into(), REFUSED, &["holds no object"]),
        (
            "words",
            "hello world\n".into(),
            REFUSED,
            &["a.yaml: document 1", "hello world"],
        ),
        ("a number", "42\n".into(), REFUSED, &["a.yaml: document 1", "42"]),
        (
            "open bracket",
            "a: [b\n".into(),
            REFUSED,
            &["a.yaml:1", "is not valid YAML"],
        ),
        (
            "tabs",
            with_pool("  template", "\ttemplate"),
            REFUSED,
            &["a.yaml:", "is not valid YAML"],
        ),
        ("NUL", usual() + "# \0\n", REFUSED, &["a.yaml:", "is not valid YAML"]),
        (
            "a bomb of aliases",
            format!("a: &a [x,x,x,x,x,x,x,x,x]\n{}", bomb.concat()),
            REFUSED,
            &["is not valid YAML"],
        ),
        (
            "deep YAML",
            format!("a: {}\n", "[".repeat(100_000)),
            REFUSED,
            &["a.yaml:1", "is not valid YAML"],
        ),
        (
            "deep JSON",
            "[".repeat(100_000) + &"]".repeat(100_000),
            REFUSED,
            &["nests lists too deeply"],
        ),
        (
            "half of JSON",
            r#"{"apiVersion":"v1","kind":"List","items":["#.into(),
            REFUSED,
            &["a.yaml:1", "is not valid JSON"],
        ),
        (
            "a key twice",
            "apiVersion: v1\nkind: Node\nkind: Pod\nmetadata: {name: a}\n".into(),
            REFUSED,
            &["a.yaml:3", "kind"],
        ),
        (
            "no kind",
            "metadata: {name: a}\n".into(),
            REFUSED,
            &["is not a Kubernetes object", "apiVersion and kind"],
        ),
        (
            "no name",
            "apiVersion: v1\nkind: Pod\nmetadata: {}\n".into(),
            REFUSED,
            &["Pod without a name", "metadata.name"],
        ),
        (
            "no NodePool",
            pod("", ASKS),
            REFUSED,
            &["no NodePool in", "kubectl get nodepools"],
        ),
        (
            "no node class",
            with_pool(
                "      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n",
                "",
            ),
            REFUSED,
            &["no catalogue of instance types", "--catalogue"],
        ),
    ]);
    for (name, content, part) in [
        (
            "not UTF-8",
            [usual().as_bytes(), b"# \xff\n"].concat(),
            "is not UTF-8 text at byte",
        ),
        (
            "UTF-16",
            usual().encode_utf16().flat_map(u16::to_le_bytes).collect(),
            "is not valid YAML",
        ),
        ("binary", (0..=255).collect(), "is not UTF-8 text at byte 128"),
    ] {
        check(name, &plan_of("a.yaml", &content, &[]), REFUSED, &["a.yaml", part]);
    }
    check(
        "broken gzip",
        &plan_of("a.yaml.gz", b"\x1f\x8b\x08\x00broken", &[]),
        REFUSED,
        &["a.yaml.gz: cannot be read"],
    );
}

#[test]
fn unusual_ways_to_write_a_dump_are_read() {
    let one = "1 pod waits: 1 new node";
    let list = |items: &str| format!(r#"{{"apiVersion":"v1","kind":"List","items":[{items}]}}"#);
    let node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}"#;
    let nested = usual() + "---\n" + &list(&list(node));
    each(&[
        ("as it should be", usual(), ANSWERED, &[one, "2 objects in 1 file"]),
        ("byte order mark", format!("\u{feff}{}", usual()), ANSWERED, &[one]),
        ("CRLF", usual().replace('\n', "\r\n"), ANSWERED, &[one]),
        ("a List in a List", nested, ANSWERED, &[one, "3 objects"]),
        ("no pod waits", POOL.into(), ANSWERED, &["no pod waits"]),
        (
            "JSON",
            list(node) + &list(""),
            REFUSED,
            &["no NodePool", "1 object read"],
        ),
        (
            "other kinds",
            usual() + "---\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\n",
            ANSWERED,
            &[one, "1 Gadget of example.com/v1: passed over"],
        ),
        (
            "an older version",
            usual() + "---\napiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: old}\n",
            ANSWERED,
            &["1 NodePool of karpenter.sh/v1beta1: passed over"],
        ),
        (
            "a pod twice",
            usual() + &pod("", "containers: [{name: c, resources: {requests: {cpu: 3}}}]"),
            ANSWERED,
            &[
                "1 pod waits",
                "1 object of a kind and name read before: the last one counts",
                "4x",
            ],
        ),
    ]);
    check(
        "standard input",
        &run(&["--from", "-"], usual().as_bytes()),
        ANSWERED,
        &[one],
    );
    check(
        "nothing on standard input",
        &run(&["--from", "-"], b""),
        REFUSED,
        &["standard input holds no object"],
    );
}

#[test]
fn a_node_pool_that_no_api_server_accepts_is_refused_by_field_and_value() {
    let requirement = |text: &str| with_pool("requirements: []", &format!("requirements: [{text}]"));
    let field = "NodePool general: spec.template.spec.requirements[0]: ";
    each(&[
        (
            "operator",
            requirement("{key: a, operator: Inn, values: [b]}"),
            REFUSED,
            &[field, "Inn"],
        ),
        (
            "bound in words",
            requirement("{key: a, operator: Gt, values: [many]}"),
            REFUSED,
            &[field, "many"],
        ),
        (
            "no bound",
            requirement("{key: a, operator: Gt}"),
            REFUSED,
            &[field, "Gt"],
        ),
        (
            "nothing to be in",
            requirement("{key: kubernetes.io/arch, operator: In, values: []}"),
            REFUSED,
            &[field],
        ),
        (
            "a label of ours",
            requirement("{key: karpenter.sh/unknown, operator: In, values: [a]}"),
            REFUSED,
            &[field, "karpenter.sh/unknown"],
        ),
        (
            "effect",
            with_pool(
                "requirements: []",
                "requirements: []\n      taints: [{key: a, effect: Sometimes}]",
            ),
            REFUSED,
            &["spec.template.spec.taints[0].effect", "\"Sometimes\"", "NoSchedule"],
        ),
        (
            "weight",
            with_pool("weight: 10", "weight: -1"),
            REFUSED,
            &["spec.weight: -1", "write 1 to 100"],
        ),
        (
            "endless weight",
            with_pool("weight: 10", "weight: 99999999999"),
            REFUSED,
            &["spec.weight", "99999999999"],
        ),
        (
            "limit in words",
            with_pool("weight: 10", "limits: {cpu: lots}"),
            REFUSED,
            &["spec.limits.cpu", "\"lots\""],
        ),
        (
            "less than nothing",
            with_pool("weight: 10", "limits: {cpu: -5}"),
            ANSWERED,
            &["1 stays pending", "limits.cpu -5"],
        ),
        (
            "too few values",
            requirement("{key: kubernetes.io/arch, operator: Exists, minValues: 50}"),
            ANSWERED,
            &["1 stays pending", "minValues 50"],
        ),
        (
            "a crowd of nodes",
            with_pool("weight: 10", "replicas: 999999999999"),
            ANSWERED,
            &["a static pool launches nothing"],
        ),
        (
            "time in words",
            with_pool("requirements: []", "requirements: []\n      expireAfter: soon"),
            REFUSED,
            &["spec.template.spec.expireAfter", "\"soon\""],
        ),
    ]);
}

#[test]
fn amounts_that_cannot_be_are_refused_and_those_that_are_only_large_stay_pending() {
    let field = "spec.containers[0].resources.requests.";
    each(&[
        (
            "negative",
            requesting("cpu: -1"),
            REFUSED,
            &["Pod shop/web-0", field, "cpu: -1 is less than nothing"],
        ),
        (
            "words",
            requesting("cpu: abc"),
            REFUSED,
            &["Pod shop/web-0", field, "\"abc\" is not a quantity"],
        ),
        ("empty", requesting("cpu: ''"), REFUSED, &[field, "is not a quantity"]),
        ("not a number", requesting("cpu: .nan"), REFUSED, &["a.yaml:", ".nan"]),
        ("endless", requesting("cpu: .inf"), REFUSED, &["a.yaml:", ".inf"]),
        ("two points", requesting("memory: 1.5.5Gi"), REFUSED, &["\"1.5.5Gi\""]),
        ("a truth", requesting("cpu: true"), REFUSED, &[field, "true"]),
        ("a list", requesting("cpu: [1]"), REFUSED, &[field, "[1]"]),
        (
            "of nothing",
            requesting("'': 1"),
            REFUSED,
            &["a resource without a name"],
        ),
        (
            "huge",
            requesting("cpu: 1e30"),
            ANSWERED,
            &["1 stays pending", "stops at cpu"],
        ),
        (
            "the largest",
            requesting("memory: 9223372036854775807"),
            ANSWERED,
            &["1 stays pending", "stops at memory"],
        ),
        (
            "larger than that",
            requesting("memory: 16Ei, cpu: 9e18"),
            ANSWERED,
            &["1 stays pending"],
        ),
        (
            "that add up to more",
            asking(&format!(
                "containers: [{}]",
                ["{name: c, resources: {requests: {memory: 9223372036854775807}}}"; 4].join(",")
            )),
            ANSWERED,
            &["1 stays pending"],
        ),
        (
            "nobody has it",
            requesting("example.com/foo: 1"),
            ANSWERED,
            &["1 stays pending", "example.com/foo"],
        ),
        ("nothing", requesting("cpu: 0"), ANSWERED, &["1 new node"]),
        (
            "next to nothing",
            requesting("cpu: 0.0000000000001"),
            ANSWERED,
            &["1 new node"],
        ),
    ]);
}

#[test]
fn a_pod_that_refers_to_what_is_gone_or_to_itself_is_answered() {
    let volume = |name: &str| format!("{ASKS}, volumes: [{{name: v, persistentVolumeClaim: {{claimName: {name}}}}}]");
    let claim = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {namespace: shop, name: data}\nspec: {storageClassName: lost}\n";
    let owner = |kind: &str, name: &str| {
        format!(", uid: x, ownerReferences: [{{apiVersion: v1, kind: {kind}, name: {name}, uid: x, controller: true}}]")
    };
    let set = format!(
        "---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {{namespace: shop, name: a{}}}\n",
        owner("ReplicaSet", "a")
    );
    each(&[
        (
            "no claim",
            asking(&volume("gone")),
            ANSWERED,
            &["1 stays pending", "PersistentVolumeClaim \"gone\" not found"],
        ),
        (
            "no class",
            asking(&volume("data")) + claim,
            ANSWERED,
            &["1 stays pending", "\"lost\" not found"],
        ),
        (
            "no volume",
            asking(&volume("data")) + &claim.replace("spec: {", "spec: {volumeName: lost-1, "),
            ANSWERED,
            &["1 stays pending", "\"lost-1\" not found"],
        ),
        (
            "no priority class",
            asking(&format!("{ASKS}, priorityClassName: gone")),
            ANSWERED,
            &["1 new node"],
        ),
        (
            "endless priority",
            asking(&format!("{ASKS}, priority: 99999999999")),
            REFUSED,
            &["spec.priority", "99999999999"],
        ),
        (
            "its own owner",
            POOL.to_owned() + &pod(&owner("Pod", "web-0"), ASKS),
            ANSWERED,
            &["1 new node"],
        ),
        (
            "owners in a circle",
            POOL.to_owned() + &pod(&owner("ReplicaSet", "a"), ASKS) + &set,
            ANSWERED,
            &["1 new node"],
        ),
        (
            "a lost owner",
            POOL.to_owned() + &pod(&owner("ReplicaSet", "gone"), ASKS),
            ANSWERED,
            &["1 new node"],
        ),
        (
            "half an owner",
            POOL.to_owned() + &pod(", ownerReferences: [{kind: ReplicaSet}]", ASKS),
            ANSWERED,
            &["1 new node"],
        ),
        (
            "an unknown operator",
            asking(&format!(
                "{ASKS}, affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
            {{nodeSelectorTerms: [{{matchExpressions: [{{key: a, operator: Foo, values: [b]}}]}}]}}}}}}"
            )),
            ANSWERED,
            &["1 stays pending", "unsupported operator Foo"],
        ),
        (
            "a spread of nothing",
            asking(&format!(
                "{ASKS}, topologySpreadConstraints: [{{maxSkew: 0, whenUnsatisfiable: Never}}]"
            )),
            REFUSED,
            &[
                "spec.topologySpreadConstraints[0].maxSkew: 0",
                "topologyKey: is missing",
                "\"Never\" is no action",
            ],
        ),
        (
            "a port beyond",
            asking("containers: [{name: c, ports: [{hostPort: 99999999}]}]"),
            REFUSED,
            &["spec.containers[0].ports[0].hostPort: 99999999 is no port"],
        ),
        (
            "labels in a list",
            POOL.to_owned() + &pod(", labels: [a]", ASKS),
            REFUSED,
            &["metadata.labels", "[\"a\"]"],
        ),
        (
            "time in words",
            POOL.to_owned() + &pod(", creationTimestamp: yesterday", ASKS),
            REFUSED,
            &["metadata.creationTimestamp", "\"yesterday\""],
        ),
    ]);
}

/// An instance type with one part replaced.
fn type_with(part: &str, value: &str) -> String {
    let parts = [
        ("name", r#""a""#),
        ("capacity", r#"{"cpu":"4","memory":"8Gi","pods":"20"}"#),
        ("offerings", r#"[{"price":"0.1","available":true}]"#),
    ];
    let mut fields: Vec<String> = parts
        .iter()
        .filter(|(name, _)| *name != part)
        .map(|(name, value)| format!("{name:?}:{value}"))
        .collect();
    if !value.is_empty() {
        fields.push(format!("{part:?}:{value}"));
    }
    format!("[{{{}}}]", fields.join(","))
}

#[test]
fn a_catalogue_broken_in_any_field_is_refused_by_field_and_value() {
    let whole = type_with("requirements", "[]");
    let twice = format!("[{0},{0}]", whole.trim_matches(['[', ']']));
    let cases: &[(&str, String, i32, &[&str])] = &[
        ("as it should be", whole, ANSWERED, &["1 new node"]),
        ("half", "{".into(), REFUSED, &["line 1"]),
        ("empty", String::new(), REFUSED, &["neither a list nor"]),
        ("no types", "[]".into(), REFUSED, &["instanceTypes are empty"]),
        ("a word", "\"x\"".into(), REFUSED, &["neither a list nor"]),
        (
            "nameless",
            type_with("name", ""),
            REFUSED,
            &["instanceTypes[0]", "`name`"],
        ),
        (
            "empty name",
            type_with("name", "\"\""),
            REFUSED,
            &["instanceTypes[0]", "name: is empty"],
        ),
        (
            "numbered",
            type_with("name", "5"),
            REFUSED,
            &["instanceTypes[0].name", "5"],
        ),
        ("twice", twice, REFUSED, &["instanceTypes[1].name", "appears twice"]),
        (
            "negative",
            type_with("capacity", r#"{"cpu":"-4"}"#),
            REFUSED,
            &["instanceTypes[0] a", "capacity.cpu: -4 is less than nothing"],
        ),
        (
            "no quantity",
            type_with("capacity", r#"{"cpu":"x"}"#),
            REFUSED,
            &["instanceTypes[0].capacity.cpu", "\"x\""],
        ),
        (
            "a list of amounts",
            type_with("capacity", "[1]"),
            REFUSED,
            &["instanceTypes[0].capacity", "[1]"],
        ),
        (
            "endless",
            type_with("capacity", r#"{"cpu":"1e30","memory":"1e30","pods":"1e30"}"#),
            ANSWERED,
            &["1 new node"],
        ),
        (
            "nothing to offer",
            type_with("offerings", ""),
            ANSWERED,
            &["1 stays pending"],
        ),
        (
            "offers by name",
            type_with("offerings", r#"{"a":1}"#),
            REFUSED,
            &["instanceTypes[0].offerings"],
        ),
        (
            "no price",
            type_with("offerings", r#"[{"available":true}]"#),
            REFUSED,
            &["offerings[0]", "`price`"],
        ),
        (
            "negative price",
            type_with("offerings", r#"[{"price":"-1"}]"#),
            REFUSED,
            &["offerings[0].price", "-1"],
        ),
        (
            "no number",
            type_with("offerings", r#"[{"price":"NaN"}]"#),
            REFUSED,
            &["offerings[0].price", "NaN"],
        ),
        (
            "endless price",
            type_with("offerings", r#"[{"price":"1e300"}]"#),
            REFUSED,
            &["offerings[0].price", "1e300"],
        ),
        (
            "for nothing",
            type_with("offerings", r#"[{"price":"0","available":true}]"#),
            ANSWERED,
            &["1 new node at $0.0000/h"],
        ),
        (
            "perhaps",
            type_with("offerings", r#"[{"price":"1","available":"yes"}]"#),
            REFUSED,
            &["offerings[0].available", "yes"],
        ),
        (
            "owed",
            type_with("offerings", r#"[{"price":"1","reservationCapacity":-5}]"#),
            REFUSED,
            &["reservationCapacity", "-5"],
        ),
        (
            "operator",
            type_with("requirements", r#"[{"key":"a","operator":"Foo"}]"#),
            REFUSED,
            &["requirements[0].operator", "Foo"],
        ),
        (
            "overhead",
            type_with("overhead", r#"{"kubeReserved":{"cpu":"x"}}"#),
            REFUSED,
            &["overhead.kubeReserved.cpu", "\"x\""],
        ),
        (
            "more overhead than machine",
            type_with("overhead", r#"{"kubeReserved":{"cpu":"99"}}"#),
            ANSWERED,
            &["1 stays pending"],
        ),
        (
            "unknown",
            type_with("colour", "\"red\""),
            REFUSED,
            &["instanceTypes[0].colour", "unknown field"],
        ),
    ];
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("types.json");
    for (name, content, code, parts) in cases {
        fs::write(&file, content).unwrap();
        let output = plan_of("a.yaml", usual().as_bytes(), &["--catalogue", file.to_str().unwrap()]);
        check(name, &output, *code, parts);
    }
    fs::write(&file, [0xff, 0xfe]).unwrap();
    for (catalogue, part) in [
        (file.to_str().unwrap(), "it is not UTF-8 text"),
        ("/does/not/exist", "No such file"),
        (directory.path().to_str().unwrap(), "Is a directory"),
    ] {
        let output = plan_of("a.yaml", usual().as_bytes(), &["--catalogue", catalogue]);
        check(part, &output, REFUSED, &["cannot read the catalogue", part]);
    }
}

#[test]
fn directories_that_lead_nowhere_or_in_circles_end() {
    let directory = tempfile::tempdir().unwrap();
    let (path, inside) = (directory.path(), |name: &str| directory.path().join(name));
    let plan = |path: &Path| run(&["--from", path.to_str().unwrap()], b"");
    check("empty", &plan(path), REFUSED, &["holds no object", "read 0 files"]);
    check(
        "missing",
        &plan(&inside("gone")),
        REFUSED,
        &["gone: cannot be read", "No such file"],
    );
    fs::write(inside("a.yaml"), usual()).unwrap();
    fs::create_dir(inside("named.yaml")).unwrap();
    symlink(path, inside("again")).unwrap();
    check(
        "a circle of directories",
        &plan(path),
        ANSWERED,
        &["1 pod waits: 1 new node", "2 objects in 1 file"],
    );
    symlink(inside("b.yaml"), inside("b.yaml")).unwrap();
    check("a link to itself", &plan(path), REFUSED, &["b.yaml: cannot be read"]);
}

#[test]
fn a_large_file_is_read_to_the_end() {
    let pods: String = (0..20_000)
        .map(|at| {
            format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"shop","name":"done-{at}"}},"status":{{"phase":"Succeeded"}}}}"#
            ) + "\n"
        })
        .collect();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.json"), pods).unwrap();
    fs::write(directory.path().join("b.yaml"), usual()).unwrap();
    let output = run(&["--from", directory.path().to_str().unwrap()], b"");
    check(
        "large",
        &output,
        ANSWERED,
        &["1 pod waits: 1 new node", "20,002 objects in 2 files"],
    );
}

/// Runs a command whose readers have both gone, as after `2>&1 | head`.
fn unread(arguments: &[&str], input: &[u8]) -> Option<i32> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    drop(child.stderr.take());
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait().unwrap().code()
}

#[test]
fn whoever_stops_reading_has_read_enough() {
    let dump = usual();
    for command in ["plan", "status", "cost", "lint"] {
        let code = unread(&[command, "--from", "-"], dump.as_bytes());
        assert!(matches!(code, Some(0 | 3)), "{command} ends with {code:?}");
    }
    assert_eq!(unread(&["plan", "--from", "-"], b"{"), Some(1), "a failure stays one");
    assert_eq!(unread(&["plan", "--colour"], b""), Some(2), "and so does wrong usage");
}
