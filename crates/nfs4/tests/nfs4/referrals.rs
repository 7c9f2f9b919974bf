//! Exports whose files are served by other servers (RFC 7530, 8; RFC 8881, 11).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use comity_backend::{Passthrough, PassthroughOptions};
use comity_export::{Diagnostic, ExportRequest, HandleKey, Plan, Source, Sources, load};
use comity_vfs::Fs;

use crate::script::Script;
use crate::world::{World, furnish, memory};

/// One file system is absent above the exports, one inside an export, and some are not for this
/// caller.
pub(crate) const EXPORTS: &str =
    "/srv/away 127.0.0.1(rw,refer=/x/y@b.example.org+192.0.2.7:/z@[2001:db8::7])
/srv/pub 127.0.0.1(rw,insecure)
/srv/pub/inner 127.0.0.1(rw,refer=/@b)
/srv/theirs 10.9.8.7(rw,refer=/x@b)
/srv/nobodys 127.0.0.1(rw,refer=/x@b,sec=none)
";

const AWAY: &str = "PUTROOTFH; LOOKUP srv; LOOKUP away";

const LOCATIONS: &str = "/srv/away>b.example.org,192.0.2.7:/x/y>2001:db8::7:/z";

fn loaded(exports: &str) -> Result<Plan, Vec<Diagnostic>> {
    let text = exports.as_bytes().to_vec();
    let sources = Sources::new(vec![Source::Text { name: "exports".into(), text }]);
    let open = |_: &ExportRequest<'_>| {
        let fs = memory();
        furnish(&*fs);
        Ok(fs)
    };
    Ok(load(&sources, &open, HandleKey::new([7; 16]), None)?.0)
}

pub(crate) fn world(exports: &str) -> World {
    World::of(loaded(exports).unwrap_or_else(|findings| panic!("{findings:?}")))
}

fn world_of_one() -> World {
    world("/srv/away 127.0.0.1(rw,refer=/x/y@b)\n")
}

/// Returns the result of the last operation of a COMPOUND, the same in each minor version.
fn said(world: &World, line: &str) -> String {
    let last = |minor: u32| {
        let mut script = Script::new(world);
        script.line(&format!("MINOR {minor}"));
        script.line(line).pop().unwrap()
    };
    let told = last(0);
    assert_eq!([last(1), last(2)], [told.clone(), told.clone()], "{line}");
    told
}

#[test]
fn a_look_up_leads_to_an_absent_file_system_and_getattr_tells_where_it_is() {
    let world = world(EXPORTS);
    assert_eq!(said(&world, AWAY), "LOOKUP OK");
    let all = "fsid fs_locations mounted_on_fileid rdattr_error type mode size";
    let expected = format!(
        "GETATTR OK fsid=some.2 rdattr_error=0 fs_locations={LOCATIONS} mounted_on_fileid=some"
    );
    assert_eq!(said(&world, &format!("{AWAY}; GETATTR {all}")), expected);
    let inner = "PUTROOTFH; LOOKUP srv; LOOKUP pub; LOOKUP inner; GETATTR fs_locations";
    assert_eq!(said(&world, inner), "GETATTR OK fs_locations=/srv/pub/inner>b:/");
}

/// RFC 8881, 11.4.1: the others are not told alone.
#[test]
fn attributes_of_an_absent_file_system_are_told_only_together_with_its_locations() {
    let world = world(EXPORTS);
    for wanted in ["fsid", "mounted_on_fileid", "rdattr_error", "type", "supported", ""] {
        let line = format!("{AWAY}; GETATTR {wanted}");
        assert_eq!(said(&world, line.trim_end()), "GETATTR MOVED", "{wanted}");
    }
}

#[test]
fn every_operation_on_an_absent_file_system_is_told_that_it_moved() {
    let world = world(EXPORTS);
    for operation in [
        "ACCESS 1",
        "COMMIT 0 0",
        "CREATE dir new",
        "GETFH kept",
        "LINK new",
        "LOOKUP file",
        "LOOKUPP",
        "NVERIFY size=1",
        "READ 0 10",
        "READDIR 0 4096",
        "READLINK",
        "REMOVE file",
        "RENAME file new",
        "SAVEFH",
        "SECINFO file",
        "SETATTR mode=644",
        "VERIFY type=2",
        "WRITE 0 unstable data",
    ] {
        let name = operation.split(' ').next().unwrap();
        assert_eq!(said(&world, &format!("{AWAY}; {operation}")), format!("{name} MOVED"));
    }
    for operation in ["SECINFO_NO_NAME 0", "SECINFO_NO_NAME 1"] {
        let mut script = Script::new(&world);
        script.line("MINOR 1");
        let told = script.line(&format!("{AWAY}; {operation}"));
        assert_eq!(told.last().unwrap(), "SECINFO_NO_NAME MOVED");
    }
}

#[test]
fn operations_that_leave_an_absent_file_system_are_done() {
    let world = world(EXPORTS);
    assert_eq!(said(&world, &format!("{AWAY}; PUTROOTFH")), "PUTROOTFH OK");
    let back = "PUTROOTFH; SAVEFH; LOOKUP srv; LOOKUP away; RESTOREFH; GETATTR type";
    assert_eq!(said(&world, back), "GETATTR OK type=2");
    assert_eq!(said(&world, "PUTROOTFH; LOOKUP srv; SECINFO away"), "SECINFO OK [1]");
}

/// RFC 8881, 11.4.2 and 11.16.2.
#[test]
fn a_listing_shows_an_absent_file_system_by_its_error_or_its_locations() {
    let world = world("/srv/away 127.0.0.1(rw,refer=/x/y@b)\n/srv/pub 127.0.0.1(rw)\n");
    let list =
        |wanted: &str| said(&world, &format!("PUTROOTFH; LOOKUP srv; READDIR 0 4096{wanted}"));
    let alone = world_of_one();
    for wanted in ["", " type", " fsid mounted_on_fileid"] {
        let line = format!("PUTROOTFH; LOOKUP srv; READDIR 0 4096{wanted}");
        assert_eq!(said(&alone, &line), "READDIR MOVED", "{wanted}");
        assert!(!list(wanted).contains("away"), "{wanted}");
        assert!(!list(wanted).contains("eof=true"), "{wanted}: the listing has not ended");
    }
    let told = list(" rdattr_error fsid mounted_on_fileid type");
    let away = "away[fsid=some.2 rdattr_error=10019 mounted_on_fileid=some]";
    assert!(told.contains(away), "{told}");
    assert!(told.contains("pub[type=2 fsid=some.1 rdattr_error=0 mounted_on_fileid=some]"));
    let told = list(" rdattr_error fs_locations type");
    let away = "away[rdattr_error=0 fs_locations=/srv/away>b:/x/y]";
    assert!(told.contains(away), "{told}");
    assert!(told.contains("pub[type=2 rdattr_error=0 fs_locations=/srv/pub>]"), "{told}");
}

#[test]
fn a_listing_of_an_export_shows_an_absent_file_system_inside_it() {
    let world = world(EXPORTS);
    let list = |wanted: &str| {
        said(&world, &format!("PUTROOTFH; LOOKUP srv; LOOKUP pub; READDIR 0 4096{wanted}"))
    };
    for wanted in [" rdattr_error", " rdattr_error type"] {
        assert!(list(wanted).contains("inner[rdattr_error=10019]"), "{wanted}");
    }
    assert!(list(" fs_locations").contains("inner[fs_locations=/srv/pub/inner>b:/]"));
}

/// A folder shows only names to a caller that may not search it.
#[test]
fn a_referral_elsewhere_hides_no_names_of_a_directory_that_cannot_be_searched() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: takes root, to act as another user");
    }
    let folder = tempfile::tempdir().unwrap();
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::write(closed.join("inside"), "").unwrap();
    for (path, mode) in [(folder.path(), 0o755), (&closed, 0o744)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    for referral in ["", "/srv/away 127.0.0.1(rw,refer=/x@b)\n"] {
        let world = world_of_folder(folder.path(), &format!("{referral}/srv/pub 127.0.0.1(rw)\n"));
        for wanted in ["", " rdattr_error"] {
            let mut script = Script::new(&world);
            script.line("AS 7:7");
            let dir = "PUTROOTFH; LOOKUP srv; LOOKUP pub; LOOKUP closed";
            let told = script.line(&format!("{dir}; READDIR 0 4096{wanted}")).pop().unwrap();
            assert!(told.contains("inside"), "{referral}{wanted}: {told}");
            assert!(!told.contains("rdattr_error=5"), "{referral}{wanted}: {told}");
        }
    }
}

/// A server of these exports; each has the files of the folder.
fn world_of_folder(folder: &Path, exports: &str) -> World {
    let text = exports.as_bytes().to_vec();
    let sources = Sources::new(vec![Source::Text { name: "exports".into(), text }]);
    let open = |_: &ExportRequest<'_>| {
        let fs = Passthrough::open(folder, PassthroughOptions::default());
        Ok(Arc::new(fs.unwrap()) as Arc<dyn Fs>)
    };
    World::of(load(&sources, &open, HandleKey::new([7; 16]), None).unwrap().0)
}

#[test]
fn nobody_is_told_where_files_are_who_may_not_use_the_export() {
    let world = world(EXPORTS);
    assert_eq!(said(&world, "PUTROOTFH; LOOKUP srv; LOOKUP theirs"), "LOOKUP NOENT");
    assert_eq!(said(&world, "PUTROOTFH; LOOKUP srv; LOOKUP nobodys"), "LOOKUP WRONGSEC");
    let world = world.coming_from("127.0.0.1:40000".parse().unwrap());
    assert_eq!(said(&world, AWAY), "LOOKUP PERM");
}

/// A client holds handles from the time when the files were here.
#[test]
fn handles_of_files_that_have_moved_lead_to_the_absent_file_system() {
    let before = world("/srv/away 127.0.0.1(rw)\n");
    let mut script = Script::new(&before);
    script.line("PUTROOTFH; LOOKUP srv; LOOKUP away; LOOKUP file; GETFH file");
    let kept = script.kept("file");
    let after = world(EXPORTS);
    let mut script = Script::new(&after);
    script.keep("file", kept);
    assert_eq!(script.line("PUTFH @file; READ 0 10"), ["PUTFH OK", "READ MOVED"]);
    let told = script.line("PUTFH @file; GETATTR fs_locations").join("; ");
    assert_eq!(told, format!("PUTFH OK; GETATTR OK fs_locations={LOCATIONS}"));
}

#[test]
fn a_present_file_system_has_no_other_locations() {
    let world = world("/srv/pub 127.0.0.1(rw)\n");
    let line = "PUTROOTFH; LOOKUP srv; LOOKUP pub; LOOKUP file; GETATTR fs_locations";
    assert_eq!(said(&world, line), "GETATTR OK fs_locations=/srv/pub>");
    assert_eq!(said(&world, "PUTROOTFH; GETATTR fs_locations"), "GETATTR OK fs_locations=/>");
}

/// Linux compares the path with the one that it has mounted.
#[test]
fn the_path_of_an_absent_file_system_begins_at_the_root_of_clients() {
    let world = world("/srv/pub 127.0.0.1(rw,fsid=0)\n/srv/pub/inner 127.0.0.1(rw,refer=/x@b)\n");
    let told = said(&world, "PUTROOTFH; LOOKUP inner; GETATTR fs_locations");
    assert_eq!(told, "GETATTR OK fs_locations=/inner>b:/x");
}

#[test]
fn a_referral_that_cannot_be_followed_is_an_error_with_its_line() {
    for (exports, line, what) in [
        ("/srv *(ro)\n/a *(refer=/x)\n", 2, "names no server"),
        ("/a *(fsid=0,refer=/x@b)\n", 1, "the top of what NFSv4 clients see"),
        ("/ *(refer=/x@b)\n", 1, "the top of what NFSv4 clients see"),
        ("/a *(refer=/x@b)\n/a/b *(ro)\n", 2, "is below /a"),
        ("/a 10.0.0.1(refer=/x@b) 10.0.0.2(ro)\n", 1, "all clients of an export must have"),
        ("/a 10.0.0.1(ro) 10.0.0.2(refer=/x@b)\n", 1, "all clients of an export must have"),
        ("/a 10.0.0.1(refer=/y@b) 10.0.0.2(refer=/x@b)\n", 1, "all clients of an export"),
    ] {
        let findings = loaded(exports).err().unwrap();
        let is_it = |found: &&Diagnostic| found.text.contains(what);
        let found = findings.iter().find(is_it).unwrap_or_else(|| panic!("{findings:?}"));
        assert_eq!(found.place.line, line, "{exports}");
    }
}
