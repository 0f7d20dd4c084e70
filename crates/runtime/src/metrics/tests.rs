//! Is the page what Prometheus reads, and does the manual name every family?

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// What a strict reader of the text format understands: families in order, each with its samples.
#[derive(Debug, Default, PartialEq)]
struct Read {
    kind: String,
    samples: Vec<Sample>,
}

/// Name, labels and value.
type Sample = (String, Vec<(String, String)>, f64);

/// Reads a page and refuses whatever the format forbids.
fn read(text: &str) -> BTreeMap<String, Read> {
    let mut families: BTreeMap<String, Read> = BTreeMap::new();
    let mut current = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("help has a text");
            assert!(!help.is_empty(), "{line}");
            let kind = lines
                .next()
                .and_then(|line| line.strip_prefix("# TYPE "))
                .expect("a type follows the help");
            let (typed, kind) = kind.split_once(' ').expect("a type has a name");
            assert_eq!(typed, name);
            assert!(*name > *current, "families come by name: {name} after {current}");
            current = name.to_owned();
            let fresh = Read {
                kind: kind.to_owned(),
                samples: Vec::new(),
            };
            assert_eq!(families.insert(current.clone(), fresh), None, "{name} comes twice");
            continue;
        }
        assert!(!line.starts_with('#'), "{line}");
        let sample = sample(line);
        let family = families.get_mut(&current).expect("a sample follows its family");
        let suffixes: &[&str] = match family.kind.as_str() {
            "histogram" => &["_bucket", "_sum", "_count"],
            "summary" => &["", "_sum", "_count"],
            _ => &[""],
        };
        assert!(
            suffixes.iter().any(|suffix| sample.0 == format!("{current}{suffix}")),
            "{line}"
        );
        let twin = family
            .samples
            .iter()
            .any(|known| (&known.0, &known.1) == (&sample.0, &sample.1));
        assert!(!twin, "a series comes twice: {line}");
        family.samples.push(sample);
    }
    for (name, family) in &families {
        assert!(!family.samples.is_empty(), "{name} has no samples");
    }
    families
}

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').expect("a sample has a value");
    let value = match value {
        "NaN" => f64::NAN,
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        number => number.parse().expect("a number"),
    };
    let Some((name, labels)) = series.split_once('{') else {
        return (series.to_owned(), Vec::new(), value);
    };
    let mut rest = labels.strip_suffix('}').expect("labels end");
    let mut read = Vec::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").expect("a label has a value");
        assert!(
            label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
            "{label}"
        );
        let mut text = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next().expect("a value ends") {
                (at, '"') => break at,
                (_, '\\') => text.push(match letters.next().expect("an escape").1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, letter) => text.push(letter),
            }
        };
        read.push((label.to_owned(), text));
        rest = &after[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    (name.to_owned(), read, value)
}

fn page(metrics: &Metrics) -> String {
    metrics.page(MetricsProfile::Full).collect()
}

fn labels(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn counters_and_gauges_show_their_series_by_label_with_labels_by_name() {
    let metrics = Metrics::default();
    metrics.nodes_created_total.inc(["b", "zone-\"1\""]);
    metrics.nodes_created_total.add(["a", "z"], 2.0);
    metrics.nodes_created_total.inc(["a", "z"]);
    metrics.nodepools_allowed_disruptions.set(["pool", "empty"], 4.0);
    metrics.nodepools_allowed_disruptions.set(["gone", "empty"], 4.0);
    metrics.nodepools_allowed_disruptions.remove(["gone", "empty"]);
    let read = read(&page(&metrics));
    let expected = Read {
        kind: "counter".to_owned(),
        samples: vec![
            (
                "karpenter_nodes_created_total".to_owned(),
                labels(&[("nodepool", "a"), ("zone", "z")]),
                3.0,
            ),
            (
                "karpenter_nodes_created_total".to_owned(),
                labels(&[("nodepool", "b"), ("zone", "zone-\"1\"")]),
                1.0,
            ),
        ],
    };
    assert_eq!(read["karpenter_nodes_created_total"], expected);
    let expected = Read {
        kind: "gauge".to_owned(),
        samples: vec![(
            "karpenter_nodepools_allowed_disruptions".to_owned(),
            labels(&[("nodepool", "pool"), ("reason", "empty")]),
            4.0,
        )],
    };
    assert_eq!(read["karpenter_nodepools_allowed_disruptions"], expected);
}

#[test]
fn histograms_count_up_to_and_with_each_bound() {
    let metrics = Metrics::default();
    for value in [1.0, 1.5, 3.0, 5000.0] {
        metrics.nodeclaims_termination_duration_seconds.observe(["p"], value);
    }
    let text = page(&metrics);
    read(&text);
    let shown: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("karpenter_nodeclaims_termination_duration_seconds"))
        .collect();
    let name = "karpenter_nodeclaims_termination_duration_seconds";
    assert_eq!(shown.len(), 12 + 3);
    assert_eq!(shown[0], format!(r#"{name}_bucket{{nodepool="p",le="1"}} 1"#));
    assert_eq!(shown[1], format!(r#"{name}_bucket{{nodepool="p",le="2"}} 2"#));
    assert_eq!(shown[11], format!(r#"{name}_bucket{{nodepool="p",le="2048"}} 3"#));
    assert_eq!(shown[12], format!(r#"{name}_bucket{{nodepool="p",le="+Inf"}} 4"#));
    assert_eq!(shown[13], format!(r#"{name}_sum{{nodepool="p"}} 5005.5"#));
    assert_eq!(shown[14], format!(r#"{name}_count{{nodepool="p"}} 4"#));
}

#[test]
fn summaries_show_upstreams_quantiles() {
    let metrics = Metrics::default();
    for value in 1..=100 {
        metrics.pods_startup_duration_seconds.observe([], f64::from(value));
    }
    let text = page(&metrics);
    let shown: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("karpenter_pods_startup_duration_seconds"))
        .collect();
    let name = "karpenter_pods_startup_duration_seconds";
    let expected = [
        format!(r#"{name}{{quantile="0"}} 1"#),
        format!(r#"{name}{{quantile="0.5"}} 50"#),
        format!(r#"{name}{{quantile="0.9"}} 90"#),
        format!(r#"{name}{{quantile="0.99"}} 99"#),
        format!(r#"{name}{{quantile="1"}} 100"#),
        format!("{name}_sum 5050"),
        format!("{name}_count 100"),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_family_without_series_is_not_shown_but_what_upstream_begins_at_zero_is() {
    let read = read(&page(&Metrics::default()));
    let ours: Vec<&str> = read
        .keys()
        .map(String::as_str)
        .filter(|name| name.starts_with("karpenter_"))
        .collect();
    assert_eq!(ours, ["karpenter_voluntary_disruption_consolidation_timeouts_total"]);
    assert!(read.contains_key("process_resident_memory_bytes"));
    assert!(read.contains_key("go_gc_heap_live_bytes"));
}

#[test]
fn the_build_is_told_with_upstreams_labels() {
    let metrics = Metrics::default();
    metrics.set_build("1.15.0", "abc1234");
    let read = read(&page(&metrics));
    let (_, labels, value) = &read["karpenter_build_info"].samples[0];
    let names: Vec<&str> = labels.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, *value), (vec!["commit", "goarch", "goversion", "version"], 1.0));
}

struct Pods(Drawn<2>, usize);

impl Source for Pods {
    fn sheets(&self, _: MetricsProfile) -> Vec<Sheet> {
        let write = |about: &About, pod: &usize, out: &mut String| {
            about.sample(out, &[format!("pod-{pod}"), "ns".to_owned()], 1.0);
        };
        vec![Sheet::each(self.0.about().clone(), 0..self.1, write)]
    }
}

#[test]
fn a_source_is_shown_piece_by_piece_while_it_lives_and_its_profile_is_chosen() {
    let metrics = Metrics::default();
    let about = Drawn::new("x_pods", "Pods.", ["name", "namespace"], MetricsProfile::Standard);
    let source = Arc::new(Pods(about, 5000));
    metrics.show(&source);
    let pieces: Vec<String> = metrics.page(MetricsProfile::Standard).collect();
    assert!(pieces.len() > 1);
    assert!(pieces.iter().all(|piece| piece.len() < 70_000));
    assert_eq!(read(&pieces.concat())["x_pods"].samples.len(), 5000);
    assert!(!read(&metrics.page(MetricsProfile::Minimal).collect::<String>()).contains_key("x_pods"));
    drop(source);
    assert!(!read(&page(&metrics)).contains_key("x_pods"));
}

#[test]
fn upstreams_families_are_in_the_standard_profile_and_ours_only_in_the_full_one() {
    for about in Metrics::default().families() {
        let is_ours = about.name.starts_with("dovetail_");
        assert_eq!(about.profile == MetricsProfile::Full, is_ours, "{}", about.name);
    }
}

#[test]
fn nothing_per_pod_or_per_node_is_in_the_minimal_profile() {
    for about in Metrics::default().families() {
        let large = about
            .labels
            .iter()
            .any(|label| label == "namespace" || label == "node_name");
        let expected = if large { MetricsProfile::Standard } else { about.profile };
        assert_eq!(about.profile, expected, "{}", about.name);
    }
}

/// The rows `| `name` | kind | labels | profile | meaning |` of the manual.
fn manual() -> BTreeSet<(String, String, String, String)> {
    let text = include_str!("../../../../docs/metrics.md");
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<String> = row.split('|').map(|cell| cell.trim().replace('`', "")).collect();
        (cells[1].clone(), cells[2].clone(), cells[3].clone(), cells[4].clone())
    })
    .collect()
}

#[test]
fn the_manual_lists_every_family_with_its_labels_and_profile() {
    let manual = manual();
    for about in Metrics::default().families() {
        let profile = format!("{:?}", about.profile).to_lowercase();
        let labels = if about.labels.is_empty() {
            "–".to_owned()
        } else {
            about.labels.join(", ")
        };
        let row = (about.name.to_string(), about.kind.name().to_owned(), labels, profile);
        assert!(manual.contains(&row), "docs/metrics.md lacks the row {row:?}");
    }
}
