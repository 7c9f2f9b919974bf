//! A server mounted over TLS, under a user's key, by this program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use common::{Place, Running, Said, can_mount, comity, metrics, run, wait_until};

/// A server with an export for keys, people with keys, and a directory to mount on.
struct World {
    place: Place,
    server: Option<Running>,
    dir: PathBuf,
    port: u16,
}

impl Drop for World {
    fn drop(&mut self) {
        run(comity().args(["umount", "--lazy"]).arg(&self.dir));
    }
}

impl World {
    /// A server of an export with these options.
    fn new(options: &str) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let place = Place::new();
        let dir = place.path("mount");
        for folder in [&dir, &place.data().join("report"), &place.data().join("private")] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(place.data().join("report/text"), "the text").unwrap();
        let exports = format!("{} 127.0.0.1({options})\n", place.data().display());
        place.write("exports", &exports);
        let mut world = Self { place, server: None, dir, port: 0 };
        world.start(&[]);
        Some(world)
    }

    /// Starts the server again at the same port.
    fn start(&mut self, more: &[&str]) {
        let mut command = comity();
        command.args(["serve", "--json", "--metrics", "127.0.0.1:0", "--listen", "127.0.0.1"]);
        command.args(["--no-register", "--port"]);
        command.arg(self.port.to_string()).arg("--state-dir").arg(self.place.state());
        command.arg("--exports").arg(self.place.path("exports")).args(more);
        let server = Running::start(&mut command);
        self.port = server.port;
        self.server = Some(server);
    }

    fn stop(&mut self) {
        assert!(self.server.take().unwrap().stop().success());
    }

    /// The program, as a person runs it.
    fn by(&self, who: &str) -> Command {
        let mut command = comity();
        command.env("XDG_CONFIG_HOME", self.place.path(who)).env_remove("COMITY_KEY");
        command.env("COMITY_SERVER", format!("127.0.0.1:{}", self.port));
        command.current_dir(self.place.path("."));
        command
    }

    fn does(&self, who: &str, arguments: &[&str]) -> String {
        let said = run(self.by(who).args(arguments));
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.err);
        said.out
    }

    fn try_mount(&self, who: &str, options: &str) -> Said {
        let source = format!("nfs://127.0.0.1:{}{}", self.port, self.place.data().display());
        let log = self.place.path("mount.log");
        let options = format!("log_file={},{options}", log.display());
        run(self.by(who).args(["mount", "-o", &options, &source]).arg(&self.dir))
    }

    fn mount(&self, who: &str, options: &str) -> Said {
        let said = self.try_mount(who, options);
        assert_eq!(said.code, Some(0), "{}", said.err);
        said
    }

    /// Mounts, which must fail; returns the error.
    fn refused(&self, who: &str, options: &str) -> String {
        let said = self.try_mount(who, options);
        assert_eq!(said.code, Some(1), "{}", said.err);
        said.err
    }

    fn umount(&self) {
        wait_until("it is not used", || run(comity().arg("umount").arg(&self.dir)).code == Some(0));
        let mounts = || fs::read_to_string("/proc/self/mounts").unwrap();
        wait_until("it is gone", || !mounts().contains(self.dir.to_str().unwrap()));
    }

    /// Makes keys, and has the folder `report` granted by Alice to Bob.
    fn grant(&self) {
        for who in ["alice", "bob", "carol"] {
            let key = self.does(who, &["key", "new"]);
            self.place.write(&format!("{who}.pub"), &key);
        }
        let state = self.place.state().display().to_string();
        self.does("alice", &["account", "bind", "root", "alice.pub", "--state-dir", &state]);
        let report = self.place.data().join("report").display().to_string();
        let rights = ["grant", &report, "--to", "bob.pub", "--rights", "rwxcd"];
        self.place.write("to-bob", &self.does("alice", &rights));
        self.does("bob", &["submit", "to-bob"]);
    }
}

/// The options of a mount under a key whose file stands in the folder of a person.
fn under_key(who: &str) -> String {
    format!("nodc_enable,vers=4.2,xprtsec=mtls,key={who}/comity/key.pem")
}

#[test]
fn a_granted_folder_is_read_and_written_under_the_users_key() {
    let Some(world) = World::new("rw,sec=key,xprtsec=mtls") else { return };
    world.grant();
    world.mount("bob", &under_key("bob"));
    let report = world.dir.join("report");
    assert_eq!(fs::read_to_string(report.join("text")).unwrap(), "the text");
    fs::write(report.join("text"), "Bob's text").unwrap();
    fs::create_dir(report.join("new")).unwrap();
    fs::write(report.join("new/file"), vec![7; 3_000_000]).unwrap();
    let of_server = world.place.data().join("report");
    assert_eq!(fs::read_to_string(of_server.join("text")).unwrap(), "Bob's text");
    assert!(fs::read(of_server.join("new/file")).unwrap() == vec![7; 3_000_000]);
    let names: Vec<_> = fs::read_dir(&world.dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["report"], "what is not granted is not there");
    world.does("alice", &["revoke", "to-bob"]);
    assert!(fs::write(report.join("more"), "").is_err(), "a revoked right ends");
    world.umount();
}

#[test]
fn a_key_without_a_grant_gets_nothing_through_a_mount() {
    let Some(world) = World::new("rw,sec=key,xprtsec=mtls") else { return };
    world.grant();
    world.mount("carol", &under_key("carol"));
    assert_eq!(fs::read_dir(&world.dir).unwrap().count(), 0, "the top is empty");
    assert!(fs::read(world.dir.join("report/text")).is_err());
    assert!(fs::write(world.dir.join("new"), "").is_err());
    world.umount();
}

#[test]
fn data_cached_for_one_key_is_not_shown_to_another() {
    let Some(world) = World::new("rw,sec=key,xprtsec=mtls") else { return };
    world.grant();
    let cached = |who: &str| {
        let cache = world.place.path("cache").display().to_string();
        format!("dc_root={cache},dc_offline=ro,key={who}/comity/key.pem")
    };
    world.mount("bob", &cached("bob"));
    assert_eq!(fs::read_to_string(world.dir.join("report/text")).unwrap(), "the text");
    world.umount();
    world.mount("carol", &cached("carol"));
    assert!(fs::read(world.dir.join("report/text")).is_err());
    world.umount();
    let of_server = world.place.path("cache").read_dir().unwrap().map(|e| e.unwrap().file_name());
    assert_eq!(of_server.count(), 2, "each key has a cache of its own");
}

#[test]
fn a_server_is_remembered_by_its_key_and_an_impostor_is_refused() {
    let Some(mut world) = World::new("rw,insecure,no_root_squash,xprtsec=tls") else { return };
    let first = world.mount("bob", "nodc_enable,xprtsec=tls");
    assert!(first.err.contains("first time"), "{}", first.err);
    world.umount();
    let second = world.mount("bob", "nodc_enable,xprtsec=tls");
    assert_eq!(second.err, "");
    world.umount();
    world.stop();
    fs::remove_dir_all(world.place.state()).unwrap();
    world.start(&[]);
    let error = world.refused("bob", "nodc_enable,xprtsec=tls");
    assert!(error.contains("somebody may stand between"), "{error}");
    assert!(error.contains("known_servers"), "says which line to remove: {error}");
    let key = world.server.as_ref().unwrap().said["tls"]["key"].as_str().unwrap().to_owned();
    world.mount("carol", &format!("nodc_enable,server_key={key}"));
    assert!(!world.place.path("carol/comity/known_servers").exists());
    world.umount();
    let other = world.does("carol", &["key", "new"]);
    let error = world.refused("carol", &format!("nodc_enable,server_key={}", other.trim()));
    assert!(error.contains("was expected"), "{error}");
}

#[test]
fn a_mount_over_tls_reconnects_over_tls_and_never_in_plain() {
    let Some(mut world) = World::new("rw,insecure,no_root_squash,xprtsec=none:tls") else { return };
    world.mount("bob", "nodc_enable,xprtsec=tls,soft,timeo=10,retrans=1,actimeo=0");
    let file = world.dir.join("report/text");
    assert_eq!(fs::read_to_string(&file).unwrap(), "the text");
    world.stop();
    world.start(&[]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "the text", "the server is back");
    world.stop();
    world.start(&["--no-tls"]);
    assert!(fs::read_to_string(&file).is_err(), "a server without TLS is not asked");
    let log = fs::read_to_string(world.place.path("mount.log")).unwrap();
    assert!(log.contains("does not offer TLS"), "{log}");
    let other = world.place.path("other");
    fs::create_dir(&other).unwrap();
    let source = format!("nfs://127.0.0.1:{}{}", world.port, world.place.data().display());
    let options = ["mount", "-o", "nodc_enable,xprtsec=tls", &source];
    let said = run(world.by("bob").args(options).arg(other));
    assert!(said.code != Some(0) && said.err.contains("does not offer TLS"), "{}", said.err);
    world.stop();
    world.start(&[]);
    wait_until("it is asked over TLS again", || fs::read_to_string(&file).is_ok());
}

#[test]
fn a_delegation_is_recalled_over_the_mounts_own_tls_connection() {
    let Some(world) = World::new("rw,insecure,no_root_squash,xprtsec=none:tls") else { return };
    let cache = world.place.path("cache").display().to_string();
    world.mount("bob", &format!("dc_root={cache},xprtsec=tls"));
    let path = world.dir.join("report/text");
    assert_eq!(fs::read_to_string(&path).unwrap(), "the text");
    let count = |name: &str| {
        let page = metrics(world.server.as_ref().unwrap());
        let line = page.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(count("comity_delegations ") > 0.0, "the file is delegated");
    let other = Dir(world.place.path("other"));
    fs::create_dir(&other.0).unwrap();
    let source = format!("nfs://127.0.0.1:{}{}", world.port, world.place.data().display());
    let said = run(world.by("carol").args(["mount", "-o", "nodc_enable", &source]).arg(&other.0));
    assert_eq!(said.code, Some(0), "{}", said.err);
    fs::write(other.0.join("report/text"), "another text").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "another text");
    assert!(count("comity_recalls_returned_total") > 0.0, "the recall was answered");
    assert!(count("comity_recalls_timed_out_total") == 0.0);
}

/// A directory that something is mounted on.
struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        run(comity().args(["umount", "--lazy"]).arg(&self.0));
    }
}

#[test]
fn an_export_that_demands_tls_says_so_to_a_plain_mount() {
    let Some(world) = World::new("rw,insecure,no_root_squash,xprtsec=tls:mtls") else { return };
    let error = world.refused("bob", "nodc_enable");
    assert!(error.contains("xprtsec=tls"), "{error}");
    let error = world.refused("bob", "nodc_enable,xprtsec=mtls");
    assert!(error.contains("comity key new"), "there is no key: {error}");
}
