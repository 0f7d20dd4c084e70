//! Where a pod may go, as far as devices are concerned.

use model::requirement::Requirements;

use crate::id::{HostId, TypeId};

/// A place for a pod: a node, or a NodeClaim of the run.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// Which one.
    pub id: HostId,
    /// The name of the Node object behind it; none for NodeClaims and for nodes that have not registered.
    pub node_name: Option<&'a str>,
    /// What it promises so far, *without* the pod at hand: upstream allocates before it adds the pod's own.
    pub requirements: &'a Requirements,
    /// The instance types it may become, in option order; a node has one, [`TypeId::UNLISTED`] when no NodePool of
    /// the run offers it.
    pub types: &'a [TypeId],
    /// Its devices are those its types come with: true for NodeClaims and for nodes that are not initialised.
    pub has_templates: bool,
}
