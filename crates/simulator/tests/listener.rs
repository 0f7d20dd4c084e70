//! What a client outside the process gets: the same server over HTTP.
#![allow(clippy::unwrap_used, reason = "a test")]

mod speaking;

use http::{Request, header};
use http_body_util::BodyExt;
use kube_client::{Client, Config, client::Body};
use serde_json::{Value, json};
use simulator::{ApiServer, http::kubeconfig};
use speaking::server;
use tokio::net::TcpListener;

/// A client that comes through a listener, and the task that listens.
async fn outside(server: &ApiServer) -> (Client, tokio::task::JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut listening = tokio::task::JoinSet::new();
    listening.spawn(simulator::http::serve(server.clone(), listener));
    let config = Config::new(format!("http://{address}").parse().unwrap());
    (Client::try_from(config).unwrap(), listening)
}

async fn get(client: &Client, path: &str, accept: &str) -> (u16, String, Value) {
    let request = Request::get(path)
        .header(header::ACCEPT, accept)
        .body(Body::empty())
        .unwrap();
    let (head, body) = client.send(request).await.unwrap().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let media = head.headers["content-type"].to_str().unwrap().to_owned();
    (
        head.status.as_u16(),
        media,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

#[tokio::test]
async fn objects_go_over_a_listener_and_come_back() {
    let server = server();
    let (client, _listening) = outside(&server).await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    server.create(node).unwrap();
    let (code, _, node) = get(&client, "/api/v1/nodes/n", "application/json").await;
    assert_eq!((code, &node["metadata"]["name"]), (200, &json!("n")));
    assert_eq!(get(&client, "/api/v1/nodes/m", "application/json").await.0, 404);
    assert_eq!(get(&client, "/nowhere", "application/json").await.0, 404);
}

#[tokio::test]
async fn a_watch_is_streamed_as_things_happen() {
    let server = server();
    let (client, _listening) = outside(&server).await;
    let request = Request::get("/api/v1/nodes?watch=true").body(Body::empty()).unwrap();
    let mut body = client.send(request).await.unwrap().into_body();
    for name in ["a", "b"] {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        server.create(node).unwrap();
        let line = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let event: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["metadata"]["name"]),
            (&json!("ADDED"), &json!(name))
        );
    }
}

#[tokio::test]
async fn discovery_tells_the_same_in_both_forms() {
    let server = server();
    let (client, _listening) = outside(&server).await;
    let (_, _, plain) = get(&client, "/apis/apps/v1", "application/json").await;
    let mut plain: Vec<String> = plain["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect();
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let (_, media, whole) = get(&client, "/apis", accept).await;
    assert_eq!(
        media,
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    let items = whole["items"].as_array().unwrap();
    let apps = items.iter().find(|item| item["metadata"]["name"] == "apps").unwrap();
    let mut aggregated = Vec::new();
    for one in apps["versions"][0]["resources"].as_array().unwrap() {
        let plural = one["resource"].as_str().unwrap();
        aggregated.push(plural.to_owned());
        for part in one["subresources"].as_array().into_iter().flatten() {
            aggregated.push(format!("{plural}/{}", part["subresource"].as_str().unwrap()));
        }
    }
    plain.sort();
    aggregated.sort();
    assert_eq!(plain, aggregated);
    assert!(plain.contains(&"deployments/scale".to_owned()));
}

#[test]
fn a_kubeconfig_names_the_address() {
    let text = kubeconfig("127.0.0.1:4321".parse().unwrap());
    let read: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(read["clusters"][0]["cluster"]["server"], "http://127.0.0.1:4321");
    assert_eq!(read["contexts"][0]["context"]["cluster"], read["clusters"][0]["name"]);
    assert_eq!(read["current-context"], read["contexts"][0]["name"]);
}
