//! The rates of disks and lines, as an administrator has measured or stated them once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use comity_load::DiskRates;
use comity_vfs::AsServer;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::state_folder::{check_private, keep};

/// The name of the file in the state folder (docs/formats.md).
const DEVICE_RATES: &str = "device-rates.json";

/// Bytes of the file that are read: it has some hundred for each device.
const BYTES_MAX: u64 = 1 << 16;

/// Returns whether a server samples a disk: loop devices and RAM disks are stored on other disks or
/// in memory.
#[must_use]
pub fn is_sampled_disk(name: &str) -> bool {
    !["loop", "ram", "zram"].iter().any(|kind| name.starts_with(kind))
}

/// The most that the devices of a machine carry, by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceRates {
    /// Disks, as they were measured.
    pub disks: BTreeMap<String, RecordedDisk>,
    /// Bytes a second that a line carries in each direction, by network interface.
    pub lines: BTreeMap<String, u64>,
}

/// The most that a disk carries in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedDisk {
    /// Bytes read in sequence.
    pub read_bytes: u64,
    /// Bytes written in sequence.
    pub written_bytes: u64,
    /// Operations at random places.
    pub operations: u64,
}

impl DeviceRates {
    /// Reads the rates that are recorded in a state folder; there are none if the file is missing.
    ///
    /// # Errors
    /// The file cannot be read, or has another form.
    pub fn read(_: &AsServer, folder: &Path) -> Result<Self> {
        let path = folder.join(DEVICE_RATES);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        Self::parse(file)
            .with_context(|| format!("{}: remove it, and measure again", path.display()))
    }

    fn parse(file: File) -> Result<Self> {
        let mut text = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut text)?;
        let rates: Self = serde_json::from_slice(&text)?;
        let of_disk = |disk: &RecordedDisk| [disk.read_bytes, disk.written_bytes, disk.operations];
        let all = rates.disks.values().flat_map(of_disk).chain(rates.lines.values().copied());
        ensure!(all.min() != Some(0), "a rate of 0 makes no sense");
        Ok(rates)
    }

    /// Changes the rates that are recorded in a state folder, on stable storage, and returns all of
    /// them. Another change of them waits meanwhile.
    ///
    /// # Errors
    /// There is no such folder, it cannot be written, others may change it, or what it has cannot
    /// be read.
    pub fn change(
        server: &AsServer,
        folder: &Path,
        change: impl FnOnce(&mut Self),
    ) -> Result<Self> {
        let opened = File::open(folder).with_context(|| {
            let shown = folder.display();
            format!("there is no state folder {shown}: start the server once, or give --state-dir")
        })?;
        check_private(server, folder)?;
        flock(&opened, FlockOperation::LockExclusive)?;
        let mut rates = Self::read(server, folder)?;
        change(&mut rates);
        let mut text = serde_json::to_vec_pretty(&rates)?;
        text.push(b'\n');
        keep(server, (folder, DEVICE_RATES), &text)?;
        Ok(rates)
    }

    /// Returns the rates of a disk, if they were measured.
    pub(crate) fn disk(&self, name: &str) -> Option<DiskRates> {
        let RecordedDisk { read_bytes, written_bytes, operations } = *self.disks.get(name)?;
        Some(DiskRates { read_bytes, written_bytes, operations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates() -> DeviceRates {
        let disk = RecordedDisk { read_bytes: 3, written_bytes: 2, operations: 1 };
        DeviceRates {
            disks: [("sda".to_owned(), disk)].into(),
            lines: [("eth0".to_owned(), 125_000_000)].into(),
        }
    }

    #[test]
    fn recorded_rates_are_read_again() {
        let (folder, server) = (tempfile::tempdir().unwrap(), AsServer::here().unwrap());
        let read = || DeviceRates::read(&server, folder.path()).unwrap();
        assert_eq!(read(), DeviceRates::default());
        let made = DeviceRates::change(&server, folder.path(), |all| *all = rates()).unwrap();
        assert_eq!((read(), made), (rates(), rates()));
        assert_eq!(read().disk("sda").unwrap().operations, 1);
        assert_eq!(read().disk("sdb"), None);
    }

    #[test]
    fn a_file_of_another_form_is_an_error_that_says_what_to_do() {
        let (folder, server) = (tempfile::tempdir().unwrap(), AsServer::here().unwrap());
        let long = format!("{{{}}}", " ".repeat(1 << 16));
        for text in [
            "",
            "{",
            "7",
            "{\"lines\":{\"eth0\":-1}}",
            "{\"lines\":{\"eth0\":0}}",
            "{\"tapes\":{}}",
            &long,
        ] {
            std::fs::write(folder.path().join(DEVICE_RATES), text).unwrap();
            let error = DeviceRates::read(&server, folder.path()).unwrap_err().to_string();
            assert!(error.ends_with("remove it, and measure again"), "{error}");
        }
    }
}
