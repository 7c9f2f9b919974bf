//! Writes the seeds: `cargo run --bin seeds` in this folder fills `corpus/`.

#[path = "seeds/compounds.rs"]
mod compounds;
#[path = "seeds/grants.rs"]
mod grants;
#[path = "seeds/lives.rs"]
mod lives;
#[path = "seeds/locks.rs"]
mod locks;
#[path = "seeds/strangers.rs"]
mod strangers;
#[path = "seeds/volumes.rs"]
mod volumes;

use std::fs;
use std::path::Path;

use comity_proto::mount::procedure as mount;
use comity_proto::nfs3::*;
use comity_rpc::{CallHeader, Flavor, OpaqueAuth};
use comity_xdr::{Encode, Encoder, Opaque};

const EXPORTS: &[(&str, &str)] = &[
    ("simple", "/srv 192.0.2.0/24(rw,sync,no_subtree_check)\n"),
    ("many", "/a *(ro) 2001:db8::/32(rw,no_root_squash) @staff(rw) h.example.org(all_squash)\n"),
    ("defaults", "/a -rw,anonuid=1000,anongid=100 *.example.org 192.0.2.1(ro)\n/b 192.0.2.2\n"),
    ("quoting", "\"/with space\" 192.0.2.1(rw) \\\n  192.0.2.2(ro) # comment\n/tab\\011x *(ro)\n"),
    ("all", "/a *(rw,async,insecure,crossmnt,nohide,fsid=7,sec=sys:none,mountpoint=/a,secure)\n"),
    ("wrong", "/a 192.0.2.300(rx\nrelative *(rw)\n/b *(fsid=x,sec=krb5p,refer=/a@b)\n"),
];

const TOML: &[(&str, &str)] = &[
    ("simple", "[[export]]\npath = \"/srv\"\nclients = [\"192.0.2.0/24\"]\nread_only = false\n"),
    ("server", "[server]\nport = 2049\nlisten = [\"127.0.0.1\"]\n[[export]]\npath = \"/a\"\n"),
    ("wrong", "[server]\nport = 99999\nlisten = 7\n[[export]]\npth = \"\"\n"),
];

/// The byte that says when the input begins to replace the client's bytes, and the rest of the
/// input.
const TLS: &[(&str, &[u8])] = &[
    ("hello", &[0, 0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]),
    ("second_flight", &[1, 0x14, 3, 3, 0, 1, 1, 0x17, 3, 3, 0, 1, 0]),
    // Data, a KeyUpdate that asks for one, an empty record, close_notify.
    ("data", b"\x02\x17\x04data\x16\x05\x18\0\0\x01\x01\x17\0\x15\x02\x01\0"),
];

const ROOT: NfsFh3<'static> = Opaque(b"fh\0\0");
const FILE: NfsFh3<'static> = Opaque(b"fh\0\x01");

fn main() -> std::io::Result<()> {
    texts("exports", EXPORTS)?;
    texts("toml", TOML)?;
    TLS.iter().try_for_each(|(name, bytes)| write("tls", name, bytes))?;
    mounts()?;
    nfs3s()?;
    compounds::all()?;
    grants::all()?;
    lives::all()?;
    locks::all()?;
    strangers::all()?;
    volumes::all()?;
    records()
}

fn texts(target: &str, seeds: &[(&str, &str)]) -> std::io::Result<()> {
    seeds.iter().try_for_each(|(name, text)| write(target, name, text.as_bytes()))
}

fn write(target: &str, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes().to_vec()
}

/// One call as `TestServer::calls` reads it.
fn call(procedure: u32, arguments: &impl Encode) -> Vec<u8> {
    let arguments = encoded(arguments);
    let length = (arguments.len() as u16).to_be_bytes();
    [&[procedure as u8], &length[..], &arguments].concat()
}

fn mounts() -> std::io::Result<()> {
    let path: Opaque<'_, 1024> = Opaque(b"/export");
    write("mount", "mnt", &call(mount::MNT, &path))?;
    write("mount", "elsewhere", &call(mount::MNT, &Opaque::<'_, 1024>(b"/export/../etc")))?;
    let all = [mount::NULL, mount::DUMP, mount::EXPORT, mount::UMNTALL];
    let all: Vec<u8> = all.iter().flat_map(|procedure| call(*procedure, &())).collect();
    write("mount", "all", &[call(mount::MNT, &path), all, call(mount::UMNT, &path)].concat())
}

fn at(name: &'static [u8]) -> Diropargs3<'static> {
    Diropargs3 { dir: ROOT, name: Opaque(name) }
}

fn create(name: &'static [u8]) -> Vec<u8> {
    let how = Createhow3::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::default() });
    call(procedure::CREATE, &Create3args { place: at(name), how })
}

fn nfs3s() -> std::io::Result<()> {
    let seeds = [
        ("null", call(procedure::NULL, &())),
        ("file", [create(b"a"), data()].concat()),
        ("names", [create(b"a"), names()].concat()),
        ("folders", folders()),
        ("about", about()),
    ];
    seeds.iter().try_for_each(|(name, bytes)| write("nfs3", name, bytes))
}

fn data() -> Vec<u8> {
    let (file, stable) = (FILE, StableHow::FileSync);
    let write = Write3args { file, offset: 3, count: 5, stable, data: Opaque(b"hello") };
    let size = Sattr3 { size: Some(1 << 33), ..Sattr3::default() };
    [
        call(procedure::WRITE, &write),
        call(procedure::READ, &Read3args { file, offset: 0, count: 4096 }),
        call(procedure::SETATTR, &Setattr3args { object: FILE, new_attributes: size, guard: None }),
        call(procedure::COMMIT, &Commit3args { file, offset: 0, count: 0 }),
        call(procedure::GETATTR, &FILE),
    ]
    .concat()
}

fn names() -> Vec<u8> {
    let symlink =
        Symlink3args { place: at(b"s"), attributes: Sattr3::default(), target: Opaque(b"a") };
    let fifo = Mknod3args { place: at(b"f"), what: Mknoddata3::Fifo(Sattr3::default()) };
    [
        call(procedure::LOOKUP, &at(b"a")),
        call(procedure::LINK, &Link3args { file: FILE, link: at(b"b") }),
        call(procedure::RENAME, &Rename3args { from: at(b"b"), to: at(b"c") }),
        call(procedure::SYMLINK, &symlink),
        call(procedure::READLINK, &Opaque::<'_, 64>(b"fh\0\x02")),
        call(procedure::MKNOD, &fifo),
        call(procedure::REMOVE, &at(b"c")),
    ]
    .concat()
}

fn folders() -> Vec<u8> {
    let (cookie, cookieverf) = (0, [0; 8]);
    let names = Readdir3args { dir: ROOT, cookie, cookieverf, count: 4096 };
    let nodes = Readdirplus3args { dir: ROOT, cookie, cookieverf, dircount: 512, maxcount: 8192 };
    [
        call(procedure::MKDIR, &Mkdir3args { place: at(b"d"), attributes: Sattr3::default() }),
        call(procedure::READDIR, &names),
        call(procedure::READDIRPLUS, &nodes),
        call(procedure::RMDIR, &at(b"d")),
    ]
    .concat()
}

fn about() -> Vec<u8> {
    let one = [procedure::FSSTAT, procedure::FSINFO, procedure::PATHCONF, procedure::GETATTR];
    let access = call(procedure::ACCESS, &Access3args { object: ROOT, access: 0x3f });
    one.iter().flat_map(|procedure| call(*procedure, &ROOT)).chain(access).collect()
}

fn records() -> std::io::Result<()> {
    let header = CallHeader {
        xid: 7,
        program: 100_003,
        version: 3,
        procedure: 1,
        credential: OpaqueAuth { flavor: Flavor::SYS, body: Opaque(&[0; 20]) },
        verifier: OpaqueAuth::NONE,
    };
    let record = [encoded(&header), encoded(&Opaque::<'_, 64>(b"echo"))].concat();
    write("rpc", "echo", &record)?;
    write("rpc", "header", &encoded(&CallHeader { version: 9, ..header }))?;
    let last = |bytes: &[u8]| (1 << 31 | bytes.len() as u32).to_be_bytes();
    let whole = [&[5][..], &last(&record), &record, &last(b"next"), b"next"].concat();
    write("record", "two", &whole)?;
    let (left, right) = record.split_at(10);
    let first = (left.len() as u32).to_be_bytes();
    write("record", "fragments", &[&[1][..], &first, left, &last(right), right].concat())
}
