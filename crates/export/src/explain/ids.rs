use comity_idmap::{IdOutcome, Owner};
use comity_vfs::{Cred, Gid, Wire};

use super::Chain;
use crate::{Location, RuleSource, Rules, View};

/// An id of the caller that is to be mapped.
struct Arrival<'a> {
    about: &'static str,
    /// The kind of the id: uid or gid.
    kind: &'static str,
    /// The name of the id in its domain, if the domain has one.
    wire: String,
    anonymous: u32,
    places: Option<&'a [Location]>,
}

/// Formats a number, and the name by which NFSv4 shows it to the client.
pub(super) fn called(number: u32, owner: Owner<'_>) -> String {
    match owner {
        Owner::Named(name) => format!("{number} ({name})"),
        Owner::Number(_) => number.to_string(),
    }
}

impl Chain {
    /// Explains how a credential's ids are mapped.
    pub(super) fn ids(&mut self, rules: &Rules, origin: Option<&RuleSource>, caller: &Cred<Wire>) {
        let ids = &rules.ids;
        let user = Arrival {
            about: "user",
            kind: "uid",
            wire: called(caller.uid.number(), ids.owners.user_out(caller.uid)),
            anonymous: ids.anonymous.uid.number(),
            places: origin.map(|origin| &*origin.users),
        };
        self.arrival(&user, ids.user_fate(caller.uid), origin);
        let group = |about, gid: Gid<Wire>| Arrival {
            about,
            kind: "gid",
            wire: called(gid.number(), ids.owners.group_out(gid)),
            anonymous: ids.anonymous.gid.number(),
            places: origin.map(|origin| &*origin.groups),
        };
        self.arrival(&group("group", caller.gid), ids.group_fate(caller.gid), origin);
        for &gid in &*caller.groups {
            self.arrival(&group("supplementary group", gid), ids.group_fate(gid), origin);
        }
    }

    fn arrival(&mut self, id: &Arrival<'_>, fate: IdOutcome, origin: Option<&RuleSource>) {
        let Arrival { about, kind, wire, anonymous, places } = id;
        let option = |about| origin.and_then(|origin| origin.option(about));
        let supplementary = *about == "supplementary group";
        let (text, place) = match fate {
            IdOutcome::Squashed => (
                format!("{kind} {wire} is squashed to {anonymous}"),
                option("all_squash").or_else(|| option("root_squash")),
            ),
            IdOutcome::Mapped { disk, rule } => (
                format!("{kind} {wire} is {kind} {disk} of the server, by its range"),
                places.and_then(|places| places.get(rule as usize)),
            ),
            IdOutcome::Unmapped => (format!("{kind} {wire} is itself: there are no ranges"), None),
            IdOutcome::Passed => {
                (format!("{kind} {wire} is in no range and passes"), option("map_default"))
            }
            IdOutcome::Anonymous | IdOutcome::Denied if supplementary => {
                (format!("{kind} {wire} is in no range and dropped"), option("map_default"))
            }
            IdOutcome::Anonymous => (
                format!("{kind} {wire} is in no range and becomes {anonymous}"),
                option("map_default"),
            ),
            IdOutcome::Denied => {
                (format!("{kind} {wire} is in no range and denied"), option("map_default"))
            }
        };
        self.add(about, text, place);
    }

    /// Explains the server ids under which the call is made.
    pub(super) fn acting(&mut self, view: &View<'_>) {
        let cred = view.cred();
        let groups: Vec<_> = cred.groups.iter().map(ToString::to_string).collect();
        let groups = if groups.is_empty() { "none".to_owned() } else { groups.join(", ") };
        let text = format!("uid {}, gid {}, supplementary groups: {groups}", cred.uid, cred.gid);
        self.add("acts as", text, None);
    }
}
