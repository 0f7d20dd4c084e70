//! Which loopback ports are free for servers?
//!
//! Ports come from below the range the kernel hands to outgoing connections: one from inside it, though free when
//! looked at, may be taken by any client on this machine before its server binds it.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use crate::error::{Result, io};

const FIRST: u16 = 10_000;
const LAST: u16 = 32_000;

/// `N` different free ports. Another process may still take one before it is used: start again then.
pub fn free<const N: usize>() -> Result<[u16; N]> {
    let span = u64::from(LAST - FIRST);
    let start = RandomState::new().hash_one(0u8) % span;
    let mut held = Vec::with_capacity(N);
    let candidates = (0..span).filter_map(|step| u16::try_from(u64::from(FIRST) + (start + step) % span).ok());
    for port in candidates {
        if held.len() == N {
            break;
        }
        // Held until all are chosen, so that they differ.
        held.extend(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok());
    }
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr().map_err(io("bind", "127.0.0.1"))?.port();
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_chosen_together_differ_and_can_be_bound() {
        // Somebody else may take one between the choice and the use, as the rig knows: then it chooses again.
        let can_be_bound = |ports: &[u16; 8]| {
            let listeners: Vec<_> = ports
                .iter()
                .map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)))
                .collect();
            listeners.iter().all(std::io::Result::is_ok)
        };
        let mut choices = (0..5).map(|_| free::<8>().unwrap());
        let mut ports = choices.find(can_be_bound).unwrap();
        ports.sort_unstable();
        assert!(ports.windows(2).all(|pair| pair[0] != pair[1]), "{ports:?}");
    }
}
