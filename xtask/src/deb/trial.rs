//! A trial of the package: dpkg installs, upgrades, removes and purges it in an empty root.
//!
//! The root has a shell, the programs that the scripts of the package call, and the libraries of
//! both. It has no systemd, so that the parts of the scripts for it are not tried;
//! `packaging/prove-unit.sh` tries the unit.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::{CONFFILE, output, run};

/// The programs in the root, and their paths on this machine.
const PROGRAMS: &[(&str, &str)] = &[("/bin/sh", "usr/bin/sh"), ("/bin/rm", "usr/bin/rm")];

/// Packages that dpkg takes for installed in the root, in the versions of this machine.
const PROVIDED: &[&str] = &["libc6", "libgcc-s1"];

/// Files that a server leaves behind.
const STATE: &str = "var/lib/comity/key";

/// Installs the package in an empty root, and removes it again.
///
/// # Errors
/// If a step fails or leaves something behind.
pub(super) fn perform(package: &Path) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "--try needs root, because dpkg changes its root folder"
    );
    let root = tempfile::tempdir()?;
    let root = root.path();
    prepare(root, package)?;
    let before = files(root)?;
    install(root, package)?;
    works(root)?;
    only_the_package(root, &before)?;
    let changed = "COMITY_SERVE=\"--exports /etc/other\"\n";
    fs::write(root.join(CONFFILE), changed)?;
    install(root, package).context("the upgrade")?;
    ensure!(fs::read_to_string(root.join(CONFFILE))? == changed, "the upgrade changed {CONFFILE}");
    fs::create_dir_all(root.join("var/lib/comity"))?;
    fs::write(root.join(STATE), "key")?;
    dpkg(root, &["--remove", "comity"])?;
    let kept: BTreeSet<PathBuf> = [CONFFILE, STATE].map(PathBuf::from).into();
    left(root, &before, &kept).context("after the removal")?;
    dpkg(root, &["--purge", "comity"])?;
    left(root, &before, &BTreeSet::new()).context("after the purge")
}

/// Makes the root that dpkg works in.
fn prepare(root: &Path, package: &Path) -> Result<()> {
    for folder in ["usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "etc", "var/lib/dpkg/info"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for folder in ["bin", "lib", "lib64", "sbin"] {
        symlink(format!("usr/{folder}"), root.join(folder))?;
    }
    let extracted = tempfile::tempdir()?;
    run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(extracted.path()))?;
    let program = extracted.path().join("usr/bin/comity");
    let mut needed = libraries(&program)?;
    for (here, there) in PROGRAMS {
        fs::copy(here, root.join(there)).with_context(|| format!("cannot copy {here}"))?;
        needed.append(&mut libraries(Path::new(here))?);
    }
    for library in needed {
        let place = root.join(library.strip_prefix("/")?);
        fs::create_dir_all(place.parent().context("a library without a folder")?)?;
        fs::copy(&library, place)?;
    }
    let mut status = Vec::new();
    for package in PROVIDED {
        status.append(&mut output(Command::new("dpkg").args(["--status", package]))?);
        status.push(b'\n');
    }
    Ok(fs::write(root.join("var/lib/dpkg/status"), status)?)
}

/// Returns the libraries that a program is linked with; a static one has none.
pub(crate) fn libraries(program: &Path) -> Result<BTreeSet<PathBuf>> {
    let said = Command::new("ldd").arg(program).output().context("cannot run ldd")?.stdout;
    let said = String::from_utf8(said)?;
    let paths = said.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(PathBuf::from).collect())
}

fn install(root: &Path, package: &Path) -> Result<()> {
    dpkg(root, &["--install", &package.display().to_string()])?;
    let mut query = Command::new("dpkg-query");
    query.arg(format!("--admindir={}", root.join("var/lib/dpkg").display()));
    let status = output(query.args(["--show", "--showformat=${Status}", "comity"]))?;
    ensure!(status == b"install ok installed", "dpkg says: {}", String::from_utf8_lossy(&status));
    Ok(())
}

fn dpkg(root: &Path, arguments: &[&str]) -> Result<()> {
    let mut dpkg = Command::new("dpkg");
    dpkg.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").arg("--force-not-root");
    // The check would look for the programs of a whole system in the root.
    dpkg.arg("--force-bad-path").arg(format!("--root={}", root.display())).args(arguments);
    run(&mut dpkg).with_context(|| format!("dpkg {}", arguments.join(" ")))
}

/// Checks that the program runs in the root and accepts the example that comes with it.
fn works(root: &Path) -> Result<()> {
    let comity = |arguments: &[&str]| {
        output(Command::new("chroot").arg(root).arg("/usr/bin/comity").args(arguments))
    };
    let version = String::from_utf8(comity(&["--version"])?)?;
    ensure!(version.contains(env!("CARGO_PKG_VERSION")), "the program says: {version}");
    fs::create_dir_all(root.join("srv/projects"))?;
    fs::create_dir_all(root.join("srv/archive"))?;
    let checked = comity(&["check", "--exports", "/usr/share/doc/comity/examples/exports"]);
    fs::remove_dir_all(root.join("srv"))?;
    checked.map(drop)
}

/// Checks that installing made the files of the package and no others.
fn only_the_package(root: &Path, before: &BTreeSet<PathBuf>) -> Result<()> {
    let listed = fs::read_to_string(root.join("var/lib/dpkg/info/comity.list"))?;
    let listed: BTreeSet<PathBuf> =
        listed.lines().map(|line| line.trim_start_matches('/').into()).collect();
    let others =
        files(root)?.into_iter().find(|file| !before.contains(file) && !listed.contains(file));
    match others {
        Some(other) => bail!("the installation made {}, which dpkg does not know", other.display()),
        None => Ok(()),
    }
}

/// Checks that all files are as before, except for those in `kept`.
fn left(root: &Path, before: &BTreeSet<PathBuf>, kept: &BTreeSet<PathBuf>) -> Result<()> {
    let now = files(root)?;
    let expected: BTreeSet<PathBuf> = before.union(kept).cloned().collect();
    if let Some(file) = now.symmetric_difference(&expected).next() {
        let what = if now.contains(file) { "left" } else { "missing" };
        bail!("{} is {what}", file.display());
    }
    Ok(())
}

/// Returns all files of the root except those of dpkg itself.
fn files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for entry in walkdir::WalkDir::new(root) {
        let entry = entry?;
        let path = entry.path().strip_prefix(root)?.to_path_buf();
        if !entry.file_type().is_dir() && !path.starts_with("var/lib/dpkg") {
            files.insert(path);
        }
    }
    Ok(files)
}
