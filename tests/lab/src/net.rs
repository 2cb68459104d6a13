//! Addresses. Every lab has a block 127.N.0.0/16 of its own, so labs side by side use the same ports and never collide.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

/// A lab's block of loopback addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Block(pub u8);

/// The blocks labs choose from: 127.0 is everybody's, the rest of 127/8 nobody's.
pub const BLOCKS: std::ops::RangeInclusive<u8> = 30..=220;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("address {address} is in use by another program: stop it, or choose another block with --net 127.N")]
    InUse { address: SocketAddr },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("--net {0:?}: wanted is 127.N with N from 30 to 220")]
    BadBlock(String),
    #[error("no free block 127.N.0.0/16 is left for another lab: `vmi-lab down --all` ends those that run")]
    NoneLeft,
}

impl Block {
    pub fn parse(text: &str) -> Result<Block, Error> {
        text.strip_prefix("127.")
            .and_then(|number| number.parse::<u8>().ok())
            .filter(|number| BLOCKS.contains(number))
            .map(Block)
            .ok_or_else(|| Error::BadBlock(text.to_owned()))
    }

    pub fn address(self, third: u8, fourth: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(127, self.0, third, fourth))
    }

    /// Where the control plane listens.
    pub fn control_plane(self) -> IpAddr {
        self.address(0, 1)
    }

    /// Where pods listen.
    pub fn pods(self) -> IpAddr {
        self.address(0, 9)
    }

    /// Where the vCenter with this index listens.
    pub fn vcenter(self, index: u8) -> IpAddr {
        self.address(1, index + 1)
    }

    /// The network of the vCenter's guests: not loopback, for the cloud controller manager drops loopback addresses.
    pub fn guests(self, index: u8) -> String {
        format!("10.{}.{}.0/20", self.0, u16::from(index) * 16)
    }
}

/// Whether a program could listen there now.
pub fn check_free(address: SocketAddr) -> Result<(), Error> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(source) if source.kind() == io::ErrorKind::AddrInUse => Err(Error::InUse { address }),
        Err(source) => Err(Error::Listen { address, source }),
    }
}

/// More vCenters than any shape has.
const VCENTERS: u8 = 8;

/// The port of a lab's vCenters: 443, the only one every part of OpenShift honours, or the first one from 8443 on that is free at
/// all of their addresses where this user may not bind 443.
pub fn vcenter_port(block: Block) -> Result<u16, Error> {
    let check = |port| (0..VCENTERS).try_for_each(|index| check_free(SocketAddr::new(block.vcenter(index), port)));
    match check(443) {
        Ok(()) => Ok(443),
        Err(Error::Listen { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            (8443..8543).find(|port| check(*port).is_ok()).ok_or(Error::InUse { address: SocketAddr::new(block.vcenter(0), 8443) })
        }
        Err(error) => Err(error),
    }
}

/// Whether a lab could live in the block: nobody listens where its control plane and its vCenters will.
pub fn check_block(block: Block) -> Result<(), Error> {
    vcenter_port(block)?;
    PORTS.iter().try_for_each(|port| check_free(SocketAddr::new(block.control_plane(), *port)))
}

/// What the supervisor's programs listen on.
pub const PORTS: [u16; 5] = {
    use crate::control_plane::{APISERVER_PORT, ETCD_CLIENTS, ETCD_PEERS, KUBELET_PORT, SIDE_DOOR};
    [APISERVER_PORT, ETCD_CLIENTS, ETCD_PEERS, KUBELET_PORT, SIDE_DOOR]
};

/// Returns when nobody listens any more where the lab in `block` did. A killed program can no longer be found a moment before it
/// lets go of its sockets, and nothing tells when it has: this looks fifty times a second. Where another program has taken the
/// address meanwhile it gives up after ten seconds; whoever wants the address then is told.
pub fn wait_until_free(block: Block) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let in_use = |port: &u16| matches!(check_free(SocketAddr::new(block.control_plane(), *port)), Err(Error::InUse { .. }));
    while vcenter_port(block).is_err() || PORTS.iter().any(in_use) {
        if std::time::Instant::now() > end {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_outside_the_range_is_refused_with_what_is_wanted() {
        for text in ["127.0", "127.29", "127.221", "10.40", "127.x", ""] {
            let message = Block::parse(text).unwrap_err().to_string();
            assert!(message.contains("127.N with N from 30 to 220"), "{message}");
        }
        assert_eq!(Block::parse("127.40").unwrap(), Block(40));
    }

    #[test]
    fn an_address_in_use_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(check_free(address).unwrap_err().to_string().contains(&address.to_string()));
        drop(listener);
        check_free(address).unwrap();
    }

    #[test]
    fn guests_of_different_vcenters_have_different_networks() {
        assert_eq!(Block(31).guests(0), "10.31.0.0/20");
        assert_eq!(Block(31).guests(1), "10.31.16.0/20");
    }
}
