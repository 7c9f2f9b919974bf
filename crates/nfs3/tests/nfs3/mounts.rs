//! MOUNT version 3 (RFC 1813, appendix I).

use std::sync::Arc;

use comity_backend::Memory;
use comity_export::{ExportRequest, HandleKey, Source, Sources, load};
use comity_proto::mount::{MountOk, Mountstat3, procedure};
use comity_proto::nfs3::{Create3args, Createhow3, Diropargs3, Mkdir3args, Sattr3, Symlink3args};
use comity_proto::{mount, nfs3};
use comity_vfs::Fs;
use comity_xdr::{Decoder, Opaque};

use crate::world::{Ground, World, encoded};

fn place<'a>(dir: &'a [u8], name: &'a [u8]) -> Diropargs3<'a> {
    Diropargs3 { dir: Opaque(dir), name: Opaque(name) }
}

fn path(path: &[u8]) -> Opaque<'_, { mount::PATH_BYTES_MAX }> {
    Opaque(path)
}

fn world() -> World {
    let world = World::new(Ground::default());
    let attributes = Sattr3 { mode: Some(0o700), ..Sattr3::default() };
    let arguments = Mkdir3args { place: place(&world.root, b"d\xff"), attributes };
    world.call(nfs3::procedure::MKDIR, &arguments);
    let how = Createhow3::Guarded(Sattr3::default());
    world.call(nfs3::procedure::CREATE, &Create3args { place: place(&world.root, b"f"), how });
    let target = Opaque(&b"d\xff"[..]);
    let arguments = Symlink3args { place: place(&world.root, b"l"), attributes, target };
    world.call(nfs3::procedure::SYMLINK, &arguments);
    world
}

fn status(world: &World, at: &[u8]) -> Mountstat3 {
    Decoder::new(&world.call_mount(procedure::MNT, &path(at))).value().unwrap()
}

#[test]
fn slashes_and_dots_in_a_path_have_their_usual_meaning() {
    let world = world();
    for same in ["/srv/pub", "/srv/pub/", "//srv///pub", "/srv/./pub/."] {
        assert_eq!(world.mount(same), world.root, "{same}");
    }
}

#[test]
fn a_refused_mount_says_why() {
    let world = world();
    assert_eq!(status(&world, b"/srv/pub/d\xff"), Mountstat3::Ok);
    assert_eq!(status(&world, b"/srv/pub/f"), Mountstat3::NotDir);
    assert_eq!(status(&world, b"/srv/pub/f/x"), Mountstat3::NotDir);
    assert_eq!(status(&world, b"/srv/pub/l"), Mountstat3::NotDir);
    assert_eq!(status(&world, b"/srv/pub/none"), Mountstat3::NoEnt);
    assert_eq!(status(&world, b"/srv/public"), Mountstat3::Acces);
    assert_eq!(status(&world, b"srv/pub"), Mountstat3::Acces);
    assert_eq!(status(&world, b""), Mountstat3::Acces);
    assert_eq!(status(&world, b"/srv/closed"), Mountstat3::Acces);
    assert_ne!(status(&world, b"/srv/pub/../closed"), Mountstat3::Ok);
    assert_ne!(status(&world, b"/srv/pub/a\0b"), Mountstat3::Ok);
    let long = [&b"/srv/pub/"[..], &[b'x'; 256]].concat();
    assert_eq!(status(&world, &long), Mountstat3::NameTooLong);
    let endless = encoded(&Opaque::<2000>(&[b'/'; 1025]));
    let record = world.record(mount::PROGRAM, procedure::MNT, &endless);
    assert_eq!(world.send(&record).verdict, (0, 4), "garbage arguments");
}

#[test]
fn the_answer_names_the_flavors() {
    let body = world().call_mount(procedure::MNT, &path(b"/srv/pub"));
    let mut decoder = Decoder::new(&body);
    assert_eq!(decoder.value(), Ok(Mountstat3::Ok));
    assert_eq!(decoder.value::<MountOk<'_>>().unwrap().flavors.0, [1]);
    decoder.finish().unwrap();
}

/// A list of pairs, as DUMP and EXPORT return it.
fn dump(world: &World) -> Vec<(String, String)> {
    let body = world.call_mount(procedure::DUMP, &());
    let mut decoder = Decoder::new(&body);
    let mut all = Vec::new();
    while decoder.value::<bool>().unwrap() {
        all.push((opaque(&mut decoder), opaque(&mut decoder)));
    }
    decoder.finish().unwrap();
    all
}

fn opaque(decoder: &mut Decoder<'_>) -> String {
    String::from_utf8_lossy(decoder.opaque(1024).unwrap()).into_owned()
}

#[test]
fn mounts_are_listed_until_they_are_unmounted() {
    let world = world();
    let pair = |path: &str| ("127.0.0.1".to_owned(), path.to_owned());
    assert_eq!(dump(&world), [pair("/srv/pub"), pair("/srv/other")]);
    world.call_mount(procedure::MNT, &path(b"/srv/pub/f"));
    world.call_mount(procedure::MNT, &path(b"/srv//pub/d\xff/"));
    assert_eq!(dump(&world).len(), 3, "only what was mounted");
    assert!(world.call_mount(procedure::UMNT, &path(b"/srv/pub/")).is_empty());
    assert_eq!(dump(&world).len(), 2);
    assert_eq!(dump(&world)[0], pair("/srv/other"));
    assert!(world.call_mount(procedure::UMNTALL, &()).is_empty());
    assert!(dump(&world).is_empty());
}

#[test]
fn exports_are_listed_for_clients_that_may_use_them() {
    let body = world().call_mount(procedure::EXPORT, &());
    let mut decoder = Decoder::new(&body);
    let mut lines = Vec::new();
    while decoder.value::<bool>().unwrap() {
        let exported = opaque(&mut decoder);
        let mut groups = Vec::new();
        while decoder.value::<bool>().unwrap() {
            groups.push(opaque(&mut decoder));
        }
        lines.push((exported, groups));
    }
    decoder.finish().unwrap();
    let pub_line = ("/srv/pub".to_owned(), Vec::new());
    assert_eq!(lines, [pub_line, ("/srv/other".to_owned(), vec!["127.0.0.1".to_owned()])]);
}

#[test]
fn there_are_six_procedures() {
    let world = world();
    let record = world.record(mount::PROGRAM, procedure::NULL, &[]);
    assert_eq!(world.send(&record).verdict, (0, 0));
    let record = world.record(mount::PROGRAM, 6, &[]);
    assert_eq!(world.send(&record).verdict, (0, 3), "no such procedure");
}

#[test]
fn a_directory_below_a_closed_one_is_mounted_by_callers_that_may_search_the_closed_one() {
    let world = world();
    for (path, mode) in [("closed", 0o700), ("closed/open", 0o777)] {
        let attributes = Sattr3 { mode: Some(mode), ..Sattr3::default() };
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let dir = world.handle(above);
        let place = place(&dir, name.as_bytes());
        world.call(nfs3::procedure::MKDIR, &Mkdir3args { place, attributes });
    }
    assert_eq!(status(&world, b"/srv/pub/closed/open"), Mountstat3::Ok);
    world.act_as(7, 7, &[]);
    assert_eq!(status(&world, b"/srv/pub/closed/open"), Mountstat3::Acces);
    assert_eq!(status(&world, b"/srv/pub/closed/none"), Mountstat3::Acces);
    assert_eq!(status(&world, b"/srv/pub/closed"), Mountstat3::Ok);
    world.act_as_nobody();
    assert_eq!(status(&world, b"/srv/pub/closed/open"), Mountstat3::Acces);
}

/// NFSv3 cannot say where the files are (RFC 1813 has no MOVED).
#[test]
fn an_export_of_other_servers_is_neither_mounted_nor_listed() {
    let exports =
        "/srv/away 127.0.0.1(rw,insecure,refer=/x@b)\n/srv/pub *(rw,insecure)\n".as_bytes();
    let source = Source::Text { name: "exports".into(), text: exports.to_vec() };
    let open = |_: &ExportRequest<'_>| {
        let fs: Arc<dyn Fs> = Arc::new(Memory::new(Ground::default().memory).unwrap());
        Ok(fs)
    };
    let loaded = load(&Sources::new(vec![source]), &open, HandleKey::new([7; 16]), None);
    let world = World::of(loaded.unwrap_or_else(|findings| panic!("{findings:?}")).0);
    assert_eq!(status(&world, b"/srv/away"), Mountstat3::Acces);
    assert_eq!(status(&world, b"/srv/away/below"), Mountstat3::Acces);
    assert_eq!(status(&world, b"/srv/pub"), Mountstat3::Ok);
    let body = world.call_mount(procedure::EXPORT, &());
    let mut decoder = Decoder::new(&body);
    assert!(decoder.value::<bool>().unwrap());
    assert_eq!(opaque(&mut decoder), "/srv/pub");
}
