use std::fmt;

use comity_cloak::{Cloak, Entry, Owned};
use comity_credential::Flavor;
use comity_idmap::{Ids, MapDefault, Rule, Squash};

use crate::{Channels, DirectoryDelegations};

/// The rules under which a client meets an export: everything exports(5) says behind a client's
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Nothing may be changed (`ro`).
    pub read_only: bool,
    /// Changes of names and attributes are on stable storage before they are answered (`sync`).
    /// COMMIT and stable writes always are.
    pub sync: bool,
    /// Calls must come from a port below 1024 (`secure`).
    pub secure: bool,
    /// The ids under which callers act and by which they see owners (`root_squash`, `anonuid`,
    /// `range_map_uid` and the like).
    pub ids: Ids,
    /// The rules that hide files (`cloak_uid`, `cloak_gid`).
    pub cloak: Cloak,
    /// Clients are kept from serving one user's listing to another out of their caches: every reply
    /// shows a directory as changed.
    pub no_client_cache: bool,
    /// The flavors that callers may use, preferred first (`sec`).
    pub flavors: Vec<Flavor>,
    /// The weight of a key that a caller proved (`sec=key`).
    pub key_use: KeyUse,
    /// The channels by which calls may come (`xprtsec`).
    pub channels: Channels,
    /// True if there is READDIRPLUS (not with `nordirplus`).
    pub readdirplus: bool,
    /// NFSv4 takes no name that is not UTF-8 (`utf8_names`).
    pub utf8_names: bool,
    /// Delegations of directories (`dir_delegations`).
    pub dir_delegations: DirectoryDelegations,
}

/// The weight of a key that a caller has proved by TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyUse {
    /// A key that is bound to an account makes the caller that user. Another key makes no
    /// difference: the caller is who it says.
    #[default]
    AccountsOnly,
    /// The same, but a key that credentials were submitted for acts by these (`sec=sys:key`).
    Preferred,
    /// Only callers with a key are let in: as the user of an account, or by what was granted to
    /// the key (`sec=key`).
    Only,
}

impl Default for Rules {
    /// exports(5) without options, which is the careful choice throughout.
    fn default() -> Self {
        Self {
            read_only: true,
            sync: true,
            secure: true,
            ids: Ids::default(),
            cloak: Cloak::new(&[]).0,
            no_client_cache: false,
            flavors: vec![Flavor::SYS],
            key_use: KeyUse::AccountsOnly,
            channels: Channels::ALL,
            readdirplus: true,
            utf8_names: false,
            dir_delegations: DirectoryDelegations::default(),
        }
    }
}

impl Rules {
    /// Returns whether a call may come from this port.
    pub(crate) const fn take_port(&self, port: u16) -> bool {
        !self.secure || port < 1024
    }
}

/// All of them spelled out, the defaults too, separated by commas.
impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let either = |yes, name, other| if yes { name } else { other };
        let squash = match self.ids.squash {
            Squash::None => "no_root_squash,no_all_squash",
            Squash::Root => "root_squash,no_all_squash",
            Squash::All => "root_squash,all_squash",
        };
        let access = either(self.read_only, "ro", "rw");
        let sync = either(self.sync, "sync", "async");
        let secure = either(self.secure, "secure", "insecure");
        write!(f, "{access},{sync},{secure},{squash}")?;
        write!(f, ",anonuid={},anongid={}", self.ids.anonymous.uid, self.ids.anonymous.gid)?;
        let names =
            self.flavors.iter().map(|flavor| either(*flavor == Flavor::NONE, "none", "sys"));
        let key = (self.key_use != KeyUse::AccountsOnly).then_some("key");
        let names = names.filter(|_| self.key_use != KeyUse::Only).chain(key);
        for (at, name) in names.enumerate() {
            let sign = if at == 0 { ",sec=" } else { ":" };
            write!(f, "{sign}{name}")?;
        }
        if self.channels != Channels::ALL {
            write!(f, ",xprtsec={}", self.channels)?;
        }
        f.write_str(if self.readdirplus { "" } else { ",nordirplus" })?;
        maps(self, f)?;
        self.cloak.entries().iter().try_for_each(|Entry { owned, ids, mask }| {
            let name = if *owned == Owned::ByUser { "cloak_uid" } else { "cloak_gid" };
            write!(f, ",{name}={ids}:{mask}")
        })?;
        f.write_str(if self.no_client_cache { ",no_client_cache" } else { "" })?;
        f.write_str(if self.utf8_names { ",utf8_names" } else { "" })?;
        match self.dir_delegations {
            all if all == DirectoryDelegations::default() => Ok(()),
            all => write!(f, ",dir_delegations={all}"),
        }
    }
}

/// Writes the options of id maps, if there are any.
fn maps(rules: &Rules, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (users, groups) = (rules.ids.users.rules(), rules.ids.groups.rules());
    let rules_of = |f: &mut fmt::Formatter<'_>, name: &str, rules: &[Rule]| {
        rules.iter().try_for_each(|rule| write!(f, ",{name}={rule}"))
    };
    rules_of(f, "range_map_uid", users)?;
    rules_of(f, "range_map_gid", groups)?;
    f.write_str(match rules.ids.default {
        MapDefault::Squash if users.is_empty() && groups.is_empty() => "",
        MapDefault::Squash => ",map_default=squash",
        MapDefault::Pass => ",map_default=pass",
        MapDefault::Deny => ",map_default=deny",
    })
}
