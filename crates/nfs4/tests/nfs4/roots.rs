//! The root and the directories above the exports.

use std::sync::Arc;

use comity_export::{
    Client, Diagnostic, ExportRequest, Exports, HandleKey, Plan, Source, Sources, load,
};
use comity_vfs::{Cred, Gid, Mode, Name, SetAttr, Uid};

use crate::script::Script;
use crate::world::{World, export, furnish, memory};

fn world(exports: &str) -> World {
    World::of(plan(exports))
}

fn plan(exports: &str) -> Plan {
    loaded(exports).unwrap_or_else(|findings| panic!("{findings:?}"))
}

fn loaded(exports: &str) -> Result<Plan, Vec<Diagnostic>> {
    let text = exports.as_bytes().to_vec();
    let sources = Sources::new(vec![Source::Text { name: "exports".into(), text }]);
    let open = |_: &ExportRequest<'_>| Ok(memory());
    Ok(load(&sources, &open, HandleKey::new([7; 16]), None)?.0)
}

/// Two domains, an export for both and one for each. An export for south only is inside the shared
/// one.
const DOMAINS: &str = r#"
[[domain]]
name = "north"
clients = ["192.0.2.0/25"]

[[domain]]
name = "south"
clients = ["198.51.100.0/24"]

[[export]]
path = "/srv/plans"
domains = ["north", "south"]

[[export]]
path = "/srv/norths"
domains = ["north"]

[[export]]
path = "/srv/deep/souths"
domains = ["south"]

[[export]]
path = "/srv/plans/inner"
domains = ["south"]
"#;

fn domains() -> Arc<Exports> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("comity.toml");
    std::fs::write(&file, DOMAINS).unwrap();
    let netgroups = "/nonexistent".into();
    let sources = Sources { netgroups, ..Sources::new(vec![Source::Config(file)]) };
    let open = |_: &ExportRequest<'_>| {
        let fs = memory();
        furnish(&*fs);
        Ok(fs)
    };
    let loaded = load(&sources, &open, HandleKey::new([7; 16]), None);
    Arc::new(Exports::new(loaded.unwrap_or_else(|findings| panic!("{findings:?}")).0))
}

fn said(world: &World, line: &str) -> String {
    Script::new(world).line(line).join("; ")
}

/// Linux mounts both HOST:/ and HOST:/srv/pub.
#[test]
fn an_export_with_fsid_0_is_the_root_and_is_found_by_its_path_too() {
    let world = world("/srv/pub 127.0.0.1(rw,fsid=0)\n/srv/other 127.0.0.1(rw)\n");
    let top = said(&world, "PUTROOTFH; GETATTR type fsid");
    assert_eq!(
        top, "PUTROOTFH OK; GETATTR OK type=2 fsid=0.1",
        "not that of the pseudo file system, which is 0.0"
    );
    for (name, fsid) in [("pub", "0.1"), ("other", "some.1")] {
        let line = format!("PUTROOTFH; LOOKUP srv; LOOKUP {name}; GETATTR fsid");
        assert!(said(&world, &line).ends_with(&format!("fsid={fsid}")), "{name}");
    }
    assert!(said(&world, "PUTROOTFH; LOOKUPP").ends_with("LOOKUPP NOENT"));
    assert!(said(&world, "PUTROOTFH; LOOKUP gone").ends_with("LOOKUP NOENT"));
}

/// Handles of such an export would be those of the directories above the exports.
#[test]
fn no_export_has_the_number_of_the_pseudo_file_system() {
    let findings = loaded("/srv 127.0.0.1(rw,fsid=4294967295)\n").err().unwrap();
    assert!(findings[0].text.contains("the server's own"), "{findings:?}");
}

#[test]
fn an_export_of_the_root_directory_is_the_root() {
    let world = world("/ 127.0.0.1(rw)\n");
    assert!(said(&world, "PUTROOTFH; GETATTR fsid").ends_with("fsid=some.1"));
    assert!(said(&world, "PUTROOTFH; LOOKUPP").ends_with("LOOKUPP NOENT"));
}

/// A restarted server shows the same directories with the same handles.
#[test]
fn handles_above_the_exports_outlive_a_restart() {
    let exports = "/srv/deep/pub 127.0.0.1(rw)\n";
    let first = world(exports);
    let mut script = Script::new(&first);
    script.line("PUTROOTFH; LOOKUP srv; LOOKUP deep; GETFH deep");
    let kept = script.kept("deep");
    let second = world(exports);
    let mut script = Script::new(&second);
    script.keep("deep", kept.clone());
    let found = script.line("PUTFH @deep; LOOKUP pub; GETATTR fsid").join("; ");
    assert_eq!(found, "PUTFH OK; LOOKUP OK; GETATTR OK fsid=some.1");
    let without = world("/srv/other 127.0.0.1(rw)\n");
    let mut script = Script::new(&without);
    script.keep("deep", kept);
    assert_eq!(script.line("PUTFH @deep"), ["PUTFH STALE"]);
}

#[test]
fn secinfo_lists_the_flavors_for_a_caller_with_another_one() {
    let world = world("/srv/pub 127.0.0.1(rw,sec=sys)\n");
    world.act_as_nobody();
    let told = said(&world, "PUTROOTFH; LOOKUP srv; SECINFO pub; LOOKUP pub");
    assert_eq!(told, "PUTROOTFH OK; LOOKUP OK; SECINFO OK [1]; LOOKUP WRONGSEC");
}

/// An export of another domain cannot be found by name or by handle, and is not listed.
#[test]
fn each_domain_sees_only_the_exports_it_may_use_and_the_directories_above_them() {
    let exports = domains();
    let world = |peer: &str| World::at(&exports).seen_from(peer.parse().unwrap());
    let (north, south) = (world("192.0.2.5"), world("198.51.100.9"));
    let names = |world: &World, path: &str| {
        let told = said(world, &format!("PUTROOTFH{path}; READDIR 0 4096"));
        told.rsplit("READDIR OK ").next().unwrap().to_owned()
    };
    let srv = "; LOOKUP srv";
    assert_eq!(names(&north, ""), "srv[] eof=true");
    assert_eq!(names(&north, srv), "norths[] plans[] eof=true");
    assert_eq!(names(&south, srv), "deep[] plans[] eof=true");
    assert_eq!(names(&south, "; LOOKUP srv; LOOKUP deep"), "souths[] eof=true");
    for (world, name) in [(&north, "deep"), (&south, "norths"), (&north, "gone")] {
        for ask in ["LOOKUP", "SECINFO"] {
            let told = said(world, &format!("PUTROOTFH; LOOKUP srv; {ask} {name}"));
            assert!(told.ends_with(&format!("{ask} NOENT")), "{told}");
        }
    }
    let mut script = Script::new(&south);
    script.line("PUTROOTFH; LOOKUP srv; LOOKUP deep; GETFH deep");
    let mut others = Script::new(&north);
    others.keep("deep", script.kept("deep"));
    assert_eq!(others.line("PUTFH @deep; GETATTR type"), ["PUTFH STALE"]);
    let own = "PUTROOTFH; LOOKUP srv; LOOKUP plans; LOOKUP inner; READDIR 0 4096";
    assert!(said(&north, own).ends_with("READDIR OK own[] eof=true"), "the directory below");
    assert!(said(&south, own).ends_with("READDIR OK inner[] file[] link[] eof=true"), "the export");
}

/// An export inside a directory of another export that only root may search.
fn nested_behind_a_closed_directory() -> World {
    let (outer, inner) = (memory(), memory());
    let root = Cred::new(Uid::new(0), Gid::new(0));
    let mut at = outer.root();
    for (name, mode) in [(&b"closed"[..], 0o700), (b"open", 0o777), (b"nested", 0o755)] {
        let set = SetAttr { mode: Some(Mode::new(mode)), ..SetAttr::default() };
        at = outer.mkdir(&root, &at, Name::new(name).unwrap(), &set).unwrap().value.handle;
    }
    let all = Client::Everybody;
    let exports = vec![
        export(1, "/srv", &outer, all.clone()),
        export(2, "/srv/closed/open/nested", &inner, all),
    ];
    World::of(Plan::new(HandleKey::new([7; 16]), exports))
}

#[test]
fn lookupp_out_of_a_nested_export_does_not_pass_a_closed_directory() {
    let world = nested_behind_a_closed_directory();
    let mut script = Script::new(&world);
    script.line("PUTROOTFH; LOOKUP srv; LOOKUP closed; LOOKUP open; GETFH open");
    script.line("PUTROOTFH; LOOKUP srv; LOOKUP closed; LOOKUP open; LOOKUP nested; GETFH nested");
    assert_eq!(script.line("PUTFH @nested; LOOKUPP"), ["PUTFH OK", "LOOKUPP OK"]);
    script.line("AS 7:7");
    assert_eq!(script.line("PUTFH @nested; LOOKUPP"), ["PUTFH OK", "LOOKUPP ACCESS"]);
    script.line("PUTFH @open; LOOKUP nested; GETFH named");
    assert_eq!(script.kept("named"), script.kept("nested"), "all callers find the export");
}
