use std::sync::Arc;

use crate::Location;

/// The source of the rules of a client. It is separate from them, so that rules from different
/// places may be equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSource {
    /// The client's own entry.
    pub place: Location,
    /// The domain that the entry names, if it names one.
    pub domain: Option<Arc<str>>,
    /// The location of each rule of the users' map, by number.
    pub users: Arc<[Location]>,
    /// The location of each rule of the groups' map, by number.
    pub groups: Arc<[Location]>,
    /// The location of each cloak, by number.
    pub cloaks: Arc<[Location]>,
    /// The locations of the other options, by their subject.
    pub(crate) options: Arc<[(&'static str, Location)]>,
}

impl RuleSource {
    /// Makes the source of an entry without options.
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

    /// The location of the option about a subject, if it is not the default.
    pub(crate) fn option(&self, about: &str) -> Option<&Location> {
        self.options.iter().find(|(what, _)| *what == about).map(|(_, place)| place)
    }
}
