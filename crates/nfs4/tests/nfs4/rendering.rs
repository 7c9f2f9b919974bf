//! Results as text: the operation, its status and the essential fields of its body.

use comity_proto::nfs4::{
    Access4res, Bitmap4, ChangeInfo4, CompoundResultHead, Copy4resok, Create4resok, Entry4, Fattr4,
    Linktext4, Listxattrs4resok, NfsFh4, Nfsstat4, Read4resok, ReadPlus4resok, ReadPlusContent,
    Rename4resok, Seek4resok, Sequence4resok, Verifier4, Write4resok, Xattrvalue4, operation as op,
};
use comity_xdr::{Counted, Decoder};

use crate::attributes;

const NAMES: &[(&str, u32)] = &[
    ("ACCESS", op::ACCESS),
    ("ALLOCATE", op::ALLOCATE),
    ("CLONE", op::CLONE),
    ("COMMIT", op::COMMIT),
    ("COPY", op::COPY),
    ("CREATE", op::CREATE),
    ("DEALLOCATE", op::DEALLOCATE),
    ("GETATTR", op::GETATTR),
    ("GETFH", op::GETFH),
    ("GETXATTR", op::GETXATTR),
    ("IO_ADVISE", op::IO_ADVISE),
    ("LINK", op::LINK),
    ("LISTXATTRS", op::LISTXATTRS),
    ("LOOKUP", op::LOOKUP),
    ("LOOKUPP", op::LOOKUPP),
    ("NVERIFY", op::NVERIFY),
    ("PUTFH", op::PUTFH),
    ("PUTPUBFH", op::PUTPUBFH),
    ("PUTROOTFH", op::PUTROOTFH),
    ("READ", op::READ),
    ("READDIR", op::READDIR),
    ("READLINK", op::READLINK),
    ("READ_PLUS", op::READ_PLUS),
    ("REMOVE", op::REMOVE),
    ("REMOVEXATTR", op::REMOVEXATTR),
    ("RENAME", op::RENAME),
    ("RESTOREFH", op::RESTOREFH),
    ("SAVEFH", op::SAVEFH),
    ("SECINFO", op::SECINFO),
    ("SECINFO_NO_NAME", op::SECINFO_NO_NAME),
    ("SEEK", op::SEEK),
    ("SETATTR", op::SETATTR),
    ("SETXATTR", op::SETXATTR),
    ("VERIFY", op::VERIFY),
    ("WRITE", op::WRITE),
    ("ILLEGAL", op::ILLEGAL),
];

pub(crate) fn number(name: &str) -> Option<u32> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

fn name(number: u32) -> String {
    let found = NAMES.iter().find(|(_, known)| *known == number);
    found.map_or_else(|| format!("OP {number}"), |(name, _)| (*name).to_owned())
}

/// The results of a COMPOUND, which are read one after the other.
pub(crate) struct Results<'a> {
    head: CompoundResultHead<'a>,
    left: Decoder<'a>,
    shown: u32,
    last: Nfsstat4,
    /// The handle in the last result of GETFH.
    pub(crate) handle: Option<Vec<u8>>,
}

impl<'a> Results<'a> {
    pub(crate) fn new(answer: &'a [u8]) -> Self {
        let mut left = Decoder::new(answer);
        let head: CompoundResultHead<'_> = left.value().unwrap();
        assert_eq!(head.tag.0, b"tag", "the tag is returned");
        Self { head, left, shown: 0, last: Nfsstat4::Ok, handle: None }
    }

    /// Skips the result of a SEQUENCE.
    pub(crate) fn skip_sequence(&mut self) {
        let (number, status) = (self.left.value(), self.left.value());
        assert_eq!((number, status), (Ok(op::SEQUENCE), Ok(Nfsstat4::Ok)));
        self.left.value::<Sequence4resok>().unwrap();
        self.shown += 1;
    }

    /// The text of the next result, or `None` after the last one.
    pub(crate) fn next(&mut self, asked: &str) -> Option<String> {
        if self.shown == self.head.results {
            return None;
        }
        self.shown += 1;
        let number: u32 = self.left.value().unwrap();
        let status: Nfsstat4 = self.left.value().unwrap();
        self.last = status;
        if status != Nfsstat4::Ok {
            if number == op::SETATTR {
                assert_eq!(self.left.value(), Ok(Bitmap4::EMPTY));
            }
            return Some(format!("{} {}", name(number), format!("{status:?}").to_uppercase()));
        }
        let body = self.body(number, asked);
        Some(format!("{} OK {body}", name(number)).trim_end().to_owned())
    }

    /// A remark on the whole COMPOUND, or `None` if its results say everything.
    pub(crate) fn end(&self) -> Option<String> {
        assert_eq!(self.shown, self.head.results, "no more results than operations");
        self.left.finish().expect("nothing behind the results");
        if self.shown == 0 {
            return Some(format!("{:?}", self.head.status).to_uppercase());
        }
        assert_eq!(self.last, self.head.status, "the last status is that of all");
        None
    }

    fn body(&mut self, number: u32, _: &str) -> String {
        match number {
            op::GETFH => {
                let handle: NfsFh4<'_> = self.left.value().unwrap();
                self.handle = Some(handle.0.to_vec());
                String::new()
            }
            op::GETATTR => attributes::decode(&self.left.value::<Fattr4<'_>>().unwrap()),
            op::ACCESS => {
                let Access4res { supported, access } = self.left.value().unwrap();
                format!("{supported:x} {access:x}")
            }
            op::SETATTR => numbers(&self.left.value().unwrap()),
            op::CREATE => {
                let Create4resok { cinfo, attrset } = self.left.value().unwrap();
                format!("{} {}", changed(&cinfo), numbers(&attrset))
            }
            op::REMOVE | op::LINK | op::SETXATTR | op::REMOVEXATTR => {
                changed(&self.left.value().unwrap())
            }
            op::RENAME => {
                let Rename4resok { source_cinfo, target_cinfo } = self.left.value().unwrap();
                format!("{} {}", changed(&source_cinfo), changed(&target_cinfo))
            }
            op::READDIR => self.entries(),
            op::SECINFO | op::SECINFO_NO_NAME => {
                format!("{:?}", self.left.value::<Counted<u32, 16>>().unwrap().0)
            }
            op::READLINK => text(self.left.value::<Linktext4<'_>>().unwrap().0),
            _ => self.data(number),
        }
    }

    fn data(&mut self, number: u32) -> String {
        match number {
            op::READ => {
                let Read4resok { eof, data } = self.left.value().unwrap();
                format!("eof={eof} {}", text(data.0))
            }
            op::READ_PLUS => {
                let read: ReadPlus4resok<'_> = self.left.value().unwrap();
                let pieces: Vec<_> = read.contents.0.iter().map(piece).collect();
                format!("eof={} {}", read.eof, pieces.join(" "))
            }
            op::WRITE => {
                let Write4resok { count, committed, .. } = self.left.value().unwrap();
                format!("count={count} {committed:?}")
            }
            op::COMMIT => text(&self.left.value::<Verifier4>().unwrap()),
            op::SEEK => {
                let Seek4resok { eof, offset } = self.left.value().unwrap();
                format!("eof={eof} {offset}")
            }
            op::COPY => {
                let Copy4resok { response, .. } = self.left.value().unwrap();
                format!("count={} {:?}", response.count, response.committed)
            }
            op::IO_ADVISE => numbers(&self.left.value().unwrap()),
            op::GETXATTR => text(self.left.value::<Xattrvalue4<'_>>().unwrap().0),
            op::LISTXATTRS => {
                let listed: Listxattrs4resok<'_> = self.left.value().unwrap();
                let names: Vec<_> = listed.names.0.iter().map(|name| text(name.0)).collect();
                format!("cookie={} eof={} {}", listed.cookie, listed.eof, names.join(" "))
            }
            _ => String::new(),
        }
    }

    fn entries(&mut self) -> String {
        let verifier: Verifier4 = self.left.value().unwrap();
        assert_eq!(verifier, [0; 8]);
        let mut told = String::new();
        while self.left.value().unwrap() {
            let Entry4 { name, .. } = self.left.value().unwrap();
            let fattr: Fattr4<'_> = self.left.value().unwrap();
            told += &format!("{}[{}] ", text(name.0), attributes::decode(&fattr));
        }
        format!("{told}eof={}", self.left.value::<bool>().unwrap())
    }
}

fn piece(piece: &ReadPlusContent<'_>) -> String {
    match piece {
        ReadPlusContent::Data { offset, data } => format!("{offset}:{}", text(data.0)),
        ReadPlusContent::Hole { offset, length } => format!("{offset}:hole:{length}"),
    }
}

fn changed(info: &ChangeInfo4) -> String {
    assert!(info.after > info.before, "{info:?}");
    if info.atomic { "atomic".to_owned() } else { "changed".to_owned() }
}

fn numbers(set: &Bitmap4) -> String {
    format!("{:?}", set.iter().collect::<Vec<_>>())
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
