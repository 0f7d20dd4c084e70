//! How many volumes of each CSI driver a node can attach, and whether a pod's volumes still fit.
//!
//! A volume is known by its claim (`namespace/name`): a claim that several pods of a node share is attached once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The driver of in-tree EBS volumes.
pub const EBS_DRIVER: &str = "ebs.csi.aws.com";

/// In-tree provisioners and the CSI drivers that took over from them.
const IN_TREE: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", EBS_DRIVER),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
];

/// The CSI driver behind a StorageClass's provisioner.
pub fn driver_of_provisioner(provisioner: &str) -> &str {
    IN_TREE
        .iter()
        .find(|(in_tree, _)| *in_tree == provisioner)
        .map_or(provisioner, |(_, driver)| driver)
}

/// Claims by driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volumes {
    claims: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl Volumes {
    /// Adds a claim of a driver.
    pub fn insert(&mut self, driver: impl Into<Arc<str>>, claim: impl Into<Arc<str>>) {
        self.claims.entry(driver.into()).or_default().insert(claim.into());
    }

    /// Adds all claims of another set.
    pub fn extend(&mut self, others: &Self) {
        for (driver, claims) in &others.claims {
            self.claims
                .entry(Arc::clone(driver))
                .or_default()
                .extend(claims.iter().cloned());
        }
    }

    /// Whether there is no claim.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// How many claims of each driver there are, together with the others.
    pub fn counts_with<'a>(&'a self, others: &'a Self) -> impl Iterator<Item = (&'a str, usize)> {
        let drivers: BTreeSet<_> = self.claims.keys().chain(others.claims.keys()).collect();
        drivers.into_iter().map(move |driver| {
            let of = |volumes: &'a Self| volumes.claims.get(driver).into_iter().flatten();
            (
                driver.as_ref(),
                of(self).chain(of(others)).collect::<BTreeSet<_>>().len(),
            )
        })
    }
}

/// More volumes than can be attached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("would exceed volume limit (provisioner={driver}, volume-count={count}, volume-limit={limit})")]
pub struct VolumeLimitExceeded {
    /// The driver.
    pub driver: String,
    /// How many there would be.
    pub count: usize,
    /// How many there may be.
    pub limit: usize,
}

/// How many volumes may be attached, by driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeLimits {
    limits: BTreeMap<Arc<str>, usize>,
    /// Drivers the node itself speaks for; what the instance type expects of them no longer counts.
    published: BTreeSet<Arc<str>>,
}

impl VolumeLimits {
    /// What the node's CSINode says of a driver; none for a driver without a limit.
    pub fn publish(&mut self, driver: impl Into<Arc<str>>, limit: Option<usize>) {
        let driver = driver.into();
        match limit {
            Some(limit) => self.limits.insert(Arc::clone(&driver), limit),
            None => self.limits.remove(&driver),
        };
        self.published.insert(driver);
    }

    /// What the instance type expects of a driver, until the node speaks for itself.
    pub fn expect(&mut self, driver: impl Into<Arc<str>>, limit: usize) {
        let driver = driver.into();
        if !self.published.contains(&driver) {
            self.limits.insert(driver, limit);
        }
    }

    /// Whether so many volumes may be attached. Drivers that nothing is added of count too: a node beyond a limit
    /// takes no more pods.
    pub fn check<'a>(&self, counts: impl IntoIterator<Item = (&'a str, usize)>) -> Result<(), VolumeLimitExceeded> {
        let exceeded = |(driver, count): (&'a str, usize)| {
            let limit = self.limits.get(driver).copied().filter(|limit| count > *limit)?;
            Some(VolumeLimitExceeded {
                driver: driver.to_owned(),
                count,
                limit,
            })
        };
        counts.into_iter().find_map(exceeded).map_or(Ok(()), Err)
    }
}

/// The volumes attached to one node, by pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeUsage<Pod> {
    attached: Volumes,
    by_pod: BTreeMap<Pod, Volumes>,
    /// How many there may be.
    pub limits: VolumeLimits,
}

impl<Pod> Default for VolumeUsage<Pod> {
    fn default() -> Self {
        Self {
            attached: Volumes::default(),
            by_pod: BTreeMap::new(),
            limits: VolumeLimits::default(),
        }
    }
}

impl<Pod: Ord> VolumeUsage<Pod> {
    /// Records a pod's volumes.
    pub fn add(&mut self, pod: Pod, volumes: Volumes) {
        self.attached.extend(&volumes);
        self.by_pod.insert(pod, volumes);
    }

    /// Forgets a pod's volumes; those that other pods share stay.
    pub fn remove(&mut self, pod: &Pod) {
        self.by_pod.remove(pod);
        self.attached = Volumes::default();
        for volumes in self.by_pod.values() {
            self.attached.extend(volumes);
        }
    }

    /// Whether the volumes can be attached as well.
    pub fn check(&self, volumes: &Volumes) -> Result<(), VolumeLimitExceeded> {
        self.limits.check(self.attached.counts_with(volumes))
    }
}

#[cfg(test)]
mod tests {
    use super::{VolumeLimitExceeded, VolumeUsage, Volumes, driver_of_provisioner};

    fn volumes(claims: &[(&str, &str)]) -> Volumes {
        let mut volumes = Volumes::default();
        for (driver, claim) in claims {
            volumes.insert(*driver, *claim);
        }
        volumes
    }

    fn exceeded(driver: &str, count: usize, limit: usize) -> Result<(), VolumeLimitExceeded> {
        Err(VolumeLimitExceeded {
            driver: driver.to_owned(),
            count,
            limit,
        })
    }

    #[test]
    fn shared_claim_counts_once_and_stays_while_a_pod_uses_it() {
        let mut usage = VolumeUsage::default();
        usage.limits.publish("ebs", Some(2));
        usage.add("a", volumes(&[("ebs", "ns/shared"), ("ebs", "ns/own")]));
        usage.add("b", volumes(&[("ebs", "ns/shared")]));
        assert_eq!(usage.check(&volumes(&[("ebs", "ns/own")])), Ok(()));
        assert_eq!(usage.check(&volumes(&[("ebs", "ns/new")])), exceeded("ebs", 3, 2));
        usage.remove(&"a");
        assert_eq!(usage.check(&volumes(&[("ebs", "ns/new")])), Ok(()));
        assert_eq!(
            usage.check(&volumes(&[("ebs", "ns/new"), ("ebs", "ns/newer")])),
            exceeded("ebs", 3, 2)
        );
    }

    #[test]
    fn node_beyond_a_limit_takes_no_pod_even_one_without_volumes() {
        let mut usage = VolumeUsage::default();
        usage.add("a", volumes(&[("ebs", "ns/1"), ("ebs", "ns/2")]));
        assert_eq!(usage.check(&Volumes::default()), Ok(()));
        usage.limits.publish("ebs", Some(1));
        assert_eq!(usage.check(&Volumes::default()), exceeded("ebs", 2, 1));
        assert_eq!(
            usage.check(&Volumes::default()).unwrap_err().to_string(),
            "would exceed volume limit (provisioner=ebs, volume-count=2, volume-limit=1)"
        );
    }

    #[test]
    fn expected_limits_hold_only_until_the_driver_is_published() {
        let two = volumes(&[("ebs", "ns/1"), ("ebs", "ns/2")]);
        let mut usage = VolumeUsage::<&str>::default();
        usage.limits.expect("ebs", 1);
        assert_eq!(usage.check(&two), exceeded("ebs", 2, 1));
        usage.limits.publish("ebs", None);
        assert_eq!(usage.check(&two), Ok(()));
        usage.limits.expect("ebs", 1);
        assert_eq!(usage.check(&two), Ok(()));
    }

    #[test]
    fn in_tree_provisioners_are_counted_under_their_csi_driver() {
        let cases = [
            ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
            ("ebs.csi.aws.com", "ebs.csi.aws.com"),
            ("efs", "efs"),
        ];
        for (provisioner, driver) in cases {
            assert_eq!(driver_of_provisioner(provisioner), driver);
        }
    }
}
