//! Predicted performance: one family of graphs for each plateau, and the product of their shapes.

use super::{Axis, Curve, Measured, Plateau, Point};

/// The model of a subject, which predicts workloads that were never measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    families: Vec<Family>,
}

/// The graphs of one plateau, all through its focal point.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// The plateau.
    pub plateau: Plateau,
    /// The focal vector of the plateau.
    pub focal: Point,
    /// The throughput at the focal vector, in bytes a second.
    pub throughput: f64,
    /// Throughput over each parameter, in the order of [`Axis::ALL`].
    pub curves: Vec<Curve>,
}

/// The predicted throughput of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Bytes a second.
    pub throughput: f64,
    /// The family from which it is predicted.
    pub family: usize,
    /// True if the working set lies between two plateaus, where predictions are bad.
    pub is_between: bool,
    /// The factor of each parameter, in the order of [`Axis::ALL`].
    pub factors: Vec<(Axis, f64)>,
    /// Parameters whose value lies beyond the measured ones: the end of the graph was taken.
    pub beyond: Vec<Axis>,
}

impl Family {
    /// The family of a plateau, from all measurements: the graph of a parameter goes through every
    /// point that differs from the focal point in this parameter alone. `None` if the focal point
    /// was not measured.
    #[must_use]
    pub fn of(plateau: Plateau, focal: Point, measured: &[(Point, Measured)]) -> Option<Self> {
        let (_, here) = measured.iter().find(|(point, _)| *point == focal)?;
        let curves = Axis::ALL.map(|axis| Curve::through(&focal, axis, measured)).to_vec();
        Some(Self { plateau, focal, throughput: here.throughput(), curves })
    }

    /// Returns the uncertainty of a prediction that follows from that of its graphs: half its 95 %
    /// interval, as a part. The prediction is the product of one value of each graph, divided by
    /// the focal throughput to the fourth power.
    #[must_use]
    pub fn spread(&self) -> f64 {
        let squares: f64 = self.curves.iter().map(|curve| curve.spread().powi(2)).sum();
        let mean = squares / self.curves.len() as f64;
        let others = (self.curves.len() - 1) as f64;
        (squares + others * others * mean).sqrt()
    }

    /// The graph over a parameter.
    #[must_use]
    pub fn curve(&self, axis: Axis) -> &Curve {
        &self.curves[axis as usize]
    }

    /// Returns the factor by which the value on an axis changes the throughput: `T_i(w_i) /
    /// T_i(f_i)`.
    fn factor(&self, axis: Axis, at: &Point) -> f64 {
        let curve = self.curve(axis);
        let (wanted, focal) = (curve.at(at.get(axis)), curve.at(self.focal.get(axis)));
        wanted.zip(focal).map_or(1.0, |(wanted, focal)| wanted / focal)
    }
}

impl Model {
    /// The model of some families; `None` if there are none.
    #[must_use]
    pub fn new(mut families: Vec<Family>) -> Option<Self> {
        families.sort_unstable_by(|a, b| a.plateau.low.total_cmp(&b.plateau.low));
        (!families.is_empty()).then_some(Self { families })
    }

    /// The families, smallest working sets first.
    #[must_use]
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// Predicts a workload: `T(w) = T_r(f) * prod T_r,i(w_i) / T_r,i(f_i)`, where r is the plateau
    /// of its uniqueBytes, f the focal vector there, and `T_r,i` the graph over parameter i.
    #[must_use]
    pub fn predict(&self, at: &Point) -> Prediction {
        let bytes = at.get(Axis::UniqueBytes);
        let family = self.region(bytes);
        let found = &self.families[family];
        let factors: Vec<_> =
            Axis::ALL.into_iter().map(|axis| (axis, found.factor(axis, at))).collect();
        let product: f64 = factors.iter().map(|(_, factor)| factor).product();
        let is_beyond = |axis: &Axis| !found.curve(*axis).covers(at.get(*axis));
        Prediction {
            throughput: found.throughput * product,
            family,
            is_between: self.is_between(bytes),
            factors,
            beyond: Axis::ALL.into_iter().filter(is_beyond).collect(),
        }
    }

    /// The family to which a working set belongs.
    #[must_use]
    pub fn nearest(&self, bytes: f64) -> &Family {
        &self.families[self.region(bytes)]
    }

    /// The index of the plateau to which a working set belongs; between two, the nearer one.
    fn region(&self, bytes: f64) -> usize {
        let borders = self.families.windows(2);
        let border = |pair: &[Family]| (pair[0].plateau.high * pair[1].plateau.low).sqrt();
        borders.map(border).take_while(|border| *border < bytes).count()
    }

    fn is_between(&self, bytes: f64) -> bool {
        let gap = |pair: &[Family]| pair[0].plateau.high < bytes && bytes < pair[1].plateau.low;
        self.families.windows(2).any(gap)
    }
}
