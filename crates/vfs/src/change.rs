use crate::{Attr, IdDomain};

/// The attributes of an object before and after a change. A client cache compares them to know
/// whether others have changed the object, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<S: IdDomain> {
    /// The object just before. `None` where it cannot be said that nothing else through this server
    /// came between: an honest answer, a client then drops what it has cached. Size, mtime, ctime
    /// and the change attribute are those from before; a client of NFSv3 learns no others.
    pub before: Option<Attr<S>>,
    /// The object just after.
    pub after: Option<Attr<S>>,
}

impl<S: IdDomain> Change<S> {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { before: None, after: None };

    /// Both halves converted.
    #[must_use]
    pub fn map<T: IdDomain>(self, convert: impl Fn(Attr<S>) -> Attr<T>) -> Change<T> {
        Change { before: self.before.map(&convert), after: self.after.map(&convert) }
    }
}

/// A result together with what it did to the object or directory worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed<T, S: IdDomain> {
    /// The result.
    pub value: T,
    /// The object or directory before and after.
    pub change: Change<S>,
}
