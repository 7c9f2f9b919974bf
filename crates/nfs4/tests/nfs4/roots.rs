//! What stands at the top, by what the exports say.

use comity_export::{ExportRequest, Finding, HandleKey, Plan, Source, Sources, load};

use crate::script::Script;
use crate::world::{World, memory};

fn world(exports: &str) -> World {
    World::of(plan(exports))
}

fn plan(exports: &str) -> Plan {
    loaded(exports).unwrap_or_else(|findings| panic!("{findings:?}"))
}

fn loaded(exports: &str) -> Result<Plan, Vec<Finding>> {
    let text = exports.as_bytes().to_vec();
    let sources = Sources::new(vec![Source::Text { name: "exports".into(), text }]);
    let open = |_: &ExportRequest<'_>| Ok(memory());
    Ok(load(&sources, &open, HandleKey::new([7; 16]), None)?.0)
}

fn said(world: &World, line: &str) -> String {
    Script::new(world).line(line).join("; ")
}

/// Linux mounts HOST:/ and HOST:/srv/pub alike.
#[test]
fn an_export_with_fsid_0_is_the_top_and_is_found_by_its_path_too() {
    let world = world("/srv/pub 127.0.0.1(rw,fsid=0)\n/srv/other 127.0.0.1(rw)\n");
    let top = said(&world, "PUTROOTFH; GETATTR type fsid");
    assert_eq!(top, "PUTROOTFH OK; GETATTR OK type=2 fsid=0.1", "not the tree's, which is 0.0");
    for (name, fsid) in [("pub", "0.1"), ("other", "some.1")] {
        let line = format!("PUTROOTFH; LOOKUP srv; LOOKUP {name}; GETATTR fsid");
        assert!(said(&world, &line).ends_with(&format!("fsid={fsid}")), "{name}");
    }
    assert!(said(&world, "PUTROOTFH; LOOKUPP").ends_with("LOOKUPP NOENT"));
    assert!(said(&world, "PUTROOTFH; LOOKUP gone").ends_with("LOOKUP NOENT"));
}

/// Its handles would be those of the tree above the exports.
#[test]
fn no_export_has_the_number_of_the_tree() {
    let findings = loaded("/srv 127.0.0.1(rw,fsid=4294967295)\n").err().unwrap();
    assert!(findings[0].text.contains("the server's own"), "{findings:?}");
}

#[test]
fn an_export_of_the_root_is_the_top() {
    let world = world("/ 127.0.0.1(rw)\n");
    assert!(said(&world, "PUTROOTFH; GETATTR fsid").ends_with("fsid=some.1"));
    assert!(said(&world, "PUTROOTFH; LOOKUPP").ends_with("LOOKUPP NOENT"));
}

/// A server that has been started anew shows the same tree under the same handles.
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
fn a_caller_without_a_right_flavor_is_told_which_there_are() {
    let world = world("/srv/pub 127.0.0.1(rw,sec=sys)\n");
    world.act_as_nobody();
    let told = said(&world, "PUTROOTFH; LOOKUP srv; SECINFO pub; LOOKUP pub");
    assert_eq!(told, "PUTROOTFH OK; LOOKUP OK; SECINFO OK [1]; LOOKUP WRONGSEC");
}
