//! Errors of the kernel reveal no hidden names that the cloak hides.
#![allow(clippy::unwrap_used, clippy::panic)]

mod site;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::sync::Arc;

use comity_backend::{Passthrough, PassthroughOptions};
use comity_vfs::Status;

use site::Site;

/// No client holds state in these tests.
const NAMES: comity_export::DirectoryClearance<'static> =
    comity_export::DirectoryClearance::given();

fn owned(path: &Path, owner: u32, mode: u32) {
    chown(path, Some(owner), Some(owner)).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// `fs.protected_hardlinks` forbids links to files that the caller may not read and write, but only
/// once the name is known to be free.
#[test]
fn a_refused_link_does_not_reveal_whether_a_name_is_free() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: takes root, to act as others");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    owned(folder.path(), 0, 0o755);
    fs::create_dir(folder.path().join("closed")).unwrap();
    owned(&folder.path().join("closed"), 8, 0o755);
    for (name, owner, mode) in [("closed/secret", 500, 0o666), ("guarded", 9, 0o600)] {
        fs::write(folder.path().join(name), "").unwrap();
        owned(&folder.path().join(name), owner, mode);
    }
    let disk = Passthrough::open(folder.path(), PassthroughOptions::default()).unwrap();
    let site = Site::of(Arc::new(disk), "rw,insecure,cloak_uid=500-599:+000");
    let (view, root) = site.guest(7, 7, &[]);
    let guarded = view.lookup(&root, b"guarded").unwrap().0.node;
    let closed = view.lookup(&root, b"closed").unwrap().0.node;
    for name in [&b"secret"[..], b"missing"] {
        assert_eq!(
            view.link(NAMES, &guarded, &closed, name).map(drop),
            Err(Status::Acces),
            "{name:?}"
        );
    }
}
