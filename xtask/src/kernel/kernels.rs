//! The kernels that guests boot: the installed one, or one of a newer Debian release, which is
//! unpacked in a folder and not installed.

mod debian;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::ValueEnum;
use rustix::fs::{FlockOperation, flock};

use super::ground::output;

/// The variable with the folder of the kernels; the default is `target/guests`.
const FOLDER: &str = "COMITY_GUESTS";

/// The installed kernel and its modules (Debian: user-mode-linux).
const INSTALLED: (&str, &str) = ("/usr/bin/linux.uml", "/usr/lib/uml/modules");

/// The folder of shared libraries in Debian's amd64.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// The file of an unpacked kernel with the version of its C library; it is written last.
const COMPLETE: &str = "libc-version";

/// A kernel that a guest can boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Kernel {
    /// The installed kernel: Debian's package user-mode-linux.
    #[value(skip)]
    Installed,
    /// Linux 6.12 of Debian trixie, with RPC-with-TLS.
    #[value(name = "6.12")]
    Linux6_12,
    /// Linux 7.2 or newer of Debian sid, with RPC-with-TLS and directory delegations.
    #[value(name = "7.2")]
    Linux7_2,
}

impl Kernel {
    /// The name on the command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Linux6_12 => "6.12",
            Self::Linux7_2 => "7.2",
        }
    }

    /// Debian's name of the release that has this kernel.
    const fn suite(self) -> Option<&'static str> {
        match self {
            Self::Installed => None,
            Self::Linux6_12 => Some("trixie"),
            Self::Linux7_2 => Some("sid"),
        }
    }
}

/// A kernel on this machine that guests can boot.
#[derive(Debug, Clone)]
pub(super) struct Image {
    /// The kernel: a program.
    pub(super) program: PathBuf,
    /// The folder that has a folder of modules for each release of the kernel.
    pub(super) modules: PathBuf,
    /// The folder of an unpacked kernel; its `system` has all packages except the C library.
    unpacked: Option<PathBuf>,
}

impl Image {
    /// Finds a kernel, or downloads it.
    fn find(root: &Path, kernel: Kernel) -> Result<Self> {
        match kernel.suite() {
            None => Self::installed(),
            Some(suite) => Self::unpacked(root, kernel, suite),
        }
    }

    fn installed() -> Result<Self> {
        let (program, modules) = (PathBuf::from(INSTALLED.0), PathBuf::from(INSTALLED.1));
        for path in [&program, &modules] {
            ensure!(path.exists(), "there is no {} (Debian: user-mode-linux)", path.display());
        }
        Ok(Self { program, modules, unpacked: None })
    }

    fn unpacked(root: &Path, kernel: Kernel, suite: &str) -> Result<Self> {
        let all =
            std::env::var_os(FOLDER).map_or_else(|| root.join("target/guests"), PathBuf::from);
        let folder = std::path::absolute(all)?.join(kernel.name());
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let folder = folder.canonicalize()?;
        // Other runs wait for the one that downloads.
        let lock = fs::File::create(folder.join("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        if !folder.join(COMPLETE).exists() {
            println!("kernel: fetching Linux {} from Debian {suite}", kernel.name());
            debian::fetch(suite, &folder)?;
        }
        let system = folder.join("system");
        let program = system.join(INSTALLED.0.trim_start_matches('/'));
        let modules = system.join(INSTALLED.1.trim_start_matches('/'));
        let image = Self { program, modules, unpacked: Some(folder) };
        let release = image.release()?;
        ensure!(
            is_at_least(&release, kernel.name()),
            "Debian {suite} has Linux {release}, not {}",
            kernel.name()
        );
        Ok(image)
    }

    /// The kernel's release, such as `6.12.113`.
    ///
    /// # Errors
    /// If there is no folder of modules.
    pub(super) fn release(&self) -> Result<String> {
        let first = fs::read_dir(&self.modules)?.next();
        let first =
            first.with_context(|| format!("no modules in {}", self.modules.display()))??;
        Ok(first.file_name().to_string_lossy().into_owned())
    }

    /// The folder with the programs that came with the kernel, unless it is the installed one.
    pub(super) fn system(&self) -> Option<PathBuf> {
        self.unpacked.as_ref().map(|folder| folder.join("system"))
    }

    /// Writes a table for `mount --all --fstab` to `folder`, which binds the C library of the
    /// kernel's release over the older one of this machine. Returns its path, or `None` if this
    /// machine's library is new enough.
    ///
    /// # Errors
    /// If the versions cannot be compared or the table cannot be written.
    pub(super) fn libc_table(&self, folder: &Path) -> Result<Option<PathBuf>> {
        let Some(unpacked) = &self.unpacked else { return Ok(None) };
        let newer = fs::read_to_string(unpacked.join(COMPLETE))?;
        let own = output("dpkg-query", &["-W", "-f=${Version}", "libc6:amd64"])?;
        if output("dpkg", &["--compare-versions", own.trim(), "ge", newer.trim()]).is_ok() {
            return Ok(None);
        }
        let mut table = String::new();
        let from = unpacked.join("libc").join(LIBRARIES);
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let over = Path::new("/").join(LIBRARIES).join(entry.file_name());
            if entry.file_type()?.is_file() && over.is_file() {
                let from = entry.path();
                table += &format!("{} {} none bind 0 0\n", from.display(), over.display());
            }
        }
        let path = folder.join("libc.fstab");
        fs::write(&path, table)?;
        Ok(Some(path))
    }
}

/// Returns whether a release such as `7.3.1` belongs to this line (`7.2`) or a later one.
fn is_at_least(release: &str, line: &str) -> bool {
    let numbers = |text: &str| -> Vec<u32> {
        text.split(['.', '-', '+']).take(2).filter_map(|part| part.parse().ok()).collect()
    };
    numbers(release) >= numbers(line)
}

/// The kernels of a run; a kernel that is missing has the reason instead.
pub(super) struct Images {
    found: BTreeMap<Kernel, Result<Image, String>>,
}

impl Images {
    /// Finds the kernels; downloads those that are missing.
    pub(super) fn gather(root: &Path, kernels: impl Iterator<Item = Kernel>) -> Self {
        let mut found = BTreeMap::new();
        for kernel in kernels {
            let find = || Image::find(root, kernel).map_err(|error| format!("{error:#}"));
            found.entry(kernel).or_insert_with(find);
        }
        Self { found }
    }

    /// Returns a kernel of the run.
    ///
    /// # Errors
    /// The reason why the kernel is missing.
    pub(super) fn get(&self, kernel: Kernel) -> Result<&Image> {
        match self.found.get(&kernel) {
            Some(Ok(image)) => Ok(image),
            Some(Err(reason)) => bail!("no Linux {}: {reason}", kernel.name()),
            None => Err(anyhow!("Linux {} was not looked for", kernel.name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_line_of_kernels_serves_too_and_an_older_one_does_not() {
        for release in ["7.2.7", "7.2", "7.3-rc1", "7.10.1", "8.0.1"] {
            assert!(is_at_least(release, "7.2"), "{release}");
        }
        for release in ["7.1.9", "6.12.113", "", "none"] {
            assert!(!is_at_least(release, "7.2"), "{release}");
        }
    }

    #[test]
    fn a_kernel_that_is_missing_is_named_with_the_reason() {
        let found =
            BTreeMap::from([(Kernel::Linux7_2, Err("the mirror does not answer".to_owned()))]);
        let error = Images { found }.get(Kernel::Linux7_2).unwrap_err().to_string();
        assert_eq!(error, "no Linux 7.2: the mirror does not answer");
    }
}
