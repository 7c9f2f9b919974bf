//! The options of `comity mount -o`, by their names in mount(8), mount.fuse3(8) and nfs(5). An
//! option that would have no effect is refused.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use comity_fuse::{Keep, Options};

use crate::mount_cache::CacheChoice;
use crate::mount_metrics;
use crate::mount_number::number;
use crate::mount_source::ServerChoice;

/// Options of a line of fstab(5) about when and by whom it is mounted, which mount(8) and systemd
/// obey.
const OF_FSTAB: &[&str] = &[
    "defaults", "auto", "noauto", "nofail", "_netdev", "user", "nouser", "users", "owner", "group",
];

/// Time for which the kernel caches names and attributes of a local file system, which other
/// programs may change, unless an option says otherwise.
const KEEP: Duration = Duration::from_secs(1);

/// Longest time for which the kernel may cache names and attributes, in seconds: a day.
const KEEP_SECONDS_MAX: u64 = 86_400;

/// Most threads that serve a mount.
const THREADS_MAX: usize = 1_024;

/// The options of a mount.
#[derive(Debug, Clone)]
pub(crate) struct MountOptions {
    /// The options about the mount itself.
    pub(crate) fuse: Options,
    /// The times for which the kernel caches names and attributes.
    pub(crate) keep: Keep,
    /// The file that a mount in the background logs to.
    pub(crate) log_file: Option<PathBuf>,
    /// The disk cache.
    pub(crate) cache: CacheChoice,
    /// The address of the page about the disk cache.
    pub(crate) metrics: Option<SocketAddr>,
    /// The options about a server.
    pub(crate) server: ServerChoice,
    /// True if an option says whether the kernel compares modes and ids.
    pub(crate) judge_given: bool,
}

impl MountOptions {
    /// Reads the options; of two that contradict each other the later one wins.
    ///
    /// # Errors
    /// An option that is not known, or whose value makes no sense; the message says what to do.
    pub(crate) fn read<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let mut options = Self {
            fuse: Options::default(),
            keep: Keep::both(KEEP),
            log_file: None,
            cache: CacheChoice::default(),
            metrics: None,
            server: ServerChoice::default(),
            judge_given: false,
        };
        // Several users may share the mount: the kernel then checks their rights on cached names.
        options.fuse.kernel_judges = options.fuse.all_users;
        for text in texts.into_iter().map(str::trim).filter(|text| !text.is_empty()) {
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (text, None),
            };
            if options.cache.read(name, value)? || options.server.read(name, value)? {
                continue;
            }
            match value {
                Some(value) => options.read_value(name, value)?,
                None => options.read_flag(name)?,
            }
        }
        Ok(options)
    }

    /// Adapts options that were not given to the source. For a remote source the kernel does not
    /// compare ids, which need not be ours, and the kernel shows its cache to all users.
    pub(crate) fn adapt(&mut self, is_remote: bool) {
        if is_remote && !self.judge_given {
            self.fuse.kernel_judges = false;
        }
        if self.fuse.all_users && !self.fuse.kernel_judges {
            self.keep.entry = Duration::ZERO;
        }
    }

    fn read_flag(&mut self, flag: &str) -> Result<()> {
        let fuse = &mut self.fuse;
        match flag {
            "ro" => fuse.read_only = true,
            "rw" => fuse.read_only = false,
            "allow_other" => fuse.all_users = true,
            "noallow_other" => fuse.all_users = false,
            "default_permissions" | "nodefault_permissions" => {
                fuse.kernel_judges = !flag.starts_with("no");
                self.judge_given = true;
            }
            "nonempty" => fuse.hides_entries = true,
            "suid" => fuse.set_ids = true,
            "nosuid" => fuse.set_ids = false,
            "dev" => fuse.devices = true,
            "nodev" => fuse.devices = false,
            "exec" => fuse.no_execution = false,
            "noexec" => fuse.no_execution = true,
            "noac" => {
                self.keep = Keep::NOTHING;
                self.cache.set_times(0);
            }
            other if OF_FSTAB.contains(&other) || other.starts_with("x-") => {}
            other => bail!(unknown(other)),
        }
        Ok(())
    }

    fn read_value(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "actimeo" => {
                let seconds = number(name, value, KEEP_SECONDS_MAX)?;
                self.keep = Keep::both(Duration::from_secs(seconds));
                self.cache.set_times(seconds);
            }
            "threads" => {
                let most = THREADS_MAX as u64;
                self.fuse.threads = number(name, value, most)?.max(1) as usize;
            }
            "log_file" if !value.is_empty() => self.log_file = Some(std::path::absolute(value)?),
            "log_file" => bail!("-o log_file= needs the path of a file"),
            "metrics" => self.metrics = Some(mount_metrics::address(value)?),
            "comment" => {}
            other if other.starts_with("x-") => {}
            other => bail!(unknown(other)),
        }
        Ok(())
    }
}

fn unknown(option: &str) -> String {
    format!("-o {option}: this option is not known; see comity mount --help for those that are")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<MountOptions> {
        MountOptions::read(text.split(','))
    }

    #[test]
    fn the_later_of_two_options_holds() {
        let options = read("ro,rw,noexec,exec,actimeo=7,suid,nosuid").unwrap();
        assert!(!options.fuse.read_only && !options.fuse.no_execution && !options.fuse.set_ids);
        assert_eq!(options.keep, Keep::both(Duration::from_secs(7)));
        assert_eq!(read("actimeo=7,noac").unwrap().keep, Keep::NOTHING);
    }

    #[test]
    fn options_of_fstab_are_for_others() {
        assert!(read("defaults,_netdev,nofail,x-systemd.automount,x-a=b,comment=c,").is_ok());
    }

    #[test]
    fn an_option_that_would_not_be_obeyed_is_refused() {
        for bad in ["rsize=some", "sec=krb5", "atime", "Ro", "threads", "actimeo=-1", "log_file="] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let said = read("nolock").unwrap_err().to_string();
        assert!(said.contains("nolock") && said.contains("--help"), "{said}");
        let said = read("threads=many").unwrap_err().to_string();
        assert!(said.contains("threads=many") && said.contains("1024"), "{said}");
    }
}
