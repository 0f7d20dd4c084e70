//! Are the ports of the node that the pod wants free?

use model::host_port::HostPort;

/// The first taken port that one of the wanted ports clashes with.
pub fn conflict<'a>(wanted: &[HostPort], taken: &'a [HostPort]) -> Option<&'a HostPort> {
    taken
        .iter()
        .find(|taken| wanted.iter().any(|wanted| wanted.clashes_with(taken)))
}
