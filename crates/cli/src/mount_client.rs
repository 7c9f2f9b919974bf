//! Sends requests to the programs that serve mounts.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result, anyhow, bail};
use comity_server::control::{self, Answer, AskError};
use serde_json::Value;

use crate::common_arguments::StateFolderArguments;
use crate::mount_request::MountRequest;
use crate::mount_socket;

/// Time after which a program that has closed its connection has ended.
const END_TIME: Duration = Duration::from_millis(200);

/// Most links on the way to a path, as in the kernel.
const LINKS_MAX: usize = 40;

/// A mount with a control socket.
#[derive(Debug, Clone)]
pub(crate) struct FoundMount {
    /// The directory.
    pub(crate) dir: PathBuf,
    /// The socket.
    pub(crate) socket: PathBuf,
}

impl FoundMount {
    /// Finds the mount that contains a path. Each mount on the way to the path is asked first,
    /// because a look at a file below it would wait for a program that hangs, for ever.
    ///
    /// # Errors
    /// If there is none, or it does not answer; the message says what to do.
    pub(crate) fn of(path: &Path, typed: &StateFolderArguments) -> Result<Self> {
        let folder = mount_socket::folder(typed)?;
        let mut walk = Walk::to(path);
        let mut passed: Vec<Self> = Vec::new();
        while let Some(dir) = walk.next() {
            let socket = mount_socket::path(&folder, &dir);
            if socket.exists() {
                let mount = Self { dir, socket };
                mount.ask(&MountRequest::Status)?;
                passed.push(mount);
            }
        }
        let contains = |mount: &Self| walk.at.starts_with(&mount.dir);
        passed.into_iter().rfind(contains).with_context(|| {
            format!(
                "{}: no mount of comity is there; `comity cache status` shows those of this user, \
                 and --state-dir names the folder of their sockets if it is another one",
                path.display()
            )
        })
    }

    /// All mounts of the user.
    ///
    /// # Errors
    /// If the user has no folder for the state of programs.
    pub(crate) fn all(typed: &StateFolderArguments) -> Result<Vec<Self>> {
        let sockets = mount_socket::all(&mount_socket::folder(typed)?).into_iter();
        Ok(sockets.map(|socket| Self { dir: socket.clone(), socket }).collect())
    }

    /// Sends a request to the program of the mount.
    ///
    /// # Errors
    /// If it does not answer, or refuses; the message says what to do.
    pub(crate) fn ask(&self, request: &MountRequest) -> Result<Value> {
        match control::ask(&self.socket, request) {
            Ok(Answer::Done(value)) => Ok(value),
            Ok(Answer::Failed(reason)) => bail!("{reason}"),
            Err(error) => Err(self.unanswered(error)),
        }
    }

    /// Sends a request like [`Self::ask`]; returns `None` if the program has ended.
    pub(crate) fn ask_if_there(&self, request: &MountRequest) -> Result<Option<Value>> {
        let mut asked = control::ask(&self.socket, request);
        if matches!(asked, Err(AskError::Broken(_) | AskError::Answer(_))) {
            // A program that ends at this moment closes the connection.
            thread::sleep(END_TIME);
            asked = control::ask(&self.socket, request);
        }
        match asked {
            Err(error) if has_ended(&error) => Ok(None),
            Ok(Answer::Done(value)) => Ok(Some(value)),
            Ok(Answer::Failed(reason)) => bail!("{reason}"),
            Err(error) => Err(self.unanswered(error)),
        }
    }

    fn unanswered(&self, error: AskError) -> anyhow::Error {
        let dir = self.dir.display();
        match error {
            error if has_ended(&error) => anyhow!(
                "{dir}: the program of this mount has ended; unmount what is left of it: comity \
                 umount {dir}"
            ),
            AskError::Silent(seconds) => anyhow!(
                "{dir}: the program of this mount did not answer within {seconds} s: it is stopped \
                 or waits for its server; look at its process, and at its log (-o log_file=)"
            ),
            AskError::Busy(seconds) => anyhow!(
                "{dir}: the program of this mount works, but did not finish within {seconds} s: \
                 its server is slow or does not answer; look at the server, and at the log of the \
                 mount (-o log_file=)"
            ),
            AskError::Absent { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                anyhow!("{dir}: it is not your mount; do it as the user who mounted it")
            }
            error => anyhow!("{dir}: {error}"),
        }
    }
}

fn has_ended(error: &AskError) -> bool {
    let AskError::Absent { source, .. } = error else { return false };
    matches!(source.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

/// The way from the root to a path, one directory after the other. Links are followed.
struct Walk {
    /// The place that was reached; it is no link.
    at: PathBuf,
    /// The parts of the path that are left, the next one last.
    left: Vec<OsString>,
    links: usize,
}

impl Walk {
    fn to(path: &Path) -> Self {
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut walk = Self { at: PathBuf::from("/"), left: Vec::new(), links: 0 };
        walk.add(&whole);
        walk
    }

    fn add(&mut self, path: &Path) {
        let parts = path.components().rev().map(|part| part.as_os_str().to_owned());
        self.left.extend(parts);
    }

    /// Takes a step; returns the directory that was reached, or `None` at the end. The directory
    /// itself is not looked at before the next step.
    fn next(&mut self) -> Option<PathBuf> {
        // Only a link has to be followed from the directory that holds it.
        if let Ok(target) = fs::read_link(&self.at)
            && self.links < LINKS_MAX
        {
            self.links += 1;
            self.at.pop();
            self.add(&target);
        }
        let part = self.left.pop()?;
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => _ = self.at.pop(),
            Some(Component::CurDir) => {}
            _ => self.at.push(part),
        }
        Some(self.at.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_walk_reaches_the_directories_that_the_kernel_would_pass() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("./a/b/..", root.join("link")).unwrap();
        symlink(root.join("link"), root.join("far")).unwrap();
        symlink("round", root.join("round")).unwrap();
        for (path, passed, end) in [
            ("a/b", vec!["a", "a/b"], "a/b"),
            ("far/b/none", vec!["far", "link", "a", "a/b", "a/b/none"], "a/b/none"),
            ("a/b/../../none/x/", vec!["a", "a/b", "none", "none/x"], "none/x"),
            ("round/x", vec!["round", "round/x"], "round/x"),
        ] {
            let mut walk = Walk::to(&root.join(path));
            let mut dirs: Vec<PathBuf> = std::iter::from_fn(|| walk.next()).collect();
            dirs.retain(|dir| *dir != root && dir.starts_with(&root));
            for dir in passed {
                assert!(dirs.contains(&root.join(dir)), "{path}: {dir} in {dirs:?}");
            }
            assert_eq!(walk.at, root.join(end), "{path}");
        }
    }
}
