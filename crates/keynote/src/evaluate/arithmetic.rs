//! Numbers: integers of 32 bits and floating point numbers of single precision (RFC 2704, sections
//! 4.4 and 4.6.5).
//!
//! A result or a string's number that is out of range is an error, which makes the test false.
//! Counting it as zero could make a test true.

use crate::tree::Operator;

use super::fault::RuntimeError;

/// A type of numbers.
pub(super) trait Number: Copy {
    /// The number in a string, or zero if it is not a number. For integers a fraction is rounded
    /// down.
    fn spelled(text: &str) -> Result<Self, RuntimeError>;

    fn negated(self) -> Result<Self, RuntimeError>;

    fn combined(self, by: Operator, other: Self) -> Result<Self, RuntimeError>;
}

impl Number for i32 {
    fn spelled(text: &str) -> Result<Self, RuntimeError> {
        let Some((is_negative, whole, fraction)) = digits(text) else { return Ok(0) };
        let whole = whole.trim_start_matches('0');
        let magnitude = if whole.is_empty() { Ok(0) } else { whole.parse::<i64>() };
        let magnitude = magnitude.map_err(|_| RuntimeError::OutOfRange)?;
        let has_fraction = fraction.bytes().any(|digit| digit != b'0');
        let number = match is_negative {
            false => magnitude,
            true => magnitude.saturating_neg().saturating_sub(i64::from(has_fraction)),
        };
        number.try_into().map_err(|_| RuntimeError::OutOfRange)
    }

    fn negated(self) -> Result<Self, RuntimeError> {
        self.checked_neg().ok_or(RuntimeError::OutOfRange)
    }

    fn combined(self, by: Operator, other: Self) -> Result<Self, RuntimeError> {
        let is_division = matches!(by, Operator::Divide | Operator::Remainder);
        if is_division && other == 0 {
            return Err(RuntimeError::DivisionByZero);
        }
        let result = match by {
            Operator::Add => self.checked_add(other),
            Operator::Subtract => self.checked_sub(other),
            Operator::Multiply => self.checked_mul(other),
            Operator::Divide => self.checked_div(other),
            Operator::Remainder => self.checked_rem(other),
            Operator::Power => match u32::try_from(other) {
                Ok(exponent) => self.checked_pow(exponent),
                Err(_) => Some(reciprocal_power(self, other)?),
            },
        };
        result.ok_or(RuntimeError::OutOfRange)
    }
}

/// A negative power; its fraction is dropped.
const fn reciprocal_power(base: i32, exponent: i32) -> Result<i32, RuntimeError> {
    match base {
        0 => Err(RuntimeError::DivisionByZero),
        1 => Ok(1),
        -1 if exponent % 2 == 0 => Ok(1),
        -1 => Ok(-1),
        _ => Ok(0),
    }
}

impl Number for f32 {
    fn spelled(text: &str) -> Result<Self, RuntimeError> {
        match digits(text) {
            Some(_) => finite(text.parse().unwrap_or(0.0)),
            None => Ok(0.0),
        }
    }

    fn negated(self) -> Result<Self, RuntimeError> {
        Ok(-self)
    }

    fn combined(self, by: Operator, other: Self) -> Result<Self, RuntimeError> {
        let is_division = matches!(by, Operator::Divide | Operator::Remainder);
        if is_division && other == 0.0 {
            return Err(RuntimeError::DivisionByZero);
        }
        finite(match by {
            Operator::Add => self + other,
            Operator::Subtract => self - other,
            Operator::Multiply => self * other,
            Operator::Divide => self / other,
            Operator::Remainder => self % other,
            Operator::Power => self.powf(other),
        })
    }
}

fn finite(number: f32) -> Result<f32, RuntimeError> {
    if number.is_finite() { Ok(number) } else { Err(RuntimeError::OutOfRange) }
}

/// The sign, and the digits before and after the point, if the text is a decimal number.
fn digits(text: &str) -> Option<(bool, &str, &str)> {
    let magnitude = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = are_digits(whole) && are_digits(fraction) && magnitude.len() > 1
        || magnitude.len() == 1 && are_digits(magnitude);
    is_number.then_some((magnitude.len() < text.len(), whole, fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_as_integers_rounded_down() {
        for (text, expected) in [
            ("", 0),
            ("12", 12),
            ("0012", 12),
            ("-12", -12),
            ("1.9", 1),
            ("-1.0", -1),
            ("-1.1", -2),
            (".5", 0),
            ("5.", 5),
            (".", 0),
            ("-", 0),
            ("--1", 0),
            ("1.2.3", 0),
            ("1e3", 0),
            (" 1", 0),
            ("+1", 0),
            ("0x10", 0),
            ("2147483647.9", i32::MAX),
            ("-2147483648", i32::MIN),
        ] {
            assert_eq!(i32::spelled(text), Ok(expected), "{text}");
        }
        for text in ["2147483648", "-2147483648.5", "99999999999999999999", "-9223372036854775808"]
        {
            assert_eq!(i32::spelled(text), Err(RuntimeError::OutOfRange), "{text}");
        }
    }

    #[test]
    fn integers_out_of_range_are_errors() {
        let result = |one: i32, by, other| one.combined(by, other);
        assert_eq!(result(7, Operator::Divide, -2), Ok(-3));
        assert_eq!(result(-7, Operator::Remainder, 2), Ok(-1));
        assert_eq!(result(2, Operator::Power, 30), Ok(1 << 30));
        assert_eq!(result(0, Operator::Power, 0), Ok(1));
        assert_eq!(result(2, Operator::Power, -1), Ok(0));
        assert_eq!(result(-1, Operator::Power, -3), Ok(-1));
        assert_eq!(result(-1, Operator::Power, -2), Ok(1));
        for (one, by, other) in [
            (i32::MAX, Operator::Add, 1),
            (i32::MIN, Operator::Subtract, 1),
            (i32::MAX, Operator::Multiply, 2),
            (i32::MIN, Operator::Divide, -1),
            (i32::MIN, Operator::Remainder, -1),
            (2, Operator::Power, 31),
        ] {
            assert_eq!(result(one, by, other), Err(RuntimeError::OutOfRange), "{by}");
        }
        for by in [Operator::Divide, Operator::Remainder] {
            assert_eq!(result(1, by, 0), Err(RuntimeError::DivisionByZero));
        }
        assert_eq!(result(0, Operator::Power, -1), Err(RuntimeError::DivisionByZero));
        assert_eq!(i32::MIN.negated(), Err(RuntimeError::OutOfRange));
    }

    #[test]
    fn floats_stay_finite() {
        assert_eq!(f32::spelled("-1.25"), Ok(-1.25));
        for text in ["", "nan", "inf", "1e3", "infinity", "."] {
            assert_eq!(f32::spelled(text), Ok(0.0), "{text}");
        }
        assert_eq!(f32::spelled(&"9".repeat(40)), Err(RuntimeError::OutOfRange));
        assert_eq!(f32::MAX.combined(Operator::Multiply, 2.0), Err(RuntimeError::OutOfRange));
        assert_eq!((-1.0_f32).combined(Operator::Power, 0.5), Err(RuntimeError::OutOfRange));
        assert_eq!(1.0_f32.combined(Operator::Divide, 0.0), Err(RuntimeError::DivisionByZero));
        assert_eq!(2.0_f32.combined(Operator::Power, -1.0), Ok(0.5));
    }
}
