//! The clouds a NodeClass can stand for.

/// A cloud, or the stand-in for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// Amazon EC2, for EKS.
    Aws,
    /// Azure virtual machines, for AKS.
    Azure,
    /// Simulated nodes.
    Kwok,
}

impl Provider {
    /// Every provider.
    pub const ALL: [Self; 3] = [Self::Aws, Self::Azure, Self::Kwok];
}
