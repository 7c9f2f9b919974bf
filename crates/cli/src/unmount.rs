//! `comity umount`: unmounts, and waits until the program of the mount has sent its data.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::arguments;
use crate::mount_client::FoundMount;
use crate::mount_request::MountRequest;
use crate::mount_socket;
use crate::other_process::run_within;

/// Time between two requests to a program that is about to end.
const POLL: Duration = Duration::from_millis(50);

/// Time after which the command reports what it waits for.
const QUIET: Duration = Duration::from_secs(3);

/// Time for which the kernel may take to unmount: it first writes what programs have changed in
/// mapped files.
const UNMOUNT_PATIENCE: Duration = Duration::from_secs(30);

/// Time for which the server may take no data. While an export moves between servers, its clients
/// may wait for up to 5 s before the state is sent, and then for the other server's answer.
const STALL_PATIENCE: Duration = Duration::from_secs(20);

/// Unmounts the file system on a directory.
///
/// # Errors
/// The reason why it cannot be unmounted, or that data was not sent, with what to do about it.
pub(crate) fn unmount(typed: &arguments::UmountCommand) -> Result<ExitCode> {
    if typed.here {
        comity_fuse::unmount(&typed.dir, typed.lazy)?;
        return Ok(ExitCode::SUCCESS);
    }
    let socket = mount_socket::folder(&typed.state)
        .map(|folder| mount_socket::path(&folder, &mount_socket::resolved(&typed.dir)));
    let mount = socket.ok().filter(|socket| socket.exists());
    let mount = mount.map(|socket| FoundMount { dir: typed.dir.clone(), socket });
    // A killed program leaves its socket; the command does not wait for it.
    let is_there = |mount: &FoundMount| mount.ask_if_there(&MountRequest::Status);
    let runs = mount.as_ref().is_some_and(|mount| !matches!(is_there(mount), Ok(None)));
    unmount_elsewhere(typed)?;
    match mount {
        Some(mount) if runs && !typed.lazy => wait_for_end(&mount)?,
        Some(mount) if !runs => _ = std::fs::remove_file(mount.socket),
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Unmounts in another process, as the kernel may wait for the program of the mount for ever.
fn unmount_elsewhere(typed: &arguments::UmountCommand) -> Result<()> {
    let words = ["umount", "--here"].into_iter().chain(typed.lazy.then_some("--lazy"));
    let words = words.chain(["--"]).map(OsStr::new).chain([typed.dir.as_os_str()]);
    let dir = typed.dir.display();
    match run_within(words, UNMOUNT_PATIENCE)? {
        Some(_) => Ok(()),
        None => bail!(
            "{dir}: the kernel did not unmount it within {} s; the program of the mount may be \
             stopped, or its server may not answer: look at both; the unmount ends when they \
             answer, and also if you kill the program, which loses data that is not sent",
            UNMOUNT_PATIENCE.as_secs()
        ),
    }
}

/// Waits until the program has ended, which it does once all data is sent.
///
/// # Errors
/// The program does not answer, or its server has taken no data for a time.
fn wait_for_end(mount: &FoundMount) -> Result<()> {
    let begun = Instant::now();
    let mut is_told = false;
    let (mut least, mut moved) = (u64::MAX, begun);
    let ask = || mount.ask_if_there(&MountRequest::Status);
    while let Some(status) = ask().context("unmounted, but perhaps not all data is sent")? {
        match status["unsent_files"].as_u64() {
            Some(0) | None => {}
            Some(files) => bail!(lost(&mount.dir, files)),
        }
        let left = status["cache"]["dirty_bytes"].as_u64().unwrap_or(0);
        if left < least {
            (least, moved) = (left, Instant::now());
        }
        if moved.elapsed() > STALL_PATIENCE {
            bail!(stalled(&mount.dir, &status["process"], left));
        }
        if begun.elapsed() > QUIET && !is_told && std::io::stderr().is_terminal() {
            is_told = true;
            eprintln!(
                "comity: unmounted; waiting until {left} bytes are sent (interrupt this command \
                 to leave that to the program of the mount)"
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

fn stalled(dir: &Path, process: &Value, left: u64) -> String {
    let (dir, seconds) = (dir.display(), STALL_PATIENCE.as_secs());
    if left == 0 {
        return format!(
            "{dir}: unmounted, and all data is sent, but its server has not answered the program \
             of the mount (process {process}) for {seconds} s; the program ends when the server \
             answers, and you may kill it, as no data is left"
        );
    }
    format!(
        "{dir}: unmounted, but its server has taken nothing for {seconds} s, and {left} bytes are \
         not sent; the program of the mount (process {process}) goes on trying: look at the \
         server, and do not shut this machine down before that process has ended; with -o \
         dc_write=journal, data that is left is sent at the next mount"
    )
}

fn lost(dir: &Path, files: u64) -> String {
    format!(
        "{}: unmounted, but {files} files have data that could not be sent; with -o \
         dc_write=journal it is sent at the next mount, else it is lost",
        dir.display()
    )
}
