//! Who we are: tokens as Azure gives them, and what happens when one is no longer good.

use std::sync::Arc;

use arm::knob::{Knob, TokenRule};
use cloud_azure::arm::{Credential, ManagedIdentity, StaticToken, Transport, credential};
use runtime::Clock;

use crate::{
    wire::Wire,
    world::{client, environment, settings},
};

fn clock() -> Clock {
    Clock::starting_at("2026-11-17T10:00:00Z".parse().unwrap())
}

fn only_issued() -> TokenRule {
    TokenRule {
        only_issued: Some(true),
        ..TokenRule::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_token_of_a_service_account_is_exchanged_and_renewed_when_it_is_taken_back_or_old() {
    let clock = clock();
    let (wire, double) = Wire::start(&clock).await;
    double.turn(Knob::Token(only_issued())).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "federated\n").unwrap();
    let mut azure = settings(&double).azure;
    azure.tenant_id.clone_from(&double.setup().tenant);
    "identity".clone_into(&mut azure.client_id);
    azure.federated_token_file = file.path().to_string_lossy().into_owned();
    let transport: Arc<dyn Transport> = Arc::new(wire.clone());
    let ours = credential(&azure, &environment(&double), &transport, &clock).unwrap();
    let arm = client(&double, &wire, &clock, Arc::clone(&ours));
    arm.check().await.unwrap();
    arm.usages("eastus").await.unwrap();
    let revoked = TokenRule {
        revoke: true,
        ..TokenRule::default()
    };
    double.turn(Knob::Token(revoked)).unwrap();
    arm.usages("eastus").await.unwrap();
    let short = TokenRule {
        lifetime_seconds: Some(600),
        ..TokenRule::default()
    };
    double.turn(Knob::Token(short)).unwrap();
    let arm = client(&double, &wire, &clock, ours);
    arm.usages("eastus").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_mins(11)).await;
    arm.usages("eastus").await.unwrap();
    let refused: Vec<_> = double.calls().into_iter().filter(|call| call.status == 401).collect();
    assert_eq!(refused.len(), 1, "only the one that was taken back: {refused:?}");
    // Another's token is none.
    let other = client(&double, &wire, &clock, Arc::new(StaticToken("other".to_owned())));
    assert_eq!(other.usages("eastus").await.unwrap_err().status, Some(401));
    assert_eq!(double.violations(), []);
}

#[tokio::test(start_paused = true)]
async fn an_identity_that_azure_does_not_know_is_told_in_its_words() {
    let clock = clock();
    let (wire, double) = Wire::start(&clock).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "federated").unwrap();
    let mut azure = settings(&double).azure;
    "another-tenant".clone_into(&mut azure.tenant_id);
    "identity".clone_into(&mut azure.client_id);
    azure.federated_token_file = file.path().to_string_lossy().into_owned();
    let transport: Arc<dyn Transport> = Arc::new(wire.clone());
    let ours = credential(&azure, &environment(&double), &transport, &clock).unwrap();
    let refused = client(&double, &wire, &clock, ours).check().await.unwrap_err();
    assert!(refused.to_string().contains("AADSTS90002"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn the_identity_of_the_machine_gives_tokens_too() {
    let clock = clock();
    let (wire, double) = Wire::start(&clock).await;
    double.turn(Knob::Token(only_issued())).unwrap();
    let identity: Arc<dyn Credential> = Arc::new(ManagedIdentity {
        transport: Arc::new(wire.clone()),
        clock: clock.clone(),
        service: double.url(),
        audience: "https://management.azure.com".to_owned(),
        client_id: String::new(),
    });
    let arm = client(&double, &wire, &clock, identity);
    arm.usages("eastus").await.unwrap();
    assert_eq!(double.violations(), []);
}
