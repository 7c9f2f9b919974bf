//! Formats numbers in few columns.

use std::fmt::Write;

/// A rate: three digits, and a letter for thousands.
pub(super) fn rate(number: f64) -> String {
    scaled(number, 1000.0, ["", "k", "M", "G", "T"])
}

/// Bytes a second.
pub(super) fn bytes(number: f64) -> String {
    scaled(number, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A time in seconds; a dash if it is not known.
pub(super) fn time(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(seconds) if seconds < 1e-3 => format!("{:.0} us", seconds * 1e6),
        Some(seconds) if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.1} s"),
    }
}

/// A ratio in percent.
pub(super) fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

/// A bar of `columns` columns, filled by the ratio. Any ratio above zero is visible.
pub(super) fn bar(ratio: f64, columns: usize) -> String {
    let filled = ((ratio.clamp(0.0, 1.0) * columns as f64).round() as usize).min(columns);
    let filled = if ratio >= 0.005 { filled.max(1) } else { filled };
    "|".repeat(filled) + &".".repeat(columns - filled)
}

/// Days, hours and minutes.
pub(super) fn uptime(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes} min {} s", seconds % 60),
        (0, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

fn scaled(number: f64, step: f64, units: [&str; 5]) -> String {
    let (mut scaled, mut unit) = (number.max(0.0), 0);
    while scaled >= step * 0.9995 && unit + 1 < units.len() {
        scaled /= step;
        unit += 1;
    }
    let decimals = usize::from(scaled < 9.95 && scaled > 0.0);
    let mut text = format!("{scaled:.decimals$}");
    if !units[unit].is_empty() {
        // Writing to a string does not fail.
        let _ = write!(text, " {}", units[unit]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.4, 9.0, 12.3, 999.0, 999.6, 12_345.0, 5e9].map(rate);
        assert_eq!(shown, ["0", "0.4", "9.0", "12", "999", "1.0 k", "12 k", "5.0 G"]);
        assert_eq!([0.0, 2048.0, 1e8].map(bytes), ["0 B", "2.0 KiB", "95 MiB"]);
        let times = [None, Some(25e-6), Some(0.0042), Some(17.18)].map(time);
        assert_eq!(times, ["-", "25 us", "4.2 ms", "17.2 s"]);
        assert_eq!([59, 3_700, 200_000].map(uptime), ["0 min 59 s", "1 h 1 min", "2 d 7 h"]);
    }

    #[test]
    fn a_bar_is_as_long_as_its_ratio_and_shows_little_load() {
        assert_eq!(bar(0.5, 8), "||||....");
        assert_eq!([bar(0.0, 4), bar(0.01, 4), bar(2.0, 4)], ["....", "|...", "||||"]);
    }
}
