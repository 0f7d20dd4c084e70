//! What is there? All resources and knobs of a double, and which part of the world answers which operation.

use std::collections::BTreeMap;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    Setup,
    allocation::Limits,
    answer::{Answer, Refusal},
    catalogue::Catalogue,
    disk::Disk,
    extension::Extension,
    fault::Faults,
    gallery::Gallery,
    graph::Index,
    knob::{Latency, Page, Role, Stock, Style},
    ledger::Ledger,
    machine::Machine,
    network::Network,
    nic::Nic,
    operation::Operations,
    price::Prices,
    request::Asked,
    shelf::Shelf,
    token::Tokens,
    vm::{Eviction, Vm},
};

pub(crate) struct World {
    pub(crate) setup: Setup,
    /// Where this double answers.
    pub(crate) url: String,
    /// How far the knob has moved the time.
    pub(crate) ahead: SignedDuration,
    pub(crate) vms: Shelf<Vm>,
    pub(crate) nics: Shelf<Nic>,
    pub(crate) disks: Shelf<Disk>,
    pub(crate) extensions: BTreeMap<String, Extension>,
    pub(crate) machines: BTreeMap<String, Machine>,
    pub(crate) network: Network,
    pub(crate) catalogue: Catalogue,
    pub(crate) gallery: Gallery,
    pub(crate) prices: Prices,
    pub(crate) limits: Limits,
    pub(crate) stock: Vec<Stock>,
    pub(crate) faults: Faults,
    pub(crate) latencies: Vec<Latency>,
    pub(crate) styles: Vec<Style>,
    pub(crate) pages: Vec<Page>,
    pub(crate) graph: Index,
    pub(crate) operations: Operations,
    pub(crate) evictions: Vec<Eviction>,
    pub(crate) tokens: Tokens,
    /// What callers are allowed; everything if nobody said.
    pub(crate) role: Option<Role>,
    pub(crate) ledger: Ledger,
    serial: u64,
}

impl World {
    pub(crate) fn new(setup: Setup, url: String) -> Result<Self> {
        let mut world = Self {
            url,
            ahead: SignedDuration::ZERO,
            vms: Shelf::default(),
            nics: Shelf::default(),
            disks: Shelf::default(),
            extensions: BTreeMap::new(),
            machines: BTreeMap::new(),
            network: Network::new(&setup),
            catalogue: Catalogue::load(&setup)?,
            gallery: Gallery::load()?,
            prices: Prices::load()?,
            limits: Limits::new(setup.cores),
            stock: Vec::new(),
            faults: Faults::default(),
            latencies: Vec::new(),
            styles: Vec::new(),
            pages: Vec::new(),
            graph: Index::default(),
            operations: Operations::default(),
            evictions: Vec::new(),
            tokens: Tokens::default(),
            role: None,
            ledger: Ledger::default(),
            serial: 0,
            setup,
        };
        world.plant_foreigners();
        Ok(world)
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.setup.clock.0)() + self.ahead
    }

    /// A number that was not given before.
    pub(crate) fn next(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// An identifier in the form of a UUID, the same in every run.
    pub(crate) fn guid(&mut self) -> String {
        format!("00000000-0000-4000-8000-{:012x}", self.next())
    }

    /// Does what is asked.
    pub(crate) fn execute(&mut self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        self.authorize(asked)?;
        let group = self.group(asked)?;
        match asked.id() {
            "VirtualMachines_CreateOrUpdate" => self.put_vm(asked, &group),
            "VirtualMachines_Get" => self.get_vm(asked),
            "VirtualMachines_Update" => self.patch_vm(asked),
            "VirtualMachines_Delete" => self.delete_vm(asked),
            "VirtualMachines_List" => self.list_vms(asked, &group),
            "VirtualMachineExtensions_CreateOrUpdate" => self.put_extension(asked, &group),
            "VirtualMachineExtensions_Update" => self.patch_extension(asked),
            "VirtualMachineExtensions_Get" => self.get_extension(asked),
            "VirtualMachineExtensions_Delete" => Ok(self.delete_extension(asked)),
            "NetworkInterfaces_CreateOrUpdate" => self.put_nic(asked, &group),
            "NetworkInterfaces_Get" => self.get_nic(asked),
            "NetworkInterfaces_UpdateTags" => self.patch_nic(asked),
            "NetworkInterfaces_Delete" => self.delete_nic(asked),
            "NetworkInterfaces_List" => self.list_nics(asked, &group),
            "Disks_Get" => self.get_disk(asked),
            "Disks_Delete" => self.delete_disk(asked),
            "Operations_Status" => self.operation_status(asked),
            "Operations_Result" => self.operation_result(asked),
            "Resources" => self.query_graph(asked),
            "Machines_CreateOrUpdate" => self.put_machine(asked),
            "Machines_Get" => self.get_machine(asked),
            "Machines_List" => self.list_machines(asked),
            "AgentPools_DeleteMachines" => self.delete_machines(asked),
            "AgentPools_Get" => self.get_pool(asked),
            "NodeBootstrapping_Get" => self.node_bootstrapping(asked),
            _ => self.read(asked, &group),
        }
    }

    /// Operations that only show what is there.
    fn read(&self, asked: &Asked<'_>, group: &str) -> Result<Answer, Refusal> {
        match asked.id() {
            "LoadBalancers_List" => self.paged(asked, self.load_balancers(group)),
            "NetworkSecurityGroups_List" => self.paged(asked, self.security_groups(group)),
            "NetworkSecurityGroups_Get" => self.get_security_group(asked, group),
            "VirtualNetworks_Get" => self.get_vnet(asked, group),
            "Subnets_Get" => self.get_subnet(asked, group),
            "DiskEncryptionSets_Get" => self.get_encryption_set(asked, group),
            "ResourceSkus_List" => self.list_skus(asked),
            "Usage_List" => {
                self.in_region(asked.name("location"))?;
                self.paged(asked, self.usages())
            }
            "CommunityGalleryImageVersions_List" => self.list_gallery(asked),
            "NodeImageVersions_List" => self.list_node_images(asked),
            "Subscriptions_ListLocations" => Ok(Answer::ok(serde_json::json!({"value": self.locations()}))),
            "RetailPrices_List" => self.list_prices(asked),
            other => Err(Refusal::new(
                501,
                "NotImplemented",
                format!("The double does not play {other}."),
            )),
        }
    }

    fn list_skus(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        if let Some(filter) = asked.query.get("$filter") {
            let location = filter
                .strip_prefix("location eq '")
                .and_then(|rest| rest.strip_suffix('\''));
            let Some(location) = location else {
                let message = format!("The filter `{filter}` is not supported: only location eq '<region>' is.");
                return Err(Refusal::bad("InvalidFilterInQueryString", message));
            };
            if self.in_region(location).is_err() {
                return self.paged(asked, Vec::new());
            }
        }
        self.paged(asked, self.catalogue.list(&self.setup.region))
    }

    /// A list in pages of the size that the knob says, each with a link to the next.
    pub(crate) fn paged(&self, asked: &Asked<'_>, items: Vec<Value>) -> Result<Answer, Refusal> {
        let start = match asked.query.get("$skiptoken").map(|token| token.parse::<usize>()) {
            None => 0,
            Some(Ok(start)) => start,
            Some(Err(_)) => return Err(Refusal::bad("InvalidSkipToken", "The skip token is not ours.")),
        };
        let size = self.page_size(asked.id()).unwrap_or(usize::MAX);
        let is_more = items.len() > start.saturating_add(size);
        let page: Vec<Value> = items.into_iter().skip(start).take(size).collect();
        let mut body = serde_json::json!({"value": page});
        if is_more {
            let query = asked.query.iter().filter(|(name, _)| *name != "$skiptoken");
            let query: Vec<String> = query
                .map(|(name, value)| format!("{name}={}", crate::uri::quoted(value)))
                .collect();
            let next = format!(
                "{}{}?{}&$skiptoken={}",
                self.url,
                asked.path,
                query.join("&"),
                start + size
            );
            body["nextLink"] = Value::from(next);
        }
        Ok(Answer::ok(body))
    }

    pub(crate) fn page_size(&self, operation: &str) -> Option<usize> {
        let found = self
            .pages
            .iter()
            .rev()
            .find(|page| crate::glob::fits(&page.operation, operation));
        found.map(|page| page.size.max(1))
    }
}
