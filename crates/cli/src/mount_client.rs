//! Sends requests to the programs that serve mounts.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use comity_server::control::{self, Answer, AskError};
use serde_json::Value;

use crate::common_arguments::State;
use crate::mount_request::MountRequest;
use crate::mount_socket;

/// Time after which a program that has closed its connection has ended.
const END_TIME: Duration = Duration::from_millis(200);

/// A mount with a control socket.
#[derive(Debug, Clone)]
pub(crate) struct FoundMount {
    /// The directory.
    pub(crate) dir: PathBuf,
    /// The socket.
    pub(crate) socket: PathBuf,
}

impl FoundMount {
    /// Finds the mount that contains a path.
    ///
    /// # Errors
    /// If there is none; the message says what to do.
    pub(crate) fn of(path: &Path, typed: &State) -> Result<Self> {
        let (folder, whole) = (mount_socket::folder(typed)?, mount_socket::resolved(path));
        for dir in whole.ancestors() {
            let socket = mount_socket::path(&folder, dir);
            if socket.exists() {
                return Ok(Self { dir: dir.to_owned(), socket });
            }
        }
        bail!(
            "{}: no mount of comity is there; `comity cache status` shows those of this user, and \
             --state-dir names the folder of their sockets if it is another one",
            path.display()
        )
    }

    /// All mounts of the user.
    ///
    /// # Errors
    /// If the user has no folder for the state of programs.
    pub(crate) fn all(typed: &State) -> Result<Vec<Self>> {
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
