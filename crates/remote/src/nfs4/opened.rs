use std::io::Result as IoResult;

use comity_proto::nfs4::{
    Close4args, NfsFh4, Open4args, Open4resok, OpenClaim4, OpenDelegation4, Openflag4, StateOwner4,
    Stateid4, operation as op,
};
use comity_xdr::Opaque;

use super::compound::{Compound, Reply};
use super::session::{Session, Wire};

/// The arguments of an OPEN. The server counts all opens of a file by one owner as one open.
#[derive(Debug, Clone)]
pub struct Opening<'a> {
    /// The handle of the directory.
    pub dir: &'a [u8],
    /// The name of the file.
    pub name: &'a str,
    /// The open owner.
    pub owner: &'a [u8],
    /// The choice to create the file or not.
    pub how: Openflag4<'a>,
    /// The share access, with the want bits for delegations (RFC 8881, 18.16.3).
    pub access: u32,
}

/// A file that is open.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The file's handle.
    pub handle: Vec<u8>,
    /// The stateid of the open.
    pub stateid: Stateid4,
    /// The stateid of the delegation that came with it.
    pub delegation: Option<Stateid4>,
}

impl<W: Wire> Session<W> {
    /// Opens a file.
    pub fn open(&mut self, opening: &Opening<'_>) -> IoResult<Opened> {
        Opened::of(&self.perform(&self.opening(opening))?)
    }

    /// The COMPOUND that opens a file and asks for its handle.
    pub fn opening(&self, opening: &Opening<'_>) -> Compound {
        let clientid = self.clientid();
        let arguments = Open4args {
            seqid: 0,
            share_access: opening.access,
            share_deny: 0,
            owner: StateOwner4 { clientid, owner: Opaque(opening.owner) },
            openhow: opening.how,
            claim: OpenClaim4::Null(Opaque(opening.name.as_bytes())),
        };
        Compound::on(opening.dir).with(op::OPEN, &arguments).then(op::GETFH)
    }
}

impl Opened {
    /// Decodes the reply to [`Session::opening`].
    pub fn of(reply: &Reply) -> IoResult<Self> {
        let mut results = reply.on_object()?;
        let said: Open4resok<'_> = results.next(op::OPEN)?;
        let handle = results.next::<NfsFh4<'_>>(op::GETFH)?.0.to_vec();
        let delegation = match said.delegation {
            OpenDelegation4::Read(read) => Some(read.stateid),
            OpenDelegation4::Write(write) => Some(write.stateid),
            OpenDelegation4::None | OpenDelegation4::NoneExt(_) => None,
        };
        Ok(Self { handle, stateid: said.stateid, delegation })
    }

    /// The COMPOUND that closes the file.
    pub fn closing(&self) -> Compound {
        let arguments = Close4args { seqid: 0, open_stateid: self.stateid };
        Compound::on(&self.handle).with(op::CLOSE, &arguments)
    }
}
