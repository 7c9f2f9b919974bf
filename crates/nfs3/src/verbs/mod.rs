//! The procedures of NFSv3 (RFC 1813, 3.3): a table, and one file each.

mod access;
mod commit;
mod create;
mod create_reply;
mod fsinfo;
mod fsstat;
mod getattr;
mod link;
mod lookup;
mod mkdir;
mod mknod;
mod null;
mod pathconf;
mod read;
mod readdir;
mod readdirplus;
mod readlink;
mod remove;
mod remove_reply;
mod rename;
mod rmdir;
mod setattr;
mod symlink;
mod write;

use comity_proto::nfs3::procedure;
use comity_rpc::Repeat::{self, Harmless, Remember};

use crate::program::Nfs3;
use crate::table::{Row, Verb};

/// All procedures, each at its number. A failure without attributes has one word for a
/// `post_op_attr` and two for a `wcc_data`.
pub(crate) static VERBS: [Row<Nfs3>; 22] = [
    verb(procedure::NULL, "NULL", Harmless, 0, null::null),
    verb(procedure::GETATTR, "GETATTR", Harmless, 0, getattr::getattr),
    verb(procedure::SETATTR, "SETATTR", Remember, 2, setattr::setattr),
    verb(procedure::LOOKUP, "LOOKUP", Harmless, 1, lookup::lookup),
    verb(procedure::ACCESS, "ACCESS", Harmless, 1, access::access),
    verb(procedure::READLINK, "READLINK", Harmless, 1, readlink::readlink),
    verb(procedure::READ, "READ", Harmless, 1, read::read),
    verb(procedure::WRITE, "WRITE", Harmless, 2, write::write),
    verb(procedure::CREATE, "CREATE", Remember, 2, create::create),
    verb(procedure::MKDIR, "MKDIR", Remember, 2, mkdir::mkdir),
    verb(procedure::SYMLINK, "SYMLINK", Remember, 2, symlink::symlink),
    verb(procedure::MKNOD, "MKNOD", Remember, 2, mknod::mknod),
    verb(procedure::REMOVE, "REMOVE", Remember, 2, remove::remove),
    verb(procedure::RMDIR, "RMDIR", Remember, 2, rmdir::rmdir),
    verb(procedure::RENAME, "RENAME", Remember, 4, rename::rename),
    verb(procedure::LINK, "LINK", Remember, 3, link::link),
    verb(procedure::READDIR, "READDIR", Harmless, 1, readdir::readdir),
    verb(procedure::READDIRPLUS, "READDIRPLUS", Harmless, 1, readdirplus::readdirplus),
    verb(procedure::FSSTAT, "FSSTAT", Harmless, 1, fsstat::fsstat),
    verb(procedure::FSINFO, "FSINFO", Harmless, 1, fsinfo::fsinfo),
    verb(procedure::PATHCONF, "PATHCONF", Harmless, 1, pathconf::pathconf),
    verb(procedure::COMMIT, "COMMIT", Harmless, 2, commit::commit),
];

const fn verb(
    number: u32,
    name: &'static str,
    repeat: Repeat,
    absent_words: usize,
    verb: Verb<Nfs3>,
) -> Row<Nfs3> {
    Row { number, name, repeat, absent_words, verb }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_stands_at_its_number() {
        for (at, row) in VERBS.iter().enumerate() {
            assert_eq!(row.number as usize, at, "{}", row.name);
        }
    }
}
