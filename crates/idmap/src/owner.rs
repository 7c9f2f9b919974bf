//! Owner strings of NFSv4 (RFC 8881, 5.9): `alice@example.org`, or a decimal number. Their ids are
//! those of the client; the maps convert them to those on disk.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use comity_vfs::{Gid, Uid, Wire};

use crate::Unmapped;
use crate::squash::NO_ID;

/// The names of one domain's users and groups. Cloning is cheap. By default there are no names, and
/// owner strings are numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners(Option<Arc<Tables>>);

#[derive(Debug, PartialEq, Eq)]
struct Tables {
    domain: Box<str>,
    users: Names,
    groups: Names,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Names {
    /// The names with their domain, as in owner strings.
    by_id: HashMap<u32, Box<str>>,
    by_name: HashMap<Box<str>, u32>,
}

/// The owner string of a user or group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// A name with its domain.
    Named(&'a str),
    /// A number in decimal.
    Number(u32),
}

/// Collects names. The first name of an id is the one that replies use.
#[derive(Debug)]
pub struct OwnersBuilder {
    domain: Box<str>,
    users: Names,
    groups: Names,
}

/// The reason why a domain, name or id is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A domain.
    #[error("is no domain: letters, digits, - and . are expected, as in example.org")]
    Domain,
    /// A name.
    #[error("is no name: no number, no blanks, and none of @ : / are expected")]
    Name,
    /// An id.
    #[error("is nobody's number")]
    Id,
    /// Another id has the name.
    #[error("is the name of {0}, too")]
    Twice(u32),
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl Owners {
    /// The owner string of a user.
    #[must_use]
    #[inline]
    pub fn user_out(&self, uid: Uid<Wire>) -> Owner<'_> {
        said(self.0.as_deref().map(|tables| &tables.users), uid.number())
    }

    /// The owner string of a group.
    #[must_use]
    #[inline]
    pub fn group_out(&self, gid: Gid<Wire>) -> Owner<'_> {
        said(self.0.as_deref().map(|tables| &tables.groups), gid.number())
    }

    /// The user of an owner string: a decimal number without leading zeros, or a name of this
    /// domain.
    ///
    /// # Errors
    /// [`Unmapped`] for everything else.
    pub fn user_in(&self, text: &[u8]) -> Result<Uid<Wire>, Unmapped> {
        self.meant(|tables| &tables.users, text).map(Uid::new)
    }

    /// The group of an owner string.
    ///
    /// # Errors
    /// [`Unmapped`].
    pub fn group_in(&self, text: &[u8]) -> Result<Gid<Wire>, Unmapped> {
        self.meant(|tables| &tables.groups, text).map(Gid::new)
    }

    /// All users with names, by uid.
    #[must_use]
    pub fn users(&self) -> Vec<(u32, &str)> {
        self.0.as_deref().map(|tables| tables.users.sorted()).unwrap_or_default()
    }

    /// All groups with names, by gid.
    #[must_use]
    pub fn groups(&self) -> Vec<(u32, &str)> {
        self.0.as_deref().map(|tables| tables.groups.sorted()).unwrap_or_default()
    }

    fn meant(&self, names: impl Fn(&Tables) -> &Names, text: &[u8]) -> Result<u32, Unmapped> {
        let text = std::str::from_utf8(text).map_err(|_| Unmapped)?;
        let Some((name, domain)) = text.rsplit_once('@') else {
            return number(text).ok_or(Unmapped);
        };
        let tables = self.0.as_deref().filter(|own| own.domain.eq_ignore_ascii_case(domain));
        tables.and_then(|own| names(own).by_name.get(name)).copied().ok_or(Unmapped)
    }
}

impl OwnersBuilder {
    /// Makes a table for `domain` without names.
    ///
    /// # Errors
    /// [`NameError::Domain`].
    pub fn new(domain: &str) -> Result<Self, NameError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        if domain.is_empty() || !domain.bytes().all(plain) {
            return Err(NameError::Domain);
        }
        Ok(Self { domain: domain.into(), users: Names::default(), groups: Names::default() })
    }

    /// Adds a name of a user; returns the earlier name that replies use for this user, if there is
    /// one.
    ///
    /// # Errors
    /// [`NameError`]; nothing is then added.
    pub fn add_user(&mut self, name: &str, uid: Uid<Wire>) -> Result<Option<&str>, NameError> {
        self.users.add(&self.domain, name, uid.number())
    }

    /// Adds a name of a group, as [`Self::add_user`] does for a user.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn add_group(&mut self, name: &str, gid: Gid<Wire>) -> Result<Option<&str>, NameError> {
        self.groups.add(&self.domain, name, gid.number())
    }

    /// The finished names.
    #[must_use]
    pub fn build(self) -> Owners {
        let Self { domain, users, groups } = self;
        Owners(Some(Arc::new(Tables { domain, users, groups })))
    }
}

impl Names {
    fn add(&mut self, domain: &str, name: &str, id: u32) -> Result<Option<&str>, NameError> {
        let plain = |c: char| !c.is_control() && !c.is_whitespace() && !"@:/".contains(c);
        if name.is_empty() || !name.chars().all(plain) || name.parse::<u64>().is_ok() {
            return Err(NameError::Name);
        }
        if id == NO_ID {
            return Err(NameError::Id);
        }
        match self.by_name.entry(name.into()) {
            Entry::Occupied(other) if *other.get() != id => {
                return Err(NameError::Twice(*other.get()));
            }
            Entry::Occupied(_) => return Ok(None),
            Entry::Vacant(free) => free.insert(id),
        };
        match self.by_id.entry(id) {
            Entry::Occupied(first) => Ok(Some(first.into_mut())),
            Entry::Vacant(free) => {
                free.insert(format!("{name}@{domain}").into());
                Ok(None)
            }
        }
    }

    fn sorted(&self) -> Vec<(u32, &str)> {
        let mut all: Vec<_> = self.by_id.iter().map(|(id, said)| (*id, &**said)).collect();
        all.sort_unstable();
        all
    }
}

fn said(names: Option<&Names>, id: u32) -> Owner<'_> {
    let name = names.and_then(|names| names.by_id.get(&id));
    name.map_or(Owner::Number(id), |text| Owner::Named(text))
}

/// Parses a number. Each number has only one form, so that two strings never denote one user.
fn number(text: &str) -> Option<u32> {
    let is_plain = text == "0" || matches!(text.as_bytes().first(), Some(b'1'..=b'9'));
    text.parse().ok().filter(|number| is_plain && *number != NO_ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn site(users: &[(&str, u32)]) -> Owners {
        let mut builder = OwnersBuilder::new("site-a.example").unwrap();
        for (name, uid) in users {
            builder.add_user(name, Uid::new(*uid)).unwrap();
        }
        builder.build()
    }

    fn meant(owners: &Owners, text: &str) -> Option<u32> {
        owners.user_in(text.as_bytes()).ok().map(Uid::number)
    }

    #[test]
    fn without_names_everybody_is_a_number() {
        let owners = Owners::default();
        assert_eq!(owners.user_out(Uid::new(1000)).to_string(), "1000");
        assert_eq!(meant(&owners, "1000"), Some(1000));
        assert_eq!(meant(&owners, "alice@site-a.example"), None);
    }

    #[test]
    fn names_are_written_and_read_only_with_their_domain() {
        let owners = site(&[("alice", 1000)]);
        assert_eq!(owners.user_out(Uid::new(1000)), Owner::Named("alice@site-a.example"));
        assert_eq!(owners.user_out(Uid::new(1001)), Owner::Number(1001));
        assert_eq!(owners.group_out(Gid::new(1000)), Owner::Number(1000), "no group is named");
        assert_eq!(meant(&owners, "alice@SITE-A.example"), Some(1000), "domains have no case");
        for other in [
            "alice",
            "Alice@site-a.example",
            "alice@site-b.example",
            "alice@",
            "@",
            "",
            "@site-a.example",
            "1000@site-a.example",
            "alice@site-a.example@site-a.example",
        ] {
            assert_eq!(meant(&owners, other), None, "{other}");
        }
        assert!(owners.user_in(b"\xff@site-a.example").is_err());
    }

    #[test]
    fn groups_have_names_of_their_own() {
        let mut builder = OwnersBuilder::new("a").unwrap();
        builder.add_user("alice", Uid::new(1)).unwrap();
        builder.add_group("staff", Gid::new(50)).unwrap();
        assert_eq!(builder.add_group("team", Gid::new(50)), Ok(Some("staff@a")));
        assert_eq!(builder.add_group("staff", Gid::new(51)), Err(NameError::Twice(50)));
        let owners = builder.build();
        assert_eq!(owners.group_out(Gid::new(50)), Owner::Named("staff@a"));
        assert_eq!(owners.group_in(b"team@a"), Ok(Gid::new(50)));
        assert_eq!(owners.group_in(b"70"), Ok(Gid::new(70)));
        assert_eq!(owners.group_in(b"alice@a"), Err(Unmapped));
        assert_eq!(owners.user_in(b"staff@a"), Err(Unmapped));
    }

    #[test]
    fn named_ids_are_listed_by_number_with_their_first_name() {
        let mut builder = OwnersBuilder::new("a").unwrap();
        for (name, id) in [("zoe", 3), ("bob", 7), ("ann", 7)] {
            builder.add_user(name, Uid::new(id)).unwrap();
            builder.add_group(name, Gid::new(id + 1)).unwrap();
        }
        let owners = builder.build();
        assert_eq!(owners.users(), [(3, "zoe@a"), (7, "bob@a")]);
        assert_eq!(owners.groups(), [(4, "zoe@a"), (8, "bob@a")]);
        assert!(Owners::default().users().is_empty() && Owners::default().groups().is_empty());
    }

    #[test]
    fn a_number_is_written_in_one_way_only() {
        let owners = site(&[]);
        for text in ["01", "00", "+1", "-1", " 1", "1 ", "4294967295", "4294967296"] {
            assert_eq!(meant(&owners, text), None, "{text}");
        }
        assert_eq!(
            [meant(&owners, "0"), meant(&owners, "4294967294")],
            [Some(0), Some(u32::MAX - 1)]
        );
    }

    #[test]
    fn an_ambiguous_owner_string_is_refused() {
        let mut builder = OwnersBuilder::new("a").unwrap();
        for bad in ["", "1000", "a@b", "a b", "a:b", "a/b", "a\n"] {
            assert_eq!(builder.add_user(bad, Uid::new(1)), Err(NameError::Name), "{bad}");
        }
        assert_eq!(builder.add_user("nobody", Uid::new(u32::MAX)), Err(NameError::Id));
        assert_eq!(builder.add_user("root", Uid::new(0)), Ok(None));
        assert_eq!(builder.add_user("toor", Uid::new(0)), Ok(Some("root@a")));
        assert_eq!(
            builder.add_user("root", Uid::new(0)),
            Ok(None),
            "adding the same name again changes nothing"
        );
        assert_eq!(builder.add_user("root", Uid::new(1)), Err(NameError::Twice(0)));
        assert_eq!(builder.add_group("root", Gid::new(1)), Ok(None), "groups have their own");
        let owners = builder.build();
        assert_eq!(owners.user_out(Uid::new(0)).to_string(), "root@a");
        assert_eq!(meant(&owners, "toor@a"), Some(0));
        for bad in ["", "a b", "a@b", "a_b"] {
            assert!(OwnersBuilder::new(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        /// The owner string of an id is read back as the same id, and no name denotes two users.
        #[test]
        fn an_owner_string_is_read_back_as_its_id(
            names in proptest::collection::vec(("[a-z][a-z0-9._-]{0,6}", 0..12_u32), 0..20),
            asked in 0..16_u32,
        ) {
            let mut builder = OwnersBuilder::new("site-a.example").unwrap();
            let mut taken = Vec::new();
            for (name, uid) in &names {
                if builder.add_user(name, Uid::new(*uid)).is_ok() {
                    taken.push((name, *uid));
                }
            }
            let owners = builder.build();
            let said = owners.user_out(Uid::new(asked)).to_string();
            prop_assert_eq!(meant(&owners, &said), Some(asked));
            for (name, uid) in taken {
                prop_assert_eq!(meant(&owners, &format!("{name}@site-a.example")), Some(uid));
            }
        }

        #[test]
        fn no_text_causes_a_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = site(&[("alice", 1)]).user_in(&text);
        }
    }
}
