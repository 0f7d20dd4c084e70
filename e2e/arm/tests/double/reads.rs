//! Is what the region offers shown in the shape of the published APIs, page by page?

use serde_json::{Value, json};

use crate::client::{AKS, Azure, NETWORK};

/// All items of a list that has a `nextLink`, and how many pages it took.
async fn all(azure: &Azure, first: &str) -> (Vec<Value>, usize) {
    let (mut items, mut pages, mut next) = (Vec::new(), 0, first.to_owned());
    loop {
        let mut got = azure.get(&next).await;
        assert_eq!(got.status, 200, "{got:?}");
        pages += 1;
        items.append(got.body["value"].as_array_mut().unwrap());
        match got.body["nextLink"].as_str() {
            Some(link) => link.clone_into(&mut next),
            None => return (items, pages),
        }
    }
}

#[tokio::test]
async fn sizes_are_listed_in_pages() {
    let azure = Azure::start().await;
    let target = azure.in_subscription("providers/Microsoft.Compute/skus", "2021-07-01");
    let filtered = format!("{target}&$filter=location eq 'eastus'");
    let (whole, one) = all(&azure, &filtered).await;
    azure.turn("page", json!({"operation": "ResourceSkus_List", "size": 50}));
    let (paged, four) = all(&azure, &filtered).await;
    assert_eq!((one, four), (1, 4));
    assert_eq!(whole, paged);
    let sku = whole.iter().find(|sku| sku["name"] == "Standard_D2s_v3").unwrap();
    assert_eq!(sku["family"], "standardDSv3Family");
    assert_eq!(sku["locationInfo"][0]["location"], "eastus");
    assert_eq!(sku["locationInfo"][0]["zones"], json!(["1", "2", "3"]));
    assert!(whole.iter().any(|sku| sku["resourceType"] == "disks"));
    let (none, _) = all(&azure, &format!("{target}&$filter=location eq 'westus'")).await;
    assert!(none.is_empty());
    azure.assert_clean();
}

#[tokio::test]
async fn a_filter_that_the_api_does_not_have_is_a_violation() {
    let azure = Azure::start().await;
    let target = azure.in_subscription("providers/Microsoft.Compute/skus", "2021-07-01");
    let got = azure.get(&format!("{target}&$filter=name eq 'x'")).await;
    assert_eq!((got.status, azure.double.violations().len()), (400, 1));
}

#[tokio::test]
async fn prices_are_filtered_and_paged_and_the_cheapest_plain_meter_is_right() {
    let azure = Azure::start().await;
    let target = "/api/retail/prices?api-version=2023-01-01-preview&$filter=priceType eq 'Consumption' and currencyCode \
                  eq 'USD' and serviceFamily eq 'Compute' and serviceName eq 'Virtual Machines' and armRegionName eq \
                  'eastus'";
    let (mut items, mut next, mut pages) = (Vec::new(), target.to_owned(), 0);
    loop {
        // Without a token: the prices are public.
        let mut got = azure.raw("GET", &next, &[], "").await.unwrap();
        pages += 1;
        items.append(got.body["Items"].as_array_mut().unwrap());
        match got.body["NextPageLink"].as_str() {
            Some(link) => link.clone_into(&mut next),
            None => break,
        }
    }
    assert!(pages > 5, "{pages}");
    let price = |size: &str, suffix: &str| {
        let meters = items.iter().filter(|item| item["armSkuName"] == size);
        let meters = meters.filter(|item| item["skuName"].as_str().unwrap().ends_with(" Spot") != suffix.is_empty());
        let meters = meters.filter(|item| !item["meterName"].as_str().unwrap().ends_with(" Low Priority"));
        let prices = meters.map(|item| item["retailPrice"].as_f64().unwrap());
        prices.fold(f64::MAX, f64::min)
    };
    assert!((price("Standard_D16ads_v5", "") - 0.824).abs() < 1e-9);
    assert!((price("Standard_D4s_v5", " Spot") - 0.02112).abs() < 1e-9);
    azure.assert_clean();
}

#[tokio::test]
async fn a_price_can_be_set_and_a_strange_filter_is_a_violation() {
    let azure = Azure::start().await;
    azure.turn(
        "price",
        json!({"size": "Standard_D4s_v5", "on_demand": 1.5, "spot": null}),
    );
    let target = "/api/retail/prices?api-version=2023-01-01-preview&$filter=armSkuName eq 'Standard_D4s_v5'";
    let got = azure.raw("GET", target, &[], "").await.unwrap();
    assert_eq!(got.body["Items"].as_array().unwrap().len(), 2);
    assert_eq!(got.body["Items"][1]["retailPrice"], 1.5);
    azure.assert_clean();
    let got = azure
        .raw("GET", &target.replace("armSkuName eq", "armSkuName gt"), &[], "")
        .await
        .unwrap();
    assert_eq!((got.status, azure.double.violations().len()), (400, 1));
}

#[tokio::test]
async fn community_images_are_listed_and_new_ones_come() {
    let azure = Azure::start().await;
    let gallery = "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2";
    let target = |image: &str| {
        let path = format!(
            "providers/Microsoft.Compute/locations/eastus/communityGalleries/{gallery}/images/{image}/versions"
        );
        azure.in_subscription(&path, "2025-03-03")
    };
    let newest = |list: &[Value]| {
        let newest = list
            .iter()
            .max_by_key(|one| one["properties"]["publishedDate"].as_str().unwrap().to_owned());
        newest.unwrap()["name"].as_str().unwrap().to_owned()
    };
    let (before, _) = all(&azure, &target("2204gen2containerd")).await;
    assert_eq!(newest(&before), "202512.18.0");
    azure.turn(
        "image",
        json!({"image": "2204gen2containerd", "version": "202601.01.0", "published": "2026-01-01T00:00:00Z"}),
    );
    let (after, _) = all(&azure, &target("2204gen2containerd")).await;
    assert_eq!(newest(&after), "202601.01.0");
    // FIPS images are not in community galleries.
    assert_eq!(azure.get(&target("2004gen2fipscontainerd")).await.status, 404);
    azure.assert_clean();
}

#[tokio::test]
async fn node_images_are_listed_in_pages() {
    let azure = Azure::start().await;
    azure.turn("page", json!({"operation": "NodeImageVersions_List", "size": 30}));
    let path = "providers/Microsoft.ContainerService/locations/eastus/nodeImageVersions";
    let (list, pages) = all(&azure, &azure.in_subscription(path, AKS)).await;
    assert!(pages > 1);
    assert!(
        list.iter()
            .any(|one| one["fullName"] == "AKSUbuntu-2204gen2containerd-202512.18.0")
    );
    azure.assert_clean();
}

#[tokio::test]
async fn the_cluster_has_its_balancers_groups_and_networks() {
    let azure = Azure::start().await;
    let (balancers, _) = all(&azure, &azure.in_group("Microsoft.Network/loadBalancers", NETWORK)).await;
    let names: Vec<&str> = balancers.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["kubernetes", "kubernetes-internal"]);
    assert_eq!(
        balancers[0]["properties"]["backendAddressPools"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    let (groups, _) = all(
        &azure,
        &azure.in_group("Microsoft.Network/networkSecurityGroups", NETWORK),
    )
    .await;
    assert_eq!(groups[0]["name"], "aks-agentpool-12345678-nsg");
    let group = azure
        .get(&azure.in_group("Microsoft.Network/networkSecurityGroups/jumpbox-nsg", NETWORK))
        .await;
    assert_eq!(group.status, 200);
    let vnet = azure
        .get(&azure.in_group("Microsoft.Network/virtualNetworks/aks-vnet-12345678", NETWORK))
        .await;
    assert_eq!(
        vnet.body["properties"]["resourceGuid"],
        "0000000a-0000-4000-8000-000000000001"
    );
    let setup = azure.double.setup();
    for id in [setup.subnet_id(), setup.own_subnet_id()] {
        let subnet = azure.get(&format!("{id}?api-version={NETWORK}")).await;
        assert_eq!((subnet.status, &subnet.body["id"]), (200, &json!(id)));
    }
    let none = azure
        .get(&format!("{}x?api-version={NETWORK}", setup.subnet_id()))
        .await;
    assert_eq!(none.status, 404);
    let none = azure
        .get(&azure.in_group("Microsoft.Network/virtualNetworks/none", NETWORK))
        .await;
    assert_eq!(none.status, 404);
    azure.assert_clean();
}

#[tokio::test]
async fn locations_name_the_region_and_its_zones() {
    let azure = Azure::start().await;
    let got = azure.get(&azure.in_subscription("locations", "2022-12-01")).await;
    assert_eq!(got.body["value"][0]["name"], "eastus");
    assert_eq!(
        got.body["value"][0]["availabilityZoneMappings"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    azure.assert_clean();
}

#[tokio::test]
async fn every_size_of_the_catalogue_has_what_a_reader_needs() {
    let azure = Azure::start().await;
    let (list, _) = all(
        &azure,
        &azure.in_subscription("providers/Microsoft.Compute/skus", "2021-07-01"),
    )
    .await;
    let sizes: Vec<&Value> = list
        .iter()
        .filter(|sku| sku["resourceType"] == "virtualMachines")
        .collect();
    assert!(sizes.len() > 150, "{}", sizes.len());
    for sku in sizes {
        let capability = |name: &str| {
            let list = sku["capabilities"].as_array().unwrap().iter();
            list.clone().any(|one| one["name"] == name)
        };
        for name in [
            "vCPUs",
            "MemoryGB",
            "HyperVGenerations",
            "AcceleratedNetworkingEnabled",
            "LowPriorityCapable",
        ] {
            assert!(capability(name), "{} has no {name}", sku["name"]);
        }
        assert!(sku["family"].is_string());
    }
}
