use std::fmt;

use comity_cloak::{Cloak, CloakEntry, Owned};
use comity_credential::Flavor;
use comity_idmap::{Ids, MapDefault, Rule, Squash};

use crate::{Channels, DirectoryDelegations};

/// The rules for a client at an export: all options of exports(5) after the client's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// True if nothing may be changed (`ro`).
    pub read_only: bool,
    /// True if changes of names and attributes are on stable storage before the reply (`sync`).
    /// COMMIT and stable writes always are.
    pub sync: bool,
    /// True if calls must come from a port below 1024 (`secure`).
    pub secure: bool,
    /// The ids under which callers act and by which they see owners (`root_squash`, `anonuid`,
    /// `range_map_uid` and the like).
    pub ids: Ids,
    /// The rules that hide files (`cloak_uid`, `cloak_gid`).
    pub cloak: Cloak,
    /// True if every reply shows directories as changed, so that clients do not serve one user's
    /// listing to another from their caches.
    pub no_client_cache: bool,
    /// The flavors that callers may use, in order of preference (`sec`).
    pub flavors: Vec<Flavor>,
    /// The effect of a key that a caller proved (`sec=key`).
    pub key_use: KeyUse,
    /// The channels by which calls may come (`xprtsec`).
    pub channels: Channels,
    /// True if READDIRPLUS is supported (not with `nordirplus`).
    pub readdirplus: bool,
    /// True if NFSv4 refuses names that are not UTF-8 (`utf8_names`).
    pub utf8_names: bool,
    /// Delegations of directories (`dir_delegations`).
    pub dir_delegations: DirectoryDelegations,
}

/// The effect of a key that a caller has proved by TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyUse {
    /// A key that is bound to an account makes the caller that user. Another key has no effect: the
    /// ids of the credential count.
    #[default]
    AccountsOnly,
    /// As [`KeyUse::AccountsOnly`], but a key for which credentials were submitted acts by these
    /// (`sec=sys:key`).
    Preferred,
    /// Only callers with a key are admitted: as the user of an account, or by the grants of the key
    /// (`sec=key`).
    Only,
}

impl Default for Rules {
    /// The defaults of exports(5), which are the safe choice throughout.
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

/// Formats all rules, the defaults too, separated by commas.
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
        self.cloak.entries().iter().try_for_each(|CloakEntry { owned, ids, mask }| {
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
