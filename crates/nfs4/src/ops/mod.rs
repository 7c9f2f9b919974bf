//! The operations, one file each; what they have in common in 4.0, 4.1 and 4.2.

mod getfh;
mod illegal;
mod putfh;
mod putrootfh;
mod restorefh;
mod savefh;

use comity_proto::nfs4::operation;

use crate::table::{Perform, Row, Traits};

const NONE: Traits = Traits::NONE;
const HANDLE: Traits = Traits::NEEDS_HANDLE;

/// All of them, in the order of their numbers.
static OPERATIONS: [Row; 6] = [
    op(operation::GETFH, "GETFH", HANDLE, getfh::getfh),
    op(operation::PUTFH, "PUTFH", NONE, putfh::putfh),
    op(operation::PUTPUBFH, "PUTPUBFH", NONE, putrootfh::putrootfh),
    op(operation::PUTROOTFH, "PUTROOTFH", NONE, putrootfh::putrootfh),
    op(operation::RESTOREFH, "RESTOREFH", NONE, restorefh::restorefh),
    op(operation::SAVEFH, "SAVEFH", HANDLE, savefh::savefh),
];

/// What a number is that is none of an operation.
pub(crate) static ILLEGAL: Row = op(operation::ILLEGAL, "ILLEGAL", NONE, illegal::illegal);

/// The row of an operation, if the minor version has or had it.
pub(crate) fn row(number: u32, minor: u32) -> Option<&'static Row> {
    let at = OPERATIONS.binary_search_by_key(&number, |row| row.number).ok()?;
    OPERATIONS.get(at).filter(|row| row.since <= minor)
}

/// An operation of all minor versions.
const fn op(number: u32, name: &'static str, traits: Traits, perform: Perform) -> Row {
    Row { number, name, since: 0, until: 2, traits, failure_words: 0, perform }
}

impl Row {
    /// The same, if minor versions below `since` do not have it.
    const fn since(self, since: u32) -> Self {
        Self { since, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_in_the_order_of_their_numbers() {
        assert!(OPERATIONS.is_sorted_by(|one, next| one.number < next.number));
    }
}
