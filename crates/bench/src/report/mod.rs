//! What a result looks like to people.

pub mod number;
