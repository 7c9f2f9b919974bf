//! A caching proxy, `comity serve --from`, between a server and a mount of this program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read};
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::world::World;
use common::{Running, comity, metrics, run, wait_until};
use rustix::process::Signal;

/// A server, a proxy in front of it, and a directory to mount the proxy on.
struct Proxied {
    far: World,
    proxy: Option<Running>,
}

impl Deref for Proxied {
    type Target = World;

    fn deref(&self) -> &World {
        &self.far
    }
}

impl Proxied {
    fn new() -> Option<Self> {
        let far = World::exporting("rw,insecure,no_root_squash", &[])?;
        fs::set_permissions(far.place.data(), Permissions::from_mode(0o777)).unwrap();
        let mut world = Self { far, proxy: None };
        world.start_proxy(0);
        Some(world)
    }

    /// Starts the proxy at a port.
    fn start_proxy(&mut self, port: u16) {
        let mut command = self.proxy_command(self.far.port);
        command.args(["--json", "--no-register", "--port", &port.to_string()]);
        self.proxy = Some(Running::start(&mut command));
    }

    fn proxy_command(&self, far: u16) -> Command {
        let source = self.source_at(far);
        let mut command = comity();
        command.args(["serve", "--listen", "127.0.0.1", "--from", &source, "--cache"]);
        command.arg(self.place.path("cache")).args(["--from-options", "timeo=10,dc_min_free=0"]);
        command.arg("--state-dir").arg(self.place.path("proxy-state"));
        command
    }

    fn mount(&self, options: &str) {
        let port = self.proxy.as_ref().unwrap().port;
        self.mount_at(port, &format!("nodc_enable,{options}"));
    }

    /// The number of operations that the far server has done, except those that only renew a lease.
    fn operations(&self) -> u64 {
        let page = metrics(self.server());
        let counts = page.lines().filter(|line| {
            line.contains("operations_total")
                && !line.contains("SEQUENCE")
                && !line.starts_with('#')
        });
        counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
    }

    /// Stops the far server as if it could not be reached; waits until all of its threads have
    /// stopped.
    fn stop_far(&self) {
        self.server().signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.server().process());
        let stands_still = |task: fs::DirEntry| {
            let state = fs::read_to_string(task.path().join("stat")).unwrap();
            state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
        };
        wait_until("it has stopped", || {
            fs::read_dir(&tasks).unwrap().all(|task| stands_still(task.unwrap()))
        });
    }

    fn far_file(&self, name: &str) -> PathBuf {
        self.place.data().join(name)
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    fs::read_to_string(path)
}

#[test]
fn a_file_that_was_read_through_a_proxy_is_read_again_without_the_server() {
    let Some(world) = Proxied::new() else { return };
    fs::write(world.far_file("file"), vec![b'x'; 300_000]).unwrap();
    let mut operations = Vec::new();
    for version in ["3", "4.2"] {
        world.mount(&format!("vers={version}"));
        let before = world.operations();
        assert_eq!(read(&world.dir.join("file")).unwrap().len(), 300_000);
        operations.push(world.operations() - before);
        world.umount();
    }
    assert!(operations[0] > 0 && operations[1] == 0, "{operations:?}");
}

#[test]
fn writes_through_a_proxy_reach_the_server() {
    let Some(world) = Proxied::new() else { return };
    world.mount("vers=4.2");
    fs::create_dir(world.dir.join("dir")).unwrap();
    fs::write(world.dir.join("dir/file"), "by the proxy").unwrap();
    assert_eq!(read(&world.far_file("dir/file")).unwrap(), "by the proxy");
    fs::write(world.far_file("dir/file"), "changed at the server").unwrap();
    let seen = || read(&world.dir.join("dir/file")).unwrap();
    wait_until("the change is seen", || seen() == "changed at the server");
    world.umount();
}

#[test]
fn a_proxy_calls_with_the_ids_of_its_callers_after_they_are_squashed() {
    let Some(world) = Proxied::new() else { return };
    world.mount("vers=3,allow_other");
    let touch = |name: &str, user: u32| {
        let mut command = Command::new("touch");
        let made = command.arg(world.dir.join(name)).uid(user).gid(user).status().unwrap();
        assert!(made.success(), "{name}");
        fs::metadata(world.far_file(name)).unwrap().uid()
    };
    assert_eq!(touch("of a user", 1234), 1234);
    assert_eq!(touch("of root", 0), 65_534);
    fs::write(world.far_file("secret"), "secret").unwrap();
    fs::set_permissions(world.far_file("secret"), Permissions::from_mode(0o600)).unwrap();
    assert_eq!(read(&world.dir.join("secret")).unwrap_err().kind(), ErrorKind::PermissionDenied);
    world.umount();
}

#[test]
fn calls_wait_for_a_server_that_is_away_and_no_file_seems_to_be_missing() {
    let Some(world) = Proxied::new() else { return };
    fs::write(world.far_file("known"), "known").unwrap();
    fs::write(world.far_file("unknown"), "unknown").unwrap();
    world.mount("vers=3,soft,timeo=30,retrans=0");
    assert_eq!(read(&world.dir.join("known")).unwrap(), "known");
    world.stop_far();
    let failed = read(&world.dir.join("unknown")).unwrap_err();
    assert_eq!(failed.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()), "{failed}");
    world.server().signal(Signal::CONT);
    wait_until("it is there again", || read(&world.dir.join("unknown")).is_ok());
    world.umount();
}

#[test]
fn handles_of_a_proxy_outlive_its_restart() {
    let Some(mut world) = Proxied::new() else { return };
    fs::write(world.far_file("file"), vec![b'x'; 2 << 20]).unwrap();
    world.mount("vers=3");
    let mut file = File::open(world.dir.join("file")).unwrap();
    let mut piece = vec![0; 4096];
    file.read_exact(&mut piece).unwrap();
    let proxy = world.proxy.take().unwrap();
    let port = proxy.port;
    assert!(proxy.stop().success());
    world.start_proxy(port);
    let mut rest = Vec::new();
    file.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), (2 << 20) - 4096);
    drop(file);
    world.umount();
}

#[test]
fn a_proxy_that_ends_is_unknown_to_the_far_server() {
    let Some(mut world) = Proxied::new() else { return };
    fs::write(world.far_file("file"), "text").unwrap();
    world.mount("vers=4.2");
    assert_eq!(read(&world.dir.join("file")).unwrap(), "text");
    world.umount();
    let far_clients = ["comity_clients "];
    assert!(world.counted(&far_clients) > 0);
    assert!(world.proxy.take().unwrap().stop().success());
    assert_eq!(world.counted(&far_clients), 0);
}

#[test]
fn a_proxy_that_cannot_start_says_why() {
    let Some(world) = Proxied::new() else { return };
    let said = run(world.proxy_command(1).arg("--check"));
    assert!(said.code == Some(1) && said.err.contains("cannot connect"), "{}", said.err);
    let said = run(world.proxy_command(world.far.port).args(["--from-options", "ro"]));
    assert!(said.code == Some(1) && said.err.contains("--from-options ro"), "{}", said.err);
    let said = run(comity().args(["serve", "--from", "/srv"]));
    assert!(said.code == Some(1) && said.err.contains("nfs://HOST"), "{}", said.err);
    let mut command = world.proxy_command(world.far.port);
    command.arg("--check");
    // `--check` succeeds although the cache folder is in use.
    let said = run(&mut command);
    assert!(said.code == Some(0) && said.out.contains("1 export"), "{} {}", said.out, said.err);
}
