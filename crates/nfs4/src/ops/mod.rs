//! The operations, with one file for each, and the table of their properties in 4.0, 4.1 and 4.2.

mod access;
mod allocate;
mod backchannel_ctl;
mod bind_conn_to_session;
mod clone;
mod close;
mod commit;
mod copy;
mod counted;
mod create;
mod create_session;
mod delegpurge;
mod delegreturn;
mod destroy_clientid;
mod destroy_session;
mod exchange_id;
mod flexible_files;
mod free_stateid;
mod get_dir_delegation;
mod getattr;
mod getdeviceinfo;
mod getfh;
mod getxattr;
mod illegal;
mod io_advise;
mod layoutcommit;
mod layouterror;
mod layoutget;
mod layoutreturn;
mod layoutstats;
mod link;
mod listxattrs;
mod lock;
mod lockt;
mod locku;
mod lookup;
mod lookupp;
mod offload;
mod open;
mod open_confirm;
mod open_downgrade;
mod putfh;
mod putrootfh;
mod read;
mod read_plus;
mod readdir;
mod readlink;
mod reclaim_complete;
mod release_lockowner;
mod remove;
mod rename;
mod renew;
mod restorefh;
mod savefh;
mod secinfo;
mod seek;
mod sequence;
mod setattr;
mod setclientid;
mod setclientid_confirm;
mod setxattr;
mod test_stateid;
mod unsupported;
mod verify;
mod write;

use comity_proto::nfs4::operation;

use crate::table::{Perform, Row};
use crate::traits::Traits;

const NONE: Traits = Traits::NONE;
const HANDLE: Traits = Traits::NEEDS_HANDLE;
const CHANGES: Traits = Traits::NEEDS_HANDLE.and(Traits::CHANGES);
const STATE: Traits = Traits::NEEDS_HANDLE.and(Traits::TELLS);
const FIRST: Traits = Traits::SESSIONLESS;

/// All operations, in the order of their numbers.
static OPERATIONS: [Row; 67] = [
    op(operation::ACCESS, "ACCESS", HANDLE, access::access),
    op(operation::CLOSE, "CLOSE", STATE, close::close),
    op(operation::COMMIT, "COMMIT", HANDLE, commit::commit),
    op(operation::CREATE, "CREATE", CHANGES, create::create),
    op(operation::DELEGPURGE, "DELEGPURGE", NONE, delegpurge::delegpurge),
    op(operation::DELEGRETURN, "DELEGRETURN", STATE, delegreturn::delegreturn),
    op(operation::GETATTR, "GETATTR", HANDLE, getattr::getattr),
    op(operation::GETFH, "GETFH", HANDLE, getfh::getfh),
    op(operation::LINK, "LINK", CHANGES, link::link),
    op(operation::LOCK, "LOCK", STATE, lock::lock),
    op(operation::LOCKT, "LOCKT", HANDLE, lockt::lockt),
    op(operation::LOCKU, "LOCKU", STATE, locku::locku),
    op(operation::LOOKUP, "LOOKUP", HANDLE, lookup::lookup),
    op(operation::LOOKUPP, "LOOKUPP", HANDLE, lookupp::lookupp),
    op(operation::NVERIFY, "NVERIFY", HANDLE, verify::nverify),
    op(operation::OPEN, "OPEN", STATE, open::open),
    op(operation::OPEN_CONFIRM, "OPEN_CONFIRM", HANDLE, open_confirm::open_confirm).until(0),
    op(operation::OPEN_DOWNGRADE, "OPEN_DOWNGRADE", STATE, open_downgrade::open_downgrade),
    op(operation::PUTFH, "PUTFH", NONE, putfh::putfh),
    op(operation::PUTPUBFH, "PUTPUBFH", NONE, putrootfh::putrootfh),
    op(operation::PUTROOTFH, "PUTROOTFH", NONE, putrootfh::putrootfh),
    op(operation::READ, "READ", HANDLE, read::read),
    op(operation::READDIR, "READDIR", HANDLE, readdir::readdir),
    op(operation::READLINK, "READLINK", HANDLE, readlink::readlink),
    op(operation::REMOVE, "REMOVE", CHANGES, remove::remove),
    op(operation::RENAME, "RENAME", CHANGES, rename::rename),
    op(operation::RENEW, "RENEW", NONE, renew::renew).until(0),
    op(operation::RESTOREFH, "RESTOREFH", NONE, restorefh::restorefh),
    op(operation::SAVEFH, "SAVEFH", HANDLE, savefh::savefh),
    op(operation::SECINFO, "SECINFO", HANDLE, secinfo::secinfo),
    op(operation::SETATTR, "SETATTR", CHANGES, setattr::setattr).fails_with(1),
    op(operation::SETCLIENTID, "SETCLIENTID", NONE, setclientid::setclientid).until(0),
    op(
        operation::SETCLIENTID_CONFIRM,
        "SETCLIENTID_CONFIRM",
        NONE,
        setclientid_confirm::setclientid_confirm,
    )
    .until(0),
    op(operation::VERIFY, "VERIFY", HANDLE, verify::verify),
    op(operation::WRITE, "WRITE", CHANGES, write::write),
    op(
        operation::RELEASE_LOCKOWNER,
        "RELEASE_LOCKOWNER",
        NONE,
        release_lockowner::release_lockowner,
    )
    .until(0),
    op(operation::BACKCHANNEL_CTL, "BACKCHANNEL_CTL", NONE, backchannel_ctl::backchannel_ctl),
    op(
        operation::BIND_CONN_TO_SESSION,
        "BIND_CONN_TO_SESSION",
        FIRST,
        bind_conn_to_session::bind_conn_to_session,
    ),
    op(operation::EXCHANGE_ID, "EXCHANGE_ID", FIRST, exchange_id::exchange_id),
    op(operation::CREATE_SESSION, "CREATE_SESSION", FIRST, create_session::create_session),
    op(operation::DESTROY_SESSION, "DESTROY_SESSION", FIRST, destroy_session::destroy_session),
    op(operation::FREE_STATEID, "FREE_STATEID", NONE, free_stateid::free_stateid),
    op(operation::GET_DIR_DELEGATION, "GET_DIR_DELEGATION", STATE, get_dir_delegation::get),
    op(operation::GETDEVICEINFO, "GETDEVICEINFO", NONE, getdeviceinfo::getdeviceinfo),
    op(operation::LAYOUTCOMMIT, "LAYOUTCOMMIT", CHANGES, layoutcommit::layoutcommit),
    op(operation::LAYOUTGET, "LAYOUTGET", STATE, layoutget::layoutget),
    op(operation::LAYOUTRETURN, "LAYOUTRETURN", Traits::TELLS, layoutreturn::layoutreturn),
    op(operation::SECINFO_NO_NAME, "SECINFO_NO_NAME", HANDLE, secinfo::secinfo_no_name),
    op(operation::SEQUENCE, "SEQUENCE", NONE, sequence::sequence),
    op(operation::TEST_STATEID, "TEST_STATEID", NONE, test_stateid::test_stateid),
    op(operation::DESTROY_CLIENTID, "DESTROY_CLIENTID", FIRST, destroy_clientid::destroy_clientid),
    op(operation::RECLAIM_COMPLETE, "RECLAIM_COMPLETE", NONE, reclaim_complete::reclaim_complete),
    op(operation::ALLOCATE, "ALLOCATE", CHANGES, allocate::allocate),
    op(operation::COPY, "COPY", CHANGES, copy::copy),
    op(operation::DEALLOCATE, "DEALLOCATE", CHANGES, allocate::deallocate),
    op(operation::IO_ADVISE, "IO_ADVISE", HANDLE, io_advise::io_advise),
    op(operation::LAYOUTERROR, "LAYOUTERROR", CHANGES, layouterror::layouterror),
    op(operation::LAYOUTSTATS, "LAYOUTSTATS", HANDLE, layoutstats::layoutstats),
    op(operation::OFFLOAD_CANCEL, "OFFLOAD_CANCEL", HANDLE, offload::cancel),
    op(operation::OFFLOAD_STATUS, "OFFLOAD_STATUS", HANDLE, offload::status),
    op(operation::READ_PLUS, "READ_PLUS", HANDLE, read_plus::read_plus),
    op(operation::SEEK, "SEEK", HANDLE, seek::seek),
    op(operation::CLONE, "CLONE", CHANGES, clone::clone),
    op(operation::GETXATTR, "GETXATTR", HANDLE, getxattr::getxattr),
    op(operation::SETXATTR, "SETXATTR", CHANGES, setxattr::setxattr),
    op(operation::LISTXATTRS, "LISTXATTRS", HANDLE, listxattrs::listxattrs),
    op(operation::REMOVEXATTR, "REMOVEXATTR", CHANGES, setxattr::removexattr),
];

/// The row for undefined operation numbers.
pub(crate) static ILLEGAL: Row = op(operation::ILLEGAL, "ILLEGAL", NONE, illegal::illegal);

/// The row for operations that the server does not support: some of pNFS, named attributes, and the
/// operations that Kerberos needs.
static UNSUPPORTED: Row = op(0, "unsupported", NONE, unsupported::unsupported);

/// The highest operation number of each minor version (RFC 8276 adds to 4.2).
const LAST: [u32; 3] =
    [operation::RELEASE_LOCKOWNER, operation::RECLAIM_COMPLETE, operation::REMOVEXATTR];

/// For each operation number, the index of its row in the table; an index beyond the end if there
/// is no row.
#[allow(clippy::indexing_slicing, reason = "the compiler does it, and would tell")]
static PLACES: [u8; operation::REMOVEXATTR as usize + 1] = {
    let mut places = [u8::MAX; operation::REMOVEXATTR as usize + 1];
    let mut at = 0;
    while at < OPERATIONS.len() {
        places[OPERATIONS[at].number as usize] = at as u8;
        at += 1;
    }
    places
};

/// Returns the row of an operation; none if the minor version does not define the number.
pub(crate) fn row(number: u32, minor: u32) -> Option<&'static Row> {
    let last = *LAST.get(minor as usize)?;
    if !(operation::ACCESS..=last).contains(&number) {
        return None;
    }
    let at = PLACES.get(number as usize)?;
    Some(OPERATIONS.get(usize::from(*at)).unwrap_or(&UNSUPPORTED))
}

/// Returns the RFC's name of an operation; for an unknown number, that of ILLEGAL.
fn name(number: u32) -> &'static str {
    let at = PLACES.get(number as usize);
    at.and_then(|at| OPERATIONS.get(usize::from(*at))).map_or(ILLEGAL.name, |row| row.name)
}

/// Returns the row of an operation of all minor versions.
const fn op(number: u32, name: &'static str, traits: Traits, perform: Perform) -> Row {
    Row { number, name, until: 2, traits, failure_words: 0, perform }
}

impl Row {
    /// Returns the row with `until` as the last minor version that supports the operation.
    const fn until(self, until: u32) -> Self {
        Self { until, ..self }
    }

    /// Returns the row with a number of zero words that follow the status of a failure.
    const fn fails_with(self, failure_words: usize) -> Self {
        Self { failure_words, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_in_the_order_of_their_numbers_and_found_by_them() {
        assert!(OPERATIONS.is_sorted_by(|one, next| one.number < next.number));
        for operation in &OPERATIONS {
            let minor = LAST.iter().position(|last| operation.number <= *last).unwrap();
            let found = row(operation.number, minor as u32).unwrap();
            assert_eq!((found.number, found.name), (operation.number, operation.name));
        }
    }

    #[test]
    fn an_operation_of_another_minor_version_is_illegal() {
        assert!(row(2, 0).is_none() && row(0, 2).is_none());
        assert!(row(operation::SEQUENCE, 0).is_none() && row(operation::SEEK, 1).is_none());
        assert!(row(operation::REMOVEXATTR + 1, 2).is_none());
        assert_eq!(row(operation::SEEK, 2).map(|row| row.number), Some(operation::SEEK));
    }
}
