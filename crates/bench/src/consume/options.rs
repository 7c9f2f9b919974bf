use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use super::disk::DiskUse;
use super::duty::Duty;
use super::{datagrams, disk, memory, null_calls, processor};

/// See [`Command::Consume`](crate::command::Command::Consume).
#[derive(Debug, Args)]
pub struct ConsumeOptions {
    #[command(subcommand)]
    resource: Consumer,
    /// Part of the resource that is used, from 0 to 1
    #[arg(long, value_name = "PART", default_value = "1", value_parser = part, global = true)]
    level: f64,
    /// Seconds after which the consumer ends
    #[arg(long, value_name = "N", default_value_t = 10, global = true,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
}

/// The resources, each with its consumer.
#[derive(Debug, Subcommand)]
enum Consumer {
    /// Compute on some processors
    Cpu {
        /// Threads that compute; as many as there are processors by default
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
        threads: Option<u16>,
    },
    /// Take memory that is available, at most 0.9 of it, and use it
    Memory,
    /// Write 1 MiB after the other to a disk, past the kernel's caches
    Disk(DiskOptions),
    /// Read 4 KiB at random places of a disk, past the kernel's caches
    Seek(DiskOptions),
    /// Send datagrams over a line
    Network {
        /// Host and port to which they are sent; no program needs to receive them
        #[arg(long, value_name = "HOST:PORT")]
        to: String,
        /// Speed of the line in bits a second, such as 1e9
        #[arg(long, value_name = "N", value_parser = speed)]
        bits_per_second: f64,
    },
    /// Call the procedure NULL of an NFS server
    Rpc {
        /// Host and port of the server
        #[arg(long, value_name = "HOST:PORT")]
        server: String,
    },
}

#[derive(Debug, Args)]
struct DiskOptions {
    /// Folder on the disk, where a file of 256 MiB is kept meanwhile
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
}

/// Keeps the resource busy for the time that is asked for.
///
/// # Errors
/// The resource cannot be used.
pub fn command(options: &ConsumeOptions) -> Result<ExitCode> {
    let duty = Duty { level: options.level, time: Duration::from_secs(options.seconds) };
    match &options.resource {
        Consumer::Cpu { threads } => processor::consume(duty, threads_or_all(*threads)?)?,
        Consumer::Memory => memory::consume(duty)?,
        Consumer::Disk(disk) => disk::consume(duty, &disk.directory, DiskUse::Sequential)?,
        Consumer::Seek(disk) => disk::consume(duty, &disk.directory, DiskUse::Random)?,
        Consumer::Network { to, bits_per_second } => {
            datagrams::consume(duty, resolve(to)?, *bits_per_second).map(drop)?;
        }
        Consumer::Rpc { server } => null_calls::consume(duty, resolve(server)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn threads_or_all(threads: Option<u16>) -> Result<usize> {
    match threads {
        Some(threads) => Ok(threads.into()),
        None => Ok(std::thread::available_parallelism()?.get()),
    }
}

fn resolve(name: &str) -> Result<SocketAddr> {
    let mut found = name.to_socket_addrs().with_context(|| format!("{name}: find HOST:PORT"))?;
    found.next().with_context(|| format!("{name} has no address"))
}

fn part(text: &str) -> Result<f64, String> {
    let part: f64 = text.parse().map_err(|_| "a number is wanted".to_owned())?;
    (0.0..=1.0).contains(&part).then_some(part).ok_or_else(|| "0 to 1 is wanted".to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "a number is wanted".to_owned())?;
    let bounds = 1e3..=1e12;
    bounds.contains(&speed).then_some(speed).ok_or_else(|| "1e3 to 1e12 is wanted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_speeds_have_bounds() {
        assert_eq!(part("0.25"), Ok(0.25));
        for wrong in ["-0.1", "1.1", "NaN", "half"] {
            part(wrong).unwrap_err();
        }
        assert_eq!(speed("1e9"), Ok(1e9));
        for wrong in ["0", "inf", "1e13", "fast"] {
            speed(wrong).unwrap_err();
        }
    }
}
