//! AWS for tests: moto with what it lacks, in a process of its own that ends with ours.

#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::sync::OnceLock;

use aws_sdk_ec2::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_ssm::types::ParameterType;
use cloud_aws::{ClientOptions, Clients};
use rig::moto::Moto;
use serde_json::Value;

/// The one server of this process, which dies with it.
fn server() -> &'static Moto {
    static SERVER: OnceLock<Moto> = OnceLock::new();
    SERVER.get_or_init(|| Moto::start().unwrap())
}

/// Clients of a region. Regions share nothing but IAM.
pub(crate) async fn clients(region: &str) -> Clients {
    clients_counted(region, None).await
}

/// The same, with requests counted.
pub(crate) async fn clients_counted(region: &str, metrics: Option<std::sync::Arc<runtime::Metrics>>) -> Clients {
    let url = tokio::task::spawn_blocking(|| server().url().to_owned()).await.unwrap();
    let credentials = Credentials::new("test", "test", None, None, "test");
    Clients::connect(ClientOptions {
        region: Some(region.to_owned()),
        endpoint_url: Some(url),
        credentials: Some(SharedCredentialsProvider::new(credentials)),
        metrics,
    })
    .await
    .unwrap()
}

/// Tells the double something: see the head of `moto_plus.py`.
pub(crate) async fn tell(clients: &Clients, what: &str, value: &Value) {
    clients
        .ssm
        .put_parameter()
        .name(format!("/moto-control/{what}"))
        .value(value.to_string())
        .r#type(ParameterType::String)
        .overwrite(true)
        .send()
        .await
        .unwrap();
}
