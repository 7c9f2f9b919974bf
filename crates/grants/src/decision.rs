use std::sync::Arc;

use comity_keynote::Rights;

use crate::Moment;
use crate::accounts::Account;

/// A decision about an operation of a key on an object.
pub(crate) struct Decision {
    /// The account by whose grants the operation is allowed; `None` if it is not.
    pub(crate) grantor: Option<Arc<Account>>,
    /// The rights by which the same grantor allows other operations; none if those need another
    /// evaluation.
    pub(crate) rights: Rights,
    /// The moment until which the decision is valid.
    pub(crate) until: Moment,
    /// True if the decision is the same for every object in the same directory that no credential
    /// names.
    pub(crate) is_by_place: bool,
}

impl Decision {
    /// Makes a decision that denies the operation and says nothing about others.
    pub(crate) const fn denied(until: Moment) -> Self {
        Self { grantor: None, rights: Rights::NONE, until, is_by_place: false }
    }
}
