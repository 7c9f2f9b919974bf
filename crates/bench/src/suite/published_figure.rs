use super::Unit;

/// A figure of an original work, shown beside ours and marked as history.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The [`Sample::metric`](super::Sample::metric) it belongs to.
    pub metric: &'static str,
    /// The [`Sample::at`](super::Sample::at) it belongs to, by name and value as text.
    pub at: &'static [(&'static str, &'static str)],
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// The system that was measured then.
    pub system: &'static str,
    /// The publication.
    pub source: &'static str,
}
