//! What only the AWS provider reads, and which cloud it is anyway.

use std::time::Duration;

use super::SettingsError;

/// Whose machines are managed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cloud {
    /// Azure's where a subscription or a node resource group is named as Karpenter's Deployment for AKS does, Amazon's
    /// where a cluster is named as its Deployment for EKS does, else kwok's.
    #[default]
    Auto,
    /// Amazon EC2.
    Aws,
    /// Azure virtual machines.
    Azure,
    /// Nodes without machines.
    Kwok,
}

/// What the AWS provider is told.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "one switch each, as upstream has them")]
pub struct AwsSettings {
    /// `--cluster-name`
    pub cluster_name: String,
    /// `--cluster-endpoint`; empty: EKS is asked
    pub cluster_endpoint: String,
    /// `--cluster-ca-bundle`; empty: as this process trusts the API server
    pub cluster_ca_bundle: String,
    /// `--isolated-vpc`
    pub isolated_vpc: bool,
    /// `--eks-control-plane`
    pub eks_control_plane: bool,
    /// `--vm-memory-overhead-percent`, which is a fraction in spite of its name
    pub vm_memory_overhead_percent: f64,
    /// `--interruption-queue`; empty for none
    pub interruption_queue: String,
    /// `--interruption-cost`; zero: interruptions do not count in prices
    pub interruption_cost: Duration,
    /// `--reserved-enis`
    pub reserved_enis: i64,
    /// `--disable-dry-run`
    pub disable_dry_run: bool,
    /// `--enable-zonal-shift`
    pub enable_zonal_shift: bool,
    /// `--ami-refresh-interval`
    pub ami_refresh_interval: Duration,
    /// `--subnet-refresh-interval`
    pub subnet_refresh_interval: Duration,
}

impl Default for AwsSettings {
    fn default() -> Self {
        Self {
            cluster_name: String::new(),
            cluster_endpoint: String::new(),
            cluster_ca_bundle: String::new(),
            isolated_vpc: false,
            eks_control_plane: false,
            vm_memory_overhead_percent: 0.075,
            interruption_queue: String::new(),
            interruption_cost: Duration::ZERO,
            reserved_enis: 0,
            disable_dry_run: false,
            enable_zonal_shift: false,
            ami_refresh_interval: MINUTE,
            subnet_refresh_interval: MINUTE,
        }
    }
}

const MINUTE: Duration = Duration::from_mins(1);

impl AwsSettings {
    /// Refuses what upstream refuses, in its words. That a cluster is named is for the provider to ask.
    pub(super) fn validate(&self) -> Result<(), SettingsError> {
        let refuse = |text: String| Err(SettingsError::Provider(text));
        if !self.cluster_endpoint.is_empty() && !is_absolute(&self.cluster_endpoint) {
            return refuse(format!(
                "cluster endpoint URL is not valid (cluster-endpoint={})",
                self.cluster_endpoint
            ));
        }
        if self.vm_memory_overhead_percent.is_nan() || self.vm_memory_overhead_percent < 0.0 {
            return refuse("vm-memory-overhead-percent cannot be negative".to_owned());
        }
        if self.reserved_enis < 0 {
            return refuse("reserved-enis cannot be negative".to_owned());
        }
        if self.ami_refresh_interval < MINUTE {
            return refuse("ami-refresh-interval must be at least 1m".to_owned());
        }
        if self.subnet_refresh_interval < MINUTE {
            return refuse("subnet-refresh-interval must be at least 1m".to_owned());
        }
        Ok(())
    }
}

/// A scheme and a host.
fn is_absolute(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default();
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_scheme) && !host.is_empty()
}

#[cfg(test)]
mod tests {
    use crate::Settings;

    fn refused(argument: &str) -> String {
        let parsed = Settings::parse([argument.to_owned()].into_iter(), |_| None);
        parsed.unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_is_refused_in_upstreams_words() {
        let cases = [
            (
                "--cluster-endpoint=not-a-url",
                "validating options, cluster endpoint URL is not valid (cluster-endpoint=not-a-url)",
            ),
            (
                "--vm-memory-overhead-percent=-0.01",
                "validating options, vm-memory-overhead-percent cannot be negative",
            ),
            (
                "--reserved-enis=-1",
                "validating options, reserved-enis cannot be negative",
            ),
            (
                "--ami-refresh-interval=59s",
                "validating options, ami-refresh-interval must be at least 1m",
            ),
            (
                "--subnet-refresh-interval=0s",
                "validating options, subnet-refresh-interval must be at least 1m",
            ),
            (
                "--vm-memory-overhead-percent=much",
                "parsing flags, invalid value \"much\" for flag -vm-memory-overhead-percent: parse error",
            ),
        ];
        for (argument, expected) in cases {
            assert_eq!(refused(argument), expected);
        }
    }
}
