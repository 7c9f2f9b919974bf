//! `cargo xtask image`: tries the container file without a container program.
//!
//! The steps of the file are done in an empty folder, in which its command then runs by chroot. If
//! the program is not static, its libraries are added, which the image itself would lack.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::deb::libraries;

/// Flags of `cargo xtask image`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The program for the image
    #[arg(long, value_name = "FILE", default_value = "target/debug/comity")]
    program: PathBuf,
}

/// The container file, below the checkout.
const FILE: &str = "packaging/Containerfile";

/// Longest time until the server must answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The steps of a container file without a base image.
#[derive(Debug, Default, PartialEq, Eq)]
struct Image {
    /// Source and place of each file.
    copies: Vec<(String, String)>,
    volumes: Vec<String>,
    /// The program and its first arguments.
    command: Vec<String>,
}

/// A process that is killed when it is dropped.
struct ServerProcess(Child);

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Does the steps of the container file, runs its command, and calls the server.
///
/// # Errors
/// If a step fails, or the server does not answer.
pub(crate) fn command(root: &Path, options: &Options) -> Result<ExitCode> {
    ensure!(rustix::process::geteuid().is_root(), "this needs root, to run a program by chroot");
    let image = Image::parse(&fs::read_to_string(root.join(FILE)).context(FILE)?)?;
    let program = root.join(&options.program);
    let folder = tempfile::tempdir()?;
    let libraries = image.lay_out(&program, folder.path())?;
    let server = image.run(folder.path())?;
    println!("image: a server in the empty root of {FILE} answered at port {server}");
    match libraries {
        0 => println!("image: the program is static, as the image needs it"),
        count => println!("image: the program is not static; {count} libraries were added"),
    }
    Ok(ExitCode::SUCCESS)
}

impl Image {
    /// Reads the steps of a container file.
    ///
    /// # Errors
    /// If a step is unknown.
    fn parse(text: &str) -> Result<Self> {
        let mut image = Self::default();
        for line in text.lines().map(str::trim) {
            let (step, rest) = line.split_once(' ').unwrap_or((line, ""));
            match step {
                "" | "#" | "EXPOSE" => {}
                "FROM" => ensure!(rest == "scratch", "{FILE}: based on {rest}, not on scratch"),
                "COPY" => {
                    let (source, place) = rest.split_once(' ').context("COPY without a place")?;
                    image.copies.push((source.to_owned(), place.to_owned()));
                }
                "VOLUME" => image.volumes = serde_json::from_str(rest).context("VOLUME")?,
                "ENTRYPOINT" | "CMD" => {
                    let words: Vec<String> = serde_json::from_str(rest).context("words")?;
                    image.command.extend(words);
                }
                _ => bail!("{FILE}: {step} is not known to this trial"),
            }
        }
        ensure!(!image.command.is_empty(), "{FILE}: no ENTRYPOINT");
        Ok(image)
    }

    /// Makes the image in a folder; returns the number of libraries that were added.
    fn lay_out(&self, program: &Path, folder: &Path) -> Result<usize> {
        for (source, place) in &self.copies {
            ensure!(source == "comity", "{FILE}: {source} is no file of the build");
            copy(program, &below(folder, place))?;
        }
        for volume in &self.volumes {
            fs::create_dir_all(below(folder, volume))?;
        }
        let libraries = libraries(program)?;
        for library in &libraries {
            copy(library, &below(folder, &library.display().to_string()))?;
        }
        Ok(libraries.len())
    }

    /// Runs the command at any free port; returns the port of the server.
    fn run(&self, folder: &Path) -> Result<u16> {
        let mut command = Command::new("chroot");
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").arg(folder);
        command.args(&self.command).args(["--json", "--port", "0", "--no-register"]);
        let child = command.stdout(Stdio::piped()).spawn().context("chroot")?;
        let mut server = ServerProcess(child);
        let mut line = String::new();
        let out = server.0.stdout.take().context("the server has no output")?;
        BufReader::new(out).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line).context("the server did not start")?;
        let port = said["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.context("the server names no port")?;
        answers(port).with_context(|| format!("port {port}"))?;
        Ok(port)
    }
}

fn below(folder: &Path, place: &str) -> PathBuf {
    folder.join(place.trim_start_matches('/'))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file without a folder")?)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

/// Calls NULL of NFSv3 (RFC 1813, 3.3.0), which must succeed.
fn answers(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let call = [1 << 31 | 40, 7, 0, 2, 100_003, 3, 0, 0, 0, 0, 0].map(u32::to_be_bytes);
    stream.write_all(&call.concat())?;
    let mut reply = [0; 28];
    stream.read_exact(&mut reply)?;
    let expected = [1 << 31 | 24, 7, 1, 0, 0, 0, 0].map(u32::to_be_bytes);
    ensure!(reply[..] == expected.concat(), "the reply to NULL is {reply:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_container_file_is_understood() {
        let image = Image::parse(include_str!("../../packaging/Containerfile")).unwrap();
        assert_eq!(image.copies, [("comity".to_owned(), "/usr/bin/comity".to_owned())]);
        assert_eq!(image.volumes, ["/srv/site", "/var/lib/comity"]);
        assert_eq!(image.command[..2], ["/usr/bin/comity", "serve"]);
    }

    #[test]
    fn a_step_that_is_not_known_is_an_error() {
        for text in
            ["RUN ls\nENTRYPOINT [\"x\"]", "FROM debian\nENTRYPOINT [\"x\"]", "FROM scratch"]
        {
            assert!(Image::parse(text).is_err(), "{text}");
        }
    }
}
