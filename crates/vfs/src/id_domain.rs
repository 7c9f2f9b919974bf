use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

/// The numbering that an id belongs to: the peer's ([`Wire`]) or the server's ([`Disk`]).
pub trait IdDomain: Copy + Eq + Hash + fmt::Debug + Default + Send + Sync + 'static {}

/// Ids as the peer sends them: the caller's own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Wire;

/// Ids as they are stored: the server's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Disk;

impl IdDomain for Wire {}
impl IdDomain for Disk {}

macro_rules! id {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name<S: IdDomain> {
            number: u32,
            side: PhantomData<S>,
        }

        impl<S: IdDomain> $name<S> {
            /// The id with this number on side `S`.
            #[must_use]
            pub const fn new(number: u32) -> Self {
                Self { number, side: PhantomData }
            }

            /// Its number.
            #[must_use]
            pub const fn number(self) -> u32 {
                self.number
            }

            /// The same number on the other side. Only a map of ids may call this.
            #[must_use]
            pub const fn carried_over<T: IdDomain>(self) -> $name<T> {
                $name::new(self.number)
            }
        }

        impl<S: IdDomain> fmt::Debug for $name<S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.number)
            }
        }

        impl<S: IdDomain> fmt::Display for $name<S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.number)
            }
        }
    };
}

id!(Uid, "A user's number on side `S`.");
id!(Gid, "A group's number on side `S`.");
