//! A guest: a Linux kernel in user mode with an NFS client. Its root is that of this machine,
//! read-only.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::kernels::Image;
use super::network::{Network, SERVER};

/// Most bytes of a guest's output that are printed.
const SHOWN_BYTES_MAX: usize = 4000;

/// Memory of a guest: enough for compilers and the page cache. The guest allocates it as it uses
/// it.
const MEMORY: &str = "mem=512M";

/// The configuration of a guest.
pub(super) struct Orders<'a> {
    /// The folder of the guest, which it sees as /mnt/job.
    pub(super) folder: PathBuf,
    /// The number of the guest, from 1; its address ends in this number plus ten.
    pub(super) number: u8,
    /// The shell commands that the guest runs.
    pub(super) command: &'a str,
    /// More variables of the guest's environment.
    pub(super) variables: Vec<(&'static str, String)>,
    /// The kernel that the guest boots.
    pub(super) image: &'a Image,
    /// The library that is preloaded into the guest's kernel.
    pub(super) preload: &'a Path,
    /// True if the console of the guest is this terminal.
    pub(super) terminal: bool,
}

/// A running guest.
pub(super) struct Guest {
    number: u8,
    folder: PathBuf,
    child: Child,
    deadline: Instant,
}

/// The way in which a guest ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The command ended with this status.
    Status(i32),
    /// The guest took too long and was killed.
    TimedOut,
    /// The kernel ended before the command did.
    Died,
}

impl Guest {
    /// Boots a guest, which dies with this thread.
    ///
    /// # Errors
    /// If a program or device is missing, or the folder cannot be written.
    pub(super) fn start(network: &Network, orders: &Orders<'_>, most: Duration) -> Result<Self> {
        let folder = orders.folder.clone();
        write_folder(orders)?;
        let device = network.tap(orders.number + 10)?;
        let kernel = kernel_arguments(&folder, &device, orders);
        // The guest has a pid namespace of its own, so that all of it dies with the shell, its
        // first process. The kernel must not be the first process, which cannot abort in a panic.
        let before = ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL"];
        let script = host_script(orders)?;
        let shell = ["sh", "-c", &script, "sh"];
        let program: Vec<&str> =
            before.into_iter().chain(shell).chain(kernel.iter().map(String::as_str)).collect();
        let mut command = network.command(&program);
        if orders.terminal {
            command.stdin(Stdio::inherit());
        } else {
            let console = fs::File::create(folder.join("console"))?;
            command.stdout(console.try_clone()?).stderr(console);
        }
        if !has_room(Path::new("/dev/shm")) {
            command.env("TMPDIR", &folder);
        }
        let child = command.spawn().context("start setpriv (Debian: util-linux)")?;
        Ok(Self { number: orders.number, folder, child, deadline: Instant::now() + most })
    }

    /// The number of the guest, from 1.
    pub(super) const fn number(&self) -> u8 {
        self.number
    }

    /// Returns whether the command has begun to work.
    pub(super) fn has_begun(&self) -> bool {
        self.folder.join("begun").exists()
    }

    /// Returns how the guest ended, if it has ended.
    ///
    /// # Errors
    /// If the guest's process cannot be waited for.
    pub(super) fn poll(&mut self) -> Result<Option<End>> {
        let ended = self.child.try_wait()?.is_some();
        if let Ok(status) = fs::read_to_string(self.folder.join("rc")) {
            return Ok(Some(End::Status(status.trim().parse().unwrap_or(125))));
        }
        if ended {
            return Ok(Some(End::Died));
        }
        Ok((Instant::now() > self.deadline).then_some(End::TimedOut))
    }

    /// The end of the guest's output, and that of its console if its kernel ended badly.
    pub(super) fn story(&self, end: Option<End>) -> String {
        let ended = end.map_or_else(|| "runs".into(), |end| format!("ended: {end:?}"));
        let mut story = format!("guest {ended}; files in {}\n", self.folder.display());
        let bad = matches!(end, Some(End::Died | End::TimedOut));
        for name in ["out", "err"].iter().chain(bad.then_some(&"console")) {
            let text = fs::read(self.folder.join(name)).unwrap_or_default();
            let text = text.get(text.len().saturating_sub(SHOWN_BYTES_MAX)..).unwrap_or_default();
            story += &format!("--- {name}\n{}", String::from_utf8_lossy(text));
        }
        story
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // The guest may power off by itself, so that the files in its folder are complete.
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            if !self.folder.join("rc").exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_folder(orders: &Orders<'_>) -> Result<()> {
    let folder = &orders.folder;
    fs::create_dir_all(folder)?;
    let init = folder.join("init.sh");
    fs::write(&init, include_str!("init.sh"))?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;
    fs::write(folder.join("guest.sh"), include_str!("guest.sh"))?;
    fs::write(folder.join("command"), orders.command)?;
    let terminal = u8::from(orders.terminal);
    let mut env = format!(
        "export ADDRESS={} SERVER={SERVER} TERMINAL={terminal} INPUT= TOOLS= HANDSHAKE_AS=\n\
         export MODULES='{}' SYSTEM='{}'\n",
        address(orders.number),
        orders.image.modules.display(),
        orders.image.system().unwrap_or_default().display()
    );
    for (name, value) in &orders.variables {
        env += &format!("export {name}='{value}'\n");
    }
    Ok(fs::write(folder.join("env"), env)?)
}

/// The shell script that runs the kernel on this machine with the script's arguments.
fn host_script(orders: &Orders<'_>) -> Result<String> {
    // One process binds all parts of the newer C library, so that no program starts with only half
    // of it.
    let before = match orders.image.libc_table(&orders.folder)? {
        Some(table) => format!("mount --all --fstab '{}' || exit; ", table.display()),
        None => String::new(),
    };
    Ok(format!("{before}\"$@\"; exit $?"))
}

fn kernel_arguments(folder: &Path, device: &str, orders: &Orders<'_>) -> Vec<String> {
    let folder = folder.display();
    let number = orders.number;
    let console = if orders.terminal { "con0=fd:0,fd:1" } else { "con0=null,fd:1" };
    let preload = format!("LD_PRELOAD={}", orders.preload.display());
    // Symbols are bound at the start, because the kernel's stacks are too small for that.
    let mut arguments = vec!["env".into(), "LD_BIND_NOW=1".into(), preload];
    arguments.push(orders.image.program.display().to_string());
    let kernel = [MEMORY, "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"];
    arguments.extend(kernel.map(str::to_owned));
    arguments.extend([
        format!("init={folder}/init.sh"),
        format!("comity_job={folder}"),
        format!("uml_dir={folder}"),
        "umid=uml".into(),
        "quiet".into(),
        "con=null".into(),
        console.into(),
        "ssl=null".into(),
        // Without gro=1 the driver hangs on bulk TCP.
        format!(
            "vec0:transport=tap,ifname={device},depth=128,gro=1,mac=02:77:00:00:00:{number:02x}"
        ),
    ]);
    arguments
}

/// The address of a guest.
pub(super) fn address(number: u8) -> String {
    format!("10.77.0.{}", number + 10)
}

/// Returns whether a folder has room for the memory of a few guests; /dev/shm of a container may be
/// tiny.
/// /dev/shm.
fn has_room(folder: &Path) -> bool {
    const GUESTS_BYTES: u64 = 3 << 30;
    rustix::fs::statvfs(folder).is_ok_and(|space| space.f_bavail * space.f_frsize > GUESTS_BYTES)
}
