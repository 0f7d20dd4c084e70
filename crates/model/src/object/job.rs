//! Jobs of manifests: which pods they will make, where nobody has made them yet.

use serde::{Deserialize, Serialize};

use super::{Metadata, Object, OwnerReference, Pod, PodTemplateSpec};
use crate::sharing::Sharing;

/// Pods that run to their end. No decision reads one: in a cluster its pods are there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Job {
    /// Who it is.
    pub metadata: Metadata,
    /// What it makes.
    pub spec: JobSpec,
}

/// What a Job makes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// How many pods run at once; one where nothing is said.
    pub parallelism: Option<i32>,
    /// How many have to succeed.
    pub completions: Option<i32>,
    /// Whether it makes none for now.
    pub suspend: bool,
    /// The pods it makes.
    pub template: PodTemplateSpec,
}

impl Job {
    /// Whether no API server has seen it: then no controller has made its pods.
    pub fn is_fresh(&self) -> bool {
        self.metadata.uid.is_unset()
    }

    /// How many pods it makes at first.
    pub fn width(&self) -> u32 {
        if self.spec.suspend {
            return 0;
        }
        let most = self.spec.completions.unwrap_or(i32::MAX);
        let at_once = self.spec.parallelism.unwrap_or(1).min(most);
        u32::try_from(at_once).unwrap_or_default()
    }

    /// The pods it makes at first, in the namespace kubectl would apply it to.
    pub fn pods(&self) -> impl Iterator<Item = Pod> {
        let Metadata { name, namespace, .. } = &self.metadata;
        let namespace = if namespace.is_empty() {
            "default".into()
        } else {
            namespace.clone()
        };
        let template = &self.spec.template;
        let owner = OwnerReference {
            api_version: Self::API_VERSION.into(),
            kind: Self::KIND.into(),
            name: name.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
            ..OwnerReference::default()
        };
        (0..self.width()).map(move |at| Pod {
            metadata: Metadata {
                name: format!("{name}-{at}").into(),
                namespace: namespace.clone(),
                labels: template.metadata.labels.clone(),
                annotations: template.metadata.annotations.clone(),
                owner_references: vec![owner.clone()].into(),
                ..Metadata::default()
            },
            spec: template.spec.clone(),
            ..Pod::default()
        })
    }
}

impl Object for Job {
    const API_VERSION: &'static str = "batch/v1";
    const KIND: &'static str = "Job";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
        self.spec.template.share(pool);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(spec: &Value) -> Job {
        serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_job_makes_as_many_pods_as_may_run_at_once_and_have_to_succeed() {
        let cases = [
            (json!({}), 1),
            (json!({"parallelism": 4}), 4),
            (json!({"parallelism": 4, "completions": 3}), 3),
            (json!({"parallelism": 4, "completions": 9}), 4),
            (json!({"completions": 9}), 1),
            (json!({"parallelism": 0}), 0),
            (json!({"parallelism": 4, "suspend": true}), 0),
        ];
        for (spec, expected) in cases {
            let job = job(&spec);
            assert_eq!(job.width(), expected, "{job:?}");
            assert_eq!(job.pods().count(), expected as usize, "{job:?}");
        }
    }

    #[test]
    fn its_pods_are_of_its_template_and_its_own() {
        let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"nodeSelector": {"a": "b"}}});
        let pod = job(&json!({"template": template})).pods().next().unwrap();
        assert_eq!(pod.metadata.key().to_string(), "default/a-0");
        assert_eq!(&*pod.metadata.controller().unwrap().kind, "Job");
        assert!(pod.metadata.labels.get("app").is_some() && !pod.spec.node_selector.is_empty());
    }
}
