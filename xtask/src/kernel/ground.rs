//! The folders of a test: its own folder, the exported folder and those of the guests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use std::process::Command;

/// File systems in memory or on top of another one: they have no disk, or no handles.
const NO_DISK: &[&str] = &["tmpfs", "ramfs", "overlayfs", "fuseblk", "nfs"];

/// The folders of one test, all below one folder.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    folder: PathBuf,
}

impl Ground {
    /// Makes fresh folders for test `name` under `target/kernel`.
    ///
    /// # Errors
    /// If they cannot be made.
    pub(super) fn new(root: &Path, name: &str) -> Result<Self> {
        let folder = folder(root).join(format!("{name}-{}", std::process::id()));
        ensure!(
            !folder.to_string_lossy().contains([' ', '\'']),
            "{}: a kernel takes no path with a space or quote",
            folder.display()
        );
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let ground = Self { folder };
        fs::create_dir_all(ground.export()).context("make a folder to export")?;
        fs::create_dir_all(ground.input())?;
        Ok(ground)
    }

    /// The folder of the test.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The exported folder.
    pub(super) fn export(&self) -> PathBuf {
        self.folder.join("export")
    }

    /// The folder that guests see as /mnt/input.
    pub(super) fn input(&self) -> PathBuf {
        self.folder.join("input")
    }

    /// The folder that guest `number` sees as /mnt/job.
    pub(super) fn guest(&self, number: u8) -> PathBuf {
        self.folder.join(format!("guest-{number}"))
    }

    /// Writes files to the folder that all guests see.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(super) fn give(&self, files: &[(&str, &str)]) -> Result<()> {
        let write = |(name, text): &(&str, &str)| fs::write(self.input().join(name), text);
        Ok(files.iter().try_for_each(write)?)
    }

    /// Reads a file that the first guest has written to its folder.
    ///
    /// # Errors
    /// If the file does not exist.
    pub(super) fn written(&self, name: &str) -> Result<String> {
        let path = self.guest(1).join(name);
        fs::read_to_string(&path).with_context(|| format!("the guest left no {}", path.display()))
    }

    /// Reads the log of the server.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn server_log(&self) -> Result<String> {
        let path = self.folder.join("server/server.log");
        fs::read_to_string(&path).with_context(|| format!("no log {}", path.display()))
    }

    /// Removes all folders of the test.
    pub(super) fn clear(self) {
        // Files that cannot be removed stay under target/ and do no harm.
        let _ = fs::remove_dir_all(self.folder);
    }
}

/// The parent of the folders of all tests.
fn folder(root: &Path) -> PathBuf {
    root.join("target/kernel")
}

/// Returns a warning if the file system of the exported folders is not on a disk.
///
/// # Errors
/// If its type cannot be found out.
pub(super) fn doubt(root: &Path) -> Result<Option<String>> {
    let folder = folder(root);
    fs::create_dir_all(&folder)?;
    let folder = folder.display().to_string();
    let kind = output("stat", &["-f", "-c", "%T", &folder])?;
    let doubt = format!("{folder} lies on {}, which is no disk file system", kind.trim());
    Ok(NO_DISK.contains(&kind.trim()).then_some(doubt))
}

/// Returns the standard output of a program.
///
/// # Errors
/// If the program fails; the error has the text that it printed.
pub(super) fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    output_of(command)
}

/// Returns the standard output of a command.
///
/// # Errors
/// If the command fails; the error has the text that it printed.
pub(super) fn output_of(mut command: Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.output().with_context(|| format!("run {program}"))?;
    if !done.status.success() {
        let arguments: Vec<_> = command.get_args().map(|it| it.to_string_lossy()).collect();
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        bail!("{program} {}: {}\n{text}", arguments.join(" "), done.status);
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// A line that identifies the whole tree below a folder; `guest.sh` computes the same.
///
/// # Errors
/// If tar or sha256sum fails.
pub(super) fn fingerprint(folder: &Path) -> Result<String> {
    let script = include_str!("guest.sh").replace("set -eu", "set -eu; export LC_ALL=C")
        + "\nfingerprint \"$1\"\n";
    let folder = folder.display().to_string();
    Ok(output("sh", &["-c", &script, "sh", &folder])?.trim().to_owned())
}
