//! The file systems of the two servers: memory, where every byte of a reply can be compared, or a
//! real file system, which checks in its own order.

use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions, Passthrough, PassthroughOptions};
use comity_vfs::{Fs, Gid, Mode, SetAttr, Uid};
use tempfile::TempDir;

use super::rng::Rng;
use super::twins::{GIDS, UIDS, root};
use crate::world::still_clock;

pub(crate) enum Ground {
    Memory,
    /// The backends, and the folders that they serve. The folders are kept as long as the backends.
    Disk([Arc<Passthrough>; 2], #[expect(dead_code)] [TempDir; 2]),
}

impl Ground {
    pub(crate) fn disk() -> Self {
        let folders = [(); 2].map(|()| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        let options = PassthroughOptions::default;
        let open = |folder: &TempDir| Passthrough::open(folder.path(), options()).unwrap();
        Self::Disk(folders.each_ref().map(|folder| Arc::new(open(folder))), folders)
    }

    /// Two empty file systems whose root has a random owner and mode.
    pub(crate) fn filesystems(&self, rng: &mut Rng) -> [Arc<dyn Fs>; 2] {
        let set = SetAttr {
            mode: Some(Mode::new(*rng.pick(&[0o777, 0o777, 0o1777, 0o755, 0o775]))),
            uid: Some(Uid::new(UIDS + rng.below(5) as u32)),
            gid: Some(Gid::new(GIDS + rng.below(5) as u32)),
            ..SetAttr::default()
        };
        let filesystems: [Arc<dyn Fs>; 2] = match self {
            Self::Memory => {
                let options = MemoryOptions { clock: still_clock, ..MemoryOptions::default() };
                [(); 2].map(|()| Arc::new(Memory::new(options).unwrap()) as Arc<dyn Fs>)
            }
            Self::Disk(opened, _) => opened.each_ref().map(|fs| Arc::clone(fs) as Arc<dyn Fs>),
        };
        for fs in &filesystems {
            fs.setattr(&root(), &fs.root(), &set, None).unwrap();
        }
        filesystems
    }
}

impl Drop for Ground {
    /// Returns this thread to the server's own ids, so that the folders can be removed.
    fn drop(&mut self) {
        if let Self::Disk(opened, _) = self {
            opened.iter().for_each(|fs| fs.release_identity().unwrap());
        }
    }
}
