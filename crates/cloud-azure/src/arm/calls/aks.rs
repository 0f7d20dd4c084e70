//! The calls of AKS itself: machines of an agent pool, and the service that says how a node boots.

use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::CONTAINER_SERVICE;
use crate::arm::{
    Arm, Failure, Operation,
    client::read,
    wire::aks::{AgentPool, AksMachine, DeleteMachines, NodeBootstrapping, ProvisionValues},
};

/// How long the node bootstrapping service may take.
const BOOTSTRAPPING: Duration = Duration::from_secs(30);

/// An agent pool of machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pool {
    /// The resource group of the cluster.
    pub(crate) group: String,
    pub(crate) cluster: String,
    pub(crate) name: String,
}

impl Arm {
    fn pool_url(&self, pool: &Pool, tail: &str) -> String {
        let rest = format!(
            "Microsoft.ContainerService/managedClusters/{}/agentPools/{}{tail}",
            pool.cluster, pool.name
        );
        self.url(&self.in_group(&pool.group, &rest), CONTAINER_SERVICE, &[])
    }

    fn machine_url(&self, pool: &Pool, name: &str) -> String {
        self.pool_url(pool, &format!("/machines/{name}"))
    }

    /// The pool itself.
    pub(crate) async fn agent_pool(&self, pool: &Pool) -> Result<AgentPool, Failure> {
        self.get("GetAgentPool", self.pool_url(pool, "")).await
    }

    /// Makes a machine, or as many as the header for a batch names. What comes of it is asked of each machine.
    pub(crate) async fn put_aks_machine(
        &self,
        pool: &Pool,
        name: &str,
        machine: &AksMachine,
        batch: Option<String>,
    ) -> Result<(), Failure> {
        let mut headers = vec![spot_on_system_nodes()];
        headers.extend(batch.map(|batch| ("batchputmachine", batch)));
        let url = self.machine_url(pool, name);
        let asked = self.ask_with("PutAKSMachine", Method::PUT, url, Some(machine), headers);
        asked.await.map(drop)
    }

    /// Changes a machine: all of it is sent, unless it changed since it was read.
    pub(crate) async fn update_aks_machine(
        &self,
        pool: &Pool,
        name: &str,
        machine: &Value,
    ) -> Result<Operation, Failure> {
        let tag = machine.pointer("/properties/eTag").and_then(Value::as_str);
        let mut headers = vec![spot_on_system_nodes()];
        headers.extend(tag.map(|tag| ("if-match", tag.to_owned())));
        let url = self.machine_url(pool, name);
        let asked = self.ask_with("PutAKSMachine", Method::PUT, url.clone(), Some(machine), headers);
        Operation::begun("PutAKSMachine", &Method::PUT, &url, &asked.await?, self.now())
    }

    /// A machine.
    pub(crate) async fn aks_machine(&self, pool: &Pool, name: &str) -> Result<AksMachine, Failure> {
        self.get("GetAKSMachine", self.machine_url(pool, name)).await
    }

    /// A machine with everything that AKS says of it, to send it back.
    pub(crate) async fn whole_aks_machine(&self, pool: &Pool, name: &str) -> Result<Value, Failure> {
        self.get("GetAKSMachine", self.machine_url(pool, name)).await
    }

    /// The machines of a pool.
    pub(crate) async fn aks_machines(&self, pool: &Pool) -> Result<Vec<AksMachine>, Failure> {
        self.list("ListAKSMachines", self.pool_url(pool, "/machines")).await
    }

    /// Removes a machine, with everything that AKS made for it.
    pub(crate) async fn delete_aks_machine(&self, pool: &Pool, name: &str) -> Result<Operation, Failure> {
        let body = DeleteMachines {
            machine_names: vec![name.to_owned()],
        };
        let url = self.pool_url(pool, "/deleteMachines");
        let begun = self.begin("DeleteAKSMachines", Method::POST, url, Some(&body)).await;
        begun.map_err(|mut failure| {
            // As AKS says that there is none.
            if failure.code == "InvalidParameter" && failure.message.contains("Cannot find any valid machines") {
                failure.status = Some(404);
            }
            failure
        })
    }

    /// How a node boots, as the node bootstrapping service of the cluster has it. It speaks HTTP within the control plane.
    pub(crate) async fn node_bootstrapping(
        &self,
        server: &str,
        group: &str,
        cluster: &str,
        values: &ProvisionValues,
    ) -> Result<NodeBootstrapping, Failure> {
        let server = if server.contains("://") {
            server.trim_end_matches('/').to_owned()
        } else {
            format!("http://{}", server.trim_end_matches('/'))
        };
        let rest = format!("Microsoft.ContainerService/managedclusters/{cluster}/nodeBootstrapping");
        let url = format!("{server}{}", self.in_group(group, &rest));
        let asked = self.ask("GetNodeBootstrapping", Method::GET, url, Some(values));
        let Ok(answer) = tokio::time::timeout(BOOTSTRAPPING, asked).await else {
            let limit = BOOTSTRAPPING.as_secs();
            return Err(Failure::unanswered(format!(
                "GetNodeBootstrapping: no answer within {limit} s"
            )));
        };
        let answer = answer?;
        let boot: NodeBootstrapping = read("GetNodeBootstrapping", &answer.body)?;
        for (part, text) in [("cse", &boot.cse), ("customData", &boot.custom_data)] {
            if text.is_empty() {
                let message = format!("GetNodeBootstrapping: the answer has no {part}");
                return Err(Failure::with_code("InvalidResponse", message));
            }
        }
        Ok(boot)
    }
}

/// Upstream sends it with every machine.
fn spot_on_system_nodes() -> (&'static str, String) {
    ("allowspotvmsystemnode", "true".to_owned())
}
