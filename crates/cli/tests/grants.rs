//! A folder is shared with a key that has no account, by the program's own commands.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A server with an export for keys, and the folders of people.
struct Site {
    folder: tempfile::TempDir,
    server: Child,
    port: u16,
}

impl Drop for Site {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn comity() -> Command {
    Command::new(env!("CARGO_BIN_EXE_comity"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        for place in ["srv/p/report", "srv/p/private", "state", "alice", "bob", "carol"] {
            fs::create_dir_all(folder.path().join(place)).unwrap();
        }
        fs::write(folder.path().join("srv/p/report/text"), "the text").unwrap();
        let exports =
            format!("{} 127.0.0.1(rw,sec=key,xprtsec=mtls)\n", folder.path().join("srv").display());
        fs::write(folder.path().join("exports"), exports).unwrap();
        let mut server = comity()
            .args(["serve", "--no-register", "--listen", "127.0.0.1", "--port"])
            .arg(port.to_string())
            .arg("--exports")
            .arg(folder.path().join("exports"))
            .arg("--state-dir")
            .arg(folder.path().join("state"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It listens before it prints.
        let mut first = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut first).unwrap();
        Self { folder, server, port }
    }

    fn path(&self, place: &str) -> PathBuf {
        self.folder.path().join(place)
    }

    /// Runs a command as a person.
    fn run(&self, who: &str, arguments: &[&str]) -> Output {
        let mut command = comity();
        command.args(arguments).env("XDG_CONFIG_HOME", self.path(who)).env_remove("COMITY_KEY");
        command.env("COMITY_SERVER", format!("127.0.0.1:{}", self.port));
        command.current_dir(self.folder.path()).output().unwrap()
    }

    /// The same, which must succeed; returns what it prints.
    fn does(&self, who: &str, arguments: &[&str]) -> String {
        let done = self.run(who, arguments);
        assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    /// The same, which must fail; returns the error.
    fn fails(&self, who: &str, arguments: &[&str]) -> String {
        let done = self.run(who, arguments);
        assert!(!done.status.success(), "{arguments:?}: {}", text(&done.stdout));
        text(&done.stderr) + &text(&done.stdout)
    }

    /// Makes a person's key; its public part is in a file.
    fn key(&self, who: &str) -> String {
        let key = self.does(who, &["key", "new"]);
        fs::write(self.path(&format!("{who}.pub")), &key).unwrap();
        key.trim().to_owned()
    }

    fn keep(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
    }
}

/// The user who runs the tests: the only one that is sure to exist.
fn user() -> String {
    text(&Command::new("id").arg("-un").output().unwrap().stdout).trim().to_owned()
}

#[test]
fn a_folder_is_granted_handed_on_and_revoked() {
    let site = Site::new();
    let state = site.path("state").display().to_string();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(|who| site.key(who));
    let user = user();
    site.does("alice", &["account", "bind", &user, "alice.pub", "--state-dir", &state]);
    let listed = site.does("alice", &["account", "list", "--state-dir", &state]);
    assert!(listed.contains(&alice) && listed.contains(&user), "{listed}");
    assert!(site.does("alice", &["whoami"]).contains(&format!("acts as user {user}")));

    let report = site.path("srv/p/report").display().to_string();
    let id = site.does("alice", &["id", &report]);
    let grant = ["grant", &report, "--to", "bob.pub", "--rights", "rwx", "--expires", "30d"];
    let to_bob = site.does("alice", &grant);
    assert!(to_bob.contains(id.trim()), "{to_bob}");
    site.keep("to-bob", &to_bob);
    let to_carol = site.does("bob", &["grant", id.trim(), "--to", "carol.pub", "--rights", "rxd"]);
    site.keep("to-carol", &to_carol);

    let file = format!("{report}/text");
    assert!(site.fails("bob", &["why", &file]).contains("cannot be reached"));
    assert!(site.does("bob", &["submit", "to-bob"]).contains("held"));
    assert!(site.does("bob", &["why", &file, "--op", "write"]).contains(": allowed, as user"));
    // The second link alone leads nowhere; with the first it gives what both give.
    assert!(site.fails("carol", &["submit", "to-carol"]).contains("gives nothing"));
    site.does("carol", &["submit", "to-bob", "to-carol"]);
    assert!(site.does("carol", &["why", &file, "--op", "read"]).contains(": allowed"));
    assert!(site.does("carol", &["why", &file, "--op", "write"]).contains(": denied"));
    assert!(site.does("carol", &["why", &file, "--op", "delete"]).contains(": denied"));
    let given = site.does("bob", &["grants", "--given", "--json"]);
    assert!(given.contains(&carol) && !given.contains("\"revoked\":true"), "{given}");
    assert!(site.does("bob", &["grants"]).contains("rwx"), "listed with its rights");

    // Carol stands above nothing; Alice stands above everything.
    assert!(site.fails("carol", &["revoke", "to-bob"]).contains("no chain above"));
    assert!(site.does("alice", &["revoke", "to-bob"]).contains("revoked: 1"));
    for who in ["bob", "carol"] {
        assert!(site.fails(who, &["why", &file]).contains("cannot be reached"));
    }
    assert!(site.fails("bob", &["submit", "to-bob"]).contains("revoked"));
    assert!(!bob.is_empty());
}

#[test]
fn an_edited_credential_and_another_server_are_refused_with_what_to_do() {
    let site = Site::new();
    let [_, _] = ["alice", "bob"].map(|who| site.key(who));
    let report = site.path("srv/p/report").display().to_string();
    let grant = site.does("alice", &["grant", &report, "--to", "bob.pub", "--rights", "r"]);
    site.keep("edited", &grant.replace("-> \"r\"", "-> \"w\""));
    assert!(site.fails("bob", &["submit", "edited"]).contains("the text was changed"));
    site.keep("nonsense", "Authorizer: 7\n");
    assert!(site.fails("bob", &["submit", "nonsense"]).contains("line 1"));
    let known = site.path("bob/comity/known_servers");
    let other = site.does("bob", &["key", "new", "other.pem"]);
    fs::write(&known, format!("127.0.0.1:{} {other}", site.port)).unwrap();
    let error = site.fails("bob", &["whoami"]);
    assert!(error.contains("somebody may stand between"), "{error}");
    assert!(site.fails("bob", &["key", "new"]).contains("nothing is overwritten"));
    assert!(Path::new(&known).exists());
}
