//! `comity load calibrate`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use comity_bench::disk_rates::{MeasuredRates, STEPS, measure};
use comity_bench::number;
use comity_daemon::{DeviceRates, RecordedDisk};
use comity_vfs::AsServer;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::block_device::disk_of;
use crate::load_arguments::{CalibrateArguments, LineSpeed};
use crate::settings::state_folder;
use crate::stdout::say;

/// Measures the disks of folders, and records what they and some lines carry.
///
/// # Errors
/// A folder is on no disk of this machine or cannot be used, a line does not exist, or the state
/// folder cannot be written.
pub(crate) fn perform(typed: &CalibrateArguments) -> Result<ExitCode> {
    let server = AsServer::here()?;
    let is_root = rustix::process::geteuid().is_root();
    let folder = state_folder(typed.state.state_dir.clone(), is_root)?;
    typed.lines.iter().try_for_each(check_line)?;
    let disks = typed.folders.iter().map(|folder| disk_of(&server, folder));
    let disks = disks.collect::<Result<Vec<String>>>()?;
    let record = |change: &dyn Fn(&mut DeviceRates)| {
        DeviceRates::change(&server, &folder, |rates| change(rates))
    };
    // A folder that cannot be written is found before the disks are measured.
    let mut rates = record(&|_| ())?;
    for (disk, at) in disks.iter().zip(&typed.folders) {
        let measured = recorded(measured(at, typed.seconds)?)?;
        rates = record(&|rates| {
            rates.disks.insert(disk.clone(), measured);
        })?;
    }
    for line in &typed.lines {
        let (name, speed) = (&line.interface, line.bytes_per_second());
        rates = record(&|rates| {
            rates.lines.insert(name.clone(), speed);
        })?;
    }
    match typed.json.json {
        true => say(json!(rates)),
        false => lines(&rates).iter().for_each(say),
    }
    Ok(ExitCode::SUCCESS)
}

fn check_line(line: &LineSpeed) -> Result<()> {
    let interface = &line.interface;
    let is_name = !interface.contains('/') && interface != "." && interface != "..";
    ensure!(
        is_name && Path::new("/sys/class/net").join(interface).is_dir(),
        "{interface}: there is no such network interface; \"ip link\" lists them"
    );
    Ok(())
}

/// Measures the disk of a folder, with a progress bar.
fn measured(folder: &Path, seconds: u64) -> Result<MeasuredRates> {
    let bar = ProgressBar::new(STEPS).with_style(style());
    bar.set_message(folder.display().to_string());
    bar.enable_steady_tick(Duration::from_secs(1));
    let mut begun = 0;
    let rates = measure(folder, Duration::from_secs(seconds), || {
        bar.set_position(begun);
        begun += 1;
    });
    bar.finish_and_clear();
    rates.with_context(|| format!("measure the disk of {}", folder.display()))
}

/// Returns whole numbers to record.
fn recorded(rates: MeasuredRates) -> Result<RecordedDisk> {
    let MeasuredRates { read_bytes, written_bytes, operations } = rates;
    let [read_bytes, written_bytes, operations] =
        [read_bytes, written_bytes, operations].map(|rate| rate as u64);
    if read_bytes.min(written_bytes).min(operations) == 0 {
        bail!("the disk did nothing in the time of the measurement: give more --seconds");
    }
    Ok(RecordedDisk { read_bytes, written_bytes, operations })
}

/// A line for each device whose rates are known.
fn lines(rates: &DeviceRates) -> Vec<String> {
    let disk = |(name, disk): (&String, &RecordedDisk)| {
        format!(
            "disk {name}: reads {}, writes {}, {} operations/s",
            number::bytes_per_second(disk.read_bytes as f64),
            number::bytes_per_second(disk.written_bytes as f64),
            number::plain(disk.operations as f64),
        )
    };
    let line = |(name, bytes): (&String, &u64)| {
        format!("line {name}: {} in each direction", number::bytes_per_second(*bytes as f64))
    };
    let all = rates.disks.iter().map(disk).chain(rates.lines.iter().map(line));
    all.chain(["recorded; a running server uses it within a minute".to_owned()]).collect()
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{bar:30} {msg}  {elapsed_precise}");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_a_line_in_the_units_of_its_kind() {
        let disk = RecordedDisk {
            read_bytes: 1_250_000_000,
            written_bytes: 80_000_000,
            operations: 52_345,
        };
        let rates = DeviceRates {
            disks: [("sda".to_owned(), disk)].into(),
            lines: [("eth0".to_owned(), 125_000_000)].into(),
        };
        assert_eq!(
            lines(&rates)[..2],
            [
                "disk sda: reads 1.25 GB/s, writes 80 MB/s, 52,300 operations/s",
                "line eth0: 125 MB/s in each direction"
            ]
        );
    }

    #[test]
    fn a_line_that_does_not_exist_is_refused() {
        for interface in ["nowhere0", "../net/lo", ".", ".."] {
            let line = LineSpeed { interface: interface.to_owned(), bits_per_second: 1e9 };
            assert!(check_line(&line).unwrap_err().to_string().contains("ip link"), "{interface}");
        }
        check_line(&LineSpeed { interface: "lo".to_owned(), bits_per_second: 1e9 }).unwrap();
    }
}
