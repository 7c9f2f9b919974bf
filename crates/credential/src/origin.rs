use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr};

use comity_rpc::network_of;

use crate::{Channel, KeyId};

/// The origin of a call, which, with the principal, determines the client to which state belongs:
/// an address and a channel, or a proved key regardless of the address. Hosts of one network are
/// distinct, in IPv6 as in IPv4.
#[derive(Clone, Copy, Default)]
pub struct Origin {
    address: [u8; 16],
    channel: OriginChannel,
}

/// The channel of an origin. State that was made by one channel cannot be used by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum OriginChannel {
    /// A channel without TLS.
    #[default]
    Plain,
    /// A channel with TLS, without a key.
    Tls,
    /// A channel with TLS, with this key.
    Key(KeyId),
}

impl Origin {
    /// The origin with this address, without TLS.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        Self { address, channel: OriginChannel::Plain }
    }

    /// The origin of calls from this address by this channel.
    #[must_use]
    pub fn by(address: IpAddr, channel: &Channel) -> Self {
        let channel = match channel {
            Channel::Plain => OriginChannel::Plain,
            Channel::Tls(None) => OriginChannel::Tls,
            Channel::Tls(Some(identity)) => OriginChannel::Key(identity.key.id()),
        };
        Self { channel, ..Self::of(address) }
    }

    /// The same address by this channel.
    #[must_use]
    pub const fn over(self, channel: OriginChannel) -> Self {
        Self { channel, ..self }
    }

    /// Its channel.
    #[must_use]
    #[inline]
    pub const fn channel(&self) -> &OriginChannel {
        &self.channel
    }

    /// The origins that share limits: a network of 64 bits in IPv6, because a host there chooses
    /// its addresses itself, or an address of IPv4. Keys are ignored, because anybody can make
    /// many.
    #[must_use]
    pub fn network(self) -> Self {
        Self::of(network_of(Ipv6Addr::from_octets(self.address).into()))
    }

    /// Makes an origin without TLS from the stored bytes of its address.
    #[must_use]
    pub const fn from_bytes(address: [u8; 16]) -> Self {
        Self { address, channel: OriginChannel::Plain }
    }

    /// The bytes in which its address is stored.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.address
    }
}

/// Compares the key alone where there is one. Neither side is copied, because each operation on
/// state compares origins.
impl PartialEq for Origin {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let is_key = matches!(self.channel, OriginChannel::Key(_));
        self.channel == other.channel && (is_key || self.address == other.address)
    }
}

impl Eq for Origin {}

impl Hash for Origin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.channel.hash(state);
        if !matches!(self.channel, OriginChannel::Key(_)) {
            self.address.hash(state);
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from_octets(self.address).to_canonical();
        match self.channel {
            OriginChannel::Plain => address.fmt(f),
            channel => write!(f, "{address} ({channel})"),
        }
    }
}

impl fmt::Display for OriginChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("plain"),
            Self::Tls => f.write_str("TLS"),
            Self::Key(key) => write!(f, "TLS, key {key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_shares_limits_and_each_address_is_an_origin() {
        let of = |address: &str| Origin::of(address.parse().unwrap());
        assert_ne!(of("2001:db8::1"), of("2001:db8::2:3"));
        assert_eq!(of("2001:db8::1").network(), of("2001:db8::2:3").network());
        assert_ne!(of("2001:db8::1").network(), of("2001:db8:0:1::1").network());
        assert_eq!(of("10.0.0.1").network(), of("10.0.0.1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(Origin::from_bytes(*of("10.0.0.1").bytes()), of("10.0.0.1"));
    }

    #[test]
    fn a_key_is_one_origin_everywhere_and_channels_of_an_address_differ() {
        let [here, there] =
            [[10, 0, 0, 1], [10, 0, 0, 2]].map(|address| Origin::of(address.into()));
        let key = |byte| OriginChannel::Key(KeyId([byte; 32]));
        assert_eq!(here.over(key(1)), there.over(key(1)));
        assert_ne!(here.over(key(1)), here.over(key(2)));
        let channels = [OriginChannel::Plain, OriginChannel::Tls, key(1)];
        for (at, one) in channels.iter().enumerate() {
            for (other_at, other) in channels.iter().enumerate() {
                assert_eq!(here.over(*one) == here.over(*other), at == other_at);
            }
            assert_eq!(here.over(*one).network(), here, "limits are shared by address");
        }
        assert_ne!(here.over(OriginChannel::Tls), there.over(OriginChannel::Tls));
    }
}
