//! The language of the transcripts. A line is a COMPOUND; its operations are separated by `;`, and
//! each is a name and arguments as words. `MINOR n` sets the minor version. `AS uid:gid,group...`
//! sets the caller. `GETFH name` keeps a handle, which PUTFH takes as `@name`; `@empty` and
//! `@forged` are handles of no object. From 4.1 on each COMPOUND begins with a SEQUENCE that is not
//! shown; `RAW` leaves it out.

use std::collections::HashMap;

use comity_proto::nfs4::{
    Bitmap4, Component4, CompoundHead, Createtype4, NfsFh4, Range4args, Read4args, Readdir4args,
    Rename4args, Seek4args, Setxattr4args, SetxattrOption4, Specdata4, StableHow4, Stateid4,
    Write4args, operation as op,
};
use comity_proto::nfs4::{Clone4args, Commit4args, Copy4args, IoAdvise4args, Listxattrs4args};
use comity_xdr::{Counted, Encoder, Opaque};

use crate::attributes;
use crate::rendering;
use crate::session::Session;
use crate::words::Words;
use crate::world::World;

pub(crate) struct Script<'w> {
    world: &'w World,
    minor: u32,
    kept: HashMap<String, Vec<u8>>,
    session: Option<Session>,
}

impl<'w> Script<'w> {
    pub(crate) fn new(world: &'w World) -> Self {
        let kept = [("empty".to_owned(), Vec::new()), ("forged".to_owned(), vec![1; 29])];
        Self { world, minor: 0, kept: kept.into(), session: None }
    }

    /// A handle that was kept by GETFH.
    pub(crate) fn kept(&self, name: &str) -> Vec<u8> {
        self.kept[name].clone()
    }

    /// Keeps a handle as GETFH does.
    pub(crate) fn keep(&mut self, name: &str, handle: Vec<u8>) {
        self.kept.insert(name.to_owned(), handle);
    }

    /// Does the commands of a line; returns a line for each result.
    pub(crate) fn line(&mut self, line: &str) -> Vec<String> {
        if let Some(minor) = line.strip_prefix("MINOR ") {
            self.minor = minor.parse().unwrap();
            return Vec::new();
        }
        if let Some(who) = line.strip_prefix("AS ") {
            let mut numbers = who.split([':', ',']).map(|number| number.parse().unwrap());
            let (uid, gid) = (numbers.next().unwrap(), numbers.next().unwrap());
            self.world.act_as(uid, gid, &numbers.collect::<Vec<u32>>());
            return Vec::new();
        }
        let raw = line.strip_prefix("RAW ");
        let operations: Vec<&str> = raw.unwrap_or(line).split(';').map(str::trim).collect();
        let in_session = raw.is_none() && matches!(self.minor, 1 | 2);
        let mut call = Encoder::new();
        let (tag, minorversion) = (Opaque(&b"tag"[..]), self.minor);
        let count = operations.len() as u32 + u32::from(in_session);
        call.value(&CompoundHead { tag, minorversion, operations: count });
        if in_session {
            let (world, minor) = (self.world, self.minor);
            self.session.get_or_insert_with(|| Session::open(world, minor)).sequence(&mut call);
        }
        operations.iter().for_each(|operation| self.operation(&mut call, operation));
        let (answer, late) = self.world.compound(call.bytes());
        let mut told = rendering::Results::new(&answer);
        if in_session {
            told.skip_sequence();
        }
        let mut lines = Vec::new();
        for operation in &operations {
            let Some(line) = told.next(operation) else { break };
            lines.push(line);
            if let (Some(name), Some(handle)) = (operation.strip_prefix("GETFH "), &told.handle) {
                self.kept.insert(name.to_owned(), handle.clone());
            }
        }
        lines.extend(told.end());
        if late {
            lines.push("behind a barrier".to_owned());
        }
        lines
    }

    fn operation(&self, call: &mut Encoder, text: &str) {
        let mut words = Words::of(text);
        let name = words.next();
        let number = rendering::number(name).unwrap_or_else(|| words.number());
        call.value(&number);
        match number {
            op::PUTFH => {
                let handle = &self.kept[words.next().trim_start_matches('@')];
                call.value::<NfsFh4<'_>>(&Opaque(handle));
            }
            op::LOOKUP | op::REMOVE | op::LINK | op::SECINFO | op::GETXATTR | op::REMOVEXATTR => {
                call.value::<Component4<'_>>(&Opaque(&words.bytes()));
            }
            op::GETATTR => call.value(&attributes::bitmap(&words.rest())),
            op::VERIFY | op::NVERIFY => call.raw(&attributes::encode(&words.rest())),
            op::SETATTR => {
                call.value(&Stateid4::ANONYMOUS);
                call.raw(&attributes::encode(&words.rest()));
            }
            op::CREATE => create(call, &mut words),
            op::RENAME => {
                let (oldname, newname) = (words.bytes(), words.bytes());
                let (oldname, newname) = (Opaque(&oldname[..]), Opaque(&newname[..]));
                call.value(&Rename4args { oldname, newname });
            }
            op::ACCESS => call.value(&u32::from_str_radix(words.next(), 16).unwrap()),
            op::SECINFO_NO_NAME => call.value(&words.number::<u32>()),
            op::READDIR => {
                let (cookie, maxcount) = (words.number(), words.number());
                let attr_request = attributes::bitmap(&words.rest());
                let (cookieverf, dircount) = ([0; 8], 0);
                call.value(&Readdir4args { cookie, cookieverf, dircount, maxcount, attr_request });
            }
            _ => data(call, number, &mut words),
        }
    }
}

fn create(call: &mut Encoder, words: &mut Words<'_>) {
    let (kind, name) = (words.next(), words.bytes());
    let target = if kind == "link" { words.bytes() } else { Vec::new() };
    let mut numbers = || Specdata4 { major: words.number(), minor: words.number() };
    call.value(&match kind {
        "dir" => Createtype4::Dir,
        "link" => Createtype4::Lnk(Opaque(&target)),
        "fifo" => Createtype4::Fifo,
        "sock" => Createtype4::Sock,
        "chr" => Createtype4::Chr(numbers()),
        "reg" => Createtype4::Reg,
        _ => panic!("no such kind: {kind}"),
    });
    call.value::<Component4<'_>>(&Opaque(&name));
    call.raw(&attributes::encode(&words.rest()));
}

/// Encodes operations on data and others with numbers as arguments; all other operations have none.
fn data(call: &mut Encoder, number: u32, words: &mut Words<'_>) {
    let stateid = Stateid4::ANONYMOUS;
    match number {
        op::READ | op::READ_PLUS => {
            let (offset, count) = (words.number(), words.number());
            call.value(&Read4args { stateid, offset, count });
        }
        op::WRITE => {
            let offset = words.number();
            let stable = match words.next() {
                "unstable" => StableHow4::Unstable,
                "data" => StableHow4::DataSync,
                _ => StableHow4::FileSync,
            };
            let data = words.bytes();
            call.value(&Write4args { stateid, offset, stable, data: Opaque(&data) });
        }
        op::COMMIT => {
            call.value(&Commit4args { offset: words.number(), count: words.number() });
        }
        op::SEEK => {
            let offset = words.number();
            let what = words.number();
            call.value(&Seek4args { stateid, offset, what });
        }
        op::ALLOCATE | op::DEALLOCATE => {
            let (offset, length) = (words.number(), words.number());
            call.value(&Range4args { stateid, offset, length });
        }
        op::COPY => call.value(&Copy4args {
            src_stateid: stateid,
            dst_stateid: stateid,
            src_offset: words.number(),
            dst_offset: words.number(),
            count: words.number(),
            consecutive: true,
            synchronous: true,
            source_server: Counted(Vec::new()),
        }),
        op::CLONE => call.value(&Clone4args {
            src_stateid: stateid,
            dst_stateid: stateid,
            src_offset: words.number(),
            dst_offset: words.number(),
            count: words.number(),
        }),
        op::IO_ADVISE => {
            let (offset, count) = (words.number(), words.number());
            call.value(&IoAdvise4args { stateid, offset, count, hints: Bitmap4::of(&[1]) });
        }
        op::SETXATTR => {
            let option = match words.next() {
                "create" => SetxattrOption4::Create,
                "replace" => SetxattrOption4::Replace,
                _ => SetxattrOption4::Either,
            };
            let (key, value) = (words.bytes(), words.bytes());
            let (key, value) = (Opaque(&key[..]), Opaque(&value[..]));
            call.value(&Setxattr4args { option, key, value });
        }
        op::LISTXATTRS => {
            let (cookie, maxcount) = (words.number(), words.number());
            call.value(&Listxattrs4args { cookie, maxcount });
        }
        _ => {}
    }
}
