//! Loading of configurations: diagnostics, refusals, and what is kept over a reload.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::RefCell;
use std::fs::Permissions;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use comity_backend::{Memory, MemoryOptions, Passthrough, PassthroughOptions};
use comity_export::{
    Diagnostic, ExportRequest, HandleKey, Plan, Resolver, Severity, Source, Sources, Unresolved,
    limits, load,
};
use comity_placement::{Placed, PlacementKey, PlacementSettings};
use comity_vfs::{Cred, Fs, Gid, Name, Status, Threshold, Uid};

/// The name server of these tests.
struct Book;

impl Resolver for Book {
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Unresolved> {
        match name {
            "one.example.org" | "alias.example.org" => Ok(vec![peer("192.0.2.1")]),
            "lab1.example.org" => Ok(vec![peer("192.0.2.11"), peer("2001:db8::11")]),
            "lab2.example.org" => Ok(vec![peer("192.0.2.12")]),
            "down.example.org" => Err(Unresolved::Failed("no server answers".into())),
            _ => Err(Unresolved::Unknown),
        }
    }

    fn name(&self, address: IpAddr) -> Result<String, Unresolved> {
        match address.to_string().as_str() {
            "192.0.2.1" => Ok("one.example.org".into()),
            "192.0.2.11" | "2001:db8::11" => Ok("lab1.example.org".into()),
            "192.0.2.12" => Ok("lab2.example.org".into()),
            "192.0.2.66" => Ok("lab1.example.org".into()),
            "192.0.2.99" => Err(Unresolved::Failed("no server answers".into())),
            _ => Err(Unresolved::Unknown),
        }
    }
}

fn peer(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn sources(text: &str) -> Sources {
    let text = Source::Text { name: "e".into(), text: text.into() };
    Sources {
        resolver: Arc::new(Book),
        netgroups: "/nonexistent".into(),
        ..Sources::new(vec![text])
    }
}

fn memory(_: &ExportRequest<'_>) -> Result<Arc<dyn Fs>, String> {
    Ok(Arc::new(Memory::new(MemoryOptions::default()).map_err(|status| status.to_string())?))
}

fn loaded(
    sources: &Sources,
    old: Option<&Plan>,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    load(sources, &memory, HandleKey::new([1; 16]), old)
}

fn fine(text: &str) -> Plan {
    loaded(&sources(text), None).unwrap_or_else(|findings| panic!("{findings:?}")).0
}

/// The diagnostics of a configuration, and true if it is accepted.
fn found(text: &str) -> (bool, Vec<String>) {
    let (taken, findings) = match loaded(&sources(text), None) {
        Ok((_, findings)) => (true, findings),
        Err(findings) => (false, findings),
    };
    (taken, findings.iter().map(ToString::to_string).collect())
}

fn shown(plan: &Plan, address: &str) -> Vec<String> {
    plan.learn_name(peer(address));
    plan.offered(peer(address)).iter().map(ToString::to_string).collect()
}

fn client(plan: &Plan, address: &str) -> String {
    plan.learn_name(peer(address));
    plan.offered(peer(address)).first().map_or("-".into(), |offered| offered.client().to_string())
}

#[test]
fn the_most_specific_client_decides() {
    let dir = tempfile::tempdir().unwrap();
    let netgroups = dir.path().join("netgroup");
    std::fs::write(&netgroups, "lab (lab1.example.org,,)\n").unwrap();
    let text = "/a *(ro) *.org(ro) *.example.org(rw) @lab(ro) 192.0.0.0/8(ro) 192.0.2.0/29(rw) \
                one.example.org(ro) 192.0.2.2(rw)";
    let sources = Sources { netgroups, ..sources(text) };
    let plan = loaded(&sources, None).unwrap().0;
    for (address, expected) in [
        ("192.0.2.1", "one.example.org"),
        ("192.0.2.2", "192.0.2.2"),
        ("192.0.2.3", "192.0.2.0/29"),
        ("::ffff:192.0.2.3", "192.0.2.0/29"),
        ("192.0.2.99", "192.0.0.0/8"),
        ("2001:db8::11", "@lab"),
        ("198.51.100.1", "*"),
    ] {
        assert_eq!(client(&plan, address), expected, "{address}");
    }
    let plan = fine("/a *(ro) *.org(ro) *.example.org(rw)");
    assert_eq!(client(&plan, "192.0.2.12"), "*.example.org");
}

#[test]
fn a_host_name_counts_only_if_it_resolves_back_to_the_address() {
    let plan = fine("/a lab*.example.org(ro)");
    assert_eq!(client(&plan, "192.0.2.11"), "lab*.example.org");
    assert_eq!(client(&plan, "192.0.2.66"), "-", "claims the name of another host");
    let plan = fine("/a lab*.example.org(ro) *(ro)");
    assert_eq!(client(&plan, "192.0.2.66"), "*");
    assert_eq!(
        client(&plan, "192.0.2.99"),
        "-",
        "after a failed look-up the wider entry does not apply"
    );
}

#[test]
fn a_name_server_that_is_down_is_asked_a_bounded_number_of_times() {
    struct Dead(AtomicUsize);
    impl Resolver for Dead {
        fn addresses(&self, _: &str) -> Result<Vec<IpAddr>, Unresolved> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(Unresolved::Failed("no server answers".into()))
        }
        fn name(&self, _: IpAddr) -> Result<String, Unresolved> {
            Err(Unresolved::Unknown)
        }
    }
    let dead = Arc::new(Dead(AtomicUsize::new(0)));
    let hosts: String = (0..100).map(|number| format!(" h{number}")).collect();
    let resolver = Arc::clone(&dead) as Arc<dyn Resolver>;
    let sources = Sources { resolver, ..sources(&format!("/a{hosts}")) };
    assert_eq!(loaded(&sources, None).unwrap().1.len(), 100);
    assert_eq!(dead.0.load(Ordering::Relaxed), limits::LOOKUPS_FAILED_MAX);
}

#[test]
fn the_exports_of_a_client_are_listed_with_all_options() {
    let plan = fine(
        "/a\\040b 192.0.2.0/24(rw,fsid=7) *(ro,all_squash,anonuid=9)\n/b \
         192.0.2.1(rw,async,nordirplus)",
    );
    assert_eq!(
        shown(&plan, "192.0.2.1"),
        [
            "/a\\040b 192.0.2.0/24(rw,sync,secure,root_squash,no_all_squash,anonuid=65534,\
             anongid=65534,sec=sys,fsid=7)",
            "/b 192.0.2.1(rw,async,secure,root_squash,no_all_squash,anonuid=65534,anongid=65534,\
             sec=sys,nordirplus)",
        ]
    );
    assert_eq!(
        shown(&plan, "198.51.100.1"),
        ["/a\\040b \
             *(ro,sync,secure,root_squash,all_squash,anonuid=9,anongid=65534,sec=sys,fsid=7)"]
    );
}

#[test]
fn unwise_exports_are_a_warning() {
    for (text, expected) in [
        ("/a *(no_root_squash)", "e:1:4: warning: no_root_squash for everybody"),
        ("/a *(rw,insecure)", "e:1:4: warning: rw and insecure for everybody"),
        ("/a h.example.org(async)", "e:1:4: warning: async"),
        (
            "/a 10.0.0.1\n\n/a 10.0.0.1",
            "e:3:4: warning: client 10.0.0.1 of /a stands twice, first at e:1:4",
        ),
        ("/a *\n/a/b 10.0.0.1", "e:2:1: warning: /a/b is also below /a (e:1:1), under other rules"),
        ("/a one.example.org(rw) 192.0.2.1(ro)", "e:1:24: warning: 192.0.2.1 has the address"),
        ("/a *.org(ro) *(rw)", "e:1:4: warning: *.org may only read but everybody may write"),
        (
            "/a gone.example.org",
            "e:1:4: warning: client gone.example.org is not found: no such name",
        ),
        ("/a *(mountpoint)", "e:1:1: warning: /a is not offered: nothing is mounted there"),
        ("/a h (ro)", "e:1:6: warning: a blank between h and its options"),
        ("# nothing", "configuration: warning: nothing is exported"),
    ] {
        let (taken, found) = found(text);
        assert!(
            taken && found.iter().any(|found| found.starts_with(expected)),
            "{text}: {found:?}"
        );
    }
    assert_eq!(found("/a *(ro)\n/a/b *(ro)\n/c 10.0.0.1(rw)"), (true, vec![]));
}

/// A client that still holds state on such a file must be able to release it.
#[test]
fn the_files_of_an_export_that_is_gone_are_known_as_before() {
    let plan = loaded(&sources("/a *\n/b *"), None).unwrap().0;
    let gone = plan.exports().iter().find(|export| export.path() == Path::new("/a")).unwrap().id();
    let sealed = plan.seal(gone, &comity_vfs::Handle::new(b"a handle").unwrap());
    let before = plan.unseal_key(sealed.bytes()).unwrap();
    let mut plan = plan;
    for _ in 0..2 {
        plan = loaded(&sources("/b *"), Some(&plan)).unwrap().0;
        assert_eq!(plan.unseal_key(sealed.bytes()), Ok(before));
    }
}

/// The same for an export whose files other servers have now.
#[test]
fn the_files_of_an_export_that_has_moved_are_known_as_before() {
    let plan = loaded(&sources("/a *\n/b *"), None).unwrap().0;
    let moved = plan.exports().iter().find(|export| export.path() == Path::new("/a")).unwrap().id();
    let sealed = plan.seal(moved, &comity_vfs::Handle::new(b"a handle").unwrap());
    let before = plan.unseal_key(sealed.bytes()).unwrap();
    let mut plan = plan;
    for _ in 0..2 {
        plan = loaded(&sources("/a *(refer=/x@b)\n/b *"), Some(&plan)).unwrap().0;
        assert_eq!(plan.unseal_key(sealed.bytes()), Ok(before));
    }
}

/// A pipe has no content when it is read again, and a device has no end.
#[test]
fn a_configuration_that_is_not_a_regular_file_is_refused() {
    for source in [Source::Exports("/dev/null".into()), Source::Config("/dev/null".into())] {
        let found = Sources::new(vec![source]).read().unwrap_err();
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert!(shown[0].starts_with("/dev/null: cannot be read: it is no file"), "{shown:?}");
    }
}

#[test]
fn wrong_exports_are_refused() {
    for (text, expected) in [
        (
            "/a 10.0.0.1(rw)\n/a 10.0.0.1(ro)",
            "e:2:4: client 10.0.0.1 of /a stands at e:1:4 with other",
        ),
        ("/a 10.0.0.1(fsid=1) 10.0.0.2(fsid=2)", "e:1:21: option fsid: all clients"),
        ("/a 10.0.0.1(crossmnt) 10.0.0.2", "e:1:23: option crossmnt: all clients"),
        (
            "/a *(fsid=1)\n/b *(fsid=1)",
            "e:2:1: same export number as /a (e:1:1): set another fsid=",
        ),
        ("/a *\n/a/b *(nohide)", "e:2:1: option nohide: /a (e:1:1) has to have crossmnt"),
        ("/a @none", "e:1:4: netgroup \"none\" is not known"),
        (
            "/a down.example.org(ro) *(rw)",
            "e:1:4: client down.example.org is not found: no server answers; it would come in \
             under",
        ),
        ("/a *(x)", "e:1:6: unknown option"),
    ] {
        let (taken, found) = found(text);
        assert!(
            !taken && found.iter().any(|found| found.starts_with(expected)),
            "{text}: {found:?}"
        );
    }
    assert!(found("/a *(crossmnt)\n/a/b *(nohide)").0 && found("/a/b *(nohide)").0);
}

#[test]
fn a_backend_that_does_not_open_is_an_error_with_its_place() {
    let open = |request: &ExportRequest<'_>| Err(format!("no such {}", request.crosses_mounts));
    let refused = load(&sources("/a *(crossmnt)"), &open, HandleKey::new([1; 16]), None);
    let findings = refused.map(drop).unwrap_err();
    assert_eq!(findings[0].to_string(), "e:1:1: /a: no such true");
    assert_eq!(findings[0].severity, Severity::Error);
    let refused = load(&sources("/a *\n/b *(x)"), &open, HandleKey::new([1; 16]), None);
    let findings: Vec<_> = refused.map(drop).unwrap_err().iter().map(|f| f.place.line).collect();
    assert_eq!(findings, [1, 2, 2], "errors elsewhere do not hide it");
}

#[test]
fn an_export_with_mountpoint_is_offered_only_if_something_is_mounted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display();
    let plan = fine(&format!("{path} *(mountpoint)\n/proc *(mp)\n{path}/x *(mp=/)"));
    let offered = plan.offered(peer("10.0.0.1"));
    let paths: Vec<&Path> = offered.iter().map(|offered| offered.path()).collect();
    assert_eq!(paths, [Path::new("/proc"), &dir.path().join("x")]);
}

/// `/proc` is mounted, and a link to it is in a directory that the last caller may not search.
#[test]
fn mount_points_are_looked_up_under_the_ids_of_the_server() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root may act as others");
    }
    let dir = tempfile::tempdir().unwrap();
    let (shown, private) = (dir.path().join("shown"), dir.path().join("private"));
    std::fs::create_dir(&shown).unwrap();
    std::fs::DirBuilder::new().mode(0o700).create(&private).unwrap();
    std::os::unix::fs::symlink("/proc", private.join("point")).unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let text = format!("{} *(mountpoint={})", shown.display(), private.join("point").display());
    let fs = Arc::new(Passthrough::open(&shown, PassthroughOptions::default()).unwrap());
    if !fs.capabilities().caller_identities {
        return eprintln!("skipped: this process may not act as others");
    }
    let open = |_: &ExportRequest<'_>| Ok(Arc::clone(&fs) as Arc<dyn Fs>);
    let (plan, _) = load(&sources(&text), &open, HandleKey::new([7; 16]), None).unwrap();
    let caller = Cred::new(Uid::new(1000), Gid::new(1000));
    let missing = fs.lookup(&caller, &Fs::root(&*fs), Name::new(b"missing").unwrap());
    assert_eq!(missing.err(), Some(Status::NoEnt));
    assert!(std::fs::metadata(private.join("point")).is_err(), "the thread acts as the caller");
    assert_eq!(plan.offered(peer("10.0.0.1")).len(), 1);
    fs.release_identity().unwrap();
}

#[test]
fn all_files_count_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let first = write("exports", "/a *\n");
    write("exports.d/b.exports", "/b *\n");
    write("exports.d/a.exports", "/c *\n");
    write("exports.d/.hidden.exports", "/hidden *\n");
    write("exports.d/readme.txt", "no exports\n");
    let config =
        write("comity.toml", "[[export]]\npath = \"/d\"\nclients = [{ client = \"*\" }]\n");
    let list = vec![
        Source::Exports(first),
        Source::Directory(dir.path().join("exports.d")),
        Source::Directory(dir.path().join("missing.d")),
        Source::Config(config),
        Source::export("command line", Path::new("/e f"), "127.0.0.1(rw) ::1(rw)"),
    ];
    let plan = loaded(&Sources { list, ..sources("") }, None).unwrap().0;
    let paths: Vec<&Path> = plan.exports().iter().map(|export| export.path()).collect();
    assert_eq!(paths, ["/a", "/c", "/b", "/d", "/e f"].map(Path::new));
    let missing = PathBuf::from("/nonexistent/exports");
    let list = vec![Source::Exports(missing.clone()), Source::Config(missing)];
    let findings = Sources { list, ..sources("") }.read().map(drop).unwrap_err();
    assert!(findings[0].to_string().starts_with("/nonexistent/exports: cannot be read: No such"));
}

#[test]
fn backends_are_kept_over_a_reload() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    std::fs::create_dir(&a).unwrap();
    std::fs::create_dir(&b).unwrap();
    let opened = RefCell::new(Vec::new());
    let open = |request: &ExportRequest<'_>| {
        opened.borrow_mut().push(request.path.file_name().unwrap().to_owned());
        memory(request)
    };
    let reload = |text: String, old: Option<&Plan>| {
        let plan = load(&sources(&text), &open, HandleKey::new([1; 16]), old).unwrap().0;
        (plan, std::mem::take(&mut *opened.borrow_mut()))
    };
    let (pa, pb) = (a.display(), b.display());
    let (first, opens) = reload(format!("{pa} *(ro)\n{pb} *(ro)"), None);
    assert_eq!(opens, ["a", "b"]);
    let (second, opens) = reload(format!("{pb} *(ro)\n{pa} 10.0.0.1(rw,fsid=3)"), Some(&first));
    assert!(opens.is_empty(), "rules and numbers change, the backend stays: {opens:?}");
    let (third, opens) = reload(format!("{pa} *(ro,crossmnt)\n{pb} *(ro)"), Some(&second));
    assert_eq!(opens, ["a"], "crossmnt changed");
    std::fs::rename(&b, dir.path().join("c")).unwrap();
    std::fs::create_dir(&b).unwrap();
    let (_, opens) = reload(format!("{pa} *(ro,crossmnt)\n{pb} *(ro)"), Some(&third));
    assert_eq!(opens, ["b"], "another directory at the same path");
}

/// A configuration of exports with a placement, at these paths.
fn placed_at(paths: &[&Path]) -> String {
    let table = |path: &&Path| {
        format!(
            "[[export]]\npath = {path:?}\nclients = [{{ client = \"*\" }}]\n\n\
             [[placement]]\nexport = {path:?}\nkey = \"/key\"\n\
             data_servers = [{{ name = \"a\", address = \"192.0.2.1\" }}]\n\n"
        )
    };
    paths.iter().map(table).collect()
}

fn no_servers() -> PlacementSettings {
    PlacementSettings {
        name: Box::default(),
        mirrors: None,
        unit_bytes: 1 << 20,
        threshold: Threshold::default(),
        servers: Vec::new(),
    }
}

#[test]
fn a_placement_is_opened_anew_only_if_nobody_uses_the_one_that_its_directory_had() {
    let dir = tempfile::tempdir().unwrap();
    let (at, link) = (dir.path().join("a"), dir.path().join("link"));
    std::fs::create_dir(&at).unwrap();
    std::os::unix::fs::symlink(&at, &link).unwrap();
    let (config, opened) = (dir.path().join("config"), RefCell::new(Vec::new()));
    let open = |request: &ExportRequest<'_>| -> Result<Arc<dyn Fs>, String> {
        opened.borrow_mut().push((request.kept.is_some(), request.shared.is_some()));
        let anew =
            || Placed::new(memory(request).unwrap(), PlacementKey::new([7; 16]), no_servers());
        Ok(request.kept.map_or_else(|| Arc::new(anew()), Arc::clone))
    };
    let reload = |paths: &[&Path], old: Option<&Plan>| {
        std::fs::write(&config, placed_at(paths)).unwrap();
        let sources = Sources { list: vec![Source::Config(config.clone())], ..sources("") };
        let plan = load(&sources, &open, HandleKey::new([1; 16]), old).unwrap().0;
        (plan, std::mem::take(&mut *opened.borrow_mut()))
    };
    let (anew, kept, shared) = ((false, false), (true, false), (false, true));
    let (first, opens) = reload(&[&at], None);
    assert_eq!(opens, [anew]);
    let used = Arc::clone(&first.exports()[0]);
    let (second, _) = reload(&[], Some(&first));
    drop(first);
    let (third, opens) = reload(&[&at], Some(&second));
    assert_eq!(opens, [kept], "it comes back");
    drop(third);
    let (third, _) = reload(&[], Some(&second));
    let (fourth, opens) = reload(&[&link], Some(&third));
    assert_eq!(opens, [shared], "it comes back at another path");
    let (_, opens) = reload(&[&link, &at], Some(&fourth));
    assert_eq!(opens, [kept, kept], "that of the same path counts first");
    drop((fourth, used));
    let (_, opens) = reload(&[&at], Some(&third));
    assert_eq!(opens, [anew], "nobody uses it any more");
    let (_, opens) = reload(&[&at, &link], None);
    assert_eq!(opens, [anew, shared], "two exports of one directory from the start");
}

#[test]
fn exports_of_one_directory_with_a_placement_have_the_same_crossmnt() {
    let dir = tempfile::tempdir().unwrap();
    let (at, link) = (dir.path().join("a"), dir.path().join("link"));
    std::fs::create_dir(&at).unwrap();
    std::os::unix::fs::symlink(&at, &link).unwrap();
    let config = dir.path().join("config");
    let open = |request: &ExportRequest<'_>| -> Result<Arc<dyn Fs>, String> {
        let placed =
            Placed::new(memory(request).unwrap(), PlacementKey::new([7; 16]), no_servers());
        Ok(Arc::new(placed))
    };
    let crossing = placed_at(&[&link]).replacen("clients", "options = [\"crossmnt\"]\nclients", 1);
    std::fs::write(&config, placed_at(&[&at]) + &crossing).unwrap();
    let sources = Sources { list: vec![Source::Config(config.clone())], ..sources("") };
    let loaded = || load(&sources, &open, HandleKey::new([1; 16]), None);
    let findings = loaded().err().unwrap();
    assert!(
        findings.iter().any(|one| one.to_string().contains("the same crossmnt")),
        "{findings:?}"
    );
    let plain = crossing.split("[[placement]]").next().unwrap();
    std::fs::write(&config, placed_at(&[&at]) + plain).unwrap();
    assert!(loaded().is_ok(), "the other one has no placement");
}

#[test]
fn export_numbers_are_the_same_after_a_restart() {
    let ids = |text| fine(text).exports().iter().map(|export| export.id().0).collect::<Vec<_>>();
    assert_eq!(ids("/srv/data *"), ids("/other *\n/srv/data/ *")[1..]);
    assert_eq!(ids("/a *(fsid=root)\n/b *(fsid=77)"), [0, 77]);
    assert_eq!(
        ids("/a *(fsid=00112233-4455-6677-8899-aabbccddeeff)"),
        ids("/b *(fsid=00112233445566778899AABBCCDDEEFF)")
    );
    // The number is written down here: another hash would make the handles of all clients stale.
    assert_eq!(ids("/srv/data *"), [NUMBER_OF_SRV_DATA]);
}

const NUMBER_OF_SRV_DATA: u32 = 842_959_608;

#[test]
fn unwise_maps_and_cloaks_are_a_warning() {
    let map = "range_map_uid=1000-1999:51000-51999,range_map_gid=1000-1999:51000-51999";
    for (options, expected) in [
        ("range_map_uid=1:2", "e:1:6: warning: uids are mapped but gids are not"),
        ("range_map_gid=1:2", "e:1:6: warning: gids are mapped but uids are not"),
        ("map_default=deny", "e:1:6: warning: map_default without a range"),
        ("no_client_cache", "e:1:6: warning: no_client_cache without a cloak"),
        ("cloak_uid=1:+000", "e:1:6: warning: a cloak without no_client_cache: only clients with"),
        (&format!("{map},anonuid=51005"), "e:1:6: warning: the anonymous uid 51005 lies in this"),
        (&format!("{map},anongid=51005"), "e:1:42: warning: the anonymous gid 51005 lies in this"),
        (
            "range_map_uid=9:9,range_map_gid=1000-1999:1500-2499,map_default=pass",
            "e:1:24: warning: map_default=pass lets client gids 2000-2499 pass unchanged into",
        ),
        (
            "range_map_uid=5:0,range_map_gid=5:6",
            "e:1:6: warning: uid 0 of the server is in this range: a client's uid becomes root's",
        ),
        ("anonuid=0", "e:1:6: warning: the anonymous uid is 0: whoever is squashed has root's uid"),
        ("anongid=0", "e:1:6: warning: the anonymous gid is 0: whoever is squashed has root's gid"),
        (
            "range_map_uid=0-9:50-59,range_map_gid=5:6",
            "e:1:6: warning: uid 0 is squashed before it is mapped",
        ),
    ] {
        let (taken, said) = found(&format!("/a *({options})"));
        assert!(taken && said[0].starts_with(expected), "{options}: {said:?}");
        assert_eq!(said.len(), 1, "{options}: {said:?}");
    }
    let fine = [
        map,
        "range_map_uid=1-9:65534,range_map_gid=1-9:65534",
        "cloak_uid=1:+000,no_client_cache",
    ];
    for options in fine {
        assert_eq!(found(&format!("/a ::1({options})")), (true, vec![]), "{options}");
    }
}

#[test]
fn two_sites_that_share_a_server_id_are_a_warning() {
    let site = |first: u32| {
        let last = first + 99;
        format!(
            "range_map_uid=0-99:{first}-{last},range_map_gid=0-99:{first}-{last},no_root_squash"
        )
    };
    let text = format!("/a ::1({}) ::2({},anonuid=70000)", site(1000), site(2000));
    assert_eq!(found(&text), (true, vec![]));
    let text = format!("/a ::1({})\\\n ::2({})", site(1000), site(1050));
    let (taken, said) = found(&text);
    assert!(taken && said.len() == 2, "{said:?}");
    let expected = "e:2:6: warning: client ::2 and client ::1 (e:1:8) share server uids 1050-1099";
    assert!(said[0].starts_with(expected), "{said:?}");
    let text = format!("/a ::1({})\\\n ::2({},anonuid=1005)", site(1000), site(2000));
    let (_, said) = found(&text);
    assert!(said[0].contains("the anonymous uid 1005 of client ::2 lies in a range of client ::1"));
}
