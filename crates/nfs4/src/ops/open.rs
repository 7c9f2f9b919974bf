//! OPEN (RFC 8881, 18.16; RFC 7530, 16.16): finds or creates a file and opens it.

mod answer;
mod file;

use std::sync::Arc;

use comity_proto::nfs4::{
    Nfsstat4, Open4args, OpenClaim4, OpenDelegationType4, Openflag4, Stateid4, share,
};
use comity_state::{
    Claim, Client, Delegation, DelegationKind, DelegationWish, NoDelegation, Open, Opened, Share,
};
use comity_xdr::{Decoder, Encoder};

use self::file::{File, find};
use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn open<'a>(
    compound: &mut Compound<'a>,
    args: &mut Decoder<'a>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<Open4args<'a>>()?;
    if compound.minor > 0 {
        return begin(compound, &args, reply);
    }
    let client = compound.client_of(args.owner.clientid)?;
    let (now, owner) = (compound.now(), args.owner.owner.0);
    let turn = compound.engine().open_turn((now, compound.caller), &client, owner, args.seqid);
    compound.in_turn(turn, reply, &mut |compound, reply| begin(compound, &args, reply))
}

/// The arguments of an OPEN that concern state.
#[derive(Clone, Copy)]
struct Wanted {
    share: Share,
    wish: DelegationWish,
    claim: Claim,
}

impl Wanted {
    /// Returns the arguments without a wish or a claim for a delegation, if the file may not be
    /// delegated.
    const fn if_delegated(self, may_be: bool) -> Self {
        let claim = match self.claim {
            Claim::Previous(_) if !may_be => Claim::Previous(None),
            claim => claim,
        };
        let wish = match self.wish {
            DelegationWish::Cancel => DelegationWish::Cancel,
            _ if !may_be => DelegationWish::None,
            wish => wish,
        };
        Self { claim, wish, ..self }
    }
}

fn begin<'a>(
    compound: &mut Compound<'a>,
    args: &Open4args<'a>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let client = compound.client_of(args.owner.clientid)?;
    let wanted = wanted(compound, args)?;
    let reclaims = matches!(wanted.claim, Claim::Previous(_));
    if !matches!(wanted.claim, Claim::Delegated(_)) {
        // An OPEN above the exports fails later.
        let export = compound.export().unwrap_or_default();
        compound.engine().may_claim(&client, export, reclaims).map_err(refused)?;
    }
    let file = find(compound, args, wanted.share)?;
    let owner = args.owner.owner.0;
    let opened = open_file(compound, (&client, owner), wanted, &file);
    let mut opened = opened.inspect_err(|_| file.undo(compound))?;
    answer::hold(compound, &client, &file.key(), &mut opened);
    if let Delegation::Granted { stateid, kind: DelegationKind::Write, .. } = opened.delegation {
        let change = file.change().unwrap_or_default();
        compound.engine().delegated_at(&client, &stateid, change);
    }
    answer::say(compound, (args, &client), &file, &opened, reply);
    let stateid = compound.leave_at(file, opened.stateid);
    compound.stateid = stateid;
    Ok(())
}

/// Opens a file that was found or created.
fn open_file(
    compound: &Compound<'_>,
    (client, owner): (&Arc<Client>, &[u8]),
    wanted: Wanted,
    file: &File<'_>,
) -> Result<Opened, Stop> {
    let may_be_delegated = file.may_be_delegated()?;
    let Wanted { share, claim, wish } = wanted.if_delegated(may_be_delegated);
    let (key, user) = (file.key(), file.user());
    let (grantee, empties) = (file.grantee(), file.empties);
    let (grantee, caller) = (grantee.as_ref(), compound.caller);
    let open =
        Open { client, caller, owner, file: key, share, claim, wish, user, grantee, empties };
    let mut opened = compound.engine().open(compound.now(), &open).map_err(refused)?;
    if !may_be_delegated && wanted.wish != wish {
        opened.delegation = Delegation::Refused(NoDelegation::Resource);
    }
    if let Err(failed) = file.empty(compound, &opened) {
        // The client was not told of the open yet.
        compound.engine().withdraw_open(compound.now(), (client, &key), &opened);
        return Err(failed);
    }
    Ok(opened)
}

fn wanted(compound: &Compound<'_>, args: &Open4args<'_>) -> Result<Wanted, Stop> {
    let wants = match compound.minor {
        0 => 0,
        1 => share::WANTS,
        // These are hints (RFC 9754), which the server ignores and does not announce in
        // `open_arguments`.
        _ => share::WANTS | share::WANT_DELEG_TIMESTAMPS | share::WANT_OPEN_XOR_DELEGATION,
    };
    let share = Share { access: args.share_access & !wants, deny: args.share_deny };
    let claim = claim(compound, &args.claim)?;
    if !share.is_valid() {
        return Err(Nfsstat4::Inval.into());
    }
    let creates = matches!(args.openhow, Openflag4::Create(_));
    if creates && !matches!(args.claim, OpenClaim4::Null(_) | OpenClaim4::DelegateCur { .. }) {
        return Err(Nfsstat4::Inval.into());
    }
    Ok(Wanted { share, wish: wish(args.share_access & wants)?, claim })
}

fn wish(wants: u32) -> Result<DelegationWish, Stop> {
    Ok(match wants & share::WANT_MASK {
        share::WANT_NO_PREFERENCE => DelegationWish::NoPreference,
        share::WANT_READ_DELEG => DelegationWish::Read,
        share::WANT_WRITE_DELEG => DelegationWish::Write,
        share::WANT_ANY_DELEG => DelegationWish::Any,
        share::WANT_NO_DELEG => DelegationWish::None,
        share::WANT_CANCEL => DelegationWish::Cancel,
        _ => return Err(Nfsstat4::Inval.into()),
    })
}

fn claim(compound: &Compound<'_>, said: &OpenClaim4<'_>) -> Result<Claim, Stop> {
    let delegated = |stateid: &Stateid4| compound.stateid_of(stateid).map(Claim::Delegated);
    match said {
        OpenClaim4::Null(_) => Ok(Claim::New),
        OpenClaim4::Previous(had) => Ok(Claim::Previous(match had {
            OpenDelegationType4::Read => Some(DelegationKind::Read),
            OpenDelegationType4::Write => Some(DelegationKind::Write),
            OpenDelegationType4::None | OpenDelegationType4::NoneExt => None,
        })),
        OpenClaim4::DelegateCur { delegate_stateid, .. } => delegated(delegate_stateid),
        OpenClaim4::Fh if compound.minor > 0 => Ok(Claim::New),
        OpenClaim4::DelegCurFh(stateid) if compound.minor > 0 => delegated(stateid),
        // The server forgets the state of a client's earlier instance when the client restarts.
        OpenClaim4::DelegatePrev(_) => Err(Nfsstat4::NotSupp.into()),
        OpenClaim4::DelegPrevFh if compound.minor > 0 => Err(Nfsstat4::NotSupp.into()),
        _ => Err(Nfsstat4::BadXdr.into()),
    }
}

impl<'a> Compound<'a> {
    /// Sets the current stateid, and makes the opened file the current object if the OPEN named it.
    fn leave_at(&mut self, file: File<'a>, stateid: comity_state::Stateid) -> Stateid4 {
        if let Some(object) = file.into_object() {
            self.go_to(object);
        }
        self.leave(stateid)
    }
}
