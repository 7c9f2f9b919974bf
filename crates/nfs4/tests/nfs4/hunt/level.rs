//! Replies with zeros for the fields that may differ: handles, which differ between instances, and
//! the values that docs/semantics.md says no cloak can hide (link counts, sizes and times of
//! directories, space).

use comity_proto::nfs4::{
    Access4res, Acl4, Bitmap4, ChangeInfo4, CompoundResultHead, Copy4resok, Entry4, FsLocations4,
    Fsid4, GetDirDelegation4res, Linktext4, Listxattrs4resok, NfsFh4, Nfsstat4, Nfstime4,
    Open4resok, OpenArguments4, Owner4, Read4resok, ReadPlus4resok, Seek4resok, Sequence4resok,
    Stateid4, Verifier4, Write4resok, Xattrvalue4, ace, attribute as a, operation as op,
};
use comity_xdr::{Counted, Decode, Decoder};

/// The range of the object's number in a sealed handle of the memory backend. The version, the
/// export, the MAC and the instance's number precede it.
const OBJECT: std::ops::Range<usize> = 21..29;
/// The type of a directory.
const DIRECTORY: [u8; 4] = [0, 0, 0, 2];
/// The fsid of the directories above the exports, whose times are that of the plan.
const ABOVE: [u8; 16] = [0; 16];
const TIMES: [u32; 4] = [a::CHANGE, a::TIME_ACCESS, a::TIME_METADATA, a::TIME_MODIFY];

/// Returns `reply` with zeros in those fields.
pub(crate) fn level(reply: &[u8], no_client_cache: bool) -> Vec<u8> {
    let mut leveler = Leveler::new(reply, no_client_cache);
    leveler.results();
    leveler.level
}

/// The comparable part of a reply about real folders, whose fileids, handles and times differ: the
/// operations with their statuses, and the sorted names of listings.
pub(crate) fn gist(reply: &[u8]) -> Vec<u8> {
    let mut leveler = Leveler::new(reply, false);
    let mut gist = leveler.results();
    leveler.names.sort();
    gist.extend(leveler.names.concat());
    gist
}

/// The users and groups that a reply names; true marks a group.
pub(crate) fn owners(reply: &[u8]) -> Vec<(bool, Vec<u8>)> {
    let mut leveler = Leveler::new(reply, false);
    leveler.results();
    leveler.owners
}

struct Leveler<'a> {
    left: Decoder<'a>,
    reply: &'a [u8],
    level: Vec<u8>,
    no_client_cache: bool,
    names: Vec<Vec<u8>>,
    owners: Vec<(bool, Vec<u8>)>,
}

impl<'a> Leveler<'a> {
    fn new(reply: &'a [u8], no_client_cache: bool) -> Self {
        let (left, level) = (Decoder::new(reply), reply.to_vec());
        Self { left, reply, level, no_client_cache, names: Vec::new(), owners: Vec::new() }
    }

    /// Levels all results; returns the operations with their statuses.
    fn results(&mut self) -> Vec<u8> {
        let head: CompoundResultHead<'_> = self.value();
        let mut told = (head.status as u32).to_be_bytes().to_vec();
        for _ in 0..head.results {
            let (number, status): (u32, Nfsstat4) = (self.value(), self.value());
            told.extend([number, status as u32].iter().flat_map(|word| word.to_be_bytes()));
            if status != Nfsstat4::Ok {
                // The operation failed, so its result is the last one; the bytes after it are
                // compared unchanged.
                return told;
            }
            self.body(number);
        }
        self.left.finish().expect("nothing behind the results");
        told
    }

    fn value<T: Decode<'a>>(&mut self) -> T {
        self.left.value().unwrap()
    }

    fn pass<T: Decode<'a>>(&mut self) {
        self.value::<T>();
    }

    /// Reads a value; returns the range of its bytes.
    fn passed<T: Decode<'a>>(&mut self) -> std::ops::Range<usize> {
        let from = self.at();
        self.value::<T>();
        from..self.at()
    }

    fn at(&self) -> usize {
        self.reply.len() - self.left.rest().len()
    }

    fn blank(&mut self, range: std::ops::Range<usize>) {
        self.level[range].fill(0);
    }

    fn body(&mut self, number: u32) {
        match number {
            op::GETFH => {
                let from = self.at();
                let handle: NfsFh4<'_> = self.value();
                self.handle(from + 4, handle.0.len());
            }
            op::GETATTR => self.attributes(),
            op::READDIR => self.listing(),
            op::CREATE => {
                self.change();
                self.value::<Bitmap4>();
            }
            op::OPEN => {
                let from = self.at();
                self.value::<Open4resok<'_>>();
                // The change information after the stateid.
                self.if_no_client_cache(from + 16..from + 16 + 20);
            }
            op::REMOVE | op::LINK | op::SETXATTR | op::REMOVEXATTR => self.change(),
            op::RENAME => (0..2).for_each(|_| self.change()),
            _ => self.plain(number),
        }
    }

    /// Results that are compared unchanged.
    fn plain(&mut self, number: u32) {
        match number {
            op::ACCESS => self.pass::<Access4res>(),
            op::SETATTR | op::IO_ADVISE => self.pass::<Bitmap4>(),
            op::SECINFO | op::SECINFO_NO_NAME => self.pass::<Counted<u32, 16>>(),
            op::READLINK => self.pass::<Linktext4<'_>>(),
            op::READ => self.pass::<Read4resok<'_>>(),
            op::READ_PLUS => self.pass::<ReadPlus4resok<'_>>(),
            op::WRITE => self.pass::<Write4resok>(),
            op::COMMIT => self.pass::<Verifier4>(),
            op::SEEK => self.pass::<Seek4resok>(),
            op::COPY => self.pass::<Copy4resok>(),
            op::GETXATTR => self.pass::<Xattrvalue4<'_>>(),
            op::LISTXATTRS => self.pass::<Listxattrs4resok<'_>>(),
            op::LOCK | op::LOCKU | op::CLOSE => self.pass::<Stateid4>(),
            op::SEQUENCE => self.pass::<Sequence4resok>(),
            op::GET_DIR_DELEGATION => self.pass::<GetDirDelegation4res>(),
            _ => {}
        }
    }

    fn change(&mut self) {
        let range = self.passed::<ChangeInfo4>();
        self.if_no_client_cache(range);
    }

    fn if_no_client_cache(&mut self, range: std::ops::Range<usize>) {
        if self.no_client_cache {
            self.blank(range);
        }
    }

    fn handle(&mut self, from: usize, length: usize) {
        // Handles of directories above the exports are the same on both servers.
        if length > OBJECT.end {
            self.blank(from..from + OBJECT.start);
            self.blank(from + OBJECT.end..from + length);
        }
    }

    fn listing(&mut self) {
        self.value::<Verifier4>();
        while self.value() {
            let Entry4 { name, .. } = self.value();
            self.names.push(name.0.to_vec());
            self.attributes();
        }
        self.value::<bool>();
    }

    fn attributes(&mut self) {
        let mask: Bitmap4 = self.value();
        let bytes: u32 = self.value();
        let end = self.at() + bytes as usize;
        let values: Vec<_> = mask.iter().map(|number| (number, self.attribute(number))).collect();
        assert_eq!(self.at(), end, "no more values than attributes");
        let has = |wanted: u32, value: &[u8]| {
            values.iter().any(|(known, at)| *known == wanted && self.reply[at.clone()] == *value)
        };
        let (is_directory, is_above) = (has(a::TYPE, &DIRECTORY), has(a::FSID, &ABOVE));
        for (number, range) in values {
            let is_time = TIMES.contains(&number);
            if number == a::FILEHANDLE {
                self.handle(range.start + 4, range.len() - 4);
            } else if differs(number, is_directory)
                || is_time
                    && (is_above
                        || is_directory && self.no_client_cache && number != a::TIME_ACCESS)
            {
                self.blank(range);
            }
        }
    }

    fn owner(&mut self, is_group: bool) -> std::ops::Range<usize> {
        let from = self.at();
        let owner: Owner4<'_> = self.value();
        self.owners.push((is_group, owner.0.to_vec()));
        from..self.at()
    }

    fn acl(&mut self) -> std::ops::Range<usize> {
        let from = self.at();
        let acl: Acl4<'_> = self.value();
        let named = acl.0.iter().map(|entry| {
            let is_group = entry.flag & ace::IDENTIFIER_GROUP != 0;
            (is_group, entry.who.0.to_vec())
        });
        self.owners.extend(named);
        from..self.at()
    }

    /// Reads an attribute; returns the range of its bytes.
    fn attribute(&mut self, number: u32) -> std::ops::Range<usize> {
        match number {
            a::SUPPORTED_ATTRS | a::SUPPATTR_EXCLCREAT => self.passed::<Bitmap4>(),
            a::OPEN_ARGUMENTS => self.passed::<OpenArguments4>(),
            a::ACL => self.acl(),
            a::FILEHANDLE => self.passed::<NfsFh4<'_>>(),
            a::OWNER | a::OWNER_GROUP => self.owner(number == a::OWNER_GROUP),
            a::FSID => self.passed::<Fsid4>(),
            a::FS_LOCATIONS => self.passed::<FsLocations4<'_>>(),
            a::TIME_ACCESS | a::TIME_DELTA | a::TIME_METADATA | a::TIME_MODIFY => {
                self.passed::<Nfstime4>()
            }
            a::CHANGE
            | a::SIZE
            | a::FILEID
            | a::FILES_AVAIL
            | a::FILES_FREE
            | a::FILES_TOTAL
            | a::MAXFILESIZE
            | a::MAXREAD
            | a::MAXWRITE
            | a::RAWDEV
            | a::SPACE_AVAIL
            | a::SPACE_FREE
            | a::SPACE_TOTAL
            | a::SPACE_USED
            | a::MOUNTED_ON_FILEID => self.passed::<u64>(),
            _ => self.passed::<u32>(),
        }
    }
}

/// Returns whether an attribute differs between a server that hides objects and one that does not
/// have them.
const fn differs(number: u32, is_directory: bool) -> bool {
    match number {
        a::NUMLINKS
        | a::FILES_AVAIL
        | a::FILES_FREE
        | a::FILES_TOTAL
        | a::SPACE_AVAIL
        | a::SPACE_FREE
        | a::SPACE_TOTAL => true,
        a::SIZE | a::SPACE_USED => is_directory,
        _ => false,
    }
}
