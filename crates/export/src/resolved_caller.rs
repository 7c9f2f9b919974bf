use std::net::IpAddr;
use std::sync::Arc;

use comity_credential::{AuthStat, Credential};
use comity_grants::{Account, Holder};
use comity_idmap::Caller;
use comity_keys::PublicKey;
use comity_vfs::Status;

use crate::key_identity::KeyIdentity;
use crate::{ClientCounters, Export, Refusal, Rules};

/// The rules and ids of a caller at an export, cached in its [`crate::RpcPeer`].
pub(crate) struct ResolvedCaller {
    export: Arc<Export>,
    rules: Arc<Rules>,
    client: IpAddr,
    caller: Caller,
    counters: Arc<ClientCounters>,
    fsid: u64,
    needed: NeededFeatures,
    /// The identity that its key gives it.
    identity: KeyIdentity,
    /// True if a layout is all that lets it in.
    by_layout: bool,
}

/// True if this build has range maps and cloaks. A build without them serves to measure their cost
/// for users without them.
pub const MAPS_AND_CLOAKS: bool = cfg!(feature = "maps-and-cloaks");

/// True if this build supports callers that are identified by keys. A build without them serves to
/// measure the cost for callers without a key.
pub const KEYS: bool = cfg!(feature = "keys");

/// The features that a caller's calls need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NeededFeatures {
    /// True if the cloak may hide objects from the caller.
    cloaked: bool,
    /// True if directories look changed in every reply.
    shows_new_change: bool,
    /// True if attributes are shown as they are on disk.
    plain: bool,
    /// True if only owners and groups are shown otherwise than on disk, and all else as it is.
    maps_owners_only: bool,
    /// True if an object is visible only to a caller with a right to it.
    by_right: bool,
    /// True if `cloaked` or `by_right` is.
    guarded: bool,
}

impl NeededFeatures {
    /// Returns the features that the rules need; none, if one of them is missing in this build.
    /// Nothing is hidden from the server's root.
    fn of(rules: &Rules, caller: &Caller, present: bool) -> Option<Self> {
        let mapped = !rules.ids.users.is_empty() || !rules.ids.groups.is_empty();
        let (cloaked, shows_new_change) = (!rules.cloak.is_empty(), rules.no_client_cache);
        let is_needed = mapped || cloaked || shows_new_change;
        let cloaked = cloaked && !caller.disk().is_root();
        let plain = !mapped && !shows_new_change;
        let (maps_owners_only, by_right, guarded) = (mapped && !shows_new_change, false, cloaked);
        let needed = Self { cloaked, shows_new_change, plain, maps_owners_only, by_right, guarded };
        (present || !is_needed).then_some(needed)
    }

    /// Returns the features for a caller with this identity by its key.
    const fn of_key(self, identity: &KeyIdentity) -> Self {
        // The client does not use the ids of an account for the user.
        let is_own = !identity.is_by_key();
        let (plain, maps_owners_only) = (self.plain && is_own, self.maps_owners_only && is_own);
        let by_right = matches!(identity, KeyIdentity::Holder(_) | KeyIdentity::Missing);
        Self { plain, maps_owners_only, by_right, guarded: self.cloaked || by_right, ..self }
    }
}

impl ResolvedCaller {
    /// Resolves a caller at `client` with the credential `claimed` under these rules. Its calls are
    /// counted in `counters`.
    pub(crate) fn of(
        export: &Arc<Export>,
        rules: &Arc<Rules>,
        (client, identity): (IpAddr, &KeyIdentity),
        claimed: &Credential,
        counters: &Arc<ClientCounters>,
    ) -> std::result::Result<Self, Refusal> {
        if !rules.flavors.contains(&claimed.flavor()) {
            return Err(Refusal::Denied(AuthStat::TooWeak));
        }
        let caller = caller(rules, identity, claimed)?;
        if !KEYS && identity.is_by_key() {
            return Err(Status::ServerFault.into());
        }
        let needed = NeededFeatures::of(rules, &caller, MAPS_AND_CLOAKS)
            .ok_or(Status::ServerFault)?
            .of_key(identity);
        let id = u64::from(export.id().0);
        let fsid = export.fsid() ^ (id << 32 | id);
        let (export, rules, identity) = (Arc::clone(export), Arc::clone(rules), identity.clone());
        let counters = Arc::clone(counters);
        Ok(Self {
            export,
            rules,
            client,
            caller,
            counters,
            fsid,
            needed,
            identity,
            by_layout: false,
        })
    }

    /// Resolves a caller that shows the handle of a layout: it may use the data of files, and
    /// nothing else.
    pub(crate) fn by_layout(self) -> Self {
        Self { by_layout: true, ..self }
    }

    /// Returns whether a layout is all that lets the caller in.
    #[inline]
    pub(crate) const fn is_by_layout(&self) -> bool {
        self.by_layout
    }

    /// The key that the caller has proved.
    pub(crate) fn key(&self) -> Option<&PublicKey> {
        self.identity.key()
    }

    /// The account that the caller's key is bound to.
    pub(crate) const fn account(&self) -> Option<&Arc<Account>> {
        match &self.identity {
            KeyIdentity::Account(_, account) => Some(account),
            _ => None,
        }
    }

    /// Returns the key by which the caller acts, if it has no ids of its own here: its rights to
    /// each object are decided separately.
    #[inline]
    pub(crate) fn holder(&self) -> Option<&Holder> {
        match &self.identity {
            KeyIdentity::Holder(holder) if KEYS => Some(holder),
            _ => None,
        }
    }

    pub(crate) const fn export(&self) -> &Arc<Export> {
        &self.export
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The address that the caller's calls come from.
    pub(crate) const fn client(&self) -> IpAddr {
        self.client
    }

    /// Returns the number with which file system ids are combined (exclusive or) for the caller.
    pub(crate) const fn fsid(&self) -> u64 {
        self.fsid
    }

    /// Returns whether attributes are shown as they are on disk.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        self.needed.plain
    }

    /// Returns whether objects may be hidden from the caller, because of a cloak or because it acts
    /// by a key.
    #[inline]
    pub(crate) const fn is_guarded(&self) -> bool {
        if KEYS { self.needed.guarded } else { MAPS_AND_CLOAKS && self.needed.cloaked }
    }

    /// Returns whether an object is visible to the caller only by a right to it.
    #[inline]
    pub(crate) const fn is_by_right(&self) -> bool {
        KEYS && self.needed.by_right
    }

    /// Returns whether only users and groups are shown otherwise than on disk.
    #[inline]
    pub(crate) const fn maps_owners_only(&self) -> bool {
        self.needed.maps_owners_only
    }

    /// Returns whether directories look changed in every reply.
    #[inline]
    pub(crate) const fn shows_new_change(&self) -> bool {
        MAPS_AND_CLOAKS && self.needed.shows_new_change
    }

    pub(crate) const fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn counters(&self) -> &ClientCounters {
        &self.counters
    }
}

/// Returns the ids under which a caller acts, and those by which the client knows it. A key that
/// acts by grants takes the ids of the grantor of each object; without a grant it is nobody.
fn caller(
    rules: &Rules,
    identity: &KeyIdentity,
    claimed: &Credential,
) -> std::result::Result<Caller, Refusal> {
    let wire = match claimed {
        Credential::None => None,
        Credential::Sys(cred) => Some(cred),
    };
    match (identity, wire) {
        (KeyIdentity::Account(_, account), _) => Ok(rules.ids.proved(wire, account.cred.clone())),
        (KeyIdentity::Holder(_) | KeyIdentity::Missing, _) | (_, None) => Ok(rules.ids.nobody()),
        (_, Some(cred)) => Ok(rules.ids.admit(cred).map_err(|_| Status::Acces)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cloak;
    use comity_cloak::{CloakEntry, Owned};
    use comity_idmap::{IdMapBuilder, Ids, Range, Rule};
    use comity_keys::{Algorithm, PrivateKey, Signer};
    use comity_vfs::{Cred, Gid, Uid};

    #[test]
    fn without_private_rooms_nobody_is_under_rules_that_need_one() {
        let plain = Rules::default();
        let caller = plain.ids.nobody();
        assert!(NeededFeatures::of(&plain, &caller, false).is_some());
        let (wire, disk) = (Range::single(5), Range::single(6));
        let mut map = IdMapBuilder::default();
        map.add(Rule { wire, disk }).unwrap();
        let map = map.build();
        let users = Ids { users: map.clone(), ..Ids::default() };
        let groups = Ids { groups: map, ..Ids::default() };
        let mask = "+000".parse().unwrap();
        let entry = CloakEntry { owned: Owned::ByGroup, ids: disk, mask };
        for rules in [
            Rules { ids: users, ..plain.clone() },
            Rules { ids: groups, ..plain.clone() },
            Rules { cloak: Cloak::new(&[entry]).0, ..plain.clone() },
            Rules { no_client_cache: true, ..plain },
        ] {
            assert_eq!(NeededFeatures::of(&rules, &caller, false), None);
            assert!(NeededFeatures::of(&rules, &caller, true).is_some());
        }
    }

    /// The rules of an export that maps users, cloaks groups or keeps clients from caching.
    fn rules(mapped: bool, cloaked: bool, no_client_cache: bool) -> Rules {
        let mut rules = Rules { no_client_cache, ..Rules::default() };
        let (wire, disk) = (Range::single(5), Range::single(6));
        if mapped {
            let mut map = IdMapBuilder::default();
            map.add(Rule { wire, disk }).unwrap();
            rules.ids.users = map.build();
        }
        if cloaked {
            let mask = "+000".parse().unwrap();
            rules.cloak = Cloak::new(&[CloakEntry { owned: Owned::ByGroup, ids: disk, mask }]).0;
        }
        rules
    }

    /// Returns whether ids and attributes are shown unchanged, and whether they are only mapped.
    fn ways(needed: &NeededFeatures) -> [bool; 2] {
        [needed.plain, needed.maps_owners_only]
    }

    #[test]
    fn an_export_that_keeps_clients_from_caching_has_no_short_way() {
        let caller = Rules::default().ids.nobody();
        for cloaked in [false, true] {
            for (mapped, shows_new_change, expected) in [
                (false, false, [true, false]),
                (true, false, [false, true]),
                (false, true, [false, false]),
                (true, true, [false, false]),
            ] {
                let rules = rules(mapped, cloaked, shows_new_change);
                let needed = NeededFeatures::of(&rules, &caller, true).unwrap();
                assert_eq!(
                    ways(&needed),
                    expected,
                    "mapped {mapped}, shows_new_change {shows_new_change}"
                );
                assert_eq!((needed.shows_new_change, needed.cloaked), (shows_new_change, cloaked));
                assert_eq!((needed.guarded, needed.by_right), (cloaked, false));
            }
        }
    }

    #[test]
    fn ids_of_a_caller_who_is_known_by_a_key_take_no_short_way() {
        let caller = Rules::default().ids.nobody();
        let key = *PrivateKey::generate(Algorithm::Ed25519).unwrap().public_key();
        let cred = Cred::new(Uid::new(7), Gid::new(7));
        let account = Arc::new(Account { user: "alice".into(), cred });
        for mapped in [false, true] {
            let needed = NeededFeatures::of(&rules(mapped, false, false), &caller, true).unwrap();
            let own = needed.of_key(&KeyIdentity::None(None));
            assert_eq!(ways(&own), [!mapped, mapped], "without a key");
            let account = needed.of_key(&KeyIdentity::Account(key, Arc::clone(&account)));
            assert_eq!(ways(&account), [false, false]);
            assert!(!account.guarded && !account.by_right);
            let missing = needed.of_key(&KeyIdentity::Missing);
            assert_eq!(ways(&missing), [!mapped, mapped]);
            assert!(missing.guarded && missing.by_right);
        }
    }
}
