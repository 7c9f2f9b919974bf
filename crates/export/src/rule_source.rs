use std::sync::Arc;

use crate::Location;

/// Where the rules of a client are written: beside them, for rules that are the same are the same
/// wherever they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSource {
    /// The client's own entry.
    pub place: Location,
    /// The domain it is of, if it is of one.
    pub domain: Option<Arc<str>>,
    /// Where each rule of the users' map is, by number.
    pub users: Arc<[Location]>,
    /// So for the groups'.
    pub groups: Arc<[Location]>,
    /// Where each cloak is, by number.
    pub cloaks: Arc<[Location]>,
    /// Where the other options are, by what they decide.
    pub(crate) options: Arc<[(&'static str, Location)]>,
}

impl RuleSource {
    /// An entry in which nothing is said.
    #[must_use]
    pub fn new(place: Location) -> Self {
        let nothing = Arc::from([]);
        Self {
            place,
            domain: None,
            users: Arc::clone(&nothing),
            groups: Arc::clone(&nothing),
            cloaks: nothing,
            options: Arc::from([]),
        }
    }

    /// Where it is said what becomes of something, if it is not the default.
    pub(crate) fn option(&self, about: &str) -> Option<&Location> {
        self.options.iter().find(|(what, _)| *what == about).map(|(_, place)| place)
    }
}
