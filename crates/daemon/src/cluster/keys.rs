//! The keys of the cluster in etcd, and their values. docs/formats.md describes them.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use comity_store::etcd::KeyValue;

/// The format of these keys and their values.
pub(super) const FORMAT: &[u8] = b"/comity/format";

/// The value of [`FORMAT`].
pub(super) const FORMAT_OF_THIS_VERSION: &[u8] = b"1";

/// The digest of the key of the handles.
pub(super) const HANDLE_KEY: &[u8] = b"/comity/handle-key";

/// The key that each change of the heads, the exports and their addresses sets. Its value is
/// nothing; its revision tells heads that there is something to read.
pub(super) const CHANGES: &[u8] = b"/comity/changes";

/// The heads that have a lease; a name follows.
pub(super) const HEADS: &[u8] = b"/comity/heads/";

/// The places and keys of the heads that have a lease; a name follows.
pub(super) const ENDPOINTS: &[u8] = b"/comity/endpoints/";

/// The exports that have a head; an absolute path follows.
pub(super) const SERVED: &[u8] = b"/comity/served";

/// The runs of heads whose clients may have state of an export; an absolute path follows.
const RUNS: &[u8] = b"/comity/runs";

/// The addresses that go with exports and have a head; the address follows.
pub(super) const ADDRESSES: &[u8] = b"/comity/addresses/";

/// The properties that tell the files of an export from others; an absolute path follows.
const MARK: &[u8] = b"/comity/mark";

/// The heads that are drained; a name follows. The reasons why exports of such a head have not
/// moved yet have the path of the export after the name.
pub(super) const DRAINED: &[u8] = b"/comity/drained/";

/// The path after the prefix begins with this.
pub(super) const ROOT: &[u8] = b"/";

pub(super) fn head(name: &str) -> Vec<u8> {
    [HEADS, name.as_bytes()].concat()
}

pub(super) fn endpoint(name: &str) -> Vec<u8> {
    [ENDPOINTS, name.as_bytes()].concat()
}

pub(super) fn served(export: &Path) -> Vec<u8> {
    [SERVED, export.as_os_str().as_encoded_bytes()].concat()
}

pub(super) fn address(address: IpAddr) -> Vec<u8> {
    [ADDRESSES, address.to_string().as_bytes()].concat()
}

pub(super) fn runs(export: &Path) -> Vec<u8> {
    [RUNS, export.as_os_str().as_encoded_bytes()].concat()
}

pub(super) fn mark(export: &Path) -> Vec<u8> {
    [MARK, export.as_os_str().as_encoded_bytes()].concat()
}

pub(super) fn drained(head: &str) -> Vec<u8> {
    [DRAINED, head.as_bytes()].concat()
}

/// The reason why an export of a drained head has not moved yet.
pub(super) fn staying(head: &str, export: &Path) -> Vec<u8> {
    [DRAINED, head.as_bytes(), export.as_os_str().as_encoded_bytes()].concat()
}

/// The prefix of [`runs`] of all exports.
pub(super) fn all_runs() -> Vec<u8> {
    [RUNS, ROOT].concat()
}

/// One run of a head: the name of the head, and the number of its lease in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeadRun {
    pub(super) name: String,
    pub(super) run: String,
}

impl HeadRun {
    /// Writes it as a value.
    pub(super) fn value(&self) -> Vec<u8> {
        format!("{} {}", self.name, self.run).into_bytes()
    }

    /// Reads a value; `None` if it is malformed.
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        let (name, run) = std::str::from_utf8(value).ok()?.split_once(' ')?;
        Some(Self { name: name.to_owned(), run: run.to_owned() })
    }
}

/// Reads a key under [`SERVED`] and its value.
pub(super) fn read_served(entry: &KeyValue) -> Option<(PathBuf, HeadRun)> {
    let path = entry.key.strip_prefix(SERVED)?;
    Some((OsStr::from_bytes(path).into(), HeadRun::read(&entry.value)?))
}

/// Reads a key under [`DRAINED`]: the name of the head, and the path of an export that stays there,
/// if the key is about one. No name of a head has a slash.
pub(super) fn read_drained(entry: &KeyValue) -> Option<(String, Option<PathBuf>)> {
    let rest = entry.key.strip_prefix(DRAINED)?;
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let (name, path) = rest.split_at(end);
    let path = (!path.is_empty()).then(|| OsStr::from_bytes(path).into());
    Some((std::str::from_utf8(name).ok()?.to_owned(), path))
}

/// Reads a key under [`ADDRESSES`] and its value.
pub(super) fn read_address(entry: &KeyValue) -> Option<(IpAddr, HeadRun)> {
    let address = std::str::from_utf8(entry.key.strip_prefix(ADDRESSES)?).ok()?;
    Some((address.parse().ok()?, HeadRun::read(&entry.value)?))
}

/// Writes the runs of an export: one a line, the newest last.
pub(super) fn runs_value(runs: &[String]) -> Vec<u8> {
    runs.join("\n").into_bytes()
}

/// Reads the runs of an export.
///
/// # Errors
/// One of them is no number. Clients of that run would lose what they may reclaim.
pub(super) fn read_runs(value: &[u8]) -> Result<Vec<String>> {
    let text = String::from_utf8_lossy(value);
    let is_number = |line: &str| !line.is_empty() && line.bytes().all(|b| b.is_ascii_hexdigit());
    let malformed = text.lines().find(|line| !is_number(line));
    ensure!(
        malformed.is_none(),
        "a key under {} in etcd has {malformed:?}, which is not the number of a run",
        String::from_utf8_lossy(RUNS)
    );
    Ok(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        let run = HeadRun { name: "a.example.org".to_owned(), run: "00ff".to_owned() };
        assert_eq!(HeadRun::read(&run.value()), Some(run.clone()));
        let runs = ["00ff".to_owned(), "0100".to_owned()];
        assert_eq!(read_runs(&runs_value(&runs)).unwrap(), runs);
        let (key, value) = (served(Path::new("/srv/a b")), run.value());
        let entry = KeyValue { key, value, created: 1, changed: 1 };
        assert_eq!(read_served(&entry), Some(("/srv/a b".into(), run)));
        let entry = |key| KeyValue { key, value: Vec::new(), created: 1, changed: 1 };
        let (head, path) = ("2001:db8::1".to_owned(), Path::new("/srv/a b"));
        assert_eq!(read_drained(&entry(drained(&head))), Some((head.clone(), None)));
        let read = read_drained(&entry(staying(&head, path)));
        assert_eq!(read, Some((head, Some(path.to_owned()))));
    }

    #[test]
    fn malformed_values_are_not_used() {
        assert_eq!(HeadRun::read(b"a"), None);
        assert_eq!(HeadRun::read(b"\xff a"), None);
        assert!(read_runs(b"00\n../x").is_err() && read_runs(b"00\n\n01").is_err());
        assert!(read_runs(b"").unwrap().is_empty());
    }
}
