//! Names of owners, from a TOML file to the view of a caller.
#![allow(clippy::unwrap_used, clippy::panic)]

mod site;

use std::path::PathBuf;
use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_export::{
    Diagnostic, ExportRequest, HandleKey, Operation, Plan, Question, Source, Sources, explain, load,
};
use comity_vfs::{Cred, Fs, Gid, Status, Uid};

use site::Site;

struct Location {
    folder: tempfile::TempDir,
}

impl Location {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// A domain with one to one ranges and these lines in its table of owners.
    fn load(&self, owners: &str) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
        let text = format!(
            "[[domain]]\nname = \"a\"\nclients = [\"10.0.0.2\"]\n\
             options = [\"rw\", \"insecure\"]\nusers = [\"1000-1999:51000-51999\"]\n\
             groups = [\"100-199:52100-52199\"]\n[domain.owners]\n{owners}\n\
             [[export]]\npath = \"/srv\"\ndomains = [\"a\"]\n"
        );
        let source = Source::Config(self.write("c.toml", &text));
        let netgroups = "/nonexistent".into();
        let sources = Sources { netgroups, ..Sources::new(vec![source]) };
        let fs = Arc::new(Memory::new(MemoryOptions::default()).unwrap());
        let open = |_: &ExportRequest<'_>| Ok(Arc::clone(&fs) as Arc<dyn Fs>);
        load(&sources, &open, HandleKey::new([3; 16]), None)
    }

    fn findings(&self, owners: &str) -> Vec<String> {
        let found = match self.load(owners) {
            Ok((_, found)) | Err(found) => found,
        };
        let folder = self.folder.path().display().to_string();
        found.iter().map(|finding| finding.to_string().replace(&folder, "")).collect()
    }
}

const NAMED: &str = "domain = \"a.example\"\nusers = { alice = 1000, bob = 1001, al = 1000 }\n\
                     groups = { staff = 100 }";

#[test]
fn a_view_says_and_reads_the_names_of_its_callers_domain() {
    let plan = Location::new().load(NAMED).unwrap().0;
    let (view, _) = Site::enter_plan(&plan, "10.0.0.2:40000", (1000, 100, &[])).unwrap();
    assert_eq!(view.owner_out(Uid::new(1000)).to_string(), "alice@a.example");
    assert_eq!(view.owner_out(Uid::new(1002)).to_string(), "1002");
    assert_eq!(view.owner_group_out(Gid::new(100)).to_string(), "staff@a.example");
    assert_eq!(view.owner_in(b"al@a.example"), Ok(Uid::new(1000)));
    assert_eq!(view.owner_in(b"1001"), Ok(Uid::new(1001)));
    assert_eq!(view.owner_group_in(b"staff@A.EXAMPLE"), Ok(Gid::new(100)));
    for nobody in [&b"carol@a.example"[..], b"alice@b.example", b"alice", b"staff@a.example", b""] {
        assert_eq!(view.owner_in(nobody), Err(Status::BadOwner));
    }
}

#[test]
fn names_come_from_files_like_passwd_and_group() {
    let place = Location::new();
    let users = place.write("p", "# ours\nalice:x:1000:100::/:/bin/sh\n\nbob:x:1001:100:::\n");
    let groups = place.write("g", "staff:x:100:alice,bob\n");
    let files = format!(
        "domain = \"a.example\"\nusers = {{ carol = 1002 }}\nusers_file = {users:?}\n\
         groups_file = {groups:?}"
    );
    let (plan, found) = place.load(&files).unwrap();
    assert!(found.is_empty(), "{found:?}");
    let (view, _) = Site::enter_plan(&plan, "10.0.0.2:40000", (1000, 100, &[])).unwrap();
    let said = [1000, 1001, 1002].map(|uid| view.owner_out(Uid::new(uid)).to_string());
    assert_eq!(said, ["alice@a.example", "bob@a.example", "carol@a.example"]);
    assert_eq!(view.owner_group_in(b"staff@a.example"), Ok(Gid::new(100)));
}

#[test]
fn mistakes_in_names_are_reported_with_their_place() {
    let place = Location::new();
    let bad = place.write("p", "alice:x:1000:::\nnobody\n");
    let twice = place.write("q", "root:x:1000:::\nroot:x:1001:::\n");
    for (owners, expected) in [
        ("domain = \"a b\"".to_owned(), "/c.toml:8:10: \"a b\" is no domain"),
        ("domain = \"a\"\nuser = {}".to_owned(), "/c.toml:9:1: unknown field `user`"),
        ("users = { alice = 1 }".to_owned(), "missing field `domain`"),
        ("domain = \"a\"\nusers = { 7 = 1000 }".to_owned(), "/c.toml:9:11: user \"7\" is no name"),
        ("domain = \"a\"\nusers = { a = -1 }".to_owned(), "user \"a\": -1 is nobody's number"),
        ("domain = \"a\"\nusers = { a = 4294967295 }".to_owned(), "4294967295 is nobody's number"),
        ("domain = \"a\"\nusers_file = \"p\"".to_owned(), "\"p\" is no absolute path"),
        (
            "domain = \"a\"\nusers_file = \"/nonexistent\"".to_owned(),
            "/nonexistent: cannot be read",
        ),
        (format!("domain = \"a\"\nusers_file = {bad:?}"), "/p:2:1: expected NAME:PASSWORD:NUMBER"),
        (
            format!("domain = \"a\"\nusers_file = {twice:?}"),
            "/q:2:1: user \"root\" is the name of 1000, too",
        ),
    ] {
        assert!(place.load(&owners).is_err(), "{owners}");
        let found = place.findings(&owners);
        assert!(found.iter().any(|found| found.contains(expected)), "{expected} in {found:?}");
    }
}

#[test]
fn unwise_rules_about_names_are_a_warning() {
    let place = Location::new();
    for (owners, expected) in [
        ("domain = \"a\"", "/c.toml:8:10: warning: owners without a name"),
        (
            "domain = \"a\"\nusers = { alice = 1000, bob = 1000 }",
            "/c.toml:9:25: warning: user 1000 is called alice@a already",
        ),
        (
            "domain = \"a\"\nusers = { alice = 1000, bob = 7, carol = 8 }",
            "warning: bob@a is uid 7, which is in no range (and 1 more)",
        ),
        (
            "domain = \"a\"\ngroups = { staff = 7 }",
            "warning: staff@a is gid 7, which is in no range",
        ),
    ] {
        assert!(place.load(owners).is_ok(), "{owners}");
        let found = place.findings(owners);
        assert!(found.iter().any(|found| found.contains(expected)), "{expected} in {found:?}");
    }
}

#[test]
fn a_user_with_a_name_in_a_domain_is_explained_by_it() {
    let plan = Location::new().load(NAMED).unwrap().0;
    let caller = Cred::new(Uid::new(1001), Gid::new(100)).with_groups([Gid::new(101)]);
    let explanation = explain(
        &plan,
        &Question {
            export: "/srv".into(),
            path: "/".into(),
            from: "10.0.0.2".parse().unwrap(),
            caller,
            operation: Operation::Stat,
        },
    );
    let told = |about| {
        let found = explanation.decisions.iter().find(|decision| decision.about == about);
        found.unwrap().text.clone()
    };
    let range = "of the server, by its range";
    assert_eq!(told("user"), format!("uid 1001 (bob@a.example) is uid 51001 {range}"));
    assert_eq!(told("group"), format!("gid 100 (staff@a.example) is gid 52100 {range}"));
    assert_eq!(told("supplementary group"), format!("gid 101 is gid 52101 {range}"));
}
