//! Owners, states and grants of clients.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use comity_credential::PublicKey;
use comity_vfs::{Cred, Disk, Gid, Uid};
use comity_xdr::{Decoder, Encoder, Malformed};

use super::value::{Field, fields, variants};
use crate::{
    ByteRange, ClientId, DelegationKind, ExportedGrant, ExportedKind, ExportedOwner,
    ExportedRecall, ExportedState, ExportedWriter, ExportedWriterReply, FileKey, Grantee, LockType,
    OwnerKind, OwnerReply, Principal, Result, Revocation, RevokedState, StateName,
};

fields!(ExportedOwner {
    number: u32,
    kind: OwnerKind,
    name: Box<[u8]>,
    principal: Principal,
    export: u32,
    confirmed: bool,
    seqid: u32,
    last: Option<OwnerReply>,
    closed: Option<u32>,
    idle: Duration,
});

variants!(OwnerKind { 0 => Open, 1 => Lock });
fields!(OwnerReply { result: Arc<[u8]>, handle: Option<Arc<[u8]>> });

fields!(StateName { client: ClientId, number: u32 });

fields!(ExportedState {
    number: u32,
    known_as: Option<StateName>,
    seqid: u32,
    age: Duration,
    file: FileKey,
    kind: ExportedKind,
});

impl Field for ExportedKind {
    const BYTES_MIN: usize = 8;

    fn put(&self, to: &mut Encoder) {
        match self {
            Self::Open { owner, share, user, opened, closed, shared, grantee } => {
                to.value(&0_u32);
                (((*owner, *share), (user.clone(), *opened)), (*closed, *shared)).put(to);
                grantee.put(to);
            }
            Self::Lock { owner, open, counted, ranges, shared } => {
                to.value(&1_u32);
                ((*owner, *open), (*counted, *shared)).put(to);
                ranges.put(to);
            }
            Self::Delegation { kind, principal, user, access, given, grantee, recall, writer } => {
                to.value(&2_u32);
                ((*kind, *principal), (user.clone(), (*access, *given))).put(to);
                grantee.put(to);
                recall.put(to);
                writer.put(to);
            }
            Self::Revoked(revoked) => {
                to.value(&3_u32);
                revoked.put(to);
            }
        }
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        match from.value::<u32>()? {
            0 => {
                let (((owner, share), (user, opened)), (closed, shared)) = Field::take(from)?;
                let grantee = Field::take(from)?;
                Ok(Self::Open { owner, share, user, opened, closed, shared, grantee })
            }
            1 => {
                let ((owner, open), (counted, shared)) = Field::take(from)?;
                let ranges = Field::take(from)?;
                Ok(Self::Lock { owner, open, counted, ranges, shared })
            }
            2 => {
                let ((kind, principal), (user, (access, given))) = Field::take(from)?;
                let (grantee, (recall, writer)) = Field::take(from)?;
                Ok(Self::Delegation {
                    kind,
                    principal,
                    user,
                    access,
                    given,
                    grantee,
                    recall,
                    writer,
                })
            }
            3 => Field::take(from).map(Self::Revoked),
            found => Err(Malformed::Discriminant { of: "ExportedKind", found }),
        }
    }
}

fields!(ExportedRecall {
    queued: Duration,
    sent: Option<Duration>,
    left: Option<Duration>,
    wanted_by: Option<ClientId>,
});

fields!(ExportedWriter { said: Option<ExportedWriterReply>, shown: u64, mute: bool });
fields!(ExportedWriterReply { age: Duration, size: u64, change: u64, told: Option<u64> });
variants!(DelegationKind { 0 => Directory, 1 => Read, 2 => Write });
fields!(RevokedState { why: Revocation, principal: Option<Principal> });
variants!(Revocation { 0 => Unreturned, 1 => RightEnded, 2 => DelegationRightEnded });

fields!(ExportedGrant {
    owner: u32,
    file: FileKey,
    range: ByteRange,
    kind: LockType,
    before: Vec<(ByteRange, LockType)>,
});

impl Field for Arc<Cred<Disk>> {
    const BYTES_MIN: usize = 12;

    fn put(&self, to: &mut Encoder) {
        (self.uid.number(), self.gid.number()).put(to);
        self.groups.iter().map(|group| group.number()).collect::<Vec<u32>>().put(to);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let (uid, gid) = <(u32, u32)>::take(from)?;
        let groups = Vec::<u32>::take(from)?.into_iter().map(Gid::new);
        Ok(Self::new(Cred::new(Uid::new(uid), Gid::new(gid)).with_groups(groups)))
    }
}

impl Field for Arc<Grantee> {
    const BYTES_MIN: usize = 28;

    fn put(&self, to: &mut Encoder) {
        to.opaque(self.key.to_string().as_bytes());
        let address = match self.address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        (address.octets(), (self.export, self.user.clone())).put(to);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let text = Arc::<str>::take(from)?;
        let unknown = |_| Malformed::Discriminant { of: "key", found: 0 };
        let key = text.parse::<PublicKey>().map_err(unknown)?;
        let (address, (export, user)) = <([u8; 16], _)>::take(from)?;
        let address = IpAddr::from(Ipv6Addr::from_octets(address)).to_canonical();
        Ok(Self::new(Grantee { key, address, export, user }))
    }
}
