//! The search space: the values on each axis.

use super::{Axis, Point};
use crate::rng::Rng;

/// The space of workloads that is explored.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    grids: [Vec<f64>; Axis::COUNT],
}

/// The values of fractions that are measured.
const FRACTIONS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Factor between values of uniqueBytes while exploring; the graph has points between them too.
const BYTES_STEP: f64 = 2.0;

/// Factor between values of sizeMean.
const SIZE_STEP: f64 = 4.0;

/// Factor between values of processNum.
const PROCESS_STEP: f64 = 2.0;

impl Space {
    /// The space between the given ends of working sets, sizes and processes, least first;
    /// fractions are from 0 to 1.
    #[must_use]
    pub fn new(unique_bytes: (f64, f64), size_mean: (f64, f64), process_num_most: f64) -> Self {
        let grids = Axis::ALL.map(|axis| match axis {
            Axis::UniqueBytes => spaced(unique_bytes, BYTES_STEP),
            Axis::SizeMean => spaced(size_mean, SIZE_STEP),
            Axis::ReadFrac | Axis::SeqFrac => FRACTIONS.to_vec(),
            Axis::ProcessNum => spaced((1.0, process_num_most), PROCESS_STEP),
        });
        Self { grids }
    }

    /// The values at which an axis is measured.
    #[must_use]
    pub fn grid(&self, axis: Axis) -> &[f64] {
        &self.grids[axis as usize]
    }

    /// The values of the graphs of an axis: for bytes and sizes, with one more between every two.
    #[must_use]
    pub fn fine_grid(&self, axis: Axis) -> Vec<f64> {
        let grid = self.grid(axis);
        if axis.is_fraction() || axis == Axis::ProcessNum {
            return grid.to_vec();
        }
        let between = grid.windows(2).map(|pair| (pair[0] * pair[1]).sqrt().round());
        let mut fine: Vec<f64> = grid.iter().copied().chain(between).collect();
        fine.sort_unstable_by(f64::total_cmp);
        fine
    }

    /// Returns the start of the exploration: the middle of every axis, with one process.
    #[must_use]
    pub fn start(&self) -> Point {
        let middle = |axis: Axis| self.grid(axis)[self.grid(axis).len() / 2];
        Point::new(Axis::ALL.map(middle)).with(Axis::ProcessNum, 1.0)
    }

    /// Any workload between the ends: bytes and sizes evenly in their logarithms.
    pub fn draw(&self, rng: &mut Rng) -> Point {
        Point::new(Axis::ALL.map(|axis| {
            let grid = self.grid(axis);
            let (least, most) = (grid[0], grid[grid.len() - 1]);
            let between = |part: f64| (least * (most / least).powf(part)).round();
            match axis {
                Axis::ReadFrac | Axis::SeqFrac => rng.unit(),
                Axis::ProcessNum => grid[rng.below(grid.len() as u64) as usize],
                _ => between(rng.unit()),
            }
        }))
    }
}

/// Values from one end to the other, each `step` times the one before; the last step may be
/// smaller.
fn spaced((least, most): (f64, f64), step: f64) -> Vec<f64> {
    let next = |value: &f64| (*value < most).then(|| (value * step).round().min(most));
    std::iter::successors(Some(least), next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spaced_evenly_in_their_logarithms_up_to_the_end() {
        let space = Space::new((1e6, 10e6), (1024.0, 65536.0), 4.0);
        assert_eq!(space.grid(Axis::UniqueBytes), [1e6, 2e6, 4e6, 8e6, 10e6]);
        assert_eq!(space.grid(Axis::SizeMean), [1024.0, 4096.0, 16384.0, 65536.0]);
        assert_eq!(space.grid(Axis::ProcessNum), [1.0, 2.0, 4.0]);
        assert_eq!(space.fine_grid(Axis::SizeMean).len(), 7);
        assert_eq!(Space::new((5.0, 5.0), (1.0, 2.0), 1.0).grid(Axis::UniqueBytes), [5.0]);
    }

    #[test]
    fn drawn_workloads_lie_between_the_ends() {
        let space = Space::new((1e6, 1e9), (1024.0, 65536.0), 4.0);
        let mut rng = Rng::new(1);
        for _ in 0..1_000 {
            let point = space.draw(&mut rng);
            for axis in Axis::ALL {
                let grid = space.grid(axis);
                let value = point.get(axis);
                assert!(grid[0] <= value && value <= grid[grid.len() - 1], "{point}");
            }
        }
    }
}
