//! Compliance values: names in an order (RFC 2704, section 5.1.2), or sets of rights.

use std::borrow::Cow;

use crate::rights::Rights;

/// Compliance values and the operations on them.
pub(super) trait Scale {
    type Value: Copy + PartialEq;

    /// The lowest value, `_MIN_TRUST`.
    fn none(&self) -> Self::Value;

    /// The highest value, `_MAX_TRUST`.
    fn all(&self) -> Self::Value;

    /// The value with a name; `None` if there is none.
    fn named(&self, name: &str) -> Option<Self::Value>;

    /// The lowest value that is at least both.
    fn either(&self, one: Self::Value, other: Self::Value) -> Self::Value;

    /// The highest value that is at most both.
    fn both(&self, one: Self::Value, other: Self::Value) -> Self::Value;

    /// The highest value that this many of the values reach.
    fn of_at_least(&self, count: u32, values: &[Self::Value]) -> Self::Value;

    /// The attributes `_MIN_TRUST`, `_MAX_TRUST` and `_VALUES`.
    fn attribute(&self, name: &str) -> Option<Cow<'static, str>>;
}

/// Sets of rights: union over several assertions, intersection along a chain.
pub(super) struct RightsScale;

impl Scale for RightsScale {
    type Value = Rights;

    fn none(&self) -> Rights {
        Rights::NONE
    }

    fn all(&self) -> Rights {
        Rights::ALL
    }

    fn named(&self, name: &str) -> Option<Rights> {
        name.parse().ok()
    }

    fn either(&self, one: Rights, other: Rights) -> Rights {
        one.union(other)
    }

    fn both(&self, one: Rights, other: Rights) -> Rights {
        one.intersection(other)
    }

    fn of_at_least(&self, count: u32, sets: &[Rights]) -> Rights {
        Rights::of_at_least(count, sets)
    }

    fn attribute(&self, name: &str) -> Option<Cow<'static, str>> {
        match name {
            "_MIN_TRUST" => Some("none".into()),
            "_MAX_TRUST" => Some("rwxcda".into()),
            "_VALUES" => Some("none,r,w,x,c,d,a".into()),
            _ => None,
        }
    }
}

/// The ordered compliance values of a query, as RFC 2704 has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedValues<'a> {
    names: &'a [&'a str],
}

impl<'a> OrderedValues<'a> {
    /// Takes values in ascending order; `None` if there are none.
    #[must_use]
    pub const fn new(names: &'a [&'a str]) -> Option<Self> {
        if names.is_empty() { None } else { Some(Self { names }) }
    }

    /// The name of the value at this position, which is 0 for `_MIN_TRUST`.
    #[must_use]
    pub fn name(&self, value: usize) -> &'a str {
        self.names.get(value).copied().unwrap_or_default()
    }
}

impl Scale for OrderedValues<'_> {
    type Value = usize;

    fn none(&self) -> usize {
        0
    }

    fn all(&self) -> usize {
        self.names.len() - 1
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| *known == name)
    }

    fn either(&self, one: usize, other: usize) -> usize {
        one.max(other)
    }

    fn both(&self, one: usize, other: usize) -> usize {
        one.min(other)
    }

    fn of_at_least(&self, count: u32, values: &[usize]) -> usize {
        let mut ordered = values.to_vec();
        ordered.sort_unstable_by(|one, other| other.cmp(one));
        let place = (count as usize).checked_sub(1);
        place.and_then(|place| ordered.get(place)).copied().unwrap_or_default()
    }

    fn attribute(&self, name: &str) -> Option<Cow<'static, str>> {
        match name {
            "_MIN_TRUST" => Some(self.name(0).to_owned().into()),
            "_MAX_TRUST" => Some(self.name(self.all()).to_owned().into()),
            "_VALUES" => Some(self.names.join(",").into()),
            _ => None,
        }
    }
}
