//! Who makes a call.

use core::net::{IpAddr, Ipv6Addr};
use linchpin_server::Call;

/// What limits are kept for: the principal, or else the address, or else, on pipes, everybody.
pub(crate) fn key(call: &Call) -> String {
    match (call.cx().principal(), call.cx().peer_addr()) {
        (Some(principal), _) => format!("principal {}", principal.identity()),
        (None, Some(peer)) => format!("address {}", network(peer.ip())),
        (None, None) => String::new(),
    }
}

/// The addresses that one client can choose among: in IPv6, whole networks of 64 bits.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from(u128::from(ip) & (u128::MAX << 64)).into(),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_get_a_new_limit_by_another_address_of_its_network() {
        for (ip, want) in
            [("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::")]
        {
            assert_eq!(network(ip.parse().unwrap()).to_string(), want);
        }
    }
}
