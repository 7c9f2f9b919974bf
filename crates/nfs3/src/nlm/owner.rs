//! The name of a lock-owner: all fields by which a host distinguishes its owners.

use comity_proto::nlm::{CallerName, Netobj, Nlm4Lock};
use comity_xdr::{Decode, Decoder, Encode, Opaque, encoded};

/// The owner of a lock, as the host names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(super) struct HostOwner<'a> {
    pub(super) caller_name: CallerName<'a>,
    pub(super) svid: i32,
    pub(super) oh: Netobj<'a>,
}

impl<'a> HostOwner<'a> {
    pub(super) const fn of(lock: &Nlm4Lock<'a>) -> Self {
        Self { caller_name: lock.caller_name, svid: lock.svid, oh: lock.oh }
    }

    /// Returns the name of the owner in the engine.
    pub(super) fn name(&self) -> Vec<u8> {
        encoded(self)
    }

    /// Returns the owner with such a name. An owner of another protocol gets no process
    /// number.
    pub(super) fn named(name: &'a [u8]) -> Self {
        let other = Self { caller_name: Opaque(b""), svid: 0, oh: Opaque(b"") };
        Decoder::whole(name).unwrap_or(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_told_from_its_name() {
        let owner = HostOwner { caller_name: Opaque(b"host"), svid: -7, oh: Opaque(b"7@host") };
        assert_eq!(HostOwner::named(&owner.name()), owner);
        assert_eq!(HostOwner::named(b"an owner of NFSv4").svid, 0);
    }
}
