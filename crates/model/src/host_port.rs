//! Whether two pods want the same port of a node.

use std::{collections::BTreeMap, fmt, net::IpAddr};

/// A port of the node that a container takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The address it is taken on; none for a text that is no address, which only clashes with its like.
    pub ip: Option<IpAddr>,
    /// The port.
    pub port: i32,
    /// `TCP`, `UDP` or `SCTP`; compared as written, because the API server fills the default in.
    pub protocol: Box<str>,
}

impl HostPort {
    /// A port as a pod writes it: no address means all of them. A mapped IPv4 address is its IPv4 address.
    pub fn new(host_ip: &str, port: i32, protocol: &str) -> Self {
        let host_ip = if host_ip.is_empty() { "0.0.0.0" } else { host_ip };
        Self {
            ip: host_ip.parse().ok().map(|ip: IpAddr| ip.to_canonical()),
            port,
            protocol: protocol.into(),
        }
    }

    /// Whether both cannot be taken on one node.
    pub fn clashes_with(&self, other: &Self) -> bool {
        let is_wildcard = |ip: Option<IpAddr>| ip.is_some_and(|ip| ip.is_unspecified());
        self.protocol == other.protocol
            && self.port == other.port
            && (self.ip == other.ip || is_wildcard(self.ip) || is_wildcard(other.ip))
    }

    fn ip_text(&self) -> String {
        self.ip.map_or_else(|| "<nil>".to_owned(), |ip| ip.to_string())
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IP={} Port={} Proto={}", self.ip_text(), self.port, self.protocol)
    }
}

/// A port that is taken already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "pod hostport conflicts with existing hostport configuration (existing-hostport-ip={}, \
     existing-hostport-port={}, existing-hostport-protocol={}, pod-hostport-ip={}, pod-hostport-port={}, \
     pod-hostport-protocol={})",
    .existing.ip_text(), .existing.port, .existing.protocol, .wanted.ip_text(), .wanted.port, .wanted.protocol
)]
pub struct HostPortConflict {
    /// What the pod wants.
    pub wanted: HostPort,
    /// What is there.
    pub existing: HostPort,
}

/// The ports taken on one node, by pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPortUsage<Pod> {
    reserved: BTreeMap<Pod, Vec<HostPort>>,
}

impl<Pod> Default for HostPortUsage<Pod> {
    fn default() -> Self {
        Self {
            reserved: BTreeMap::new(),
        }
    }
}

impl<Pod: Ord> HostPortUsage<Pod> {
    /// Records a pod's ports in place of what was recorded for it.
    pub fn add(&mut self, pod: Pod, ports: Vec<HostPort>) {
        self.reserved.insert(pod, ports);
    }

    /// Forgets a pod's ports.
    pub fn remove(&mut self, pod: &Pod) {
        self.reserved.remove(pod);
    }

    /// Whether the pod can take the ports; it never conflicts with itself.
    pub fn check(&self, pod: &Pod, ports: &[HostPort]) -> Result<(), HostPortConflict> {
        let others = || {
            self.reserved
                .iter()
                .filter(|(other, _)| *other != pod)
                .flat_map(|(_, taken)| taken)
        };
        let clash = |wanted: &HostPort| others().find(|taken| wanted.clashes_with(taken)).cloned();
        match ports
            .iter()
            .find_map(|wanted| clash(wanted).map(|existing| (wanted.clone(), existing)))
        {
            Some((wanted, existing)) => Err(HostPortConflict { wanted, existing }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HostPort, HostPortConflict, HostPortUsage};

    #[test]
    fn ports_clash_on_the_same_or_any_address() {
        let cases = [
            (("10.0.0.1", 80, "TCP"), ("10.0.0.1", 80, "TCP"), true),
            (("10.0.0.1", 80, "TCP"), ("10.0.0.2", 80, "TCP"), false),
            (("10.0.0.1", 80, "TCP"), ("10.0.0.1", 81, "TCP"), false),
            (("10.0.0.1", 80, "TCP"), ("10.0.0.1", 80, "UDP"), false),
            (("", 80, "TCP"), ("10.0.0.1", 80, "TCP"), true),
            (("0.0.0.0", 80, "TCP"), ("fd00::1", 80, "TCP"), true),
            (("::", 80, "TCP"), ("10.0.0.1", 80, "TCP"), true),
            (("::ffff:10.0.0.1", 80, "TCP"), ("10.0.0.1", 80, "TCP"), true),
            (("nowhere", 80, "TCP"), ("10.0.0.1", 80, "TCP"), false),
            (("nowhere", 80, "TCP"), ("elsewhere", 80, "TCP"), true),
            (("10.0.0.1", 80, "TCP"), ("10.0.0.1", 80, ""), false),
        ];
        for (a, b, expected) in cases {
            let (x, y) = (HostPort::new(a.0, a.1, a.2), HostPort::new(b.0, b.1, b.2));
            assert_eq!(
                (x.clashes_with(&y), y.clashes_with(&x)),
                (expected, expected),
                "{x} and {y}"
            );
        }
    }

    #[test]
    fn pod_never_conflicts_with_its_own_ports_but_with_any_others() {
        let (wanted, existing) = (HostPort::new("10.0.0.1", 80, "TCP"), HostPort::new("", 80, "TCP"));
        let mut usage = HostPortUsage::default();
        usage.add("web", vec![HostPort::new("", 443, "TCP"), existing.clone()]);
        assert_eq!(usage.check(&"web", std::slice::from_ref(&wanted)), Ok(()));
        let conflict = HostPortConflict {
            wanted: wanted.clone(),
            existing,
        };
        assert_eq!(
            usage.check(&"api", &[HostPort::new("", 22, "TCP"), wanted.clone()]),
            Err(conflict.clone())
        );
        assert_eq!(
            conflict.to_string(),
            "pod hostport conflicts with existing hostport configuration (existing-hostport-ip=0.0.0.0, \
             existing-hostport-port=80, existing-hostport-protocol=TCP, pod-hostport-ip=10.0.0.1, pod-hostport-port=80, \
             pod-hostport-protocol=TCP)"
        );
        usage.remove(&"web");
        assert_eq!(usage.check(&"api", &[wanted]), Ok(()));
    }
}
