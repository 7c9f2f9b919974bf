//! Runs one test, from an empty folder to the verdict.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::ceph::CephCluster;
use super::data_servers::HostCounts;
use super::ground::Ground;
use super::guest::{End, Guest, Orders};
use super::kernels::{Image, Images, Kernel};
use super::keys::{Keys, Xprtsec};
use super::network::Network;
use super::server::{Peer, Places, Server};
use super::tests::Test;
use super::wishes;

/// Time between two checks of the guests.
const TICK: Duration = Duration::from_millis(20);

/// Time between two kills. A client takes up to three seconds to connect again.
const KILL_EVERY: Duration = Duration::from_millis(4500);

/// Time from the beginning of the work to the first kill.
const FIRST_KILL: Duration = Duration::from_millis(1500);

/// Number of times that a command may fail in a test that kills the server; see `attempt` in
/// `guest.sh`.
const REPEATS: &str = "6";

/// Values that all tests of a run share.
pub(super) struct Setting {
    /// The top folder of the checkout.
    pub(super) root: PathBuf,
    /// The server to test.
    pub(super) peer: Peer,
    /// The program `comity`.
    pub(super) program: PathBuf,
    /// The kernels of the run.
    pub(super) images: Images,
    /// The kernel of tests that do not name one.
    pub(super) kernel: Kernel,
    /// The security of all connections, if they are to be secured.
    pub(super) tls: Option<Xprtsec>,
    /// The library preloaded into the guests' kernels.
    pub(super) preload: PathBuf,
    /// True if folders are kept after success.
    pub(super) keep: bool,
}

impl Setting {
    /// The kernel that the guests of a test boot.
    fn image(&self, test: &Test) -> Result<&Image> {
        self.images.get(test.kernel.unwrap_or(self.kernel))
    }
}

/// Runs a test; returns a note for the line that reports success.
///
/// # Errors
/// The first failure, with the last output of the guests.
pub(super) fn run(setting: &Setting, test: &Test) -> Result<String> {
    ensure!(
        setting.peer == Peer::Comity || (test.exports.len() == 1 && !test.on_ceph),
        "what {} tests only comity has",
        test.name
    );
    let ground = Ground::new(&setting.root, test.name)?;
    if setting.tls.is_some() {
        Keys::of(&ground)?.equip_all(test.guests)?;
    }
    (test.prepare)(&ground)?;
    let network = Network::new()?;
    let places = places(setting, test, &ground);
    let start_ceph = || CephCluster::start(&network, &places.folder);
    let ceph = test.on_ceph.then(start_ceph).transpose()?;
    let mut server = Server::start(&network, setting.peer, places, test.exports[0])?;
    let kills = work(setting, test, &ground, (&network, &mut server))?;
    server.stop()?;
    // Another client of Ceph must see the changes that the server has acknowledged.
    ceph.map(|ceph| ceph.copy_to(&ground.export())).transpose()?;
    (test.verify)(&ground)?;
    let note = note(setting, test, &ground, kills)?;
    if !setting.keep {
        ground.clear();
    }
    Ok(note)
}

fn places(setting: &Setting, test: &Test, ground: &Ground) -> Places {
    Places {
        program: setting.program.clone(),
        export: ground.export(),
        folder: ground.folder().join("server"),
        input: ground.input(),
        tls: setting.tls,
        arguments: test.arguments,
        data_servers: HostCounts {
            running: test.data_servers,
            kind: test.data_server_kind,
            idle: test.idle_hosts,
        },
        has_other_server: test.has_other_server,
    }
}

/// Boots the guests and waits for them, killing the server meanwhile; returns the number of kills.
fn work(
    setting: &Setting,
    test: &Test,
    ground: &Ground,
    (network, server): (&Network, &mut Server<'_>),
) -> Result<u32> {
    let most = Duration::from_secs(test.seconds_max);
    let mut guests = Vec::new();
    for number in 1..=test.guests {
        let orders = orders(setting, test, ground, (number, server.options(test.version)))?;
        guests.push(Guest::start(network, &orders, most)?);
    }
    let mut killer = Killer { left: test.kills, done: 0, next: None, guests: test.guests };
    let mut reloads = Reloads { rest: &test.exports[1..], done: 0 };
    while let Some(guest) = guests.first_mut() {
        killer.step(guest, ground, server)?;
        reloads.step(ground, server)?;
        wishes::grant(ground, server, &mut guests)?;
        guests = still_running(guests)?;
        std::thread::sleep(TICK);
    }
    ensure!(test.kills == 0 || killer.done > 0, "the work ended before the server was killed once");
    ensure!(reloads.rest.is_empty(), "the work ended before all configurations were loaded");
    Ok(killer.done)
}

/// The guests that have not ended yet.
fn still_running(mut guests: Vec<Guest>) -> Result<Vec<Guest>> {
    let mut ends = Vec::new();
    for guest in &mut guests {
        ends.push(guest.poll()?);
    }
    let failed = ends.iter().flatten().any(|end| *end != End::Status(0));
    ensure!(!failed, "{}", stories(&guests, &ends));
    let pairs = guests.into_iter().zip(ends);
    Ok(pairs.filter(|(_, end)| end.is_none()).map(|(guest, _)| guest).collect())
}

/// The output of all guests, because the first one that fails need not be the cause.
fn stories(guests: &[Guest], ends: &[Option<End>]) -> String {
    guests.iter().zip(ends).map(|(guest, end)| guest.story(*end)).collect()
}

/// Kills the server repeatedly while the guests work.
struct Killer {
    left: u32,
    done: u32,
    next: Option<Instant>,
    guests: u8,
}

impl Killer {
    fn step(&mut self, guest: &Guest, ground: &Ground, server: &mut Server<'_>) -> Result<()> {
        if self.left == 0 {
            return server.ensure_alive();
        }
        match self.next {
            None if guest.has_begun() => self.next = Some(Instant::now() + FIRST_KILL),
            Some(next) if Instant::now() > next => {
                self.tell(ground)?;
                server.kill_and_restart()?;
                self.left -= 1;
                self.done += 1;
                self.tell(ground)?;
                // The time between kills varies.
                let odd = Duration::from_millis(u64::from(self.done) * 377 % 1000);
                self.next = Some(Instant::now() + KILL_EVERY + odd);
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends a byte to each guest's file `kills` before the server is killed and after it is
    /// back, so that a guest knows whether a kill may have disturbed a call.
    fn tell(&self, ground: &Ground) -> Result<()> {
        for number in 1..=self.guests {
            let file = ground.guest(number).join("kills");
            File::options().create(true).append(true).open(file)?.write_all(b"x")?;
        }
        Ok(())
    }
}

/// Loads other exports when the first guest makes the file `want-1`, `want-2` and so on, and then
/// makes `have-1`, `have-2` and so on. They are loaded by a signal and by a command in turn.
struct Reloads {
    rest: &'static [&'static str],
    done: usize,
}

impl Reloads {
    fn step(&mut self, ground: &Ground, server: &mut Server<'_>) -> Result<()> {
        let Some((exports, rest)) = self.rest.split_first() else { return Ok(()) };
        let number = self.done + 1;
        let file = |word: &str| ground.guest(1).join(format!("{word}-{number}"));
        if file("want").exists() {
            server.reload(exports, number % 2 == 1)?;
            File::create(file("have"))?;
            (self.rest, self.done) = (rest, number);
        }
        Ok(())
    }
}

fn orders<'a>(
    setting: &'a Setting,
    test: &'a Test,
    ground: &Ground,
    (number, options): (u8, String),
) -> Result<Orders<'a>> {
    let text = |path: &Path| path.display().to_string();
    let repeats = if test.kills > 0 { REPEATS } else { "0" };
    let variables = vec![
        ("OPTIONS", options),
        ("EXPORT", text(&ground.export())),
        ("INPUT", text(&ground.input())),
        ("TOOLS", text(&setting.root.join("target/tools"))),
        ("PROGRAM", text(&setting.program)),
        ("NUMBER", number.to_string()),
        ("GUESTS", test.guests.to_string()),
        ("REPEATS", repeats.to_owned()),
        ("SECURITY", setting.tls.map_or("", Xprtsec::option).to_owned()),
        ("HANDSHAKE_AS", setting.tls.map_or_else(String::new, |_| format!("guest-{number}"))),
    ];
    Ok(Orders {
        folder: ground.guest(number),
        number,
        command: test.script,
        variables,
        image: setting.image(test)?,
        preload: &setting.preload,
        terminal: false,
    })
}

fn note(setting: &Setting, test: &Test, ground: &Ground, kills: u32) -> Result<String> {
    let mut notes = Vec::new();
    if test.kernel.unwrap_or(setting.kernel) != Kernel::Installed {
        notes.push(format!("Linux {}", setting.image(test)?.release()?));
    }
    if let Some(xprtsec) = setting.tls {
        notes.push(xprtsec.option().trim_start_matches(',').to_owned());
    }
    if test.kills > 0 {
        let repeated = ground.written("repeated").unwrap_or_default();
        let repeated = repeated.lines().count();
        notes.push(format!("{kills} server kills, {repeated} steps repeated"));
    }
    Ok(notes.join(", "))
}

/// Boots one guest with the export mounted and a shell on this terminal.
///
/// # Errors
/// If something cannot be started.
pub(super) fn shell(setting: &Setting) -> Result<()> {
    const SCRIPT: &str = ". /mnt/job/guest.sh; set +eu; mount_export; cd /mnt/nfs; exec sh -i";
    let ground = Ground::new(&setting.root, "shell")?;
    let test = Test { name: "shell", script: SCRIPT, seconds_max: 24 * 3600, ..Test::EMPTY };
    let network = Network::new()?;
    let places = places(setting, &test, &ground);
    let server = Server::start(&network, setting.peer, places, test.exports[0])?;
    let mut orders = orders(setting, &test, &ground, (1, server.options(test.version)))?;
    orders.terminal = true;
    let mut guest = Guest::start(&network, &orders, Duration::from_secs(test.seconds_max))?;
    while guest.poll()?.is_none() {
        std::thread::sleep(TICK);
    }
    drop(guest);
    println!("exported folder: {}", ground.export().display());
    Ok(())
}
