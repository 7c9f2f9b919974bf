use std::sync::Arc;

use comity_keynote::Rights;

use crate::Moment;
use crate::accounts::Account;

/// A decision about an operation of a key on an object.
pub(crate) struct Decision {
    /// The account by whose grants the operation is allowed; `None` if it is not.
    pub(crate) grantor: Option<Arc<Account>>,
    /// The rights by which the same grantor allows other operations, too; none if another
    /// evaluation has to tell.
    pub(crate) rights: Rights,
    /// The moment until which this holds.
    pub(crate) until: Moment,
    /// True if it is the same for each object at the same place of which no credential
    /// speaks.
    pub(crate) is_by_place: bool,
}

impl Decision {
    /// The operation is not allowed; nothing is said about others.
    pub(crate) const fn denied(until: Moment) -> Self {
        Self { grantor: None, rights: Rights::NONE, until, is_by_place: false }
    }
}
