//! A folder is shared with a key that has no account, by commands of the program.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::line::{Identity, Line};
use common::raw::Raw;
use common::{Place, Running, comity, metrics};

/// A server with an export for keys, and the folders of the people.
struct KeyServer {
    place: Place,
    server: Running,
    port: u16,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl KeyServer {
    fn new() -> Self {
        Self::with_options("rw,sec=key,xprtsec=mtls")
    }

    /// A site whose export has these options; `POLICY` in them stands for a policy file that gives
    /// no rights.
    fn with_options(options: &str) -> Self {
        let place = Place::new();
        for folder in ["data/p/report", "data/p/private", "alice/comity", "bob/comity", "carol"] {
            fs::create_dir_all(place.path(folder)).unwrap();
        }
        fs::write(place.path("data/p/report/text"), "the text").unwrap();
        let policy = "Authorizer: \"POLICY\"\nLicensees: \"nobody\"\n";
        let options = options.replace("POLICY", place.write("policy", policy).to_str().unwrap());
        let exports = format!("{} 127.0.0.1({options})\n", place.data().display());
        let exports = place.write("exports", &exports);
        let mut command = place.serve(&["--metrics", "127.0.0.1:0"]);
        let server = Running::start(command.arg("--exports").arg(exports));
        let port = server.port;
        Self { place, server, port }
    }

    fn path(&self, place: &str) -> PathBuf {
        self.place.path(place)
    }

    fn state(&self) -> String {
        self.place.state().display().to_string()
    }

    /// A client of NFSv3 under the key of a person.
    fn client(&self, identity: &Identity) -> Raw {
        let plain = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        Raw::on(Line::secure(plain, &self.place.state().join("tls.crt"), Some(identity)), 0)
    }

    /// A TLS identity with the key of a person.
    fn identity(&self, who: &str) -> Identity {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        let identity = Identity::new(params.self_signed(&key).unwrap().der().clone(), &key);
        fs::write(self.path(&format!("{who}/comity/key.pem")), key.serialize_pem()).unwrap();
        fs::write(self.path(&format!("{who}.pub")), identity.public()).unwrap();
        identity
    }

    /// Binds Alice's key to the user who runs the tests.
    fn bind_alice(&self) -> String {
        let alice = self.key("alice");
        let bind = ["account", "bind", &user(), "alice.pub", "--state-dir", &self.state()];
        self.does("alice", &bind);
        alice
    }

    /// Runs a command as a person.
    fn run(&self, who: &str, arguments: &[&str]) -> Output {
        let mut command = comity();
        command.args(arguments).env("XDG_CONFIG_HOME", self.path(who)).env_remove("COMITY_KEY");
        command.env("COMITY_SERVER", format!("127.0.0.1:{}", self.port));
        command.current_dir(self.path("")).output().unwrap()
    }

    /// Runs a command that must succeed; returns its output.
    fn does(&self, who: &str, arguments: &[&str]) -> String {
        let done = self.run(who, arguments);
        assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    /// Runs a command that must fail; returns the error.
    fn fails(&self, who: &str, arguments: &[&str]) -> String {
        let done = self.run(who, arguments);
        assert!(!done.status.success(), "{arguments:?}: {}", text(&done.stdout));
        text(&done.stderr) + &text(&done.stdout)
    }

    /// Makes the key of a person; writes its public part to a file.
    fn key(&self, who: &str) -> String {
        let key = self.does(who, &["key", "new"]);
        fs::write(self.path(&format!("{who}.pub")), &key).unwrap();
        key.trim().to_owned()
    }

    fn keep(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
    }
}

/// The user who runs the tests: no other is sure to exist.
fn user() -> String {
    text(&Command::new("id").arg("-un").output().unwrap().stdout).trim().to_owned()
}

#[test]
fn a_folder_is_granted_handed_on_and_revoked() {
    let site = KeyServer::new();
    let state = site.state();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(|who| site.key(who));
    let user = user();
    site.does("alice", &["account", "bind", &user, "alice.pub", "--state-dir", &state]);
    let listed = site.does("alice", &["account", "list", "--state-dir", &state]);
    assert!(listed.contains(&alice) && listed.contains(&user), "{listed}");
    assert!(site.does("alice", &["whoami"]).contains(&format!("acts as user {user}")));

    let report = site.path("data/p/report").display().to_string();
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
    // The second credential alone gives nothing; together with the first it gives the rights that
    // both give.
    let refused = site.fails("carol", &["submit", "to-carol"]);
    assert!(refused.contains("gives nothing: no user of the server"), "{refused}");
    assert!(refused.contains(&format!("by which {} received", bob.trim())), "{refused}");
    let refused = site.fails("alice", &["submit", "to-bob", "--json"]);
    assert!(refused.contains(&format!("{} gives it to other keys", alice.trim())), "{refused}");
    site.does("carol", &["submit", "to-bob", "to-carol"]);
    assert!(site.does("carol", &["why", &file, "--op", "read"]).contains(": allowed"));
    assert!(site.does("carol", &["why", &file, "--op", "write"]).contains(": denied"));
    assert!(site.does("carol", &["why", &file, "--op", "delete"]).contains(": denied"));
    let given = site.does("bob", &["grants", "--given", "--json"]);
    assert!(given.contains(&carol) && !given.contains("\"revoked\":true"), "{given}");
    assert!(site.does("bob", &["grants"]).contains("rwx"), "listed with its rights");

    // Carol is in no chain above the credential; Alice is above it.
    assert!(
        site.fails("carol", &["revoke", "to-bob"]).contains("not above the credential in a chain")
    );
    assert!(site.does("alice", &["revoke", "to-bob"]).contains("revoked: 1"));
    for who in ["bob", "carol"] {
        assert!(site.fails(who, &["why", &file]).contains("cannot be reached"));
    }
    assert!(site.fails("bob", &["submit", "to-bob"]).contains("revoked"));
}

#[test]
fn an_edited_credential_and_another_server_are_refused_with_what_to_do() {
    let site = KeyServer::new();
    let [_, _] = ["alice", "bob"].map(|who| site.key(who));
    let report = site.path("data/p/report").display().to_string();
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

#[test]
fn a_creator_fetches_the_credential_of_its_file_and_hands_it_on() {
    let site = KeyServer::new();
    let bob = site.identity("bob");
    let carol = site.key("carol");
    site.bind_alice();
    let report = site.path("data/p/report");
    let shown = report.display().to_string();
    site.keep(
        "to-bob",
        &site.does("alice", &["grant", &shown, "--to", "bob.pub", "--rights", "xc"]),
    );
    site.does("bob", &["submit", "to-bob"]);
    let mut client = site.client(&bob);
    let mut dir = client.mount(&site.path("data")).unwrap();
    for name in [&b"p"[..], b"report"] {
        dir = client.lookup(&dir, name).unwrap();
    }
    let made = client.create(&dir, "made", [1; 8]).unwrap();
    let other = client.lookup(&dir, b"text").unwrap();
    // Bob can read the file that he has made, and no other.
    assert_eq!(client.read(&made).as_deref(), Ok(&b""[..]));
    assert_eq!(client.read(&other), Err(13));
    let file = report.join("made").display().to_string();
    assert!(site.does("bob", &["why", &file, "--op", "write"]).contains("made by key"));
    let fetched = site.does("bob", &["fetch", &file]);
    assert!(fetched.contains("-> \"rwxcda\""), "{fetched}");
    assert!(site.fails("bob", &["fetch", &format!("{shown}/text")]).contains("did not make"));

    // Carol has the rights that Bob grants her only if she submits the fetched credential, too.
    site.keep("fetched", &fetched);
    let on = site.does("bob", &["grant", &file, "--to", "carol.pub", "--rights", "r"]);
    site.keep("to-carol", &on);
    assert!(site.fails("carol", &["submit", "to-carol"]).contains("gives nothing"));
    site.does("carol", &["submit", "fetched", "to-carol"]);
    assert!(site.does("carol", &["why", &file, "--op", "read"]).contains(": allowed"));
    assert!(site.fails("carol", &["fetch", &file]).contains("did not make"));

    // Alice revokes the grant on which the others rest, although she has signed nothing about the
    // file.
    site.does("alice", &["revoke", "to-bob"]);
    assert_eq!(client.read(&made), Err(70), "STALE");
    assert!(site.fails("carol", &["why", &file]).contains("cannot be reached"));
    assert!(!carol.is_empty());
}

#[test]
fn a_policy_gives_rights_until_a_reload_removes_them() {
    let uid = text(&Command::new("id").arg("-u").output().unwrap().stdout).trim().to_owned();
    let ids = format!("anonuid={uid},anongid={uid}");
    let site = KeyServer::with_options(&format!("ro,sec=key,xprtsec=mtls,{ids},policy=POLICY"));
    let policy = site.path("policy");
    let bob = site.identity("bob");
    let state = site.state();
    let reload = ["reload", "--state-dir", &state];
    let name = bob.public().replace("p256:", "p256-base64:");
    let write = |conditions: &str| {
        let licensees = format!("Authorizer: \"POLICY\"\nLicensees: \"{name}\"\n");
        fs::write(&policy, format!("{licensees}Conditions: {conditions};\n")).unwrap();
    };
    write("app_domain == \"Comity\" -> \"rx\"");
    site.does("bob", &reload);
    let mut client = site.client(&bob);
    let mut here = client.mount(&site.path("data")).unwrap();
    for name in [&b"p"[..], b"report", b"text"] {
        here = client.lookup(&here, name).unwrap();
    }
    assert_eq!(client.read(&here).as_deref(), Ok(&b"the text"[..]));
    let file = site.path("data/p/report/text").display().to_string();
    let why = site.does("bob", &["why", &file, "--op", "read"]);
    assert!(
        why.contains("from the policy of the export: rx") && why.contains("line 3: rx"),
        "{why}"
    );

    // A mistake is reported with its place, and the earlier policy stays in force.
    write("app_domain == -> \"rx\"");
    let place = format!("{}:3:27: the policy: expected", policy.display());
    for command in [&reload[..], &["check", "--exports", "exports", "--state-dir", &state]] {
        let said = site.fails("bob", command);
        assert!(said.contains(&place), "{said}");
    }
    assert_eq!(client.read(&here).as_deref(), Ok(&b"the text"[..]));
    write("operation == \"look\" -> \"rx\"");
    site.does("bob", &reload);
    assert_eq!(client.read(&here), Err(13));
}

#[test]
fn authorizers_of_a_key_and_the_administrator_may_ask_why_it_has_rights() {
    let site = KeyServer::new();
    let [_, carol] = ["bob", "carol"].map(|who| site.key(who));
    site.bind_alice();
    let report = site.path("data/p/report").display().to_string();
    let state = site.state();
    site.keep(
        "to-bob",
        &site.does("alice", &["grant", &report, "--to", "bob.pub", "--rights", "rx"]),
    );
    let id = site.does("alice", &["id", &report]);
    let on = site.does("bob", &["grant", id.trim(), "--to", "carol.pub", "--rights", "rw"]);
    site.keep("to-carol", &on);
    site.does("bob", &["submit", "to-bob"]);
    site.does("carol", &["submit", "to-bob", "to-carol"]);
    let about = |key: &'static str, op: &'static str| {
        ["why", &report, "--key", key, "--op", op].map(str::to_owned)
    };
    for (who, key) in [("alice", "bob.pub"), ("alice", "carol.pub"), ("bob", "carol.pub")] {
        let question = about(key, "read");
        let told = site.does(who, &question.each_ref().map(String::as_str));
        assert!(told.contains("read of x") && told.contains(": allowed, as user"), "{told}");
        // Each link has its verdict and its source line.
        assert!(told.contains(" gives r") && told.contains("line 4: r"), "{told}");
        assert!(told.contains("Conditions: app_domain == \"Comity\""), "{told}");
    }
    for (who, key) in [("carol", "bob.pub"), ("carol", "alice.pub"), ("bob", "alice.pub")] {
        let question = about(key, "read");
        let refused = site.fails(who, &question.each_ref().map(String::as_str));
        assert!(refused.contains("no credential here leads"), "{refused}");
    }
    let admin =
        ["why", &report, "--admin", "--key", "carol.pub", "--op", "write", "--state-dir", &state];
    let told = site.does("carol", &admin);
    assert!(told.contains("write of x") && told.contains(": denied"), "{told}");
    let nowhere = ["why", "/nowhere", "--admin", "--key", &carol, "--state-dir", &state];
    assert!(site.fails("alice", &nowhere).contains("cannot be reached"));
}

#[test]
fn grants_are_counted_and_check_names_those_that_expire_soon() {
    let site = KeyServer::new();
    let state = site.state();
    site.key("bob");
    site.bind_alice();
    let report = site.path("data/p/report").display().to_string();
    for (file, when) in [("soon", "228h"), ("late", "90d")] {
        let grant = ["grant", &report, "--to", "bob.pub", "--rights", "r", "--expires", when];
        site.keep(file, &site.does("alice", &grant));
    }
    site.does("bob", &["submit", "soon", "late"]);
    site.fails("alice", &["submit", "soon"]);
    let page = metrics(&site.server);
    for line in [
        "comity_grants_keys 1\n",
        "comity_grants_credentials 2\n",
        "comity_grants_submitted_total{outcome=\"held\"} 2\n",
        "comity_grants_submitted_total{outcome=\"not_for_this_key\"} 1\n",
        "comity_grants_revoked_total 0\n",
    ] {
        assert!(page.contains(line), "{line} in {page}");
    }
    let status = site.does("alice", &["status", "--state-dir", &state]);
    assert!(status.contains("grants_credentials: 2\n"), "{status}");
    // `check` asks a running server, and reads the file of a stopped one.
    let check = ["check", "--exports", "exports", "--state-dir", &state];
    let tells_one = || {
        let said = site.does("alice", &check);
        assert!(said.contains("expires in 9 days"), "{said}");
        assert_eq!(said.matches("the credential ").count(), 1, "{said}");
    };
    tells_one();
    site.server.signal(rustix::process::Signal::TERM);
    common::wait_until("the server has ended", || {
        let said = site.run("alice", &["status", "--state-dir", &state]);
        !said.status.success() && text(&said.stderr).contains("no server runs")
    });
    tells_one();
}
