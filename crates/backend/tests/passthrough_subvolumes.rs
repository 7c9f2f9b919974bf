//! The server notices programs that change files, on several file systems at once and on subvolumes
//! of btrfs, for which the kernel needs separate watches.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use comity_backend::{LeaseWatch, Passthrough, PassthroughOptions};
use comity_vfs::{AsServer, FileHold, Fs, Handle, LocalLocks, LocalUse};
use common::{is_root, name, root};

const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until a change is older than the resolution of a ctime.
const SETTLED: Duration = Duration::from_millis(100);

/// Bytes of the image of a btrfs.
const IMAGE_BYTES: u64 = 200 << 20;

/// Returns whether the kernel reports changes on subvolumes: from Linux 6.8 on.
fn can_be_told() -> bool {
    let name = rustix::system::uname();
    let mut numbers = name.release().to_str().unwrap().split('.').map(|number| number.parse());
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    let can = (next(), next()) >= (6, 8);
    if !can {
        eprintln!("skipped: needs Linux 6.8");
    }
    can
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Mounts a fresh btrfs; returns whether this machine can do so.
fn mount_btrfs(image: &str, at: &str) -> bool {
    File::create(image).unwrap().set_len(IMAGE_BYTES).unwrap();
    let made = run("mkfs.btrfs", &["-q", image]) && run("mount", &["-o", "loop", image, at]);
    if !made {
        eprintln!("skipped: needs mkfs.btrfs, and a kernel that mounts that");
    }
    made
}

/// Folders of a btrfs and two subvolumes of it, and one outside, in a mount namespace of its own.
fn with_subvolumes(work: impl FnOnce(Vec<PathBuf>) + Send) {
    use rustix::mount::{MountPropagationFlags, mount_change};
    if !is_root() || !can_be_told() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name).into_os_string().into_string().unwrap();
    let go = || {
        // SAFETY: this thread has opened nothing that the new namespace could take away.
        #[allow(unsafe_code)]
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.unwrap();
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).unwrap();
        let [top, one, two] = ["btrfs", "btrfs/one", "btrfs/two"].map(path);
        std::fs::create_dir(&top).unwrap();
        if mount_btrfs(&path("image"), &top) {
            assert!([&one, &two].iter().all(|it| run("btrfs", &["subvolume", "create", it])));
            work([path(""), top, one, two].map(PathBuf::from).to_vec());
        }
    };
    std::thread::scope(|scope| scope.spawn(go).join()).unwrap();
}

/// A file under a shared lease.
struct DelegatedFile {
    path: PathBuf,
    fs: Passthrough,
    file: Handle,
}

impl DelegatedFile {
    fn new(folder: &Path, watch: &Arc<LeaseWatch>) -> Self {
        let path = folder.join("file");
        File::create(&path).unwrap();
        std::thread::sleep(SETTLED);
        let options = PassthroughOptions { leases: Some(Arc::clone(watch)), ..Default::default() };
        let fs = Passthrough::open(folder, options).unwrap();
        let file = fs.lookup(&root(), &fs.root(), name(b"file")).unwrap().node.handle;
        assert_eq!(fs.hold_file(&file, FileHold::Shared), Ok(true));
        Self { path, fs, file }
    }

    /// Returns whether a change of this file was reported; panics if anything else was.
    fn is_changed(&self) -> bool {
        let wanted = self.fs.poll_wanted();
        assert!(wanted.is_none_or(|wanted| wanted == (self.file, LocalUse::Change)));
        wanted.is_some()
    }
}

/// Makes a socket that is closed after a while.
fn timer() -> UnixStream {
    let (end, ended) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        std::thread::sleep(PATIENCE);
        drop(end);
    });
    ended
}

#[test]
fn changes_of_files_on_subvolumes_and_elsewhere_are_reported() {
    with_subvolumes(|folders| {
        let watch = Arc::<LeaseWatch>::default();
        let listener = watch.listen(&AsServer::here().unwrap()).unwrap();
        let held: Vec<_> =
            folders.iter().map(|folder| DelegatedFile::new(folder, &watch)).collect();
        // The files have fanotify marks now.
        assert!(!held.iter().any(DelegatedFile::is_changed));
        let ended = timer();
        for one in &held {
            assert!(run("chmod", &["600", one.path.to_str().unwrap()]));
            let mut told = false;
            while !told && listener.wait(ended.as_fd()).unwrap() {
                told = one.is_changed();
            }
            assert!(told, "{}", one.path.display());
        }
        assert!(!held.iter().any(DelegatedFile::is_changed));
        held.iter().for_each(|one| one.fs.release_identity().unwrap());
    });
}
