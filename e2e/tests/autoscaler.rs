//! Does our binary keep a real cluster supplied with nodes?

use anyhow::Result;
use e2e::autoscaler::{
    apply_deployment, apply_pool, await_leader, await_nothing_left, await_ready, claims, cluster, delete, nodes, start,
};

#[test]
fn a_deployment_gets_the_nodes_it_needs_and_they_go_with_their_pool() -> Result<()> {
    let cluster = cluster()?;
    let client = cluster.client();
    let _controller = start(&cluster, "dovetail", &[])?;
    await_leader(client)?;
    apply_pool(client, "default")?;
    apply_deployment(client, "web", 5, "1")?;
    await_ready(client, "web", 5)?;
    assert_eq!(claims(client)?.len(), nodes(client)?.len());
    delete(client, "default", "web")?;
    await_nothing_left(client)
}
