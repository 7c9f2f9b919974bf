//! Packages of another Debian release: apt downloads them with its own lists and state, and they
//! are unpacked in a folder. Nothing is installed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::kernel::ground::output;

/// Longest time of one run of apt in seconds.
const PATIENCE_SECONDS: &str = "300";

/// Packages to download, with all their dependencies.
const PACKAGES: &[&str] = &["user-mode-linux", "ktls-utils"];

/// The keys that sign every release of Debian (Debian: debian-archive-keyring).
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Names of a release other than its code name.
const ALIASES: &[&str] = &["oldstable", "stable", "testing", "unstable", "sid"];

/// Downloads the packages of `suite` to `folder`: the C library to `libc`, the others to `system`,
/// and the version of the C library to the file [`super::COMPLETE`].
///
/// # Errors
/// If apt knows no mirror of Debian, or a package cannot be downloaded or unpacked.
pub(super) fn fetch(suite: &str, folder: &Path) -> Result<()> {
    let state = folder.join("apt");
    for rest in ["apt", "libc", "system"].map(|name| folder.join(name)) {
        if rest.exists() {
            fs::remove_dir_all(rest)?;
        }
    }
    let packages = download(suite, &state)?;
    let is_libc = |path: &Path| path.file_name().is_some_and(|name| is_of(name, "libc6"));
    let text = |path: &Path| path.display().to_string();
    for package in &packages {
        let to = folder.join(if is_libc(package) { "libc" } else { "system" });
        fs::create_dir_all(&to)?;
        output("dpkg-deb", &["--extract", &text(package), &text(&to)])?;
    }
    let libc = packages.iter().find(|path| is_libc(path)).context("apt fetched no C library")?;
    let version = output("dpkg-deb", &["--field", &text(libc), "Version"])?;
    fs::remove_dir_all(&state)?;
    Ok(fs::write(folder.join(super::COMPLETE), version)?)
}

/// Returns whether the file of a package, `NAME_VERSION_ARCHITECTURE.deb`, has this name.
fn is_of(file: &std::ffi::OsStr, name: &str) -> bool {
    file.to_string_lossy().split('_').next() == Some(name)
}

/// Downloads the packages of a suite; returns their files.
fn download(suite: &str, state: &Path) -> Result<Vec<PathBuf>> {
    for folder in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(state.join(folder))?;
    }
    let signed =
        if Path::new(KEYS).exists() { format!(" signed-by={KEYS}") } else { String::new() };
    let source = format!("deb [arch=amd64{signed}] {} {suite} main\n", mirror()?);
    fs::write(state.join("sources.list"), source)?;
    // With an empty list of installed packages, apt downloads all dependencies, the C library
    // included.
    fs::write(state.join("status"), "")?;
    let configuration = state.join("apt.conf");
    fs::write(&configuration, settings(state))?;
    let configuration = configuration.display().to_string();
    let apt = |arguments: &[&str]| {
        let before = [PATIENCE_SECONDS, "apt-get", "-q", "-y", "-c", &configuration];
        output("timeout", &[&before, arguments].concat())
    };
    apt(&["update"])?;
    apt(&[&["install", "--download-only", "--no-install-recommends"], PACKAGES].concat())?;
    let files = fs::read_dir(state.join("archives"))?.map(|entry| Ok(entry?.path()));
    let files: Vec<PathBuf> = files.collect::<Result<_>>()?;
    Ok(files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "deb")).collect())
}

/// The configuration of apt, with its own folders and one list of packages.
fn settings(state: &Path) -> String {
    let state = state.display();
    format!(
        "Dir::Etc::sourcelist \"{state}/sources.list\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\n\
         Dir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\n\
         Dir::State \"{state}\";\n\
         Dir::State::lists \"{state}/lists\";\n\
         Dir::State::status \"{state}/status\";\n\
         Dir::Cache \"{state}\";\n\
         Dir::Cache::archives \"{state}/archives\";\n\
         Dir::Log \"{state}\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
         Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";\n\
         Acquire::Retries \"2\";\n\
         Acquire::http::Timeout \"30\";\n\
         APT::Update::Error-Mode \"any\";\n\
         APT::Get::AllowUnauthenticated \"false\";\n\
         APT::Architecture \"amd64\";\n\
         APT::Sandbox::User \"root\";\n\
         #clear APT::Update::Post-Invoke;\n\
         #clear APT::Update::Post-Invoke-Success;\n"
    )
}

/// The Debian mirror that the apt of this machine uses.
fn mirror() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let code_name = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    // Apt reads its sources itself, because they have several formats.
    let uris = output("apt-get", &["update", "--print-uris"])?;
    find_mirror(&uris, code_name.unwrap_or("stable").trim_matches('"'))
        .context("apt has no mirror of Debian among its sources")
}

/// Finds the mirror of a release in lines such as `'MIRROR/dists/RELEASE/InRelease' FILE 0`.
fn find_mirror(uris: &str, code_name: &str) -> Option<String> {
    uris.lines().find_map(|line| {
        let uri = line.strip_prefix('\'')?.split('\'').next()?;
        let (mirror, release) = uri.strip_suffix("/InRelease")?.rsplit_once("/dists/")?;
        let is_wanted = release == code_name || ALIASES.contains(&release);
        is_wanted.then(|| mirror.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const URIS: &str = "'https://tools.example/apt/dists/tools-bookworm/InRelease' a 0 \n\
        'http://mirror.example/debian-security/dists/bookworm-security/InRelease' b 0 \n\
        'http://mirror.example/debian/dists/bookworm-updates/InRelease' c 0 \n\
        'http://mirror.example/debian/dists/bookworm/InRelease' d 0 \n\
        'http://mirror.example/debian/dists/bookworm/main/binary-amd64/Packages.xz' e 0 \n";

    #[test]
    fn the_mirror_is_the_one_that_has_the_release_of_this_machine() {
        let mirror = Some("http://mirror.example/debian".to_owned());
        assert_eq!(find_mirror(URIS, "bookworm"), mirror);
        assert_eq!(find_mirror(&URIS.replace("bookworm", "stable"), "trixie"), mirror);
    }

    #[test]
    fn a_machine_of_another_kind_has_no_mirror() {
        assert_eq!(find_mirror(URIS, "noble"), None);
        assert_eq!(find_mirror("", "bookworm"), None);
    }

    #[test]
    fn a_package_is_known_by_the_whole_of_its_name() {
        assert!(is_of("libc6_2.41-12_amd64.deb".as_ref(), "libc6"));
        assert!(!is_of("libc6-dev_2.41-12_amd64.deb".as_ref(), "libc6"));
    }
}
