//! Which addresses may be connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that a client may connect to.
///
/// ```
/// use linchpin_web::Reach;
///
/// assert!(Reach::Public.check("1.1.1.1".parse().unwrap()).is_ok());
/// assert!(Reach::Public.check("169.254.169.254".parse().unwrap()).is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Any address: for URLs written by the user.
    Any,
    /// Public addresses only: for URLs written by others. No loopback, private and shared networks, link-local
    /// addresses (cloud metadata at 169.254.169.254 among them), multicast, documentation and reserved ranges, nor any
    /// of those inside an IPv6 address (mapped, compatible, NAT64, 6to4, Teredo).
    Public,
    /// Public and loopback addresses: for development.
    PublicOrLoopback,
    /// Public addresses and those of private and shared networks (10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7,
    /// fec0::/10), in any notation: for URLs named by a server inside such a network. Neither loopback nor link-local
    /// addresses.
    PublicOrPrivate,
}

impl Reach {
    /// Checks whether an address may be connected to.
    ///
    /// # Errors
    /// The kind of address, as the end of a sentence that starts with the address.
    pub fn check(self, ip: IpAddr) -> Result<(), &'static str> {
        let special = match self {
            Reach::Any => None,
            Reach::Public | Reach::PublicOrLoopback | Reach::PublicOrPrivate => special(ip),
        };
        match special {
            None => Ok(()),
            Some(LOOPBACK) if self == Reach::PublicOrLoopback => Ok(()),
            Some(PRIVATE | SHARED) if self == Reach::PublicOrPrivate => Ok(()),
            Some(what) => Err(what),
        }
    }
}

const LOOPBACK: &str = "is this machine itself";
const PRIVATE: &str = "is in a private network";
const SHARED: &str = "is in a network shared by a provider";

fn special(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => special_v4(ip),
        IpAddr::V6(ip) => special_v6(ip),
    }
}

fn special_v4(ip: Ipv4Addr) -> Option<&'static str> {
    // The special-purpose registry of IANA (RFC 6890 and its updates).
    Some(match ip.octets() {
        [0, ..] => "is not an address of one host",
        [127, ..] => LOOPBACK,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => PRIVATE,
        [100, 64..=127, ..] => SHARED,
        [169, 254, ..] => "is a link-local address",
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] => "is reserved",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "is for documentation",
        [224..=239, ..] => "is a multicast address",
        [240..=255, ..] => "is reserved",
        _ => return None,
    })
}

fn special_v6(ip: Ipv6Addr) -> Option<&'static str> {
    let s = ip.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    Some(match s {
        [0, 0, 0, 0, 0, 0, 0, 0] => "is not an address of one host",
        [0, 0, 0, 0, 0, 0, 0, 1] => LOOPBACK,
        // Embedded IPv4 addresses are classified like plain ones. Mapped, compatible, translated, and
        // NAT64 with the well-known prefix:
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            return special_v4(v4(high, low));
        }
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => return special_v4(v4(high, low)),
        // NAT64 with local prefixes: where the IPv4 address stands is the network's own affair.
        [0x64, 0xff9b, 1, ..] => "is translated by a private network",
        // 6to4 carries the address of its gateway, Teredo that of its client, inverted.
        [0x2002, high, low, ..] => return special_v4(v4(high, low)),
        [0x2001, 0, _, _, _, _, high, low] => return special_v4(v4(!high, !low)),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "is for documentation",
        [0x2001, 0..=0x1ff, ..] | [0x100, 0, 0, 0..=1, ..] | [0x5f00, ..] => "is reserved",
        [0xfc00..=0xfdff, ..] => PRIVATE,
        [0xfe80..=0xfebf, ..] => "is a link-local address",
        [0xfec0..=0xfeff, ..] => PRIVATE,
        [0xff00..=0xffff, ..] => "is a multicast address",
        [0x2000..=0x3fff, ..] => return None,
        // Everything else is unallocated.
        _ => "is reserved",
    })
}
