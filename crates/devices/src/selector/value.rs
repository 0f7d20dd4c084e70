//! The values CEL does not know: a device, maps by domain, quantities and semantic versions.

use std::{any::Any, collections::BTreeMap};

use cel::{
    ExecutionError,
    common::{
        traits::{Container, Indexer, Iterable, Iterator, Sizer},
        types::{CelInt, CelMap, CelString, MAP_TYPE, Type},
        value::{CowVal, StaticVal, Val},
    },
};
use model::quantity::Quantity;

use super::semver::Version;

static DEVICE: Type = Type::new_unspecified_type("kubernetes.DRADevice");
static QUANTITY: Type = Type::new_unspecified_type("kubernetes.Quantity");
static SEMVER: Type = Type::new_unspecified_type("kubernetes.Semver");

/// The variable `device`.
#[derive(Debug)]
pub(super) struct DeviceValue(pub(super) BTreeMap<&'static str, Box<dyn Val>>);

/// `device.attributes` and `device.capacity`: values by domain and name. Looking up an unknown domain gives an empty
/// map, so that `has(device.attributes["other.example.com"].model)` is false and not an error.
#[derive(Debug, Default)]
pub(super) struct Domains {
    by_name: BTreeMap<String, Domain>,
    nothing: CelMap<'static>,
}

/// One domain: its name as CEL iterates over it, and the values.
#[derive(Debug)]
struct Domain {
    name: CelString<'static>,
    values: CelMap<'static>,
}

/// `kubernetes.Quantity`
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount(pub(super) Quantity);

/// `kubernetes.Semver`
#[derive(Clone, Debug)]
pub(super) struct Release(pub(super) Version);

impl Domains {
    pub(super) fn insert(&mut self, domain: &str, name: &str, value: Box<dyn Val>) {
        let entry = self.by_name.entry(domain.to_owned()).or_insert_with(|| Domain {
            name: CelString::from(domain.to_owned()),
            values: CelMap::default(),
        });
        let mut values = std::mem::take(&mut entry.values).into_inner();
        values.insert(name.to_owned().into(), value);
        entry.values = CelMap::from(values);
    }
}

fn text(value: &dyn Val) -> Result<&str, ExecutionError> {
    let text = value.downcast_ref::<CelString<'_>>();
    text.map(CelString::inner)
        .ok_or_else(|| ExecutionError::no_such_overload("_[_]", vec![value.get_type().name().to_owned()]))
}

impl Indexer for DeviceValue {
    fn get<'b, 'v>(&'b self, field: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = text(field)?;
        match self.0.get(name) {
            Some(value) => Ok(CowVal::Borrowed(value.as_ref())),
            None => Err(ExecutionError::no_such_key(name)),
        }
    }

    fn steal<'v>(self: Box<Self>, field: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(field).map(CowVal::into_owned)
    }
}

impl Val for DeviceValue {
    fn get_type(&self) -> &Type {
        &DEVICE
    }

    fn cel_type() -> &'static Type {
        &DEVICE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        let copies = self.0.iter().map(|(name, value)| (*name, value.clone_as_boxed()));
        Box::new(Self(copies.collect()))
    }
}

impl Indexer for Domains {
    fn get<'b, 'v>(&'b self, domain: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let found = self.by_name.get(text(domain)?);
        Ok(CowVal::Borrowed(found.map_or(&self.nothing, |domain| &domain.values)))
    }

    fn steal<'v>(self: Box<Self>, domain: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(domain).map(CowVal::into_owned)
    }
}

impl Container for Domains {
    fn contains(&self, domain: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.by_name.contains_key(text(domain)?))
    }
}

impl Sizer for Domains {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.by_name.len()).unwrap_or(i64::MAX))
    }
}

struct Names<'b>(std::collections::btree_map::Values<'b, String, Domain>);

impl<'b, 'v> Iterator<'b, 'v> for Names<'b> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|domain| &domain.name as &dyn Val)
    }
}

impl Iterable for Domains {
    fn iter<'b, 'v>(&'b self) -> Box<dyn Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Names(self.by_name.values()))
    }
}

impl Val for Domains {
    fn get_type(&self) -> &Type {
        &MAP_TYPE
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        let mut copy = Self::default();
        for (domain, entry) in &self.by_name {
            for (name, value) in entry.values.inner() {
                if let Some(name) = name.inner().downcast_ref::<CelString<'_>>() {
                    copy.insert(domain, name.inner(), value.clone_as_boxed());
                }
            }
        }
        Box::new(copy)
    }
}

impl Val for Amount {
    fn get_type(&self) -> &Type {
        &QUANTITY
    }

    fn cel_type() -> &'static Type {
        &QUANTITY
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| other.0 == self.0)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(*self)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Amount {}

impl Val for Release {
    fn get_type(&self) -> &Type {
        &SEMVER
    }

    fn cel_type() -> &'static Type {
        &SEMVER
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| other.0.cmp(&self.0).is_eq())
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Release {}
