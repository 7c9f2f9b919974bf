//! What can be said about maps of ids and cloaks: overlaps, escapes and gaps.

use comity_idmap::{IdMap, Inverse, MapDefault, Range, Squash, Step};
use comity_ranges::Builder;
use comity_vfs::{Attr, Disk, Gid, Uid};

use crate::finding::Findings;
use crate::offer::{Declaration, Offer};
use crate::{Place, Rules};

/// Says what is unwise in the maps and cloaks of an export's clients.
pub(crate) fn check_rooms(export: &Declaration, findings: &mut Findings) {
    for offer in &export.offers {
        check_gap(offer, findings);
        check_cloak(offer, findings);
        check_owners(offer, findings);
        for side in sides(offer) {
            check_escapes(&side, offer, findings);
        }
    }
    check_domains(export, findings);
}

/// Says who is more than nobody although squashed; `top` is the exported directory itself.
pub(crate) fn check_targets(export: &Declaration, top: &Attr<Disk>, findings: &mut Findings) {
    for offer in &export.offers {
        let rules = &offer.terms.rules;
        for side in sides(offer).iter().filter(|side| side.anonymous == 0) {
            let id = side.id;
            let what = format!("the anonymous {id} is 0: whoever is squashed has root's {id}");
            findings.warning(side.place_of_anonymous(offer), what);
        }
        let shared = rules.ids.squash != Squash::All
            && !(rules.ids.users.is_empty() && rules.cloak.is_empty());
        if shared && top.uid == rules.ids.anonymous.uid {
            let what = format!(
                "the anonymous uid {} owns {}: whoever is squashed may do there what owners may",
                top.uid,
                export.path.display()
            );
            findings.warning(offer.origin.option("anonuid").unwrap_or(&offer.place), what);
        }
    }
}

/// Refuses cloaks under which a client would not see what it makes itself, where the file system
/// makes everything as one user.
pub(crate) fn check_maker(
    export: &Declaration,
    (uid, gid): (Uid<Disk>, Gid<Disk>),
    findings: &mut Findings,
) {
    for offer in &export.offers {
        let rules = &offer.terms.rules;
        let acts_as_it = rules.ids.squash == Squash::All && rules.ids.anonymous.uid == uid;
        if rules.read_only || acts_as_it {
            continue;
        }
        if let Some(entry) = rules.cloak.covering(uid, gid) {
            let place = offer.origin.cloaks.get(entry as usize).unwrap_or(&offer.place);
            let what = format!(
                "the server runs as uid {uid} and cannot act as its callers: all that they make \
                 is of uid {uid} and gid {gid}, and would be hidden from them by this cloak; run \
                 it as root, leave these ids out of the cloak, or export read-only (ro)"
            );
            findings.error(place, what);
        }
    }
}

/// One of the two maps of a client.
struct Side<'a> {
    id: &'static str,
    map: &'a IdMap,
    anonymous: u32,
    places: &'a [Place],
}

impl Side<'_> {
    fn place(&self, rule: u32, offer: &Offer) -> Place {
        self.places.get(rule as usize).unwrap_or(&offer.place).clone()
    }

    fn place_of_anonymous<'o>(&self, offer: &'o Offer) -> &'o Place {
        let option = if self.id == "uid" { "anonuid" } else { "anongid" };
        offer.origin.option(option).unwrap_or(&offer.place)
    }

    /// Whether a rule makes one id of many, as somebody may want it for the anonymous one.
    fn gathers(&self, rule: u32) -> bool {
        self.map
            .rules()
            .get(rule as usize)
            .is_some_and(|rule| rule.disk.count() == 1 && rule.wire.count() > 1)
    }
}

fn sides(offer: &Offer) -> [Side<'_>; 2] {
    let (ids, origin) = (&offer.terms.rules.ids, &offer.origin);
    let (uid, gid) = (ids.anonymous.uid.number(), ids.anonymous.gid.number());
    [
        Side { id: "uid", map: &ids.users, anonymous: uid, places: &origin.users },
        Side { id: "gid", map: &ids.groups, anonymous: gid, places: &origin.groups },
    ]
}

fn check_gap(offer: &Offer, findings: &mut Findings) {
    let [users, groups] = sides(offer);
    let (mapped, other) = match (users.map.is_empty(), groups.map.is_empty()) {
        (false, true) => (users, groups),
        (true, false) => (groups, users),
        (true, true) if offer.terms.rules.ids.default != MapDefault::Squash => {
            let place = offer.origin.option("map_default").unwrap_or(&offer.place);
            findings.warning(place, "map_default without a range: nothing is decided by it");
            return;
        }
        _ => return,
    };
    let (one, other) = (mapped.id, other.id);
    let what =
        format!("{one}s are mapped but {other}s are not: the client's {other}s are the server's");
    findings.warning(&mapped.place(0, offer), what);
}

/// Names of people whom nobody will be shown as, and who can own nothing.
fn check_owners(offer: &Offer, findings: &mut Findings) {
    let ids = &offer.terms.rules.ids;
    if ids.default == MapDefault::Pass {
        return;
    }
    for (side, named) in sides(offer).iter().zip([ids.owners.users(), ids.owners.groups()]) {
        let is_left_out = |(number, _): &&(u32, &str)| {
            !side.map.is_empty() && side.map.to_disk(*number) == Step::Uncovered
        };
        let mut left_out = named.iter().filter(is_left_out);
        if let Some((number, name)) = left_out.next() {
            let (id, more) = (side.id, left_out.count());
            let others = if more > 0 { format!(" (and {more} more)") } else { String::new() };
            let what = format!("{name} is {id} {number}, which is in no range{others}");
            findings.warning(&offer.place, what);
        }
    }
}

fn check_cloak(offer: &Offer, findings: &mut Findings) {
    let rules = &offer.terms.rules;
    if !rules.cloak.is_empty() && !rules.no_client_cache {
        let place = offer.origin.cloaks.first().unwrap_or(&offer.place);
        findings.warning(
            place,
            "a cloak without no_client_cache: only clients with a single user are safe, others may \
             show one user's listing to another",
        );
    }
    if rules.cloak.is_empty() && rules.no_client_cache {
        let place = offer.origin.option("no_client_cache").unwrap_or(&offer.place);
        findings.warning(place, "no_client_cache without a cloak: it only makes clients slower");
    }
}

/// Ways in which one server id is two people, or more than it should be.
fn check_escapes(side: &Side<'_>, offer: &Offer, findings: &mut Findings) {
    let (id, rules) = (side.id, &offer.terms.rules);
    if let Inverse::Shown { wire, rule } = side.map.to_wire(side.anonymous)
        && !side.gathers(rule)
    {
        let what = format!(
            "the anonymous {id} {} lies in this range: whoever is squashed acts as the client's \
             {id} {wire}",
            side.anonymous
        );
        findings.warning(&side.place(rule, offer), what);
    }
    if rules.ids.default == MapDefault::Pass
        && let Some((ids, rule)) = side.map.passed_into()
    {
        let what = format!(
            "map_default=pass lets client {id}s {ids} pass unchanged into this range: two people \
             become one"
        );
        findings.warning(&side.place(rule, offer), what);
    }
    check_root(side, offer, rules, findings);
}

fn check_root(side: &Side<'_>, offer: &Offer, rules: &Rules, findings: &mut Findings) {
    let id = side.id;
    if let Inverse::Shown { wire, rule } = side.map.to_wire(0)
        && (wire != 0 || side.gathers(rule))
    {
        let what = format!("{id} 0 of the server is in this range: a client's {id} becomes root's");
        findings.warning(&side.place(rule, offer), what);
    }
    if let Step::Mapped { rule, .. } = side.map.to_disk(0)
        && rules.ids.squash != Squash::None
    {
        let what = format!(
            "{id} 0 is squashed before it is mapped: this range only says who is shown as {id} 0 \
             and may be made an owner"
        );
        findings.warning(&side.place(rule, offer), what);
    }
}

/// Clients of one export whose maps differ but lead to the same server ids, or whose anonymous one
/// is somebody in another's.
fn check_domains(export: &Declaration, findings: &mut Findings) {
    let mut distinct: [Vec<(Side<'_>, &Offer)>; 2] = Default::default();
    for offer in &export.offers {
        for (side, known) in sides(offer).into_iter().zip(&mut distinct) {
            let same = |(other, _): &(Side<'_>, &Offer)| {
                *other.map == *side.map && other.anonymous == side.anonymous
            };
            if !side.map.is_empty() && !known.iter().any(same) {
                known.push((side, offer));
            }
        }
    }
    for known in &distinct {
        check_shared(known, findings);
        check_strangers(known, findings);
    }
}

fn check_shared(known: &[(Side<'_>, &Offer)], findings: &mut Findings) {
    let mut taken: Builder<usize> = Builder::new();
    for (number, (side, offer)) in known.iter().enumerate() {
        let mut shared = side.map.disk_ranges().filter_map(|ids| taken.within(ids).next());
        if let Some((ids, other)) = shared.next()
            && let Some((first, other)) = known.get(other)
        {
            let what = format!(
                "{} and {} ({}) share server {}s {ids}: people of both become one",
                offer.name(),
                other.name(),
                place_of(first, other, ids),
                side.id
            );
            findings.warning(&place_of(side, offer, ids), what);
        }
        side.map.disk_ranges().for_each(|ids| drop(taken.add(ids, number)));
    }
}

fn check_strangers(known: &[(Side<'_>, &Offer)], findings: &mut Findings) {
    for (side, offer) in known {
        let meets = |(other, _): &&(Side<'_>, &Offer)| {
            other.map != side.map
                && matches!(other.map.to_wire(side.anonymous), Inverse::Shown { .. })
        };
        if let Some((other, host)) = known.iter().find(meets) {
            let anonymous = side.anonymous;
            let what = format!(
                "the anonymous {} {anonymous} of {} lies in a range of {} ({})",
                side.id,
                offer.name(),
                host.name(),
                place_of(other, host, Range::single(anonymous))
            );
            findings.warning(side.place_of_anonymous(offer), what);
        }
    }
}

/// Where the rule is that leads to server ids.
fn place_of(side: &Side<'_>, offer: &Offer, ids: Range) -> Place {
    match side.map.to_wire(ids.first) {
        Inverse::Shown { rule, .. } => side.place(rule, offer),
        Inverse::Unreached => offer.place.clone(),
    }
}
