//! The time for which a result is valid.

use crate::tree::{Comparison, Order};

/// The name of the attribute with the time: RFC 3339, in UTC, to the second, such as
/// `2026-11-25T10:30:00Z`. Such texts are ordered as the times are.
pub const NOW: &str = "now";

/// The time for which a result is valid, if no other attribute changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Validity {
    /// No later time changes it.
    Unlimited,
    /// It is valid while `now` is less than this string.
    Until(String),
    /// The next moment may already change it.
    Now,
}

/// Records how conditions use the time.
#[derive(Debug, Default)]
pub(super) struct NowUse {
    is_read: bool,
    /// True if the time was used in a way that allows no conclusion about later times.
    is_opaque: bool,
    /// The earliest later time with which it was compared.
    next: Option<String>,
}

impl NowUse {
    pub(super) const fn note_opaque(&mut self) {
        self.is_read = true;
        self.is_opaque = true;
    }

    /// Records a comparison of the time with a text on its right.
    pub(super) fn note(&mut self, now: &str, by: Comparison, other: &str) {
        self.is_read = true;
        match now.cmp(other) {
            std::cmp::Ordering::Greater => {}
            // At this very time, `<` and `>=` have just changed; the other comparisons change at
            // the next.
            std::cmp::Ordering::Equal => {
                let has_changed = matches!(by, Comparison::Order(Order::Less | Order::AtLeast));
                self.is_opaque |= !has_changed;
            }
            std::cmp::Ordering::Less => {
                if self.next.as_deref().is_none_or(|next| other < next) {
                    self.next = Some(other.to_owned());
                }
            }
        }
    }

    pub(super) const fn is_read(&self) -> bool {
        self.is_read
    }

    pub(super) fn validity(self) -> Validity {
        match self.next {
            _ if self.is_opaque => Validity::Now,
            Some(next) => Validity::Until(next),
            None => Validity::Unlimited,
        }
    }
}
