//! LOCK (RFC 8881, 18.10).

use comity_proto::nfs4::{
    ExistLockOwner4, Lock4args, Lock4denied, Locker4, NfsLockType4, Nfsstat4, OpenToLockOwner4,
    StateOwner4,
};
use comity_state::{ByteRange, ClientId, Lock, LockRefusal, LockType, Locker, Stateid, Taken};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::compound::Compound;
use crate::limits::DENIED_OWNER_BYTES_MAX;
use crate::stop::{Stop, refused};

pub(super) fn lock(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<Lock4args<'_>>()?;
    let file = compound.key()?;
    let (stateid, seqid) = named(compound, &args)?;
    compound.in_turn_of(&file, (&stateid, seqid), reply, &mut |compound, reply| {
        let wanted = Lock {
            file,
            range: range(args.offset, args.length)?,
            kind: kind(args.locktype),
            reclaim: args.reclaim,
            wait: matches!(args.locktype, NfsLockType4::ReadWait | NfsLockType4::WriteWait),
            locker: locker(compound, stateid, &args.locker)?,
        };
        match compound.lock(&wanted) {
            Ok(Ok(stateid)) => {
                reply.value(&compound.leave(stateid));
                Ok(())
            }
            Ok(Err(refusal)) => Err(denied(compound, refusal, reply)),
            Err(Taken::Later) => Err(Nfsstat4::Delay.into()),
            Err(_) if wanted.reclaim => Err(Nfsstat4::ReclaimConflict.into()),
            Err(_) => Err(denied(compound, program(wanted.range), reply)),
        }
    })
}

/// Returns the stateid that identifies the owner whose seqid counts, and the seqid.
fn named(compound: &Compound<'_>, args: &Lock4args<'_>) -> Result<(Stateid, u32), Stop> {
    let (stateid, seqid) = match &args.locker {
        Locker4::New(OpenToLockOwner4 { open_stateid, open_seqid, .. }) => {
            (open_stateid, *open_seqid)
        }
        Locker4::Exist(ExistLockOwner4 { lock_stateid, lock_seqid }) => (lock_stateid, *lock_seqid),
    };
    Ok((compound.stateid_of(stateid)?, seqid))
}

fn locker<'l>(
    compound: &Compound<'_>,
    stateid: Stateid,
    said: &Locker4<'l>,
) -> Result<Locker<'l>, Stop> {
    match said {
        Locker4::New(new) => {
            let clientid = new.lock_owner.clientid;
            if compound.minor == 0 && !stateid.is_of(ClientId(clientid)) {
                compound.client_of(clientid)?;
                return Err(Nfsstat4::BadStateid.into());
            }
            Ok(Locker::New { open: stateid, owner: new.lock_owner.owner.0, seqid: new.lock_seqid })
        }
        Locker4::Exist(_) => Ok(Locker::Known { lock: stateid }),
    }
}

/// Returns the byte range of the arguments, or INVAL.
pub(super) fn range(offset: u64, length: u64) -> Result<ByteRange, Stop> {
    ByteRange::new(offset, length).ok_or(Stop::Status(Nfsstat4::Inval))
}

pub(super) const fn kind(wanted: NfsLockType4) -> LockType {
    match wanted {
        NfsLockType4::Read | NfsLockType4::ReadWait => LockType::Read,
        NfsLockType4::Write | NfsLockType4::WriteWait => LockType::Write,
    }
}

/// Returns the refusal of a lock that conflicts with a program on the server. The program is not
/// identified to clients.
pub(super) fn program(range: ByteRange) -> LockRefusal {
    let (client, owner) = (ClientId(0), Box::from(&b"a program on the server"[..]));
    LockRefusal::Denied { range, kind: LockType::Write, client, owner }
}

/// Appends the conflicting lock. Its owner is shown under an alias: a client that knew the clientid
/// of another could act for it. Of a long name of the owner only the beginning is shown.
pub(super) fn denied(compound: &Compound<'_>, refusal: LockRefusal, reply: &mut Encoder) -> Stop {
    let (range, kind, client, owner) = match refusal {
        LockRefusal::Error(error) => return refused(error),
        LockRefusal::Denied { range, kind, client, owner } => (range, kind, client, owner),
    };
    let to_end = range.last == u64::MAX;
    let owner = owner.get(..DENIED_OWNER_BYTES_MAX).unwrap_or(&owner);
    reply.value(&Lock4denied {
        offset: range.first,
        length: if to_end { u64::MAX } else { range.last - range.first + 1 },
        locktype: match kind {
            LockType::Read => NfsLockType4::Read,
            LockType::Write => NfsLockType4::Write,
        },
        owner: StateOwner4 { clientid: compound.engine().alias(client), owner: Opaque(owner) },
    });
    Stop::Told(Nfsstat4::Denied)
}
