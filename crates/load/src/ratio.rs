/// A part of a capacity: 0 is idle, 1 is full.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ratio(f64);

impl Ratio {
    /// The ratio of an idle resource.
    pub const IDLE: Self = Self(0.0);
    /// The ratio of a full resource.
    pub const FULL: Self = Self(1.0);

    /// Returns the part that `used` is of `capacity`, between 0 and 1. Without a capacity, nothing
    /// can be in use.
    #[must_use]
    pub fn of(used: f64, capacity: f64) -> Self {
        match used / capacity {
            part if part.is_finite() => Self(part.clamp(0.0, 1.0)),
            _ => Self::IDLE,
        }
    }

    /// Returns the ratio as a number from 0 to 1.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_never_outside_of_its_bounds() {
        assert_eq!(Ratio::of(1.0, 4.0).get(), 0.25);
        assert_eq!(Ratio::of(5.0, 4.0), Ratio::FULL);
        assert_eq!(Ratio::of(-1.0, 4.0), Ratio::IDLE);
        for (used, capacity) in [(1.0, 0.0), (0.0, 0.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
            assert_eq!(Ratio::of(used, capacity), Ratio::IDLE, "{used} of {capacity}");
        }
    }
}
