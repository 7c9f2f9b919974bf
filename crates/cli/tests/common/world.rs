//! A server of this program, and a directory on which a test mounts it.

use std::ffi::OsStr;
use std::fs;
use std::net::TcpStream;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use super::{Place, Running, Said, can_mount, comity, metrics, run, wait_until};

/// A directory to mount on, which is unmounted at the end of the test.
pub struct MountPoint(PathBuf);

impl MountPoint {
    /// Makes the directory.
    pub fn new(path: PathBuf) -> Self {
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        run(comity().args(["umount", "--lazy"]).arg(&self.0));
    }
}

impl Deref for MountPoint {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for MountPoint {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<OsStr> for MountPoint {
    fn as_ref(&self) -> &OsStr {
        self.0.as_os_str()
    }
}

/// A server of one export, and a directory to mount it on. The directory is unmounted before the
/// server ends.
pub struct World {
    pub dir: MountPoint,
    server: Option<Running>,
    pub port: u16,
    pub place: Place,
}

impl World {
    /// Starts a server of an export for this host with these options, and with more arguments for
    /// the server. Returns `None` if this test may not mount.
    pub fn exporting(options: &str, more: &[&str]) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let place = Place::new();
        let dir = MountPoint::new(place.path("mount"));
        place.write("exports", &format!("{} 127.0.0.1({options})\n", place.data().display()));
        let mut world = Self { dir, server: None, port: 0, place };
        world.start(more);
        Some(world)
    }

    /// Starts the server, at its earlier port if it had one.
    pub fn start(&mut self, more: &[&str]) {
        let mut command = comity();
        command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register"]);
        command.args(["--metrics", "127.0.0.1:0", "--port", &self.port.to_string()]);
        command.arg("--state-dir").arg(self.place.state());
        command.arg("--exports").arg(self.place.path("exports")).args(more);
        let server = Running::start(&mut command);
        self.port = server.port;
        self.server = Some(server);
    }

    /// Kills the server as a crash would.
    pub fn kill_server(&mut self) {
        self.server().signal(Signal::KILL);
        let port = self.port;
        wait_until("it has ended", || TcpStream::connect(("127.0.0.1", port)).is_err());
        self.server = None;
    }

    /// Ends the server by a signal and waits until it has ended.
    pub fn stop_server(&mut self) {
        assert!(self.server.take().unwrap().stop().success());
    }

    pub fn server(&self) -> &Running {
        self.server.as_ref().unwrap()
    }

    /// The source of a mount for a client that reaches the server at this port.
    pub fn source_at(&self, port: u16) -> String {
        format!("nfs://127.0.0.1:{port}{}", self.place.data().display())
    }

    /// The path of a file of the export on the server.
    pub fn at_server(&self, name: &str) -> PathBuf {
        self.place.data().join(name)
    }

    /// A command about the mounts of this test.
    pub fn comity(&self, word: &str) -> Command {
        let mut command = comity();
        command.arg(word).arg("--state-dir").arg(self.place.path("mounts"));
        command
    }

    /// Mounts the export of the server at its own port.
    pub fn mount(&self, options: &str) {
        self.mount_at(self.port, options);
    }

    /// Mounts the export through this port.
    pub fn mount_at(&self, port: u16, options: &str) {
        let said = self.mount_by(self.comity("mount"), port, options);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }

    /// Mounts by a command to which options, source and directory are added here.
    pub fn mount_by(&self, mut mount: Command, port: u16, options: &str) -> Said {
        let options = format!("log_file={},{options}", self.place.path("mount.log").display());
        run(mount.args(["-o", &options, &self.source_at(port)]).arg(&self.dir))
    }

    /// Mounts the export once more, in another directory and with another cache.
    pub fn mount_other(&self) -> MountPoint {
        let dir = MountPoint::new(self.place.path("other"));
        let options = format!("dc_root={}", self.place.path("cache.other").display());
        let mut mount = self.comity("mount");
        let said = run(mount.args(["-o", &options, &self.source_at(self.port)]).arg(&dir));
        assert_eq!(said.code, Some(0), "{}", said.err);
        dir
    }

    pub fn umount(&self) {
        self.umount_by(|| self.comity("umount"));
    }

    /// Unmounts by a command to which the directory is added here.
    pub fn umount_by(&self, umount: impl Fn() -> Command) {
        // The kernel may still be closing files.
        wait_until("it is not used", || {
            let said = run(umount().arg(&self.dir));
            eprint!("{}", said.err);
            said.code == Some(0)
        });
        let mounts = || fs::read_to_string("/proc/self/mounts").unwrap();
        wait_until("it is gone", || !mounts().contains(self.dir.to_str().unwrap()));
    }

    /// The options of a mount whose disk cache is in the folder of this test.
    pub fn cached(&self, more: &str) -> String {
        format!("dc_root={}{more}", self.place.path("cache").display())
    }

    /// The sum of the server's counts in those lines of the metrics page that contain all of these
    /// texts.
    pub fn counted(&self, texts: &[&str]) -> u64 {
        let page = metrics(self.server());
        let is_meant = |line: &&str| {
            !line.starts_with('#')
                && !line.contains("bucket")
                && texts.iter().all(|text| line.contains(text))
        };
        let counts = page.lines().filter(is_meant).filter_map(|line| line.rsplit(' ').next());
        counts.filter_map(|count| count.parse::<f64>().ok()).sum::<f64>() as u64
    }
}
