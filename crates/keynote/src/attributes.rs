//! The attributes of the action that a query is about (RFC 2704, section 3).

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

/// The action attribute set of a query. Values are borrowed, so that a query copies none.
///
/// It is read at each use of an attribute, and only for attributes that conditions use. An
/// implementation may note which ones, because the result depends on no others.
pub trait Attributes {
    /// The value of an attribute; `None` if it is undefined, which counts as the empty string.
    /// Names that begin with an underscore are never read.
    fn get(&self, name: &str) -> Option<&str>;
}

impl<T: Attributes + ?Sized> Attributes for &T {
    fn get(&self, name: &str) -> Option<&str> {
        (**self).get(name)
    }
}

impl<const N: usize> Attributes for [(&str, &str); N] {
    fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Attributes for Vec<(K, V)> {
    fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| known.as_ref() == name).map(|(_, value)| value.as_ref())
    }
}

impl Attributes for BTreeMap<String, String> {
    fn get(&self, name: &str) -> Option<&str> {
        self.get(name).map(String::as_str)
    }
}

impl<S: BuildHasher> Attributes for HashMap<String, String, S> {
    fn get(&self, name: &str) -> Option<&str> {
        self.get(name).map(String::as_str)
    }
}
