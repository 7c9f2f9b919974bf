//! A copy of pynfs with all of its tests corrected for Python 3: some mix text and bytes, or
//! integers and fractions, as Python 2 allowed, and raise TypeError before they call the server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A fault in a file of pynfs and its correction. If it is not found, it was corrected upstream.
struct Fault {
    file: &'static str,
    wrong: &'static str,
    right: &'static str,
}

const FAULTS: [Fault; 13] = [
    // RD12: the name of a machine is bytes.
    fault("nfs4.0/servertests/st_read.py", "\"whatever\"", "b\"whatever\""),
    // WRT16, WRT17: lengths are integers, and data are bytes.
    fault("nfs4.0/servertests/st_write.py", "maxread/4", "maxread//4"),
    fault("nfs4.0/servertests/st_write.py", "maxwrite/4", "maxwrite//4"),
    fault("nfs4.0/servertests/st_write.py", "+ 3)/4", "+ 3)//4"),
    fault("nfs4.0/servertests/st_write.py", "data = \"\"", "data = b\"\""),
    // LOCK18, LOCK19, LOCK21, LOCK22: owners are bytes.
    fault("nfs4.0/servertests/st_lock.py", "(\"owner", "(b\"owner"),
    fault("nfs4.0/servertests/st_lock.py", "[\"owner", "[b\"owner"),
    fault("nfs4.0/servertests/st_lock.py", "lockowner=\"", "lockowner=b\""),
    // LOOKP5, LKPP4: a path is text here and bytes there.
    fault("nfs4.0/testserver.py", "path[0] != b'/'", "path[:1] != b'/'"),
    fault("nfs4.0/testserver.py", "path[-1] == b'/'", "path[-1:] == b'/'"),
    fault("nfs4.1/testserver.py", "path[0] != b'/'", "path[0] != '/'"),
    fault("nfs4.1/testserver.py", "path[-1] == b'/'", "path[-1] == '/'"),
    fault("nfs4.1/testserver.py", "path_components(path)", "path_components(os.fsencode(path))"),
];

const fn fault(file: &'static str, wrong: &'static str, right: &'static str) -> Fault {
    Fault { file, wrong, right }
}

/// Copies pynfs, as it was built, into `folder`, and corrects the copy; returns its path.
///
/// # Errors
/// If it cannot be copied, or is not pynfs.
pub(super) fn mended(pynfs: &Path, folder: &Path) -> Result<PathBuf> {
    let copy = folder.join("pynfs");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    fs::create_dir_all(folder)?;
    let status = Command::new("cp").arg("-a").arg(pynfs).arg(&copy).status();
    ensure!(status.context("run cp")?.success(), "cannot copy {}", pynfs.display());
    for Fault { file, wrong, right } in FAULTS {
        let path = copy.join(file);
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("no pynfs in {}", pynfs.display()))?;
        fs::write(&path, mend(&text, wrong, right))?;
    }
    Ok(copy)
}

/// A file that is already correct is not changed.
fn mend(text: &str, wrong: &str, right: &str) -> String {
    let pieces: Vec<String> = text.split(right).map(|piece| piece.replace(wrong, right)).collect();
    pieces.join(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_mended_once() {
        let text = "open(\"owner1\"); open(b\"owner2\"); lock(lockowner=b\"one\", size=a/4)";
        let mended = mend(text, "(\"owner", "(b\"owner");
        assert_eq!(mended, text.replace("(\"owner1", "(b\"owner1"));
        let whole = mend("maxread//4 + maxread/4", "maxread/4", "maxread//4");
        assert_eq!(whole, "maxread//4 + maxread//4");
        assert_eq!(mend(&mended, "(\"owner", "(b\"owner"), mended);
    }
}
