//! `comity mount` and `comity umount`, called as a user and as mount(8) call them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::can_mount;
use common::world::MountPoint;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_comity");

/// A folder for a test, with a directory to mount on.
struct Place {
    dir: MountPoint,
    folder: TempDir,
}

fn place() -> Option<Place> {
    if !can_mount() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = MountPoint::new(folder.path().join("mount"));
    fs::create_dir(folder.path().join("source")).unwrap();
    fs::write(folder.path().join("source/file"), "data").unwrap();
    Some(Place { dir, folder })
}

impl Place {
    fn source(&self) -> String {
        format!("dir:{}", self.folder.path().join("source").display())
    }

    fn comity(&self, words: &[&str]) -> Output {
        let state = self.folder.path().join("state");
        let mut command = Command::new(PROGRAM);
        command.arg(words[0]).arg("--state-dir").arg(state).args(&words[1..]);
        command.arg(&self.dir).output().unwrap()
    }

    fn mount(&self, words: &[&str]) -> Output {
        let source = self.source();
        let mut all = vec!["mount"];
        all.extend(words);
        all.push(&source);
        self.comity(&all)
    }
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the error of a command, which must fail with this exit code.
fn failed(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_folder_is_mounted_in_the_background_and_unmounted() {
    let Some(place) = place() else { return };
    succeeded(&place.mount(&[]));
    assert_eq!(fs::read_to_string(place.dir.join("file")).unwrap(), "data");
    fs::write(place.dir.join("new"), "more").unwrap();
    assert_eq!(fs::read_to_string(place.folder.path().join("source/new")).unwrap(), "more");
    succeeded(&place.comity(&["umount"]));
    assert_eq!(fs::read_dir(&place.dir).unwrap().count(), 0);
}

#[test]
fn a_read_only_mount_takes_no_changes() {
    let Some(place) = place() else { return };
    succeeded(&place.mount(&["-o", "ro"]));
    let error = fs::write(place.dir.join("file"), "x").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
}

#[test]
fn errors_of_the_program_in_the_background_reach_the_user() {
    let Some(place) = place() else { return };
    let said = failed(&place.comity(&["mount", "/nothing/is/here"]), 1);
    assert!(
        said.starts_with("comity: cannot mount: /nothing/is/here: no such directory"),
        "{said}"
    );
    let said = failed(&place.comity(&["mount", "ceph:x"]), 1);
    assert!(said.contains("there is no backend ceph:"), "{said}");
    fs::write(place.dir.join("entry"), "").unwrap();
    let said = failed(&place.mount(&[]), 1);
    assert!(said.contains("not empty") && said.contains("-o nonempty"), "{said}");
    succeeded(&place.mount(&["-o", "nonempty"]));
    let said = failed(&place.mount(&["-o", "nonempty"]), 1);
    assert!(said.contains("already") && said.contains("comity umount"), "{said}");
}

#[test]
fn the_directory_is_looked_at_before_a_server_is_asked() {
    let Some(place) = place() else { return };
    fs::remove_dir(&place.dir).unwrap();
    let said = failed(&place.comity(&["mount", "nfs://127.0.0.1:1/data"]), 1);
    assert!(said.contains("no such directory") && said.contains("mkdir -p"), "{said}");
}

#[test]
fn a_mount_in_use_is_not_unmounted_unless_detached() {
    let Some(place) = place() else { return };
    succeeded(&place.mount(&[]));
    let file = fs::File::open(place.dir.join("file")).unwrap();
    let said = failed(&place.comity(&["umount"]), 1);
    assert!(said.contains("in use") && said.contains("--lazy"), "{said}");
    succeeded(&place.comity(&["umount", "--lazy"]));
    assert_eq!(std::io::read_to_string(&file).unwrap(), "data", "an open file can still be read");
    let said = failed(&place.comity(&["umount"]), 1);
    assert!(said.contains("not a mount point"), "{said}");
}

#[test]
fn a_mount_whose_program_is_killed_does_not_hang_and_is_unmounted() {
    let Some(place) = place() else { return };
    let source = place.source();
    let mut child = Command::new(PROGRAM)
        .args(["mount", "-f", "--report", "--state-dir"])
        .arg(place.folder.path().join("state"))
        .arg(&source)
        .arg(&place.dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    assert_eq!(said, "ready\n");
    let file = fs::File::open(place.dir.join("file")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let error = fs::read(place.dir.join("other")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotConnected);
    assert!(std::io::read_to_string(&file).is_err());
    drop(file);
    let said = failed(&place.mount(&[]), 1);
    assert!(said.contains("whose program has ended") && said.contains("comity umount"), "{said}");
    succeeded(&place.comity(&["umount"]));
    succeeded(&place.mount(&[]));
}

#[test]
fn a_signal_unmounts() {
    let Some(place) = place() else { return };
    let source = place.source();
    let mut child = Command::new(PROGRAM)
        .args(["mount", "-f", "--report", "--state-dir"])
        .arg(place.folder.path().join("state"))
        .arg(&source)
        .arg(&place.dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!place.dir.join("file").exists());
}

#[test]
fn mount_8_finds_its_helper() {
    let Some(place) = place() else { return };
    let helper = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg0("/sbin/mount.comity").arg(place.source()).arg(&place.dir).args(words);
        command.output().unwrap()
    };
    let said = failed(&helper(&["-o", "rw,nolock"]), 32);
    assert!(said.contains("nolock"), "{said}");
    failed(&helper(&["--nonsense"]), 1);
    let said = failed(&helper(&["-N", "/run/netns/one"]), 1);
    assert!(said.contains("nsenter --mount=/run/netns/one"), "{said}");
    succeeded(&helper(&["-f"]));
    assert!(!place.dir.join("file").exists());
    succeeded(&helper(&["-n", "-o", "rw,_netdev,noexec"]));
    assert!(place.dir.join("file").exists());
}

#[test]
fn an_ordinary_user_without_the_helper_is_told_to_install_it() {
    // The helper is also found outside of the search path.
    if Path::new("/bin/fusermount3").exists() {
        return eprintln!("skipped: fusermount3 is installed");
    }
    let Some(place) = place() else { return };
    const NOBODY: u32 = 65_534;
    let program = place.folder.path().join("comity");
    // Another program makes the copy: a child that another test starts meanwhile would inherit the
    // descriptor of this process, and a file that is open for writing cannot be run.
    assert!(Command::new("cp").arg(PROGRAM).arg(&program).status().unwrap().success());
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    [place.folder.path(), &place.dir, &program].into_iter().for_each(open);
    let output = Command::new(&program)
        .args(["mount", "memory:"])
        .arg(&place.dir)
        .arg("--state-dir")
        .arg(place.folder.path().join("state"))
        .env("PATH", "/nowhere")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let said = failed(&output, 1);
    // The device is checked first: if the user may not open it, the error is about that.
    assert!(said.contains("apt install fuse3") || said.contains("/dev/fuse"), "{said}");
}
