//! The calls we make, each with the version of the API that it is written for.

mod aks;

use http::Method;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Arm, Failure, Operation,
    client::{Asked, encoded, read},
    wire::{
        CommunityImageVersion, Extension, GraphAnswer, GraphOptions, GraphRequest, LoadBalancer, Named,
        NetworkInterface, NodeImageVersion, Page, PricePage, RetailPrice, Sku, Usage, VirtualMachine, VirtualNetwork,
    },
};

const COMPUTE: &str = "2025-04-01";
const NETWORK: &str = "2022-01-01";
const SKUS: &str = "2021-07-01";
const GRAPH: &str = "2021-06-01-preview";
const COMMUNITY_GALLERY: &str = "2025-03-03";
const DISK: &str = "2025-01-02";
const CONTAINER_SERVICE: &str = "2026-01-02-preview";
const RETAIL_PRICES: &str = "2023-01-01-preview";

pub(crate) use self::aks::Pool;

/// A body for DELETE and GET.
const NONE: Option<&()> = None;

impl Arm {
    fn in_group(&self, group: &str, rest: &str) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{group}/providers/{rest}",
            self.subscription()
        )
    }

    fn vm_url(&self, group: &str, name: &str, query: &[(&str, &str)]) -> String {
        let path = self.in_group(group, &format!("Microsoft.Compute/virtualMachines/{name}"));
        self.url(&path, COMPUTE, query)
    }

    fn nic_url(&self, group: &str, name: &str) -> String {
        let path = self.in_group(group, &format!("Microsoft.Network/networkInterfaces/{name}"));
        self.url(&path, NETWORK, &[])
    }

    fn extension_url(&self, group: &str, vm: &str, name: &str) -> String {
        let rest = format!("Microsoft.Compute/virtualMachines/{vm}/extensions/{name}");
        self.url(&self.in_group(group, &rest), COMPUTE, &[])
    }

    /// Asks for something that takes its time.
    async fn begin(
        &self,
        action: &'static str,
        method: Method,
        url: String,
        body: Option<&impl Serialize>,
    ) -> Result<Operation, Failure> {
        let answer = self.ask(action, method.clone(), url.clone(), body).await?;
        Operation::begun(action, &method, &url, &answer, self.now())
    }

    /// Every item of a list.
    async fn list<T: DeserializeOwned>(&self, action: &'static str, url: String) -> Result<Vec<T>, Failure> {
        let (mut all, mut next) = (Vec::new(), Some(url));
        while let Some(url) = next {
            if !self.environment().trusts(&url) {
                let message = format!("{action}: the next page is at {url}, which is not Resource Manager's");
                return Err(Failure::unanswered(message));
            }
            let page: Page = self.get(action, url).await?;
            for item in page.value {
                match serde_json::from_value(item) {
                    Ok(item) => all.push(item),
                    Err(error) => tracing::error!(action, %error, "an item of a list cannot be read"),
                }
            }
            next = page.next_link.filter(|link| !link.is_empty());
        }
        Ok(all)
    }

    /// Makes a virtual machine.
    pub async fn put_vm(&self, group: &str, name: &str, vm: &VirtualMachine) -> Result<Operation, Failure> {
        self.begin("PutVM", Method::PUT, self.vm_url(group, name, &[]), Some(vm))
            .await
    }

    /// A virtual machine.
    pub async fn vm(&self, group: &str, name: &str) -> Result<VirtualMachine, Failure> {
        self.get("GetVM", self.vm_url(group, name, &[])).await
    }

    /// A virtual machine, with how it fares.
    pub(crate) async fn vm_with_view(&self, group: &str, name: &str) -> Result<VirtualMachine, Failure> {
        let url = self.vm_url(group, name, &[("$expand", "instanceView")]);
        self.get("GetVM", url).await
    }

    /// Changes a virtual machine.
    pub async fn patch_vm(&self, group: &str, name: &str, patch: &Value) -> Result<Operation, Failure> {
        self.begin("PatchVM", Method::PATCH, self.vm_url(group, name, &[]), Some(patch))
            .await
    }

    /// Removes a virtual machine, with its disk and network interface.
    pub async fn delete_vm(&self, group: &str, name: &str) -> Result<Operation, Failure> {
        let url = self.vm_url(group, name, &[("forceDeletion", "true")]);
        self.begin("DeleteVM", Method::DELETE, url, NONE).await
    }

    /// Adds an extension to a virtual machine.
    pub async fn put_extension(
        &self,
        group: &str,
        vm: &str,
        name: &str,
        extension: &Extension,
    ) -> Result<Operation, Failure> {
        let url = self.extension_url(group, vm, name);
        self.begin("PutVMExtension", Method::PUT, url, Some(extension)).await
    }

    /// Changes an extension.
    pub async fn patch_extension(
        &self,
        group: &str,
        vm: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Operation, Failure> {
        let url = self.extension_url(group, vm, name);
        self.begin("PatchVMExtension", Method::PATCH, url, Some(patch)).await
    }

    /// Makes a network interface.
    pub async fn put_nic(&self, group: &str, name: &str, nic: &NetworkInterface) -> Result<Operation, Failure> {
        self.begin("PutNIC", Method::PUT, self.nic_url(group, name), Some(nic))
            .await
    }

    /// A network interface.
    pub async fn nic(&self, group: &str, name: &str) -> Result<NetworkInterface, Failure> {
        self.get("GetNIC", self.nic_url(group, name)).await
    }

    /// Changes the tags of a network interface.
    pub async fn patch_nic(&self, group: &str, name: &str, patch: &Value) -> Result<(), Failure> {
        let asked = self.ask("PatchNIC", Method::PATCH, self.nic_url(group, name), Some(patch));
        asked.await.map(drop)
    }

    /// Removes a network interface.
    pub async fn delete_nic(&self, group: &str, name: &str) -> Result<Operation, Failure> {
        self.begin("DeleteNIC", Method::DELETE, self.nic_url(group, name), NONE)
            .await
    }

    /// The load balancers of a group.
    pub async fn load_balancers(&self, group: &str) -> Result<Vec<LoadBalancer>, Failure> {
        let path = self.in_group(group, "Microsoft.Network/loadBalancers");
        self.list("ListLoadBalancers", self.url(&path, NETWORK, &[])).await
    }

    /// The network security groups of a group.
    pub async fn security_groups(&self, group: &str) -> Result<Vec<Named>, Failure> {
        let path = self.in_group(group, "Microsoft.Network/networkSecurityGroups");
        self.list("ListNSGs", self.url(&path, NETWORK, &[])).await
    }

    /// Whether there is such a subnet.
    pub async fn subnet(&self, group: &str, vnet: &str, name: &str) -> Result<(), Failure> {
        let rest = format!("Microsoft.Network/virtualNetworks/{vnet}/subnets/{name}");
        let url = self.url(&self.in_group(group, &rest), NETWORK, &[]);
        self.ask("GetSubnet", Method::GET, url, NONE).await.map(drop)
    }

    /// A virtual network.
    pub async fn vnet(&self, group: &str, name: &str) -> Result<VirtualNetwork, Failure> {
        let path = self.in_group(group, &format!("Microsoft.Network/virtualNetworks/{name}"));
        self.get("GetVNet", self.url(&path, NETWORK, &[])).await
    }

    /// Whether we may read a disk encryption set.
    pub async fn disk_encryption_set(&self, id: &str) -> Result<(), Failure> {
        let url = self.url(id, DISK, &[]);
        self.ask("GetDiskEncryptionSet", Method::GET, url, NONE).await.map(drop)
    }

    /// What Resource Graph finds.
    pub async fn graph(&self, query: &str) -> Result<Vec<Value>, Failure> {
        let url = self.url("/providers/Microsoft.ResourceGraph/resources", GRAPH, &[]);
        let (mut rows, mut skip_token) = (Vec::new(), None);
        loop {
            let request = GraphRequest {
                subscriptions: vec![self.subscription().to_owned()],
                query: query.to_owned(),
                options: GraphOptions {
                    result_format: "objectArray".to_owned(),
                    skip_token: skip_token.take(),
                },
            };
            let answer = self
                .ask("QueryResourceGraph", Method::POST, url.clone(), Some(&request))
                .await?;
            let answer: GraphAnswer = read("QueryResourceGraph", &answer.body)?;
            rows.extend(answer.data);
            skip_token = answer.skip_token.filter(|token| !token.is_empty());
            if skip_token.is_none() {
                return Ok(rows);
            }
        }
    }

    /// The sizes of a region.
    pub async fn skus(&self, region: &str) -> Result<Vec<Sku>, Failure> {
        let path = format!(
            "/subscriptions/{}/providers/Microsoft.Compute/skus",
            self.subscription()
        );
        let filter = format!("location eq '{region}'");
        self.list("ListSKUs", self.url(&path, SKUS, &[("$filter", &filter)]))
            .await
    }

    /// How much of our quotas is used in a region.
    pub async fn usages(&self, region: &str) -> Result<Vec<Usage>, Failure> {
        let path = format!(
            "/subscriptions/{}/providers/Microsoft.Compute/locations/{region}/usages",
            self.subscription()
        );
        self.list("ListUsages", self.url(&path, COMPUTE, &[])).await
    }

    /// The versions of an image in a community gallery.
    pub async fn community_versions(
        &self,
        region: &str,
        gallery: &str,
        image: &str,
    ) -> Result<Vec<CommunityImageVersion>, Failure> {
        let path = format!(
            "/subscriptions/{}/providers/Microsoft.Compute/locations/{region}/communityGalleries/{gallery}/images/{image}/versions",
            self.subscription()
        );
        let url = self.url(&path, COMMUNITY_GALLERY, &[]);
        self.list("ListCommunityImageVersions", url).await
    }

    /// The versions of node images that AKS supports in a region.
    pub async fn node_image_versions(&self, region: &str) -> Result<Vec<NodeImageVersion>, Failure> {
        let path = format!(
            "/subscriptions/{}/providers/Microsoft.ContainerService/locations/{region}/nodeImageVersions",
            self.subscription()
        );
        let url = self.url(&path, CONTAINER_SERVICE, &[]);
        self.list("ListNodeImageVersions", url).await
    }

    /// Retail prices of virtual machines in a region, from where everybody may read them.
    pub async fn retail_prices(&self, region: &str) -> Result<Vec<RetailPrice>, Failure> {
        let Some(pricing) = self.environment().pricing.clone() else {
            return Ok(Vec::new());
        };
        let filter = [
            "priceType eq 'Consumption'",
            "currencyCode eq 'USD'",
            "serviceFamily eq 'Compute'",
            "serviceName eq 'Virtual Machines'",
            &format!("armRegionName eq '{region}'"),
        ]
        .join(" and ");
        let first = format!(
            "{pricing}/api/retail/prices?api-version={RETAIL_PRICES}&$filter={}",
            encoded(&filter)
        );
        let (mut all, mut next) = (Vec::new(), Some(first));
        while let Some(url) = next {
            let asked = Asked {
                action: "ListRetailPrices",
                method: Method::GET,
                url,
                body: None,
                headers: Vec::new(),
                is_authorized: false,
            };
            let answer = self.send(&asked).await?;
            let page: PricePage = read("ListRetailPrices", &answer.body)?;
            all.extend(page.items);
            next = page.next_page_link.filter(|link| link.starts_with(&pricing));
        }
        Ok(all)
    }
}

/// A change of tags.
pub(crate) fn tags_patch(tags: &super::wire::Tags) -> Value {
    json!({"tags": tags})
}
