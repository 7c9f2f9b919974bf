//! The arguments of `comity load`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::common_arguments::{Json, StateFolderArguments};

/// See [`crate::arguments::Command::Load`].
#[derive(Debug, Subcommand)]
pub(crate) enum LoadCommand {
    /// Show what clients would gain or lose if exports moved to other servers, and move nothing
    ///
    /// The server of the state folder asks its peers for their load, and predicts for each group of
    /// exports that can move together what happens to the calls of its clients, to those of the
    /// clients that stay, and to those of the clients of the peer. A move is advised if the calls
    /// that move, or all together, get shorter by a quarter or more, and all together get no
    /// longer; `comity migrate` carries it out.
    ///
    /// Each line assumes that only this move is made: ask again after it, and a minute later, as
    /// loads are averages over a minute. A peer that does not answer within five seconds is left
    /// out.
    ///
    /// The part of the calls that an export has is known if the server runs with --metrics, or if
    /// all its exports can only move together.
    ///
    /// With --auto the command looks once a minute, and makes a move that has paid at five looks
    /// running, if nothing speaks against it and there is no doubt. Exports stay for a while where
    /// they came to, and only so many move in an hour. Both servers may run it.
    ///
    /// Exits with 0 if there is an answer, whatever it is, with 1 if no peer has answered, with 2
    /// if the arguments are wrong.
    Advise(AdviseArguments),
    /// Measure once what a disk carries, or state the speed of a line
    ///
    /// A server knows how long a disk was busy, but not how much more it could do: a disk that
    /// serves many requests at once may always be busy. This command measures how many bytes and
    /// operations the disk of a folder carries in a second, past the caches of the kernel, and
    /// records it in the state folder. The server then shows the part of it that is in use
    /// (`disk_rate`), and that counts for the bottleneck instead of the time in which the disk is
    /// busy. Measure while nothing else uses the disk, and again when the disks of the machine or
    /// their names change. Disks below a volume of LVM or a RAID still count by their busy time.
    ///
    /// With --line it records the speed of a line instead, which the kernel does not know for many
    /// virtual network interfaces: such lines have no load otherwise.
    ///
    /// A running server uses what is recorded within a minute. The file device-rates.json in the
    /// state folder can be removed at any time.
    ///
    /// Exits with 0 if all was recorded, with 1 if a disk could not be measured, with 2 if the
    /// arguments are wrong.
    Calibrate(CalibrateArguments),
}

/// See [`LoadCommand::Advise`].
#[derive(Debug, Clone, Args)]
pub(crate) struct AdviseArguments {
    /// The name of a `[[peer]]`; all peers if none is named
    #[arg(long, value_name = "PEER")]
    pub(crate) with: Vec<String>,
    /// Make the moves that pay, until the command is ended
    #[arg(long)]
    pub(crate) auto: bool,
    /// Move only if the calls that move, or all, get shorter by so many percent (with --auto)
    #[arg(long, value_name = "PERCENT", requires = "auto", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u8).range(10..=90))]
    pub(crate) least_gain: u8,
    /// Leave exports where they came to for so many minutes (with --auto)
    #[arg(long, value_name = "MINUTES", requires = "auto", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rest: u32,
    /// Make at most so many moves in an hour (with --auto)
    #[arg(long, value_name = "MOVES", requires = "auto", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) hourly: u32,
    /// Forward the calls of clients of NFSv3 for so many seconds after a move (with --auto)
    #[arg(long, value_name = "SECONDS", requires = "auto")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) proxy_for: Option<u64>,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`LoadCommand::Calibrate`].
#[derive(Debug, Clone, Args)]
pub(crate) struct CalibrateArguments {
    /// Folders whose disks are measured; a file of 1 GiB is kept in each meanwhile
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "lines")]
    pub(crate) folders: Vec<PathBuf>,
    /// The speed of a line in bits a second, by its network interface, such as eth0=1e9
    #[arg(long = "line", value_name = "INTERFACE=BITS", value_parser = line_speed)]
    pub(crate) lines: Vec<LineSpeed>,
    /// Seconds for each of the three measurements of a disk
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// A network interface and the speed of its line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LineSpeed {
    pub(crate) interface: String,
    pub(crate) bits_per_second: f64,
}

fn line_speed(text: &str) -> Result<LineSpeed, String> {
    let (interface, speed) = text.rsplit_once('=').ok_or("INTERFACE=BITS is wanted")?;
    let bits_per_second: f64 = speed.parse().map_err(|_| "a number is wanted after =")?;
    if interface.is_empty() || !(1e3..=1e13).contains(&bits_per_second) {
        return Err("an interface and 1e3 to 1e13 bits a second are wanted".to_owned());
    }
    Ok(LineSpeed { interface: interface.to_owned(), bits_per_second })
}

impl LineSpeed {
    pub(crate) fn bytes_per_second(&self) -> u64 {
        (self.bits_per_second / 8.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_interface_and_a_speed_in_bits() {
        let line = line_speed("eth0=1e9").unwrap();
        assert_eq!((line.interface.as_str(), line.bytes_per_second()), ("eth0", 125_000_000));
        for wrong in ["eth0", "eth0=", "=1e9", "eth0=-1", "eth0=NaN", "eth0=1e99", "eth0=fast"] {
            line_speed(wrong).unwrap_err();
        }
    }
}
