//! The options of `comity mount -o` about the disk cache: by the names of Badros (1998), and those
//! of nfs(5) about attributes.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use comity_cache::{AttributeTimes, Cache, CacheOptions, Clock, Disk, FolderError, WriteMode};
use comity_vfs::Fs;

use crate::mount_number::number;

/// Longest time that attributes may be used without a check, in seconds.
const SECONDS_MAX: u64 = 86_400;

/// Most mounts of one source with a cache each.
const MOUNTS_MAX: u32 = 16;

/// Longest time that a mount waits for the cache folder of a mount that was just unmounted.
const FOLDER_WAIT: Duration = Duration::from_secs(1);

/// Time between two attempts to use the folder.
const FOLDER_POLL: Duration = Duration::from_millis(20);

/// The options about the disk cache of a mount.
#[derive(Debug, Clone, Default)]
pub(crate) struct CacheChoice {
    /// `None` means the default of the source.
    enabled: Option<bool>,
    root: Option<PathBuf>,
    options: CacheOptions,
}

impl CacheChoice {
    /// Reads an option; returns whether it is one about the cache.
    pub(crate) fn read(&mut self, name: &str, value: Option<&str>) -> Result<bool> {
        let options = &mut self.options;
        match (name, value) {
            ("dc_enable", None) => self.enabled = Some(true),
            ("nodc_enable", None) => self.enabled = Some(false),
            ("dc_read", None) => options.fills = false,
            ("nodc_read", None) => options.fills = true,
            ("dc_root", Some(folder)) if !folder.is_empty() => {
                self.root = Some(std::path::absolute(folder)?);
                self.enabled = Some(self.enabled.unwrap_or(true));
            }
            ("dc_min_free", Some(value)) => options.free_min = bytes(name, value)?,
            ("dc_max_size", Some(value)) => options.bytes_max = bytes(name, value)?,
            ("dc_write", Some("through")) => options.write = WriteMode::Through,
            ("dc_write", Some("memory")) => options.write = WriteMode::Memory,
            ("dc_write", Some("journal")) => options.write = WriteMode::Journal,
            ("dc_write", _) => bail!("-o dc_write: give through, memory or journal"),
            ("dc_offline", Some("ro")) => options.offline = true,
            ("dc_offline", _) => bail!("-o dc_offline: only ro can be given"),
            _ => return self.read_times(name, value),
        }
        Ok(true)
    }

    fn read_times(&mut self, name: &str, value: Option<&str>) -> Result<bool> {
        let times = &mut self.options.times;
        let milliseconds =
            || number(name, value.unwrap_or_default(), SECONDS_MAX).map(|seconds| seconds * 1_000);
        match name {
            "acregmin" => times.file.0 = milliseconds()?,
            "acregmax" => times.file.1 = milliseconds()?,
            "acdirmin" => times.dir.0 = milliseconds()?,
            "acdirmax" => times.dir.1 = milliseconds()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets all attribute times to the same value (`actimeo`, `noac`).
    pub(crate) fn set_times(&mut self, seconds: u64) {
        let time = seconds * 1_000;
        self.options.times = AttributeTimes { file: (time, time), dir: (time, time) };
    }

    /// Puts a disk cache over a file system, if the options ask for one. `by_default`: without an
    /// option, the source gets a cache.
    ///
    /// # Errors
    /// The reason why the folder cannot be used, with what to do about it.
    pub(crate) fn put_over(
        &self,
        fs: &Arc<dyn Fs>,
        identity: &str,
        by_default: bool,
    ) -> Result<Option<Arc<Cache>>> {
        if !self.enabled.unwrap_or(by_default) {
            return Ok(None);
        }
        let root = match &self.root {
            Some(root) => root.clone(),
            None => default_root()?,
        };
        let disk = disk(&root, identity).context("cannot use the disk cache")?;
        self.recover_others(&root, identity, fs);
        Ok(Some(Arc::new(Cache::new(Arc::clone(fs), Arc::new(disk), self.options, clock()))))
    }

    /// Sends the unsent data of earlier mounts of this source. Simultaneous mounts have a folder
    /// each, so it is possible that no later mount uses the folders of these.
    fn recover_others(&self, root: &Path, identity: &str, fs: &Arc<dyn Fs>) {
        for number in 1..=MOUNTS_MAX {
            let Some(disk) = Disk::left_by_server(root, &numbered(identity, number)) else {
                continue;
            };
            let left = Cache::new(Arc::clone(fs), Arc::new(disk), self.options, clock());
            let failed = left.finish();
            if failed > 0 {
                tracing::warn!(failed, "files of an earlier mount still wait in its journal");
            }
        }
    }
}

/// The identity of one of the mounts of a source, counted from 1.
fn numbered(identity: &str, number: u32) -> String {
    if number == 1 { identity.to_owned() } else { format!("{identity} {number}") }
}

/// The first folder of a source that no other mount uses. A mount that was just unmounted may still
/// use its folder, as its program ends after `umount` has returned.
fn disk(root: &Path, identity: &str) -> Result<Disk, FolderError> {
    let deadline = Instant::now() + FOLDER_WAIT;
    let mut taken = Disk::of_server(root, identity);
    while matches!(taken, Err(FolderError::InUse(_))) && Instant::now() < deadline {
        thread::sleep(FOLDER_POLL);
        taken = Disk::of_server(root, identity);
    }
    for number in 2..=MOUNTS_MAX {
        if !matches!(taken, Err(FolderError::InUse(_))) {
            break;
        }
        taken = Disk::of_server(root, &numbered(identity, number));
    }
    taken
}

fn clock() -> Clock {
    Arc::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |since| since.as_millis() as u64)
    })
}

/// The cache folder of the user.
fn default_root() -> Result<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Ok("/var/cache/comity".into());
    }
    let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || set("HOME").map(|home| home.join(".cache"));
    let base = set("XDG_CACHE_HOME").or_else(home);
    let base = base.ok_or_else(|| anyhow!("there is no home for the cache: give -o dc_root="))?;
    Ok(Path::new(&base).join("comity"))
}

/// A size in KiB, or with K, M, G or T after it.
fn bytes(name: &str, value: &str) -> Result<u64> {
    let (digits, unit) = match value.as_bytes().last() {
        Some(b'K') => (value.len() - 1, 1_u64 << 10),
        Some(b'M') => (value.len() - 1, 1 << 20),
        Some(b'G') => (value.len() - 1, 1 << 30),
        Some(b'T') => (value.len() - 1, 1 << 40),
        _ => (value.len(), 1 << 10),
    };
    let number: Option<u64> = value.get(..digits).and_then(|digits| digits.parse().ok());
    let bytes = number.and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| anyhow!("-o {name}={value}: give a size in KiB, or with K, M, G or T"))
}

#[cfg(test)]
mod tests {
    use comity_backend::{Memory, MemoryOptions};
    use comity_vfs::layers::{Faults, Layer, Verb, When};
    use comity_vfs::{Create, Cred, Gid, Name, SetAttr, Status, Uid};

    use super::*;

    #[test]
    fn sizes_are_in_kibibytes_as_in_1998() {
        assert_eq!(bytes("dc_max_size", "100").unwrap(), 102_400);
        assert_eq!(bytes("dc_max_size", "2G").unwrap(), 2 << 30);
        for bad in ["", "G", "1.5G", "-1", "99999999999T"] {
            assert!(bytes("dc_max_size", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn mounts_of_one_source_have_a_folder_each() {
        let root = tempfile::tempdir().unwrap();
        let first = disk(root.path(), "one").unwrap();
        let _second = disk(root.path(), "one").unwrap();
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
        drop(first);
        let _third = disk(root.path(), "one").unwrap();
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
    }

    #[test]
    fn data_that_a_second_mount_has_left_are_sent_by_a_single_one() {
        let root = tempfile::tempdir().unwrap();
        let faults = Faults::new(1).fail(Verb::Write, Status::Io, When::Always);
        let faults = Arc::new(faults);
        faults.set_active(false);
        let memory = Arc::new(Memory::new(MemoryOptions::default()).unwrap());
        let fs: Arc<dyn Fs> = Arc::new(Layer::new(memory, Arc::clone(&faults)));
        let user = Cred::new(Uid::new(0), Gid::new(0));
        let (name, how) = (Name::new(b"file").unwrap(), Create::Guarded(SetAttr::default()));
        let file = fs.create(&user, &fs.root(), name, &how).unwrap().value.handle;
        let mut choice = CacheChoice { root: Some(root.path().into()), ..CacheChoice::default() };
        choice.read("dc_write", Some("journal")).unwrap();
        let mount = || choice.put_over(&fs, "one", true).unwrap().unwrap();
        let (first, second) = (mount(), mount());
        second.write(&user, &file, 0, b"data").unwrap();
        faults.set_active(true);
        drop((first, second));
        faults.set_active(false);
        assert_eq!(fs.getattr(&file).unwrap().size, 0);
        let _single = mount();
        assert_eq!(fs.getattr(&file).unwrap().size, 4);
    }

    #[test]
    fn a_folder_enables_the_cache_unless_it_is_forbidden() {
        let mut choice = CacheChoice::default();
        assert!(choice.read("dc_root", Some("/tmp/cache")).unwrap());
        assert_eq!(choice.enabled, Some(true));
        assert!(choice.read("nodc_enable", None).unwrap());
        assert_eq!(choice.enabled, Some(false));
        assert!(choice.read("dc_write", Some("later")).is_err());
        assert!(!choice.read("rsize", Some("1")).unwrap());
        assert!(choice.read("acregmin", Some("5")).unwrap());
        assert_eq!(choice.options.times.file.0, 5_000);
    }
}
