//! A server of this program mounted by this program over NFS 3, with and without its disk cache.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use common::{Place, Running, can_mount, comity, metrics, run, wait_until};

/// A server, and a directory to mount it on.
struct World {
    place: Place,
    server: Running,
    dir: PathBuf,
}

impl Drop for World {
    fn drop(&mut self) {
        run(comity().args(["umount", "--lazy"]).arg(&self.dir));
    }
}

fn start(place: &Place, port: &str) -> Running {
    let mut command = comity();
    command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register"]);
    command.args(["--lease-seconds", "10", "--port", port, "--metrics", "127.0.0.1:0"]);
    command.arg("--state-dir").arg(place.state()).arg("--exports").arg(place.path("exports"));
    Running::start(&mut command)
}

impl World {
    fn new() -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let place = Place::new();
        let dir = place.path("mount");
        fs::create_dir(&dir).unwrap();
        let export = format!("{} 127.0.0.1(rw,insecure,no_root_squash)\n", place.data().display());
        place.write("exports", &export);
        let server = start(&place, "0");
        Some(Self { place, server, dir })
    }

    /// Ends the server, and starts it again at the same port.
    fn restart_server(&mut self) {
        self.server.signal(rustix::process::Signal::KILL);
        let port = self.server.port;
        wait_until("it has ended", || TcpStream::connect(("127.0.0.1", port)).is_err());
        let port = port.to_string();
        self.server = start(&self.place, &port);
    }

    fn mount(&self, options: &str) {
        let data = self.place.data();
        let source = format!("nfs://127.0.0.1:{}{}", self.server.port, data.display());
        let log = self.place.path("mount.log");
        let options = format!("vers=3,log_file={},{options}", log.display());
        let mut command = comity();
        command.arg("mount").arg("--state-dir").arg(self.place.path("mounts"));
        let said = run(command.args(["-o", &options, &source]).arg(&self.dir));
        assert_eq!(said.code, Some(0), "{}", said.err);
    }

    fn umount(&self) {
        let umount = || {
            let mut command = comity();
            command.arg("umount").arg("--state-dir").arg(self.place.path("mounts"));
            run(command.arg(&self.dir)).code == Some(0)
        };
        wait_until("it is not used", umount);
        let mounts = || fs::read_to_string("/proc/self/mounts").unwrap();
        wait_until("it is gone", || !mounts().contains(self.dir.to_str().unwrap()));
    }

    fn cached(&self) -> String {
        format!("dc_root={}", self.place.path("cache").display())
    }

    /// The calls of a procedure that the server has answered.
    fn calls(&self, procedure: &str) -> u64 {
        let page = metrics(&self.server);
        let wanted = format!("\"{procedure}\"");
        let lines = page.lines().filter(|line| line.contains(&wanted) && !line.contains("bucket"));
        let counts = lines.filter(|line| line.contains("_total"));
        counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
    }

    fn at_server(&self, name: &str) -> PathBuf {
        self.place.data().join(name)
    }
}

#[test]
fn files_are_read_and_written_over_version_3() {
    let Some(world) = World::new() else { return };
    fs::write(world.at_server("there"), "from the server").unwrap();
    world.mount("nodc_enable");
    assert_eq!(fs::read_to_string(world.dir.join("there")).unwrap(), "from the server");
    fs::create_dir(world.dir.join("dir")).unwrap();
    fs::write(world.dir.join("dir/new"), "from the client").unwrap();
    assert_eq!(fs::read_to_string(world.at_server("dir/new")).unwrap(), "from the client");
    let opened = OpenOptions::new().create_new(true).write(true).open(world.dir.join("dir/new"));
    assert_eq!(opened.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    std::os::unix::fs::symlink("there", world.dir.join("link")).unwrap();
    assert_eq!(fs::read_to_string(world.dir.join("link")).unwrap(), "from the server");
    let names: Vec<_> = fs::read_dir(&world.dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3);
    assert!(world.calls("READDIRPLUS") > 0, "it was asked by version 3");
    world.umount();
}

#[test]
fn an_open_file_that_is_removed_is_kept_until_it_is_closed() {
    let Some(world) = World::new() else { return };
    world.mount("nodc_enable");
    for name in ["removed", "replaced"] {
        fs::write(world.dir.join(name), "kept").unwrap();
        let mut file = File::options().read(true).write(true).open(world.dir.join(name)).unwrap();
        if name == "removed" {
            fs::remove_file(world.dir.join(name)).unwrap();
        } else {
            fs::write(world.dir.join("other"), "other").unwrap();
            fs::rename(world.dir.join("other"), world.dir.join(name)).unwrap();
        }
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b" longer").unwrap();
        file.sync_all().unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "kept longer", "{name}");
    }
    let names = || fs::read_dir(world.place.data()).unwrap().count();
    wait_until("the hidden names are gone", || names() == 1);
    world.umount();
}

#[test]
fn a_file_is_fetched_once_also_over_mounts_of_version_3() {
    let Some(world) = World::new() else { return };
    let data: Vec<u8> = (0..3_000_000).map(|at| (at % 251) as u8).collect();
    fs::write(world.at_server("file"), &data).unwrap();
    let mut reads = Vec::new();
    for _ in 0..2 {
        world.mount(&world.cached());
        assert!(fs::read(world.dir.join("file")).unwrap() == data);
        world.umount();
        reads.push(world.calls("READ"));
    }
    assert!(reads[0] > 0 && reads[0] == reads[1], "{reads:?}");
    fs::write(world.at_server("file"), "changed").unwrap();
    world.mount(&world.cached());
    assert_eq!(fs::read_to_string(world.dir.join("file")).unwrap(), "changed");
    world.umount();
}

#[test]
fn locks_are_held_at_the_server_and_survive_its_restart() {
    use rustix::fs::{FlockOperation, flock};
    let Some(mut world) = World::new() else { return };
    fs::write(world.at_server("file"), "data").unwrap();
    world.mount("nodc_enable");
    let open = || File::options().read(true).write(true).open(world.dir.join("file")).unwrap();
    let (one, other) = (open(), open());
    flock(&one, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
    assert!(world.calls("LOCK") >= 2, "the server was asked");
    world.restart_server();
    wait_until("the lock is reclaimed", || world.calls("LOCK") >= 1);
    let seen = || flock(&other, FlockOperation::NonBlockingLockExclusive).is_err();
    assert!(seen(), "it is still held");
    flock(&one, FlockOperation::Unlock).unwrap();
    flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    drop((one, other));
    world.umount();
}

#[test]
fn own_writes_do_not_invalidate_what_is_cached_of_version_3() {
    let Some(world) = World::new() else { return };
    fs::write(world.at_server("file"), vec![7; 1 << 20]).unwrap();
    world.mount(&world.cached());
    assert_eq!(fs::read(world.dir.join("file")).unwrap().len(), 1 << 20);
    let before = world.calls("READ");
    for _ in 0..5 {
        let mut file = OpenOptions::new().append(true).open(world.dir.join("file")).unwrap();
        file.write_all(&[8; 4096]).unwrap();
        drop(file);
        fs::read(world.dir.join("file")).unwrap();
    }
    assert_eq!(world.calls("READ"), before, "nothing was read again");
    assert_eq!(fs::metadata(world.at_server("file")).unwrap().len(), (1 << 20) + 5 * 4096);
    world.umount();
}
