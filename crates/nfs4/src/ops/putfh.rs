//! PUTFH (RFC 8881, 18.19): sets the current filehandle.

use comity_export::Door;
use comity_proto::nfs4::{Close4args, Locku4args, NfsFh4, Nfsstat4, Stateid4, operation};
use comity_state::ByteRange;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::filehandle::Object;
use crate::stop::Stop;

pub(super) fn putfh<'a>(
    compound: &mut Compound<'a>,
    args: &mut Decoder<'a>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let handle = args.value::<NfsFh4<'_>>()?.0;
    let object = match compound.pseudo().open(handle)? {
        Some(node) => Object::Pseudo(node),
        None => match compound.enter(Door::Handle(handle)) {
            Err(Stop::Status(Nfsstat4::Stale)) => {
                let_go(compound, handle, args);
                return Err(Nfsstat4::Stale.into());
            }
            Ok(absent @ Object::Absent(_)) => {
                let_go(compound, handle, args);
                absent
            }
            entered => entered?,
        },
    };
    if let (Object::In(view, node), 0) = (&object, compound.following) {
        // The COMPOUND has no other operation that would fail if the object was removed.
        view.getattr(node)?;
    }
    compound.go_to(object);
    Ok(())
}

/// For an object that was removed or hidden, or has moved to another server, releases the state
/// that the next operation would release. The client has no other filehandle of the object, and its
/// state would conflict with other clients as long as the client lives. The reply does not mention
/// this.
fn let_go(compound: &Compound<'_>, handle: &[u8], args: &Decoder<'_>) -> Option<()> {
    let mut next = args.clone();
    let file = compound.plan.unseal_key(handle).ok()?;
    let (engine, sender, at) = (compound.engine(), compound.sender(), compound.at(&file));
    match next.value::<u32>().ok().filter(|_| compound.following > 0)? {
        operation::CLOSE => {
            let args: Close4args = next.value().ok()?;
            engine.close(at, &compound.stateid_of(&args.open_stateid).ok()?).ok()?;
        }
        operation::LOCKU => {
            let args: Locku4args = next.value().ok()?;
            let range = ByteRange::new(args.offset, args.length)?;
            let stateid = compound.stateid_of(&args.lock_stateid).ok()?;
            engine.unlock(sender, &stateid, (&file, range)).ok()?;
        }
        operation::DELEGRETURN => {
            let stateid: Stateid4 = next.value().ok()?;
            engine.delegreturn(at, &compound.stateid_of(&stateid).ok()?).ok()?;
        }
        _ => {}
    }
    Some(())
}
