//! Netgroups, only from the file of netgroup(5): no directory service is used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use comity_vfs::AsServer;

use crate::limits::{FILE_BYTES_MAX, NETGROUP_DEPTH_MAX, NETGROUP_HOSTS_MAX};

/// The hosts of a netgroup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members {
    everybody: bool,
    hosts: BTreeSet<Box<str>>,
}

impl Members {
    /// Returns whether a host with these names is a member.
    #[must_use]
    pub fn contain(&self, names: &[Box<str>]) -> bool {
        self.everybody || names.iter().any(|name| self.hosts.contains(name))
    }

    /// Returns whether every host is a member: a member without a host name matches all hosts.
    #[must_use]
    pub const fn are_everybody(&self) -> bool {
        self.everybody
    }
}

/// All netgroups of the file.
#[derive(Debug, Clone, Default)]
pub struct Netgroups(BTreeMap<Box<str>, Vec<Member>>);

#[derive(Debug, Clone)]
enum Member {
    Everybody,
    Host(Box<str>),
    Group(Box<str>),
}

impl Netgroups {
    /// Reads a netgroup file; a missing file contains none.
    ///
    /// # Errors
    /// The error in words.
    pub fn read(path: &Path) -> Result<Self, String> {
        let _server = AsServer::here().map_err(|status| status.to_string())?;
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Ok(found) if found.len() > FILE_BYTES_MAX => {
                return Err(format!("over {FILE_BYTES_MAX} bytes"));
            }
            _ => {}
        }
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        Ok(Self::parse(&String::from_utf8_lossy(&text)))
    }

    /// Parses the text of a netgroup file: `NAME MEMBER...`, where a member is a netgroup's name or
    /// `(host,user,domain)`. Any other text is ignored.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut groups = BTreeMap::new();
        for line in text.replace("\\\n", " ").lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let (name, members) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            if !name.is_empty() {
                groups.entry(name.into()).or_insert_with(Vec::new).extend(members_of(members));
            }
        }
        Self(groups)
    }

    /// Returns the members of a netgroup and of those that it contains.
    ///
    /// # Errors
    /// The mistake in words: the netgroup is unknown, nested too deeply or too large.
    pub fn members(&self, name: &str) -> Result<Members, String> {
        let mut members = Members::default();
        self.collect(name, 0, &mut members, &mut BTreeSet::new())?;
        Ok(members)
    }

    fn collect<'n>(
        &'n self,
        name: &'n str,
        depth: usize,
        into: &mut Members,
        seen: &mut BTreeSet<&'n str>,
    ) -> Result<(), String> {
        if !seen.insert(name) {
            return Ok(());
        }
        let members = self.0.get(name).ok_or_else(|| format!("netgroup {name:?} is not known"))?;
        if depth > NETGROUP_DEPTH_MAX || into.hosts.len() + members.len() > NETGROUP_HOSTS_MAX {
            return Err(format!("netgroup {name:?} is too deep or too large"));
        }
        for member in members {
            match member {
                Member::Everybody => into.everybody = true,
                Member::Host(host) => {
                    into.hosts.insert(host.clone());
                }
                Member::Group(group) => self.collect(group, depth + 1, into, seen)?,
            }
        }
        Ok(())
    }
}

fn members_of(mut text: &str) -> Vec<Member> {
    let mut members = Vec::new();
    loop {
        text = text.trim_start();
        if let Some(triple) = text.strip_prefix('(') {
            let Some((inside, behind)) = triple.split_once(')') else { return members };
            members.extend(host_of(inside));
            text = behind;
        } else {
            let end = text.find(|c: char| c.is_whitespace() || c == '(').unwrap_or(text.len());
            let (group, behind) = text.split_at(end);
            if group.is_empty() {
                return members;
            }
            members.push(Member::Group(group.into()));
            text = behind;
        }
    }
}

/// An empty host matches all hosts; `-` matches none.
fn host_of(triple: &str) -> Option<Member> {
    match triple.split(',').next().unwrap_or_default().trim() {
        "" if triple.matches(',').count() == 2 => Some(Member::Everybody),
        "" | "-" => None,
        host => Some(Member::Host(host.to_ascii_lowercase().into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contain(text: &str, group: &str, name: &str) -> bool {
        Netgroups::parse(text).members(group).unwrap().contain(&[name.into()])
    }

    #[test]
    fn groups_hold_hosts_and_groups() {
        let text = "# ours\nlab (A.example.org,,) (b.example.org,-,example.org) \\\n more\n\
                    more (c,,)(-,joe,) lab\nall (,,)\nnone (-,-,)\n";
        for name in ["a.example.org", "b.example.org", "c"] {
            assert!(contain(text, "lab", name), "{name}");
        }
        assert!(!contain(text, "lab", "joe") && !contain(text, "none", "x"));
        assert!(contain(text, "all", "x"));
        assert!(Netgroups::parse(text).members("other").is_err());
        assert!(Netgroups::parse("a b").members("a").unwrap_err().contains("\"b\""));
    }

    #[test]
    fn depth_is_bounded() {
        let text: String = (0..100).map(|n| format!("g{n} g{}\n", n + 1)).collect();
        assert!(Netgroups::parse(&text).members("g0").unwrap_err().contains("too deep"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-c(),\\\\#\n -]*") {
            let groups = Netgroups::parse(&text);
            for name in ["a", "b", "c"] {
                let _ = groups.members(name);
            }
        }
    }
}
