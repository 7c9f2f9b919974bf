use super::twins::Identified;

/// The numbers that show that a hunt met what it looks for.
#[derive(Default)]
pub(crate) struct Tally {
    /// Hidden objects.
    pub(crate) hidden: usize,
    /// Seeds in which an exception was met.
    pub(crate) excepted: u64,
    /// Ways upward from below a hidden directory.
    pub(crate) buried: usize,
}

impl Tally {
    /// Checks that a hunt over so many seeds was not for nothing. A key knows all directories above
    /// what was granted to it, so it never stands below a hidden one.
    pub(crate) fn assert_rich(&self, seeds: u64, identified: Identified) {
        let Self { hidden, excepted, buried } = *self;
        assert!(hidden > 2 * seeds as usize, "{hidden} hidden objects: the hunt is for nothing");
        if identified == Identified::ByKey {
            assert!(excepted > 0 && buried == 0);
            return;
        }
        assert!(excepted > seeds / 10, "the exceptions are never met");
        assert!(buried > seeds as usize / 4, "nobody stands below a hidden directory");
    }
}
