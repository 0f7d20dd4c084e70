//! How the controller is installed: Helm values by themselves, in a helmfile, a HelmRelease or an Argo CD Application,
//! or the Deployment that came of them.

use serde_json::Value;

use super::workload::at;
use crate::document::join;

/// An installation of Karpenter or Dovetail.
#[derive(Debug, Default)]
pub(crate) struct Install {
    pub(crate) document: usize,
    /// Helm values, and not a Deployment.
    pub(crate) is_values: bool,
    /// Where the values are in the object.
    pub(crate) values_at: String,
    /// Where it runs, and the field that says so.
    pub(crate) namespace: Option<(String, String)>,
    /// The chart's version, and the field that says so.
    pub(crate) version: Option<(String, String)>,
    /// The interruption queue; none where nothing is said, empty where it is said to be none.
    pub(crate) queue: Option<String>,
    /// Whether some rule keeps its pods off nodes it manages.
    pub(crate) keeps_off_own_nodes: bool,
    /// How many pods it runs; none where nothing is said.
    pub(crate) replicas: Option<i64>,
}

impl Install {
    /// The installations an object describes.
    pub(super) fn read(document: usize, value: &Value) -> Vec<Self> {
        let own = |install: Self| Self { document, ..install };
        match value["kind"].as_str() {
            Some("Deployment") => deployment(value).map(own).into_iter().collect(),
            Some("HelmRelease") => flux(value).map(own).into_iter().collect(),
            Some("Application") => argo(value).map(own).into_iter().collect(),
            None if value["releases"].is_array() => helmfile(value).into_iter().map(own).collect(),
            None if is_values(value) => vec![own(of_values(value, ""))],
            _ => Vec::new(),
        }
    }
}

/// Whether a map without a kind is this chart's values: no other chart names a cluster there.
fn is_values(value: &Value) -> bool {
    value["settings"]["clusterName"].is_string() || value["settings"]["interruptionQueue"].is_string()
}

fn of_values(values: &Value, values_at: &str) -> Install {
    Install {
        is_values: true,
        values_at: values_at.to_owned(),
        queue: Some(text(&values["settings"]["interruptionQueue"])),
        // The chart's own affinity keeps it off, unless the values replace it.
        keeps_off_own_nodes: values.get("affinity").is_none_or(keeps_off) || selects(&values["nodeSelector"]),
        replicas: values["replicas"].as_i64(),
        ..Install::default()
    }
}

fn is_ours(chart: &str) -> bool {
    let name = chart.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    matches!(name, "karpenter" | "dovetail")
}

fn helmfile(value: &Value) -> Vec<Install> {
    let releases = value["releases"].as_array().into_iter().flatten().enumerate();
    let ours = releases.filter(|(_, release)| release["chart"].as_str().is_some_and(is_ours));
    ours.map(|(number, release)| {
        let at = format!("releases[{number}]");
        let mut inline = release["values"].as_array().into_iter().flatten().enumerate();
        let inline = inline.find(|(_, values)| values.is_object());
        let mut install = match inline {
            Some((number, values)) => of_values(values, &format!("{at}.values[{number}]")),
            None => Install {
                is_values: true,
                values_at: at.clone(),
                keeps_off_own_nodes: true,
                ..Install::default()
            },
        };
        install.namespace = said(release, "namespace", &at);
        install.version = said(release, "version", &at);
        install
    })
    .collect()
}

fn flux(value: &Value) -> Option<Install> {
    let spec = &value["spec"];
    let chart = &spec["chart"]["spec"];
    is_ours(chart["chart"].as_str()?).then(|| Install {
        namespace: said(spec, "targetNamespace", "spec").or_else(|| said(&value["metadata"], "namespace", "metadata")),
        version: said(chart, "version", "spec.chart.spec"),
        ..of_values(&spec["values"], "spec.values")
    })
}

fn argo(value: &Value) -> Option<Install> {
    let source = &value["spec"]["source"];
    let values = &source["helm"]["valuesObject"];
    is_ours(source["chart"].as_str()?).then(|| {
        let mut install = of_values(values, "spec.source.helm.valuesObject");
        if values.is_null() {
            install.queue = None;
        }
        install.namespace = said(&value["spec"]["destination"], "namespace", "spec.destination");
        install.version = said(source, "targetRevision", "spec.source");
        install
    })
}

/// The controller's Deployment: by its container's image or name.
fn deployment(value: &Value) -> Option<Install> {
    let pod = &at(value, "spec.template")["spec"];
    let containers = pod["containers"].as_array()?;
    let is_controller = |container: &&Value| {
        let image = text(&container["image"]);
        let image = image.split(['@']).next().unwrap_or_default();
        let path = image.split(':').next().unwrap_or_default();
        path.ends_with("karpenter/controller") || path.rsplit('/').next().is_some_and(|name| name == "dovetail")
    };
    let container = containers.iter().find(is_controller)?;
    let mut env = container["env"].as_array().into_iter().flatten();
    let queue = env.find(|one| one["name"] == "INTERRUPTION_QUEUE");
    // A value that comes from elsewhere is some value.
    let queue = queue.map(|one| one["value"].as_str().unwrap_or("?").to_owned());
    let mut arguments = container["args"].as_array().into_iter().flatten();
    let flag = arguments.find_map(|argument| argument.as_str()?.strip_prefix("--interruption-queue="));
    let flag = flag.map(str::to_owned);
    let metadata = &value["metadata"];
    let version = &metadata["labels"]["app.kubernetes.io/version"];
    let required = &pod["affinity"];
    Some(Install {
        values_at: "spec.template.spec".to_owned(),
        namespace: said(metadata, "namespace", "metadata"),
        version: version.as_str().map(|version| {
            let at = "metadata.labels.app.kubernetes.io/version";
            (version.to_owned(), at.to_owned())
        }),
        // Variables may come from a ConfigMap that is not here.
        queue: queue
            .or(flag)
            .or_else(|| container["envFrom"].is_null().then(String::new)),
        keeps_off_own_nodes: keeps_off(required) || selects(&pod["nodeSelector"]),
        replicas: value["spec"]["replicas"].as_i64(),
        ..Install::default()
    })
}

/// Whether an affinity keeps pods off nodes of NodePools, or to nodes of some other group.
fn keeps_off(affinity: &Value) -> bool {
    let terms = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    let terms = terms.as_array().map(Vec::as_slice).unwrap_or_default();
    let narrows = |expression: &Value| {
        let is_pool = expression["key"] == api::labels::NODEPOOL && expression["operator"] == "DoesNotExist";
        let is_group = matches!(expression["operator"].as_str(), Some("In" | "Exists"));
        is_pool || (is_group && is_of_a_group(expression["key"].as_str().unwrap_or_default()))
    };
    let narrow = |term: &Value| {
        term["matchExpressions"]
            .as_array()
            .is_some_and(|all| all.iter().any(narrows))
    };
    !terms.is_empty() && terms.iter().all(narrow)
}

fn selects(selector: &Value) -> bool {
    selector
        .as_object()
        .is_some_and(|labels| labels.keys().any(|key| is_of_a_group(key)))
}

/// Any label but those that nodes of every kind have.
fn is_of_a_group(key: &str) -> bool {
    ![
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    ]
    .contains(&key)
}

fn said(value: &Value, field: &str, path: &str) -> Option<(String, String)> {
    let said = value[field].as_str()?;
    Some((said.to_owned(), join(path, field)))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
