//! `cargo xtask deb`: makes a Debian package of the program, and tries it.
//!
//! The files of the package are written to a folder, of which `dpkg-deb` makes the package.

mod trial;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::tools;

pub(crate) use trial::libraries;

/// Flags of `cargo xtask deb`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Package this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// The folder for the package
    #[arg(long, value_name = "DIR", default_value = "target/debian")]
    output: PathBuf,
    /// Install, upgrade, remove and purge the package in an empty root; needs root
    #[arg(long = "try")]
    trial: bool,
}

/// Files that are copied: the source in the checkout, and the place in the package.
const COPIED: &[(&str, &str)] = &[
    ("packaging/comity.service", "usr/lib/systemd/system/comity.service"),
    ("packaging/comity-addresses@.service", "usr/lib/systemd/system/comity-addresses@.service"),
    ("packaging/debian/default", CONFFILE),
    ("packaging/examples/exports", "usr/share/doc/comity/examples/exports"),
    ("packaging/examples/comity.toml", "usr/share/doc/comity/examples/comity.toml"),
    ("packaging/grafana.json", "usr/share/doc/comity/examples/grafana.json"),
    ("README.md", "usr/share/doc/comity/README.md"),
];

/// The completion scripts, by shell.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/comity"),
    ("zsh", "usr/share/zsh/vendor-completions/_comity"),
    ("fish", "usr/share/fish/vendor_completions.d/comity.fish"),
];

/// The file that dpkg keeps as the administrator has changed it.
const CONFFILE: &str = "etc/default/comity";

/// The scripts that dpkg runs.
const SCRIPTS: &[&str] = &["postinst", "prerm", "postrm"];

/// Makes the package; with `--try`, also tries it.
///
/// # Errors
/// If a step fails; the error names it.
pub(crate) fn command(root: &Path, options: &Options) -> Result<ExitCode> {
    let program = options.program.clone().map_or_else(|| build(root), Ok)?;
    let tree = tempfile::tempdir()?;
    lay_out(root, &program, tree.path())?;
    let package = pack(root, tree.path(), &options.output)?;
    println!("deb: {}", package.display());
    if options.trial {
        trial::perform(&package)?;
        println!("deb: installed, upgraded, removed and purged in an empty root");
    }
    Ok(ExitCode::SUCCESS)
}

fn build(root: &Path) -> Result<PathBuf> {
    tools::cargo(root, &["build", "--release", "--locked", "--package", "comity-cli"])?;
    Ok(root.join("target/release/comity"))
}

/// Writes all installed files below `tree`.
fn lay_out(root: &Path, program: &Path, tree: &Path) -> Result<()> {
    install(program, &tree.join("usr/bin/comity"), 0o755)?;
    run(Command::new("strip").arg("--strip-unneeded").arg(tree.join("usr/bin/comity")))?;
    for (source, place) in COPIED {
        install(&root.join(source), &tree.join(place), 0o644)?;
    }
    for (shell, place) in COMPLETIONS {
        let script = output(Command::new(program).args(["completions", shell]))?;
        write(&tree.join(place), &script)?;
    }
    lay_out_pages(program, tree)?;
    let text = |path: &str| fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
    let license = indented(&text("LICENSE-MIT")?);
    let copyright = text("packaging/debian/copyright")?.replace("@MIT@\n", &license);
    write(&tree.join("usr/share/doc/comity/copyright"), copyright.as_bytes())?;
    let changes = tree.join("usr/share/doc/comity/changelog");
    write(&changes, text("CHANGELOG.md")?.as_bytes())?;
    compress(&changes)
}

fn lay_out_pages(program: &Path, tree: &Path) -> Result<()> {
    let pages = tempfile::tempdir()?;
    run(Command::new(program).args(["man", "--out"]).arg(pages.path()))?;
    for page in fs::read_dir(pages.path())? {
        let page = page?.path();
        let section = page.extension().and_then(|section| section.to_str()).unwrap_or("1");
        let name = page.file_name().context("a page without a name")?;
        let place = tree.join(format!("usr/share/man/man{section}")).join(name);
        install(&page, &place, 0o644)?;
        compress(&place)?;
    }
    Ok(())
}

/// Adds the files for dpkg itself, and makes the package.
fn pack(root: &Path, tree: &Path, folder: &Path) -> Result<PathBuf> {
    let sources = root.join("packaging/debian");
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = String::from_utf8(architecture)?.trim().to_owned();
    let version = env!("CARGO_PKG_VERSION");
    let control = fs::read_to_string(sources.join("control"))?
        .replace("@VERSION@", version)
        .replace("@ARCHITECTURE@", &architecture)
        .replace("@SIZE@", &kibibytes(tree)?.to_string())
        .replace("@DEPENDS@", &dependencies(&fs::read(tree.join("usr/bin/comity"))?));
    // A static program has no dependencies.
    let control = control.replace("Depends: \n", "");
    write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    write(&tree.join("DEBIAN/conffiles"), format!("/{CONFFILE}\n").as_bytes())?;
    for script in SCRIPTS {
        install(&sources.join(script), &tree.join("DEBIAN").join(script), 0o755)?;
    }
    // Only its owner may enter a temporary folder, but everybody may enter the package's folders.
    fs::set_permissions(tree, Permissions::from_mode(0o755))?;
    fs::create_dir_all(root.join(folder))?;
    let package = root.join(folder).join(format!("comity_{version}_{architecture}.deb"));
    let mut make = Command::new("dpkg-deb");
    make.args(["--root-owner-group", "--build"]).arg(tree).arg(&package);
    output(&mut make)?;
    Ok(package)
}

/// The packages that a program needs: the unwinder, and the C library in at least the newest
/// version of which it uses a symbol. A static program uses none.
fn dependencies(program: &[u8]) -> String {
    const SYMBOL: &[u8] = b"GLIBC_2.";
    let versions = program.windows(SYMBOL.len() + 2).filter_map(|window| {
        let digits = window.strip_prefix(SYMBOL)?;
        let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        std::str::from_utf8(digits.get(..end)?).ok()?.parse::<u32>().ok()
    });
    let newest = versions.max();
    newest.map_or_else(String::new, |minor| format!("libc6 (>= 2.{minor}), libgcc-s1"))
}

fn kibibytes(tree: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in walkdir::WalkDir::new(tree) {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes.div_ceil(1024))
}

/// A text in the form of a copyright file: each line is indented, and an empty one has a dot.
fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { " .\n".into() } else { format!(" {line}\n") };
    text.lines().map(line).collect()
}

fn install(source: &Path, place: &Path, mode: u32) -> Result<()> {
    let bytes = fs::read(source).with_context(|| format!("cannot read {}", source.display()))?;
    write(place, &bytes)?;
    Ok(fs::set_permissions(place, Permissions::from_mode(mode))?)
}

/// Writes a file that everybody may read, and the folders above it, whatever the umask is.
fn write(place: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || format!("cannot write {}", place.display());
    let folder = place.parent().context("a file without a folder")?;
    let missing: Vec<_> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(folder).with_context(failed)?;
    for folder in missing {
        fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    }
    fs::write(place, bytes).with_context(failed)?;
    Ok(fs::set_permissions(place, Permissions::from_mode(0o644))?)
}

fn compress(file: &Path) -> Result<()> {
    run(Command::new("gzip").args(["-9n"]).arg(file))
}

fn run(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// Runs a program; returns what it prints.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed: {}", said.trim());
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_depends_on_the_newest_version_that_it_names() {
        let program = b"..GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE";
        assert_eq!(dependencies(program), "libc6 (>= 2.34), libgcc-s1");
        assert_eq!(dependencies(b"a static program"), "");
    }

    #[test]
    fn a_license_is_indented_and_its_empty_lines_are_dots() {
        assert_eq!(indented("one\n\ntwo\n"), " one\n .\n two\n");
    }
}
