//! Domains at a running server: the metrics of each domain, and what its clients and the log
//! reveal.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::chown;

use common::raw::{MOUNT, NFS, Raw, number, opaque};
use common::{Place, Running, comity, is_root, metrics, run};

const SITE_A: [u8; 4] = [127, 0, 0, 2];
const SITE_B: [u8; 4] = [127, 0, 0, 3];
const STRANGER: [u8; 4] = [127, 0, 0, 4];
const ACCES: u32 = 13;
const AUTH_BADCRED: u32 = 1;
const NOENT: u32 = 2;
const MNT: u32 = 1;
const DUMP: u32 = 2;
const EXPORT: u32 = 5;

/// Two sites. Ids in no range are denied for the first and squashed for the second. A file is
/// hidden from both, and a second export is offered to the second site only.
fn configured(place: &Place) -> String {
    fs::write(place.data().join("secret"), "").unwrap();
    chown(place.data().join("secret"), Some(51_500), Some(51_500)).unwrap();
    fs::create_dir(place.path("b-only")).unwrap();
    let domain = |name: &str, client: &str, default: &str| {
        format!(
            "[[domain]]\nname = \"{name}\"\nclients = [\"{client}\"]\noptions = [\"insecure\"]\n\
             users = [\"1000-1999:51000-51999\"]\ngroups = [\"1000-1999:51000-51999\"]\n\
             map_default = \"{default}\"\ncloaks = [\"uid=51500:+000\"]\n\n"
        )
    };
    let export = |path: std::path::PathBuf, domains: &str| {
        format!("[[export]]\npath = \"{}\"\ndomains = [{domains}]\n\n", path.display())
    };
    [
        domain("site-a", "127.0.0.2", "deny"),
        domain("site-b", "127.0.0.3", "squash"),
        export(place.data(), "\"site-a\", \"site-b\""),
        export(place.path("b-only"), "\"site-b\""),
    ]
    .concat()
}

fn serving(place: &Place) -> Running {
    let config = place.write("c.toml", &configured(place));
    Running::start(place.serve(&["--metrics", "127.0.0.1:0", "--config"]).arg(config))
}

/// Returns the nonzero counts on the metrics page: metric, domain and value for the data export.
fn counted(server: &Running, place: &Place) -> Vec<(String, String, u64)> {
    let page = metrics(server);
    let export = format!("_total{{export=\"{}\",domain=\"", place.data().display());
    let row = |line: &str| {
        let (name, rest) = line.strip_prefix("comity_")?.split_once(&export)?;
        let (domain, value) = rest.split_once("\"} ")?;
        Some((name.to_owned(), domain.to_owned(), value.parse().ok()?))
    };
    page.lines().filter_map(row).filter(|(_, _, value)| *value > 0).collect()
}

#[test]
fn refused_squashed_and_hidden_calls_are_counted_by_export_and_domain() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let server = serving(&place);
    let b_only = place.path("b-only");
    assert_eq!(counted(&server, &place), []);
    let mut user = Raw::connect_from(SITE_A, server.port, 1000);
    let root = user.mount(&place.data()).unwrap();
    assert_eq!(user.lookup(&root, b"secret"), Err(NOENT));
    assert_eq!(user.readdir(&root), Ok(()));
    assert_eq!(Raw::connect_from(SITE_A, server.port, 7).mount(&place.data()), Err(ACCES));
    let mut squashed = Raw::connect_from(SITE_B, server.port, 7);
    assert_eq!(squashed.mount(&place.data()).map(|root| squashed.getattr(&root)), Ok(Ok(())));
    assert_eq!(Raw::connect_from(SITE_A, server.port, 1000).mount(&b_only), Err(ACCES));
    let mut stranger = Raw::connect_from(STRANGER, server.port, 1000);
    assert_eq!(stranger.denied(MOUNT, MNT), AUTH_BADCRED);
    let row = |name: &str, domain: &str, value| (name.to_owned(), domain.to_owned(), value);
    let expected = [
        row("refused_calls", "site-a", 1),
        row("squashed_calls", "site-b", 2),
        row("hidden_entries", "site-a", 2),
    ];
    assert_eq!(counted(&server, &place), expected);
    let [of_b, unlisted] = [
        format!("comity_refused_calls_total{{export=\"{}\",domain=\"\"}} 1", b_only.display()),
        "comity_unlisted_calls_total 1".to_owned(),
    ];
    let page = metrics(&server);
    assert!(page.contains(&of_b) && page.contains(&unlisted), "{page}");
    let reloaded = run(comity().args(["reload", "--state-dir"]).arg(place.state()));
    assert_eq!(reloaded.code, Some(0), "{}", reloaded.err);
    assert_eq!(counted(&server, &place), expected, "a reload forgets nothing");
}

#[test]
fn showmount_shows_each_site_its_own_mounts_and_exports_only() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let server = serving(&place);
    let (data, b_only) = (place.data(), place.path("b-only"));
    fs::create_dir(data.join("vault")).unwrap();
    chown(data.join("vault"), Some(51_500), Some(51_500)).unwrap();
    let shown = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    let connect = |source, uid| Raw::connect_from(source, server.port, uid);

    let (mut a, mut b) = (connect(SITE_A, 1000), connect(SITE_B, 1000));
    assert_eq!(a.pairs(EXPORT), [pair(&shown(&data), "127.0.0.2")]);
    let both = [pair(&shown(&b_only), "127.0.0.3"), pair(&shown(&data), "127.0.0.3")];
    let mut told = b.pairs(EXPORT);
    told.sort();
    assert_eq!(told, both);
    assert_eq!(connect(STRANGER, 1000).denied(MOUNT, EXPORT), AUTH_BADCRED);

    a.mount(&data).unwrap();
    b.mount(&b_only).unwrap();
    let mut owner = connect(SITE_B, 1500);
    owner.mount(&data.join("vault")).unwrap();
    assert_eq!(b.mount(&data.join("vault")), Err(NOENT), "the directory is hidden");
    assert_eq!(a.pairs(DUMP), [pair("127.0.0.2", &shown(&data))]);
    assert_eq!(connect(STRANGER, 1000).denied(MOUNT, DUMP), AUTH_BADCRED);
    let own = [pair("127.0.0.3", &shown(&b_only)), pair("127.0.0.3", &shown(&data.join("vault")))];
    assert_eq!(b.pairs(DUMP), own);
}

/// A part of every hidden name. It stays the same however the name is escaped.
const MARK: &str = "zebra7";

#[test]
fn logs_at_info_hold_no_hidden_name() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let name = [b"\x01\"", MARK.as_bytes(), b"\n\\\xff"].concat();
    let hidden = place.data().join(OsStr::from_bytes(&name));
    let config = place.write("c.toml", &configured(&place));
    let log = fs::File::create(place.path("log")).unwrap();
    let mut command = place.serve(&["--log", "info", "--config"]);
    let server = Running::start_with_log(command.arg(config), log);
    fs::write(&hidden, "").unwrap();
    chown(&hidden, Some(51_500), Some(51_500)).unwrap();
    let mut owner = Raw::connect_from(SITE_A, server.port, 1500);
    let root = owner.mount(&place.data()).unwrap();
    let handle = owner.lookup(&root, &name).unwrap();
    for uid in [1000, 1500] {
        let mut caller = Raw::connect_from(SITE_A, server.port, uid);
        everything(&mut caller, &root, &handle, &name);
        let mut path = Vec::new();
        opaque(&mut path, hidden.as_os_str().as_bytes());
        caller.call(MOUNT, 1, &path);
    }
    assert!(server.stop().success());
    let log = fs::read_to_string(place.path("log")).unwrap();
    let in_hex: String = MARK.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(log.contains("serving"), "{log}");
    assert!(!log.contains(MARK) && !log.to_lowercase().contains(&in_hex), "{log}");
}

/// Calls every procedure with the name and the handle of an object.
fn everything(caller: &mut Raw, dir: &[u8], handle: &[u8], name: &[u8]) {
    let arguments = |parts: &[&[u8]], words: usize| {
        let mut arguments = Vec::new();
        parts.iter().for_each(|part| opaque(&mut arguments, part));
        (0..words).for_each(|_| number(&mut arguments, 0));
        arguments
    };
    // GETATTR, READLINK, FSSTAT, FSINFO, PATHCONF; SETATTR, ACCESS, READ, WRITE; READDIR,
    // READDIRPLUS, COMMIT.
    for (procedure, words) in [
        (1, 0),
        (5, 0),
        (18, 0),
        (19, 0),
        (20, 0),
        (2, 7),
        (4, 1),
        (6, 3),
        (7, 5),
        (16, 5),
        (17, 6),
        (21, 3),
    ] {
        caller.call(NFS, procedure, &arguments(&[handle], words));
    }
    // LOOKUP, CREATE and MKDIR of a name that exists, and RMDIR of one that is no directory.
    for (procedure, words) in [(3, 0), (8, 7), (9, 6), (13, 0)] {
        caller.call(NFS, procedure, &arguments(&[dir, name], words));
    }
    // SYMLINK, MKNOD, RENAME to itself, LINK.
    let target = arguments(&[b"target"], 0);
    caller.call(NFS, 10, &[arguments(&[dir, name], 6), target].concat());
    let fifo = [7_u32, 0, 0, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
    caller.call(NFS, 11, &[arguments(&[dir, name], 0), fifo].concat());
    caller.call(NFS, 14, &arguments(&[dir, name, dir, name], 0));
    caller.call(NFS, 15, &arguments(&[handle, dir, name], 0));
}
