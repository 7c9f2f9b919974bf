//! `comity umount`: unmounts, and waits until the program of the mount has sent its data.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::arguments;
use crate::mount_client::FoundMount;
use crate::mount_request::MountRequest;
use crate::mount_socket;

/// Time between two requests to a program that is about to end.
const POLL: Duration = Duration::from_millis(50);

/// Time after which the command reports what it waits for.
const QUIET: Duration = Duration::from_secs(3);

/// Unmounts the file system on a directory.
///
/// # Errors
/// The reason why it cannot be unmounted, or that data was not sent, with what to do about it.
pub(crate) fn unmount(typed: &arguments::UmountCommand) -> Result<ExitCode> {
    let socket = mount_socket::folder(&typed.state)
        .map(|folder| mount_socket::path(&folder, &mount_socket::resolved(&typed.dir)));
    let mount = socket.ok().filter(|socket| socket.exists());
    let mount = mount.map(|socket| FoundMount { dir: typed.dir.clone(), socket });
    // A killed program leaves its socket; the command does not wait for it.
    let is_there = |mount: &FoundMount| mount.ask_if_there(&MountRequest::Status);
    let runs = mount.as_ref().is_some_and(|mount| !matches!(is_there(mount), Ok(None)));
    comity_fuse::unmount(&typed.dir, typed.lazy)?;
    match mount {
        Some(mount) if runs && !typed.lazy => wait_for_end(&mount)?,
        Some(mount) if !runs => _ = std::fs::remove_file(mount.socket),
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until the program has ended, which it does once all data is sent.
fn wait_for_end(mount: &FoundMount) -> Result<()> {
    let begun = Instant::now();
    let mut is_told = false;
    while let Some(status) = mount.ask_if_there(&MountRequest::Status)? {
        match status["unsent_files"].as_u64() {
            Some(0) | None => {}
            Some(files) => bail!(lost(&mount.dir, files)),
        }
        if begun.elapsed() > QUIET && !is_told && std::io::stderr().is_terminal() {
            is_told = true;
            eprintln!(
                "comity: unmounted; waiting until {} bytes are sent (interrupt this command to \
                 leave that to the program of the mount)",
                status["cache"]["dirty_bytes"]
            );
        }
        thread::sleep(POLL);
    }
    if mount.socket.exists() {
        let dir = mount.dir.display();
        bail!("{dir}: unmounted, but its program died before it had sent all data; see its log");
    }
    Ok(())
}

fn lost(dir: &Path, files: u64) -> String {
    format!(
        "{}: unmounted, but {files} files have data that could not be sent; with -o \
         dc_write=journal it is sent at the next mount, else it is lost",
        dir.display()
    )
}
