use super::twins::Identified;

/// Counts that show that a hunt met what it looks for.
#[derive(Default)]
pub(crate) struct Tally {
    /// The number of hidden objects.
    pub(crate) hidden: usize,
    /// The number of seeds in which a documented exception occurred.
    pub(crate) excepted: u64,
    /// The number of buried directories that were looked upward from.
    pub(crate) buried: usize,
}

impl Tally {
    /// Panics if a hunt over this number of seeds has met too little. A key may see all directories
    /// above its objects, so that it has no buried directories.
    pub(crate) fn assert_rich(&self, seeds: u64, identified: Identified) {
        let Self { hidden, excepted, buried } = *self;
        assert!(hidden > 2 * seeds as usize, "{hidden} hidden objects are too few");
        if identified == Identified::ByKey {
            assert!(excepted > 0 && buried == 0);
            return;
        }
        assert!(excepted > seeds / 10, "the exceptions are never met");
        assert!(buried > seeds as usize / 4, "too few directories are below a hidden one");
    }
}
