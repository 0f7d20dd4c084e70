//! What is known about the types and classes of machines that were launched long ago?

use std::{collections::BTreeMap, sync::Arc};

use cloud::{CloudError, Instance};
use model::snapshot::CatalogType;

use super::facts::{Machine, Origin, Type, launched};
use crate::border::Reads;

/// Node classes and their types, each asked for once.
pub(super) struct Lookup<'a> {
    reads: &'a dyn Reads,
    /// By class, then by type.
    described: BTreeMap<String, BTreeMap<String, Arc<CatalogType>>>,
    /// By class and type, those that were needed.
    types: BTreeMap<(String, String), Type>,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(reads: &'a dyn Reads) -> Self {
        Self {
            reads,
            described: BTreeMap::new(),
            types: BTreeMap::new(),
        }
    }

    /// A machine as the cloud lists it. A class or a type that is gone leaves out what only it could say: a machine whose
    /// type left the catalogue must not make all others invisible.
    pub(super) async fn instance(&mut self, machine: &Machine) -> Result<Instance, CloudError> {
        let entry = match machine.node_class() {
            Some(class) => self.entry(class, &machine.instance_type).await?,
            None => None,
        };
        let origin = Origin {
            entry,
            ..Origin::default()
        };
        Ok(machine.instance(launched(machine, &origin)))
    }

    async fn entry(&mut self, class: &str, name: &str) -> Result<Option<&Type>, CloudError> {
        if !self.described.contains_key(class) {
            let described = self.describe(class).await?;
            self.described.insert(class.to_owned(), described);
        }
        let key = (class.to_owned(), name.to_owned());
        if !self.types.contains_key(&key)
            && let Some(entry) = self.described.get(class).and_then(|types| types.get(name))
        {
            self.types.insert(key.clone(), Type::of(entry));
        }
        Ok(self.types.get(&key))
    }

    async fn describe(&self, class: &str) -> Result<BTreeMap<String, Arc<CatalogType>>, CloudError> {
        let Some(class) = self.reads.node_class(class).await? else {
            return Ok(BTreeMap::new());
        };
        match self.reads.instance_types(&class).await {
            Ok(types) => Ok(types.into_iter().map(|it| (it.name.to_string(), it)).collect()),
            Err(error) => {
                tracing::debug!(error = %error, "machines are listed without what their types would say");
                Ok(BTreeMap::new())
            }
        }
    }
}
