//! Can the node attach the pod's volumes beside those it has?

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How many volumes of each CSI driver a node attaches; a driver that is not named has no limit.
pub type Limits = BTreeMap<Arc<str>, usize>;

/// Volumes attached: driver and volume.
pub type Attached = BTreeSet<(Arc<str>, Arc<str>)>;

/// The first driver whose limit the new volumes would exceed. Volumes the node has already cost nothing, and drivers of
/// which nothing is added are not looked at.
pub fn exceeded<'a>(wanted: &'a [(Arc<str>, Arc<str>)], attached: &Attached, limits: &Limits) -> Option<&'a str> {
    let new: BTreeSet<_> = wanted.iter().filter(|volume| !attached.contains(volume)).collect();
    new.iter().map(|(driver, _)| driver).find_map(|driver| {
        let limit = limits.get(driver)?;
        let count =
            |volumes: &mut dyn Iterator<Item = &(Arc<str>, Arc<str>)>| volumes.filter(|it| it.0 == *driver).count();
        let total = count(&mut attached.iter()) + count(&mut new.iter().copied());
        (total > *limit).then_some(&**driver)
    })
}
