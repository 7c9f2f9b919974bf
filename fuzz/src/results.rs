//! The reply to a COMPOUND, read as a client reads it: result by result, each body by the
//! type that the standards give it.

use comity_proto::nfs4::*;
use comity_xdr::{Counted, Decoder, Malformed, Opaque};

use self::operation as op;

/// Bytes of a reply before its results: record mark, and the header of an accepted call.
const HEADER_BYTES: usize = 28;

/// A reply.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// The status of the whole COMPOUND.
    pub(crate) status: u32,
    /// Operation and status of each result.
    pub(crate) each: Vec<(u32, Nfsstat4)>,
    /// Stateids, in the order in which they were given out: by which operation, and whether it is
    /// that of a delegation.
    pub(crate) stateids: Vec<(u32, Stateid4, bool)>,
}

impl Results {
    /// The status of the first operation of a kind.
    pub(crate) fn of(&self, number: u32) -> Option<Nfsstat4> {
        self.each.iter().find(|(found, _)| *found == number).map(|(_, status)| *status)
    }
}

/// Reads a whole reply.
///
/// # Panics
/// If it is not what the standards say it is.
pub(crate) fn read(reply: &[u8]) -> Results {
    let mut left = Decoder::new(&reply[HEADER_BYTES..]);
    let head: CompoundResultHead<'_> = left.value().expect("a COMPOUND's results");
    let mut results = Results { status: head.status as u32, ..Results::default() };
    for at in 1..=head.results {
        let (number, status) = (left.value().expect("a number"), left.value().expect("a status"));
        results.each.push((number, status));
        body(&mut left, (number, status), &mut results).expect("the body of a result");
        assert!(status == Nfsstat4::Ok || at == head.results, "a failure is the last: {results:?}");
    }
    left.finish().expect("nothing behind the results");
    if let Some((_, last)) = results.each.last() {
        assert_eq!(*last, head.status, "the last status is that of all");
    }
    results
}

fn body(
    left: &mut Decoder<'_>,
    (number, status): (u32, Nfsstat4),
    results: &mut Results,
) -> Result<(), Malformed> {
    match (number, status) {
        (op::LOCK | op::LOCKT, Nfsstat4::Denied) => left.value::<Lock4denied<'_>>().map(drop),
        (op::SETCLIENTID, Nfsstat4::ClidInUse) => left.value::<Netaddr4<'_>>().map(drop),
        (op::SETATTR, _) => left.value::<Bitmap4>().map(drop),
        (_, Nfsstat4::Ok) => known(left, number, results),
        _ => Ok(()),
    }
}

fn known(left: &mut Decoder<'_>, number: u32, results: &mut Results) -> Result<(), Malformed> {
    match number {
        op::CLOSE | op::LOCK | op::LOCKU | op::OPEN_CONFIRM | op::OPEN_DOWNGRADE => {
            results.stateids.push((number, left.value()?, false));
            Ok(())
        }
        op::OPEN => left.value().map(|told| opened(told, results)),
        op::ACCESS => left.value::<Access4res>().map(drop),
        op::COMMIT => left.value::<Verifier4>().map(drop),
        op::CREATE => left.value::<Create4resok>().map(drop),
        op::GETATTR => left.value::<Fattr4<'_>>().map(drop),
        op::GETFH => left.value::<NfsFh4<'_>>().map(drop),
        op::LINK | op::REMOVE | op::SETXATTR | op::REMOVEXATTR => {
            left.value::<ChangeInfo4>().map(drop)
        }
        op::RENAME => left.value::<Rename4resok>().map(drop),
        op::READDIR => entries(left),
        op::READLINK => left.value::<Linktext4<'_>>().map(drop),
        op::SECINFO | op::SECINFO_NO_NAME => left.value::<Counted<u32, 16>>().map(drop),
        _ => data(left, number),
    }
}

fn data(left: &mut Decoder<'_>, number: u32) -> Result<(), Malformed> {
    match number {
        op::READ => left.value::<Read4resok<'_>>().map(drop),
        op::WRITE => left.value::<Write4resok>().map(drop),
        op::READ_PLUS => left.value::<ReadPlus4resok<'_>>().map(drop),
        op::SEEK => left.value::<Seek4resok>().map(drop),
        op::COPY => left.value::<Copy4resok>().map(drop),
        op::OFFLOAD_STATUS => left.value::<OffloadStatus4resok>().map(drop),
        op::IO_ADVISE => left.value::<Bitmap4>().map(drop),
        op::GETXATTR => left.value::<Xattrvalue4<'_>>().map(drop),
        op::LISTXATTRS => left.value::<Listxattrs4resok<'_>>().map(drop),
        op::SETCLIENTID => left.value::<SetclientidConfirm4>().map(drop),
        op::EXCHANGE_ID => left.value::<ExchangeId4resok<'_>>().map(drop),
        op::CREATE_SESSION => left.value::<CreateSession4resok>().map(drop),
        op::SEQUENCE => left.value::<Sequence4resok>().map(drop),
        op::BIND_CONN_TO_SESSION => left.value::<BindConnToSession4>().map(drop),
        op::TEST_STATEID => left.value::<TestStateid4resok>().map(drop),
        op::GET_DIR_DELEGATION => left.value::<GetDirDelegation4res>().map(drop),
        _ => Ok(()),
    }
}

fn opened(opened: Open4resok<'_>, results: &mut Results) {
    results.stateids.push((op::OPEN, opened.stateid, false));
    match opened.delegation {
        OpenDelegation4::Read(given) => results.stateids.push((op::OPEN, given.stateid, true)),
        OpenDelegation4::Write(given) => results.stateids.push((op::OPEN, given.stateid, true)),
        OpenDelegation4::None | OpenDelegation4::NoneExt(_) => {}
    }
}

fn entries(left: &mut Decoder<'_>) -> Result<(), Malformed> {
    left.value::<Verifier4>()?;
    while left.value::<bool>()? {
        left.value::<u64>()?;
        left.value::<Opaque<'_, 255>>()?;
        left.value::<Fattr4<'_>>()?;
    }
    left.value::<bool>().map(drop)
}
