//! The values CEL does not know: what a device is made of, quantities and semantic versions.

use std::{any::Any, collections::BTreeMap, sync::Arc};

use cel::{
    ExecutionError,
    common::{
        traits::{Container, Indexer, Iterable, Iterator, Sizer},
        types::{CelInt, CelString, MAP_TYPE, Type},
        value::{CowVal, StaticVal, Val},
    },
};
use model::quantity::Quantity;

use super::semver::Version;

static QUANTITY: Type = Type::new_unspecified_type("kubernetes.Quantity");
static SEMVER: Type = Type::new_unspecified_type("kubernetes.Semver");

/// A map by name that iterates in the order of its names: the variable `device`, a map of domains, or one domain.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    entries: Arc<BTreeMap<String, Entry>>,
    /// What looking up an unknown name gives; an error when there is none.
    default: Option<Arc<Table>>,
}

/// Values by domain.
pub(super) type Domains = BTreeMap<String, Vec<(String, Box<dyn Val>)>>;

/// A value, and its name as CEL iterates over it.
#[derive(Debug)]
struct Entry {
    name: CelString<'static>,
    value: Box<dyn Val>,
}

/// `kubernetes.Quantity`
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount(pub(super) Quantity);

/// `kubernetes.Semver`
#[derive(Clone, Debug)]
pub(super) struct Release(pub(super) Version);

impl Table {
    /// The values by name.
    pub(super) fn new(values: impl IntoIterator<Item = (String, Box<dyn Val>)>) -> Self {
        let entry = |(text, value): (String, Box<dyn Val>)| {
            let name = CelString::from(text.clone());
            (text, Entry { name, value })
        };
        Self {
            entries: Arc::new(values.into_iter().map(entry).collect()),
            default: None,
        }
    }

    /// Values by domain and name. Looking up an unknown domain gives an empty map, so that
    /// `has(device.attributes["other.example.com"].model)` is false and not an error.
    pub(super) fn of_domains(domains: Domains) -> Self {
        let domain = |(name, values)| (name, Box::new(Self::new(values)) as Box<dyn Val>);
        Self {
            default: Some(Arc::default()),
            ..Self::new(domains.into_iter().map(domain))
        }
    }
}

fn text(value: &dyn Val) -> Result<&str, ExecutionError> {
    let text = value.downcast_ref::<CelString<'_>>();
    text.map(CelString::inner)
        .ok_or_else(|| ExecutionError::no_such_overload("_[_]", vec![value.get_type().name().to_owned()]))
}

impl Indexer for Table {
    fn get<'b, 'v>(&'b self, name: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = text(name)?;
        match (self.entries.get(name), &self.default) {
            (Some(entry), _) => Ok(CowVal::Borrowed(entry.value.as_ref())),
            (None, Some(default)) => Ok(CowVal::Borrowed(default.as_ref())),
            (None, None) => Err(ExecutionError::no_such_key(name)),
        }
    }

    fn steal<'v>(self: Box<Self>, name: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(name).map(CowVal::into_owned)
    }
}

impl Container for Table {
    fn contains(&self, name: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.entries.contains_key(text(name)?))
    }
}

impl Sizer for Table {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.entries.len()).unwrap_or(i64::MAX))
    }
}

struct Names<'b>(std::collections::btree_map::Values<'b, String, Entry>);

impl<'b, 'v> Iterator<'b, 'v> for Names<'b> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|entry| &entry.name as &dyn Val)
    }
}

impl Iterable for Table {
    fn iter<'b, 'v>(&'b self) -> Box<dyn Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Names(self.entries.values()))
    }
}

impl Val for Table {
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
        Box::new(self.clone())
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
