//! Faults that programs on a mount survive: servers that stop, restart or lose this client's state,
//! and a crash of the mount's own program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Place, Running, can_mount, comity, run, wait_until};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

/// The lease time of the server, in seconds.
const LEASE_SECONDS: u64 = 10;

/// A server that tests mount.
struct World {
    place: Place,
    server: Running,
}

/// A mount, unmounted when this is dropped.
struct Mount {
    dir: PathBuf,
    state: PathBuf,
}

impl Drop for Mount {
    fn drop(&mut self) {
        let process = self.find_process();
        run(comity().args(["umount", "--lazy"]).arg(&self.dir));
        // The mount's program would try for ever to send its data to a server that has ended.
        if let Some(process) = process {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

fn start(place: &Place, port: &str) -> Running {
    let mut command = comity();
    command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register", "--port", port]);
    command.args(["--lease-seconds", &LEASE_SECONDS.to_string()]);
    command.arg("--state-dir").arg(place.state()).arg("--exports").arg(place.path("exports"));
    Running::start(&mut command)
}

impl World {
    fn new() -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let place = Place::new();
        let export = format!("{} 127.0.0.1(rw,insecure,no_root_squash)\n", place.data().display());
        place.write("exports", &export);
        let server = start(&place, "0");
        Some(Self { place, server })
    }

    /// Kills the server, and starts it again at the same port.
    fn restart_server(&mut self) {
        self.server.signal(Signal::KILL);
        let port = self.server.port;
        wait_until("it has ended", || TcpStream::connect(("127.0.0.1", port)).is_err());
        self.server = start(&self.place, &port.to_string());
    }

    fn mount(&self, name: &str, options: &str) -> Mount {
        let (dir, state) = (self.place.path(name), self.place.path(&format!("{name}.state")));
        fs::create_dir_all(&dir).unwrap();
        let source = format!("nfs://127.0.0.1:{}{}", self.server.port, self.place.data().display());
        let log = self.place.path(&format!("{name}.log"));
        let options = format!("log_file={},{options}", log.display());
        let mut command = comity();
        command.arg("mount").arg("--state-dir").arg(&state).args(["-o", &options, &source]);
        let said = run(command.arg(&dir));
        assert_eq!(said.code, Some(0), "{}", said.err);
        Mount { dir, state }
    }

    /// The option for a cache of this name.
    fn cache(&self, name: &str) -> String {
        format!("dc_root={},dc_min_free=0", self.place.path(name).display())
    }

    fn at_server(&self, name: &str) -> PathBuf {
        self.place.data().join(name)
    }
}

impl Mount {
    /// The process of the mount's program.
    fn process(&self) -> Pid {
        self.find_process().unwrap()
    }

    fn find_process(&self) -> Option<Pid> {
        let mut command = comity();
        command.args(["cache", "status", "--json", "--state-dir"]).arg(&self.state);
        let said = run(&mut command);
        let all: serde_json::Value = serde_json::from_str(&said.out).ok()?;
        Pid::from_raw(all[0]["process"].as_i64()? as i32)
    }

    fn open(&self, name: &str) -> File {
        OpenOptions::new().read(true).write(true).open(self.dir.join(name)).unwrap()
    }
}

/// The memory that is resident for a process, in KiB.
fn resident_kib(process: Pid) -> u64 {
    let path = format!("/proc/{}/status", process.as_raw_nonzero());
    let status = fs::read_to_string(path).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn text(file: &mut File) -> std::io::Result<String> {
    file.rewind()?;
    let mut text = String::new();
    file.read_to_string(&mut text).map(|_| text)
}

#[test]
fn locks_that_were_lost_with_the_lease_fail_their_descriptors_and_no_others() {
    let Some(world) = World::new() else { return };
    for name in ["locked", "read"] {
        fs::write(world.at_server(name), name).unwrap();
    }
    let sleeper = world.mount("sleeper", "nodc_enable");
    let other = world.mount("other", "nodc_enable");
    let (mut locked, mut read) = (sleeper.open("locked"), sleeper.open("read"));
    flock(&locked, FlockOperation::NonBlockingLockExclusive).unwrap();
    let process = sleeper.process();
    kill_process(process, Signal::STOP).unwrap();
    // The lease of the suspended client ends meanwhile.
    let taken = other.open("locked");
    let had = || flock(&taken, FlockOperation::NonBlockingLockExclusive).is_ok();
    wait_until("another client has the lock", had);
    kill_process(process, Signal::CONT).unwrap();
    let is_lost = |file: &mut File| text(file).is_err_and(|error| is_io(&error));
    wait_until("the loss is noticed", || is_lost(&mut locked));
    assert!(is_io(&locked.write_all(b"over the other's data").unwrap_err()));
    assert_eq!(text(&mut read).unwrap(), "read", "a file without locks can still be read");
    assert_eq!(fs::read_to_string(world.at_server("locked")).unwrap(), "locked");
    assert!(is_lost(&mut locked), "the descriptor fails until it is closed");
    drop(locked);
    // The loss ends once no descriptor of the file is open. The kernel forwards a close to the
    // program some time later, so a descriptor that fails is closed before the next is opened.
    let mut again = None;
    wait_until("a new descriptor is good", || {
        let mut opened = sleeper.open("locked");
        again = text(&mut opened).is_ok_and(|text| text == "locked").then_some(opened);
        again.is_some()
    });
    let denied = flock(again.unwrap(), FlockOperation::NonBlockingLockExclusive);
    assert_eq!(denied.unwrap_err(), Errno::WOULDBLOCK);
}

fn is_io(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

#[test]
fn opens_and_locks_outlive_a_restart_of_the_server() {
    let Some(mut world) = World::new() else { return };
    fs::write(world.at_server("file"), "before").unwrap();
    let mount = world.mount("mount", &world.cache("cache"));
    let other = world.mount("other", "nodc_enable");
    let mut file = mount.open("file");
    flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    world.restart_server();
    assert_eq!(text(&mut file).unwrap(), "before");
    file.write_all(b", after").unwrap();
    file.sync_all().unwrap();
    assert_eq!(fs::read_to_string(world.at_server("file")).unwrap(), "before, after");
    let denied = flock(other.open("file"), FlockOperation::NonBlockingLockExclusive);
    assert_eq!(denied.unwrap_err(), Errno::WOULDBLOCK, "the lock was reclaimed");
}

/// Starts a program that opens a file, and then waits for a line before it writes 48 MiB and waits
/// until they are stable. A program of its own, because the programs that this one starts would
/// have its open files, and to close those waits for the server.
fn start_writer(path: &Path) -> Child {
    let script = "exec 3>&1 >\"$0\" && echo open >&3 && read go && \
        exec dd if=/dev/zero bs=65536 count=768 conv=fsync status=none";
    let mut writer = Command::new("sh")
        .args(["-c", script])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 5];
    writer.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"open\n");
    writer
}

fn go_on(program: &mut Child) {
    program.stdin.take().unwrap().write_all(b"go\n").unwrap();
}

#[test]
fn a_server_that_does_not_answer_costs_bounded_memory_and_blocks_no_other_files() {
    let Some(world) = World::new() else { return };
    let mount = world.mount("mount", &format!("{},timeo=10", world.cache("cache")));
    let names: Vec<String> = (0..6).map(|number| format!("file-{number}")).collect();
    let mut writers: Vec<Child> =
        names.iter().map(|name| start_writer(&mount.dir.join(name))).collect();
    let (process, before) = (mount.process(), resident_kib(mount.process()));
    world.server.signal(Signal::STOP);
    writers.iter_mut().for_each(go_on);
    thread::sleep(Duration::from_secs(10));
    let began = Instant::now();
    let elsewhere =
        Command::new("sh").args(["-c", "ls / /tmp >&2 && df / >&2"]).stderr(Stdio::null()).status();
    let took = began.elapsed();
    let kib = resident_kib(process);
    let waiting = writers.iter_mut().all(|writer| writer.try_wait().unwrap().is_none());
    world.server.signal(Signal::CONT);
    assert!(elsewhere.unwrap().success() && took < Duration::from_secs(5), "{took:?}");
    assert!(waiting, "nothing is stable while the server does not answer");
    assert!(kib > before + (16 << 10), "{kib} KiB after {before}: the programs wrote nothing");
    assert!(kib < 256 << 10, "{kib} KiB of 288 MiB that were to be written");
    for writer in &mut writers {
        assert!(writer.wait().unwrap().success());
    }
    for name in &names {
        assert_eq!(fs::metadata(world.at_server(name)).unwrap().len(), 48 << 20);
    }
}

/// Appends numbered lines and syncs each; returns the number of lines that fsync acknowledged.
fn append_until_it_fails(path: &Path, acknowledged: &AtomicUsize) {
    let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) else { return };
    for number in 1.. {
        let written = writeln!(file, "line {number}").and_then(|()| file.sync_data());
        if written.is_err() {
            return;
        }
        acknowledged.store(number, Ordering::SeqCst);
    }
}

/// Kills the program of a mount while a program appends. All lines that fsync acknowledged must be
/// there after a new mount.
fn kill_round(world: &World, round: u64, write: &str) {
    let options = format!("{},dc_write={write}", world.cache(&format!("cache-{write}")));
    let mount = world.mount("mount", &options);
    let (name, acknowledged) = (format!("log-{write}-{round}"), AtomicUsize::new(0));
    let path = mount.dir.join(&name);
    let process = mount.process();
    thread::scope(|scope| {
        scope.spawn(|| append_until_it_fails(&path, &acknowledged));
        // The moment of the kill differs between rounds.
        thread::sleep(Duration::from_millis(100 + round * 7919 % 400));
        kill_process(process, Signal::KILL).unwrap();
    });
    drop(mount);
    // The next mount sends the data of the journal.
    let mount = world.mount("mount", &options);
    let acknowledged = acknowledged.load(Ordering::SeqCst);
    let lines = || fs::read_to_string(mount.dir.join(&name)).unwrap_or_default();
    wait_until("all is there", || lines().lines().count() >= acknowledged);
    for (at, line) in lines().lines().enumerate().take(acknowledged) {
        assert_eq!(line, format!("line {}", at + 1), "round {round}, {write}");
    }
}

#[test]
fn nothing_that_fsync_acknowledged_is_lost_when_the_program_of_a_mount_is_killed() {
    let Some(world) = World::new() else { return };
    // `cargo xtask soak` sets a higher number.
    let rounds = std::env::var("COMITY_KILL_ROUNDS").ok().and_then(|text| text.parse().ok());
    for round in 0..rounds.unwrap_or(3) {
        for write in ["memory", "journal"] {
            kill_round(&world, round, write);
        }
    }
}
