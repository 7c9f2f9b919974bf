//! Formats numbers with three significant digits and a unit.

use crate::suite::{Place, Unit};

/// Three significant digits, thousands apart: `0.0123`, `4.56`, `78.9`, `1,230`.
#[must_use]
pub fn plain(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value.is_finite() { "0".to_owned() } else { value.to_string() };
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    if digits > 0 {
        let text = format!("{value:.*}", digits.min(12) as usize);
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let power = 10_f64.powi(-digits);
    grouped((value / power).round() * power)
}

/// A whole number with commas between thousands.
#[must_use]
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes by powers of 1,024, as `64 MiB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    stepped(value, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Bytes a second by powers of 1,000, as `1.25 GB/s`.
#[must_use]
pub fn bytes_per_second(value: f64) -> String {
    stepped(value, 1000.0, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"])
}

/// Formats a number with its unit, in the multiple of the unit that reads best.
#[must_use]
pub fn of_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::OperationsPerSecond => format!("{} /s", plain(value)),
        Unit::BytesPerSecond => bytes_per_second(value),
        Unit::Seconds => seconds(value),
        Unit::Nanoseconds => seconds(value / 1e9),
        Unit::Count => plain(value),
    }
}

/// Formats a number of a unit.
#[must_use]
pub fn formatter(unit: Unit) -> fn(f64) -> String {
    match unit {
        Unit::OperationsPerSecond => |value| of_unit(value, Unit::OperationsPerSecond),
        Unit::BytesPerSecond => bytes_per_second,
        Unit::Seconds => seconds,
        Unit::Nanoseconds => |value| seconds(value / 1e9),
        Unit::Count => plain,
    }
}

/// Seconds, as `12.3 us`, `4.5 ms`, `90 s`.
#[must_use]
pub fn seconds(value: f64) -> String {
    match value.abs() {
        0.0 => "0 s".to_owned(),
        small if small < 1e-6 => format!("{} ns", plain(value * 1e9)),
        small if small < 1e-3 => format!("{} us", plain(value * 1e6)),
        small if small < 1.0 => format!("{} ms", plain(value * 1e3)),
        _ => format!("{} s", plain(value)),
    }
}

/// A fraction as percent, to a tenth below ten.
#[must_use]
pub fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{} %", grouped(percent)) }
}

/// Half an interval, as a percentage of its mean.
#[must_use]
pub fn spread(part: f64) -> String {
    format!("\u{b1}{}", percent(part))
}

/// A coordinate of a sample.
#[must_use]
pub fn place(place: &Place) -> String {
    match place {
        Place::Number(number) => plain(*number),
        Place::Word(word) => word.clone(),
    }
}

fn stepped(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value.abs() >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    format!("{} {}", plain(value), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        let table = [
            (0.0, "0"),
            (0.012_345, "0.0123"),
            (1.0, "1"),
            (4.560_1, "4.56"),
            (99.96, "100"),
            (1_234.0, "1,230"),
            (1_234_567.0, "1,230,000"),
            (-45.67, "-45.7"),
        ];
        for (value, wanted) in table {
            assert_eq!(plain(value), wanted, "{value}");
        }
    }

    #[test]
    fn units_are_those_that_read_best() {
        assert_eq!(bytes(65_536.0), "64 KiB");
        assert_eq!(bytes_per_second(1.25e9), "1.25 GB/s");
        assert_eq!(bytes_per_second(999.9), "1 kB/s");
        assert_eq!(seconds(0.000_012_3), "12.3 us");
        assert_eq!(seconds(90.0), "90 s");
        assert_eq!(of_unit(4_500_000.0, Unit::Nanoseconds), "4.5 ms");
        assert_eq!(of_unit(45_522.0, Unit::OperationsPerSecond), "45,500 /s");
    }
}
