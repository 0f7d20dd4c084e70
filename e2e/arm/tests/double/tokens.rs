//! Who gets a token, and who gets in?

use serde_json::json;

use crate::client::Azure;

const SCOPE: &str = "https%3A%2F%2Fmanagement.azure.com%2F.default";

fn form(assertion: &str) -> String {
    format!(
        "grant_type=client_credentials&client_id=id&scope={SCOPE}&client_assertion={assertion}&client_assertion_type=\
         urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
    )
}

async fn federated(azure: &Azure) -> String {
    let path = format!("/{}/oauth2/v2.0/token", azure.double.setup().tenant);
    let got = azure.raw("POST", &path, &[], &form("jwt")).await.unwrap();
    assert_eq!(got.status, 200, "{got:?}");
    got.body["access_token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn without_a_token_nobody_gets_in() {
    let azure = Azure::start().await;
    let got = azure.raw("GET", &azure.vm("aks-a"), &[], "").await.unwrap();
    assert_eq!((got.status, got.code()), (401, "AuthenticationFailed"));
    assert!(got.header("www-authenticate").starts_with("Bearer"));
    let basic = [("authorization", "Basic x")];
    assert_eq!(
        azure.raw("GET", &azure.vm("aks-a"), &basic, "").await.unwrap().status,
        401
    );
    azure.assert_clean();
}

#[tokio::test]
async fn a_federated_token_is_exchanged_and_expires() {
    let mut azure = Azure::start().await;
    azure.turn("token", json!({"lifetime_seconds": 60, "only_issued": true}));
    assert_eq!(azure.get(&azure.vm("aks-a")).await.code(), "InvalidAuthenticationToken");
    azure.token = federated(&azure).await;
    assert_eq!(azure.get(&azure.vm("aks-a")).await.status, 404);
    azure.double.advance(60).unwrap();
    assert_eq!(azure.get(&azure.vm("aks-a")).await.code(), "ExpiredAuthenticationToken");
    azure.token = federated(&azure).await;
    assert_eq!(azure.get(&azure.vm("aks-a")).await.status, 404);
    azure.turn("token", json!({"revoke": true}));
    assert_eq!(azure.get(&azure.vm("aks-a")).await.code(), "InvalidAuthenticationToken");
}

#[tokio::test]
async fn a_token_that_expires_in_the_middle_of_polling_is_refused_there() {
    let mut azure = Azure::start().await;
    azure.turn("token", json!({"lifetime_seconds": 60}));
    azure.token = federated(&azure).await;
    azure.double.latency("VirtualMachines_CreateOrUpdate", 90);
    let got = azure.ask_vm("aks-a", &azure.vm_body("aks-a")).await;
    let url = got.header("azure-asyncoperation");
    assert_eq!(azure.get(url).await.status, 200);
    azure.double.advance(90).unwrap();
    assert_eq!(azure.get(url).await.status, 401);
    azure.token = federated(&azure).await;
    assert_eq!(azure.get(url).await.body["status"], "Succeeded");
}

#[tokio::test]
async fn an_exchange_that_lacks_something_is_refused() {
    let azure = Azure::start().await;
    let path = format!("/{}/oauth2/v2.0/token", azure.double.setup().tenant);
    for (path, form) in [
        (path.as_str(), form("")),
        (path.as_str(), form("jwt").replace("client_credentials", "password")),
        (path.as_str(), form("jwt").replace(".default", "")),
        ("/other/oauth2/v2.0/token", form("jwt")),
    ] {
        let got = azure.raw("POST", path, &[], &form).await.unwrap();
        assert_eq!(got.status, 400, "{form}");
        assert!(got.body["error"].is_string());
    }
}

#[tokio::test]
async fn a_managed_identity_gets_its_token_from_the_metadata_service() {
    let mut azure = Azure::start().await;
    azure.turn("token", json!({"only_issued": true}));
    let path = "/metadata/identity/oauth2/token?api-version=2019-08-01&resource=https://management.azure.com/";
    assert_eq!(azure.raw("GET", path, &[], "").await.unwrap().status, 400);
    let got = azure.raw("GET", path, &[("metadata", "true")], "").await.unwrap();
    assert_eq!(got.body["token_type"], "Bearer");
    assert_eq!(got.body["expires_in"], "86400");
    azure.token = got.body["access_token"].as_str().unwrap().to_owned();
    assert_eq!(azure.get(&azure.vm("aks-a")).await.status, 404);
}
