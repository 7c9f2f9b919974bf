use serde::Serialize;

/// One row as measured.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// The name of the measure.
    pub name: &'static str,
    /// The unit of the figures.
    pub unit: &'static str,
    /// The basis of the comparison: another server, or comity under other circumstances.
    pub base_name: &'static str,
    /// The figures of the base, one for each round; empty for a row with a fixed bound.
    pub base: Vec<f64>,
    /// The figures of comity, one for each round.
    pub comity: Vec<f64>,
    /// The figures of nfs-ganesha, if it was measured.
    pub ganesha: Vec<f64>,
    /// The bound that must be reached.
    pub must: Option<Bar>,
    /// The goal: the figure that the best server reaches, or would reach.
    pub best: Option<Bar>,
}

/// A figure to reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bar {
    /// At most this multiple of the base.
    TimesBase(f64),
    /// At least this multiple of the base.
    AtLeastTimesBase(f64),
    /// At most this multiple of the figure of nfs-ganesha.
    TimesGanesha(f64),
    /// At least this multiple of the figure of nfs-ganesha.
    AtLeastTimesGanesha(f64),
    /// The figure is at most this.
    AtMost(f64),
}

/// The median and the ends of some figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Spread {
    /// Returns the spread of these figures; `None` if there are none.
    #[must_use]
    pub fn of(figures: &[f64]) -> Option<Self> {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, greatest) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let even = sorted.len().is_multiple_of(2);
        let below = if even { sorted[middle - 1] } else { sorted[middle] };
        Some(Self { median: (below + sorted[middle]) / 2.0, least, greatest })
    }
}

impl Line {
    /// Comity's figures as multiples of the base's, round by round.
    #[must_use]
    pub fn ratio(&self) -> Option<Spread> {
        Spread::of(&quotients(&self.comity, &self.base))
    }

    /// Comity's figures as multiples of those of nfs-ganesha.
    #[must_use]
    pub fn to_ganesha(&self) -> Option<Spread> {
        Spread::of(&quotients(&self.comity, &self.ganesha))
    }

    /// Returns the distance from a bar: 1.0 is exactly on it, and a greater number is worse.
    /// Returns `None` if the figure to compare with was not measured.
    #[must_use]
    pub fn distance(&self, bar: Bar) -> Option<f64> {
        let ratio = self.ratio().map(|ratio| ratio.median);
        let to_ganesha = self.to_ganesha().map(|ratio| ratio.median);
        match bar {
            Bar::TimesBase(most) => ratio.map(|ratio| ratio / most),
            Bar::AtLeastTimesBase(least) => ratio.map(|ratio| least / ratio),
            Bar::TimesGanesha(most) => to_ganesha.map(|ratio| ratio / most),
            Bar::AtLeastTimesGanesha(least) => to_ganesha.map(|ratio| least / ratio),
            Bar::AtMost(most) => Spread::of(&self.comity).map(|figure| figure.median / most),
        }
    }

    /// Returns whether the row reaches its bound; `None` if that is unknown.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        self.must.and_then(|bar| self.distance(bar)).map(|distance| distance <= 1.0)
    }
}

fn quotients(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(above, below)| above / below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(comity: &[f64], base: &[f64], must: Bar) -> Line {
        Line {
            name: "row",
            unit: "us",
            base_name: "raw",
            base: base.to_vec(),
            comity: comity.to_vec(),
            ganesha: Vec::new(),
            must: Some(must),
            best: None,
        }
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let noisy = line(&[2.0, 20.0, 2.2], &[1.0, 10.0, 1.0], Bar::TimesBase(2.1));
        let ratio = noisy.ratio().unwrap();
        assert_eq!((ratio.median, ratio.least, ratio.greatest), (2.0, 2.0, 2.2));
        assert_eq!(noisy.is_met(), Some(true));
    }

    #[test]
    fn a_bar_has_a_right_side() {
        assert_eq!(line(&[3.0], &[1.0], Bar::TimesBase(2.0)).is_met(), Some(false));
        assert_eq!(line(&[3.0], &[1.0], Bar::AtLeastTimesBase(2.0)).is_met(), Some(true));
        assert_eq!(line(&[3.0], &[], Bar::AtMost(2.0)).is_met(), Some(false));
        assert_eq!(line(&[3.0], &[1.0], Bar::TimesGanesha(2.0)).is_met(), None);
    }

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        assert_eq!(Spread::of(&[4.0, 1.0, 3.0, 2.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of(&[]), None);
    }
}
