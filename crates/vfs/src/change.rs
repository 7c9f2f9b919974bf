use crate::{Attr, IdDomain};

/// The attributes of an object before and after a change. A client compares them with its cache to
/// find out whether others have changed the object, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<S: IdDomain> {
    /// The attributes just before the change. `None` if another change through this server may have
    /// come between; a client then drops its cache. Size, mtime, ctime and the change attribute are
    /// those from before; a client of NFSv3 learns no others.
    pub before: Option<Attr<S>>,
    /// The attributes just after the change.
    pub after: Option<Attr<S>>,
}

impl<S: IdDomain> Change<S> {
    /// Neither the attributes before nor those after are known.
    pub const UNKNOWN: Self = Self { before: None, after: None };

    /// Converts the attributes before and after.
    #[must_use]
    pub fn map<T: IdDomain>(self, convert: impl Fn(Attr<S>) -> Attr<T>) -> Change<T> {
        Change { before: self.before.map(&convert), after: self.after.map(&convert) }
    }
}

/// A result, and the change that the verb made to the object or the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed<T, S: IdDomain> {
    /// The result.
    pub value: T,
    /// The object or directory before and after.
    pub change: Change<S>,
}
