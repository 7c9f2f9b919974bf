//! A mount of a server over TLS under the key of a user.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::ops::Deref;
use std::process::Command;

use common::world::{MountPoint, World};
use common::{Said, comity, metrics, run, wait_until};

/// A server with an export for keys, people with keys, and a directory to mount the export on.
struct Keys(World);

impl Deref for Keys {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

impl Keys {
    /// Starts a server of an export with these options.
    fn new(options: &str) -> Option<Self> {
        let world = World::exporting(options, &[])?;
        for folder in ["report", "private"] {
            fs::create_dir(world.at_server(folder)).unwrap();
        }
        fs::write(world.at_server("report/text"), "the text").unwrap();
        Some(Self(world))
    }

    /// The program with the configuration folder of a person.
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
        let mut mount = self.by(who);
        mount.arg("mount");
        self.mount_by(mount, self.port, options)
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

    /// Makes the keys; Alice grants the folder `report` to Bob.
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

/// The options of a mount under the key of a person.
fn under_key(who: &str) -> String {
    format!("nodc_enable,vers=4.2,xprtsec=mtls,key={who}/comity/key.pem")
}

#[test]
fn a_granted_folder_is_read_and_written_under_the_users_key() {
    let Some(world) = Keys::new("rw,sec=key,xprtsec=mtls") else { return };
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
    assert_eq!(names, ["report"], "a folder that was not granted is listed");
    world.does("alice", &["revoke", "to-bob"]);
    assert!(fs::write(report.join("more"), "").is_err(), "a revoked right ends");
    world.umount();
}

#[test]
fn a_key_without_a_grant_gets_nothing_through_a_mount() {
    let Some(world) = Keys::new("rw,sec=key,xprtsec=mtls") else { return };
    world.grant();
    world.mount("carol", &under_key("carol"));
    assert_eq!(fs::read_dir(&world.dir).unwrap().count(), 0, "the root is empty");
    assert!(fs::read(world.dir.join("report/text")).is_err());
    assert!(fs::write(world.dir.join("new"), "").is_err());
    world.umount();
}

#[test]
fn data_cached_for_one_key_is_not_shown_to_another() {
    let Some(world) = Keys::new("rw,sec=key,xprtsec=mtls") else { return };
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
fn a_server_is_remembered_by_its_key_and_one_with_another_key_is_refused() {
    let Some(mut world) = Keys::new("rw,insecure,no_root_squash,xprtsec=tls") else { return };
    let first = world.mount("bob", "nodc_enable,xprtsec=tls");
    assert!(first.err.contains("first time"), "{}", first.err);
    world.umount();
    let second = world.mount("bob", "nodc_enable,xprtsec=tls");
    assert_eq!(second.err, "");
    world.umount();
    world.0.stop_server();
    fs::remove_dir_all(world.place.state()).unwrap();
    world.0.start(&[]);
    let error = world.refused("bob", "nodc_enable,xprtsec=tls");
    assert!(error.contains("somebody may stand between"), "{error}");
    assert!(error.contains("known_servers"), "says which line to remove: {error}");
    let key = world.server().said["tls"]["key"].as_str().unwrap().to_owned();
    world.mount("carol", &format!("nodc_enable,server_key={key}"));
    assert!(!world.place.path("carol/comity/known_servers").exists());
    world.umount();
    let other = world.does("carol", &["key", "new"]);
    let error = world.refused("carol", &format!("nodc_enable,server_key={}", other.trim()));
    assert!(error.contains("was expected"), "{error}");
}

#[test]
fn a_mount_over_tls_reconnects_over_tls_and_never_in_plain() {
    let Some(mut world) = Keys::new("rw,insecure,no_root_squash,xprtsec=none:tls") else { return };
    world.mount("bob", "nodc_enable,xprtsec=tls,soft,timeo=10,retrans=1,actimeo=0");
    let file = world.dir.join("report/text");
    assert_eq!(fs::read_to_string(&file).unwrap(), "the text");
    world.0.stop_server();
    world.0.start(&[]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "the text", "the server is back");
    world.0.stop_server();
    world.0.start(&["--no-tls"]);
    assert!(fs::read_to_string(&file).is_err(), "a server without TLS is not asked");
    let log = fs::read_to_string(world.place.path("mount.log")).unwrap();
    assert!(log.contains("does not offer TLS"), "{log}");
    let other = MountPoint::new(world.place.path("other"));
    let source = world.source_at(world.port);
    let options = ["mount", "-o", "nodc_enable,xprtsec=tls", &source];
    let said = run(world.by("bob").args(options).arg(&other));
    assert!(said.code != Some(0) && said.err.contains("does not offer TLS"), "{}", said.err);
    world.0.stop_server();
    world.0.start(&[]);
    wait_until("it is asked over TLS again", || fs::read_to_string(&file).is_ok());
}

#[test]
fn a_delegation_is_recalled_over_the_mounts_own_tls_connection() {
    let Some(world) = Keys::new("rw,insecure,no_root_squash,xprtsec=none:tls") else { return };
    let cache = world.place.path("cache").display().to_string();
    world.mount("bob", &format!("dc_root={cache},xprtsec=tls"));
    let path = world.dir.join("report/text");
    assert_eq!(fs::read_to_string(&path).unwrap(), "the text");
    let count = |name: &str| {
        let page = metrics(world.server());
        let line = page.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(count("comity_delegations ") > 0.0, "the file is delegated");
    let other = MountPoint::new(world.place.path("other"));
    let source = world.source_at(world.port);
    let said = run(world.by("carol").args(["mount", "-o", "nodc_enable", &source]).arg(&other));
    assert_eq!(said.code, Some(0), "{}", said.err);
    fs::write(other.join("report/text"), "another text").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "another text");
    assert!(count("comity_recalls_returned_total") > 0.0, "the recall was answered");
    assert!(count("comity_recalls_timed_out_total") == 0.0);
}

#[test]
fn an_export_that_demands_tls_says_so_to_a_plain_mount() {
    let Some(world) = Keys::new("rw,insecure,no_root_squash,xprtsec=tls:mtls") else { return };
    let error = world.refused("bob", "nodc_enable");
    assert!(error.contains("xprtsec=tls"), "{error}");
    let error = world.refused("bob", "nodc_enable,xprtsec=mtls");
    assert!(error.contains("comity key new"), "there is no key: {error}");
}
