//! The disks an `EC2NodeClass` attaches to its instances.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{open_enum::open_enum, quantity::Quantity};

/// One disk of the instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// The device name, such as `/dev/xvda`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// The EBS volume behind the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new("has(self.snapshotID) || has(self.volumeSize)")
            .message("snapshotID or volumeSize must be defined"),
        validation = Rule::new("!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')")
            .message("snapshotID must be set when volumeInitializationRate is set")
    )]
    pub ebs: Option<BlockDevice>,
    /// Whether this disk holds the kubelet's root directory. At most one may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<bool>,
}

/// An EBS volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockDevice {
    /// Whether the volume goes away with the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Whether the volume is encrypted. Leave unset when the volume comes from a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Provisioned I/O operations per second, for gp3, io1 and io2 volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// The KMS key that encrypts the volume: id, alias or ARN.
    #[serde(rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// The snapshot the volume is made from.
    #[serde(rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Provisioned throughput of a gp3 volume, in MiB/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// The rate, in MiB/s, at which the snapshot's blocks are fetched. Needs `snapshotID`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub volume_initialization_rate: Option<i32>,
    /// The volume's size in `Gi`, `G`, `Ti` or `T`. Needed unless there is a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("pattern" = "^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$"))]
    pub volume_size: Option<Quantity>,
    /// The volume's type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,
}

open_enum! {
    /// A type of EBS volume.
    VolumeType {
        /// Magnetic, previous generation.
        Standard = "standard",
        /// Provisioned IOPS SSD.
        Io1 = "io1",
        /// Provisioned IOPS SSD, second generation.
        Io2 = "io2",
        /// General purpose SSD.
        Gp2 = "gp2",
        /// Cold HDD.
        Sc1 = "sc1",
        /// Throughput optimised HDD.
        St1 = "st1",
        /// General purpose SSD, third generation.
        Gp3 = "gp3",
    }
}
