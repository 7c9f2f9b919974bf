//! The language of the transcripts: a line has a verb and its arguments, as words.
//!
//! An object is a path of the first export, `@other` for the root of the second one, `@empty` or
//! `@forged` for invalid handles, or `@name` for the handle that `KEEP name path` has kept. In
//! names, `\xff` is a byte and `x*256` a repetition. `AS uid:gid,group...` changes the caller.

use std::collections::HashMap;

use comity_proto::nfs3::{
    Access3args, Commit3args, Create3args, Createhow3, Diropargs3, Getattr3res, Link3args,
    Mkdir3args, Mknod3args, Mknoddata3, Nfstime3, Read3args, Readdir3args, Readdirplus3args,
    Rename3args, Result3, Sattr3, SetTime3, Setattr3args, Specdata3, StableHow, Symlink3args,
    Write3args, procedure,
};
use comity_xdr::{Encode, Opaque};

use crate::rendering;
use crate::world::{World, decoded};

pub(crate) struct Script<'w> {
    world: &'w World,
    kept: HashMap<String, Vec<u8>>,
}

/// The words of a line that are still to be read.
struct Words<'t>(std::vec::IntoIter<&'t str>);

impl<'t> Words<'t> {
    fn next(&mut self) -> &'t str {
        self.0.next().unwrap_or_else(|| panic!("a word is missing"))
    }

    fn number<T: std::str::FromStr>(&mut self) -> T {
        let word = self.next();
        word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
    }

    fn bytes(&mut self) -> Vec<u8> {
        bytes(self.next())
    }
}

impl<'w> Script<'w> {
    pub(crate) fn new(world: &'w World) -> Self {
        Self { world, kept: HashMap::new() }
    }

    /// Does the command of a line; returns its result, or `None` if it has none.
    pub(crate) fn line(&mut self, line: &str) -> Option<String> {
        let all: Vec<&str> = line.split_whitespace().collect();
        let mut words = Words(all.into_iter());
        let verb = words.next();
        match verb {
            "AS" => {
                self.act_as(words.next());
                None
            }
            "KEEP" => {
                let name = words.next().to_owned();
                let handle = self.object(words.next());
                self.kept.insert(name, handle);
                None
            }
            _ => Some(self.call(verb, &mut words)),
        }
    }

    fn act_as(&self, who: &str) {
        let mut numbers = who.split([':', ',']).map(|number| number.parse().unwrap());
        let (uid, gid) = (numbers.next().unwrap(), numbers.next().unwrap());
        self.world.act_as(uid, gid, &numbers.collect::<Vec<u32>>());
    }

    fn object(&self, word: &str) -> Vec<u8> {
        match word {
            "@other" => self.world.other.clone(),
            "@empty" => Vec::new(),
            "@forged" => vec![1; 29],
            _ => match word.strip_prefix('@') {
                Some(name) => self.kept[name].clone(),
                None => self.world.handle(word),
            },
        }
    }

    fn call(&self, verb: &str, words: &mut Words<'_>) -> String {
        let object = self.object(words.next());
        match verb {
            "LOOKUP" | "REMOVE" | "RMDIR" | "CREATE" | "MKDIR" | "SYMLINK" | "MKNOD" => {
                let name = words.bytes();
                let place = Diropargs3 { dir: Opaque(&object), name: Opaque(&name) };
                self.in_place(verb, place, words)
            }
            "RENAME" | "LINK" => self.between(verb, &object, words),
            _ => self.on_object(verb, &object, words),
        }
    }

    fn in_place(&self, verb: &str, place: Diropargs3<'_>, words: &mut Words<'_>) -> String {
        match verb {
            "CREATE" => self.make(procedure::CREATE, &Create3args { place, how: how(words) }),
            "MKDIR" => {
                let attributes = sattr(words);
                self.make(procedure::MKDIR, &Mkdir3args { place, attributes })
            }
            "SYMLINK" => {
                let target = words.bytes();
                let (attributes, target) = (sattr(words), Opaque(&target[..]));
                self.make(procedure::SYMLINK, &Symlink3args { place, attributes, target })
            }
            "MKNOD" => self.make(procedure::MKNOD, &Mknod3args { place, what: what(words) }),
            "LOOKUP" => rendering::lookup(&self.world.call(procedure::LOOKUP, &place)),
            "REMOVE" => rendering::changed(&self.world.call(procedure::REMOVE, &place)),
            _ => rendering::changed(&self.world.call(procedure::RMDIR, &place)),
        }
    }

    fn make(&self, procedure: u32, arguments: &impl Encode) -> String {
        rendering::made(&self.world.call(procedure, arguments))
    }

    fn between(&self, verb: &str, object: &[u8], words: &mut Words<'_>) -> String {
        if verb == "LINK" {
            let (dir, name) = (self.object(words.next()), words.bytes());
            let link = Diropargs3 { dir: Opaque(&dir), name: Opaque(&name) };
            let arguments = Link3args { file: Opaque(object), link };
            return rendering::linked(&self.world.call(procedure::LINK, &arguments));
        }
        let old = words.bytes();
        let (dir, new) = (self.object(words.next()), words.bytes());
        let from = Diropargs3 { dir: Opaque(object), name: Opaque(&old) };
        let to = Diropargs3 { dir: Opaque(&dir), name: Opaque(&new) };
        rendering::renamed(&self.world.call(procedure::RENAME, &Rename3args { from, to }))
    }

    fn on_object(&self, verb: &str, object: &[u8], words: &mut Words<'_>) -> String {
        let handle = Opaque::<64>(object);
        let world = self.world;
        match verb {
            "GETATTR" => rendering::attributes(&world.call(procedure::GETATTR, &handle)),
            "TIMES" => rendering::times(&world.call(procedure::GETATTR, &handle)),
            "READLINK" => rendering::readlink(&world.call(procedure::READLINK, &handle)),
            "FSSTAT" => rendering::fsstat(&world.call(procedure::FSSTAT, &handle)),
            "FSINFO" => rendering::fsinfo(&world.call(procedure::FSINFO, &handle)),
            "PATHCONF" => rendering::pathconf(&world.call(procedure::PATHCONF, &handle)),
            "SETATTR" => {
                let arguments = self.set(object, words);
                rendering::changed(&world.call(procedure::SETATTR, &arguments))
            }
            "ACCESS" => {
                let access = u32::from_str_radix(words.next(), 16).unwrap();
                let arguments = Access3args { object: handle, access };
                rendering::access(&world.call(procedure::ACCESS, &arguments))
            }
            "COMMIT" => {
                let arguments = Commit3args { file: handle, offset: 0, count: 0 };
                rendering::committed(&world.call(procedure::COMMIT, &arguments))
            }
            _ => self.transfer(verb, object, words),
        }
    }

    fn set<'a>(&self, object: &'a [u8], words: &mut Words<'_>) -> Setattr3args<'a> {
        let (guards, rest): (Vec<_>, Vec<_>) =
            words.0.by_ref().partition(|word| word.starts_with("guard="));
        let guard = guards.first().map(|word| match word.trim_start_matches("guard=") {
            "ctime" => self.ctime(object),
            other => moment(other),
        });
        let new_attributes = sattr(&mut Words(rest.into_iter()));
        Setattr3args { object: Opaque(object), new_attributes, guard }
    }

    fn ctime(&self, object: &[u8]) -> Nfstime3 {
        let body = self.world.call(procedure::GETATTR, &Opaque::<64>(object));
        match decoded::<Getattr3res>(&body) {
            Result3::Ok(attr) => attr.ctime,
            Result3::Fail(status, ()) => panic!("{status:?}"),
        }
    }

    fn transfer(&self, verb: &str, object: &[u8], words: &mut Words<'_>) -> String {
        let (file, world) = (Opaque(object), self.world);
        match verb {
            "READ" => {
                let arguments = Read3args { file, offset: words.number(), count: words.number() };
                rendering::read(&world.call(procedure::READ, &arguments))
            }
            "WRITE" => {
                let (offset, count) = (words.number(), words.number());
                let (stable, data) = (stable(words.next()), words.bytes());
                let arguments = Write3args { file, offset, count, stable, data: Opaque(&data) };
                rendering::written(&world.call(procedure::WRITE, &arguments))
            }
            "READDIR" => {
                let (cookie, count) = (words.number(), words.number());
                let cookieverf = cookieverf(words);
                let arguments = Readdir3args { dir: file, cookie, cookieverf, count };
                rendering::listing(&world.call(procedure::READDIR, &arguments), false)
            }
            "READDIRPLUS" => {
                let (cookie, dircount, maxcount) = (words.number(), words.number(), words.number());
                let cookieverf = cookieverf(words);
                let arguments =
                    Readdirplus3args { dir: file, cookie, cookieverf, dircount, maxcount };
                rendering::listing(&world.call(procedure::READDIRPLUS, &arguments), true)
            }
            _ => panic!("no verb {verb}"),
        }
    }
}

fn cookieverf(words: &mut Words<'_>) -> [u8; 8] {
    words.0.next().map_or([0; 8], |word| word.as_bytes().try_into().unwrap())
}

fn how(words: &mut Words<'_>) -> Createhow3 {
    match words.next() {
        "unchecked" => Createhow3::Unchecked(sattr(words)),
        "guarded" => Createhow3::Guarded(sattr(words)),
        "exclusive" => Createhow3::Exclusive(words.next().as_bytes().try_into().unwrap()),
        other => panic!("create {other}"),
    }
}

fn what(words: &mut Words<'_>) -> Mknoddata3 {
    let device = Specdata3 { major: 4, minor: 64 };
    match words.next() {
        "fifo" => Mknoddata3::Fifo(sattr(words)),
        "sock" => Mknoddata3::Sock(sattr(words)),
        "chr" => Mknoddata3::Chr(sattr(words), device),
        "blk" => Mknoddata3::Blk(sattr(words), device),
        "reg" => Mknoddata3::Reg,
        "dir" => Mknoddata3::Dir,
        "lnk" => Mknoddata3::Lnk,
        other => panic!("make {other}"),
    }
}

fn stable(word: &str) -> StableHow {
    match word {
        "unstable" => StableHow::Unstable,
        "data_sync" => StableHow::DataSync,
        "file_sync" => StableHow::FileSync,
        other => panic!("stable {other}"),
    }
}

/// Reads the rest of a line: `mode=644 uid=1 gid=2 size=3 atime=now mtime=4.5`.
fn sattr(words: &mut Words<'_>) -> Sattr3 {
    let mut wanted = Sattr3::default();
    for word in words.0.by_ref() {
        let (key, value) = word.split_once('=').unwrap();
        match key {
            "mode" => wanted.mode = Some(u32::from_str_radix(value, 8).unwrap()),
            "uid" => wanted.uid = Some(value.parse().unwrap()),
            "gid" => wanted.gid = Some(value.parse().unwrap()),
            "size" => wanted.size = Some(value.parse().unwrap()),
            "atime" => wanted.atime = time(value),
            "mtime" => wanted.mtime = time(value),
            other => panic!("set {other}"),
        }
    }
    wanted
}

fn time(word: &str) -> SetTime3 {
    match word {
        "now" => SetTime3::SetToServerTime,
        _ => SetTime3::SetToClientTime(moment(word)),
    }
}

fn moment(word: &str) -> Nfstime3 {
    let (seconds, nseconds) = word.split_once('.').unwrap();
    Nfstime3 { seconds: seconds.parse().unwrap(), nseconds: nseconds.parse().unwrap() }
}

fn bytes(word: &str) -> Vec<u8> {
    if word == "''" {
        return Vec::new();
    }
    if let Some((letter, count)) = word.split_once('*') {
        return letter.repeat(count.parse().unwrap()).into_bytes();
    }
    let mut parts = word.split("\\x");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).unwrap());
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}
