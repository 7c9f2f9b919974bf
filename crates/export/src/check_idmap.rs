//! Checks of id maps and cloaks: overlaps, escapes and gaps.

use comity_idmap::{IdMap, Inverse, MapDefault, Range, Squash, Step};
use comity_ranges::Builder;
use comity_vfs::{Attr, Disk, Fs, Gid, Uid};

use crate::diagnostic::Diagnostics;
use crate::export_spec::{ClientSpec, ExportSpec};
use crate::{KeyUse, Location, Rules};

/// The reason why no program is noticed in a file system without local locks.
const NO_PROGRAMS: &str = "no program of this machine uses this file system: write sole-writer";

/// Warns of unwise maps and cloaks of an export's clients.
pub(crate) fn check_rooms(export: &ExportSpec, diagnostics: &mut Diagnostics) {
    for spec in &export.specs {
        check_gap(spec, diagnostics);
        check_cloak(spec, diagnostics);
        check_directories(spec, diagnostics);
        check_owners(spec, diagnostics);
        for side in sides(spec) {
            check_escapes(&side, spec, diagnostics);
        }
    }
    check_domains(export, diagnostics);
}

/// Warns if the anonymous ids have more rights than nobody; `top` is the exported directory itself.
pub(crate) fn check_targets(export: &ExportSpec, top: &Attr<Disk>, diagnostics: &mut Diagnostics) {
    for spec in &export.specs {
        let rules = &spec.terms.rules;
        for side in sides(spec).iter().filter(|side| side.anonymous == 0) {
            let id = side.id;
            let what = format!("the anonymous {id} is 0: whoever is squashed has root's {id}");
            diagnostics.warning(side.place_of_anonymous(spec), what);
        }
        let shared = rules.ids.squash != Squash::All
            && !(rules.ids.users.is_empty() && rules.cloak.is_empty());
        if shared && top.uid == rules.ids.anonymous.uid {
            let what = format!(
                "the anonymous uid {} owns {}: whoever is squashed may do there what owners may",
                top.uid,
                export.path.display()
            );
            diagnostics.warning(spec.origin.option("anonuid").unwrap_or(&spec.place), what);
        }
    }
}

/// Refuses cloaks under which a client would not see its own new files, if the file system makes
/// all files as one user.
pub(crate) fn check_maker(
    export: &ExportSpec,
    (uid, gid): (Uid<Disk>, Gid<Disk>),
    diagnostics: &mut Diagnostics,
) {
    for spec in &export.specs {
        let rules = &spec.terms.rules;
        let acts_as_it = rules.ids.squash == Squash::All && rules.ids.anonymous.uid == uid;
        if rules.read_only || acts_as_it {
            continue;
        }
        if let Some(entry) = rules.cloak.covering(uid, gid) {
            let place = spec.origin.cloaks.get(entry as usize).unwrap_or(&spec.place);
            let what = format!(
                "the server runs as uid {uid} and cannot act as its callers: all that they make \
                 is of uid {uid} and gid {gid}, and would be hidden from them by this cloak; run \
                 it as root, leave these ids out of the cloak, or export read-only (ro)"
            );
            diagnostics.error(place, what);
        }
    }
}

/// One of the two maps of a client.
struct Side<'a> {
    id: &'static str,
    map: &'a IdMap,
    anonymous: u32,
    places: &'a [Location],
}

impl Side<'_> {
    fn place(&self, rule: u32, spec: &ClientSpec) -> Location {
        self.places.get(rule as usize).unwrap_or(&spec.place).clone()
    }

    fn place_of_anonymous<'o>(&self, spec: &'o ClientSpec) -> &'o Location {
        let option = if self.id == "uid" { "anonuid" } else { "anongid" };
        spec.origin.option(option).unwrap_or(&spec.place)
    }

    /// Returns whether a rule maps many ids to one, as may be intended for the anonymous id.
    fn gathers(&self, rule: u32) -> bool {
        self.map
            .rules()
            .get(rule as usize)
            .is_some_and(|rule| rule.disk.count() == 1 && rule.wire.count() > 1)
    }
}

fn sides(spec: &ClientSpec) -> [Side<'_>; 2] {
    let (ids, origin) = (&spec.terms.rules.ids, &spec.origin);
    let (uid, gid) = (ids.anonymous.uid.number(), ids.anonymous.gid.number());
    [
        Side { id: "uid", map: &ids.users, anonymous: uid, places: &origin.users },
        Side { id: "gid", map: &ids.groups, anonymous: gid, places: &origin.groups },
    ]
}

fn check_gap(spec: &ClientSpec, diagnostics: &mut Diagnostics) {
    let [users, groups] = sides(spec);
    let (mapped, other) = match (users.map.is_empty(), groups.map.is_empty()) {
        (false, true) => (users, groups),
        (true, false) => (groups, users),
        (true, true) if spec.terms.rules.ids.default != MapDefault::Squash => {
            let place = spec.origin.option("map_default").unwrap_or(&spec.place);
            diagnostics.warning(place, "map_default without a range: nothing is decided by it");
            return;
        }
        _ => return,
    };
    let (one, other) = (mapped.id, other.id);
    let what =
        format!("{one}s are mapped but {other}s are not: the client's {other}s are the server's");
    diagnostics.warning(&mapped.place(0, spec), what);
}

/// Warns of named users and groups whose ids are in no range of the maps.
fn check_owners(spec: &ClientSpec, diagnostics: &mut Diagnostics) {
    let ids = &spec.terms.rules.ids;
    if ids.default == MapDefault::Pass {
        return;
    }
    for (side, named) in sides(spec).iter().zip([ids.owners.users(), ids.owners.groups()]) {
        let is_left_out = |(number, _): &&(u32, &str)| {
            !side.map.is_empty() && side.map.to_disk(*number) == Step::Uncovered
        };
        let mut left_out = named.iter().filter(is_left_out);
        if let Some((number, name)) = left_out.next() {
            let (id, more) = (side.id, left_out.count());
            let others = if more > 0 { format!(" (and {more} more)") } else { String::new() };
            let what = format!("{name} is {id} {number}, which is in no range{others}");
            diagnostics.warning(&spec.place, what);
        }
    }
}

fn check_cloak(spec: &ClientSpec, diagnostics: &mut Diagnostics) {
    let rules = &spec.terms.rules;
    if !rules.cloak.is_empty() && !rules.no_client_cache {
        let place = spec.origin.cloaks.first().unwrap_or(&spec.place);
        diagnostics.warning(
            place,
            "a cloak without no_client_cache: only clients with a single user are safe, others may \
             show one user's listing to another",
        );
    }
    if rules.cloak.is_empty() && rules.no_client_cache {
        let place = spec.origin.option("no_client_cache").unwrap_or(&spec.place);
        diagnostics.warning(place, "no_client_cache without a cloak: it only makes clients slower");
    }
}

fn check_directories(spec: &ClientSpec, diagnostics: &mut Diagnostics) {
    let rules = &spec.terms.rules;
    let views_differ = !rules.cloak.is_empty() || rules.key_use != KeyUse::AccountsOnly;
    if rules.dir_delegations.are_granted() && (views_differ || rules.no_client_cache) {
        let place = spec.origin.option("dir_delegations").unwrap_or(&spec.place);
        diagnostics.warning(
            place,
            "dir_delegations with a cloak, no_client_cache or sec=key: no directory is delegated, \
             because users of one client may see different listings",
        );
    }
}

/// Refuses delegations of directories whose changes by programs the file system cannot report.
pub(crate) fn check_directory_writers(
    export: &ExportSpec,
    fs: &dyn Fs,
    diagnostics: &mut Diagnostics,
) {
    for spec in &export.specs {
        let Some(hold) = spec.terms.rules.dir_delegations.hold() else { continue };
        let locks = fs.local_locks().ok_or_else(|| NO_PROGRAMS.to_owned());
        if let Err(why) = locks.and_then(|locks| locks.may_hold_directories(hold)) {
            let place = spec.origin.option("dir_delegations").unwrap_or(&spec.place);
            diagnostics.error(place, format!("dir_delegations: {why}"));
        }
    }
}

/// Warns if one server id stands for two users, or for an unwanted one.
fn check_escapes(side: &Side<'_>, spec: &ClientSpec, diagnostics: &mut Diagnostics) {
    let (id, rules) = (side.id, &spec.terms.rules);
    if let Inverse::Shown { wire, rule } = side.map.to_wire(side.anonymous)
        && !side.gathers(rule)
    {
        let what = format!(
            "the anonymous {id} {} lies in this range: whoever is squashed acts as the client's \
             {id} {wire}",
            side.anonymous
        );
        diagnostics.warning(&side.place(rule, spec), what);
    }
    if rules.ids.default == MapDefault::Pass
        && let Some((ids, rule)) = side.map.passed_into()
    {
        let what = format!(
            "map_default=pass lets client {id}s {ids} pass unchanged into this range: two people \
             become one"
        );
        diagnostics.warning(&side.place(rule, spec), what);
    }
    check_root(side, spec, rules, diagnostics);
}

fn check_root(side: &Side<'_>, spec: &ClientSpec, rules: &Rules, diagnostics: &mut Diagnostics) {
    let id = side.id;
    if let Inverse::Shown { wire, rule } = side.map.to_wire(0)
        && (wire != 0 || side.gathers(rule))
    {
        let what = format!("{id} 0 of the server is in this range: a client's {id} becomes root's");
        diagnostics.warning(&side.place(rule, spec), what);
    }
    if let Step::Mapped { rule, .. } = side.map.to_disk(0)
        && rules.ids.squash != Squash::None
    {
        let what = format!(
            "{id} 0 is squashed before it is mapped: this range only says who is shown as {id} 0 \
             and may be made an owner"
        );
        diagnostics.warning(&side.place(rule, spec), what);
    }
}

/// Warns of clients of one export whose maps differ but lead to the same server ids, or whose
/// anonymous id is a mapped id of another client.
fn check_domains(export: &ExportSpec, diagnostics: &mut Diagnostics) {
    let mut distinct: [Vec<(Side<'_>, &ClientSpec)>; 2] = Default::default();
    for spec in &export.specs {
        for (side, known) in sides(spec).into_iter().zip(&mut distinct) {
            let same = |(other, _): &(Side<'_>, &ClientSpec)| {
                *other.map == *side.map && other.anonymous == side.anonymous
            };
            if !side.map.is_empty() && !known.iter().any(same) {
                known.push((side, spec));
            }
        }
    }
    for known in &distinct {
        check_shared(known, diagnostics);
        check_strangers(known, diagnostics);
    }
}

fn check_shared(known: &[(Side<'_>, &ClientSpec)], diagnostics: &mut Diagnostics) {
    let mut taken: Builder<usize> = Builder::new();
    for (number, (side, spec)) in known.iter().enumerate() {
        let mut shared = side.map.disk_ranges().filter_map(|ids| taken.within(ids).next());
        if let Some((ids, other)) = shared.next()
            && let Some((first, other)) = known.get(other)
        {
            let what = format!(
                "{} and {} ({}) share server {}s {ids}: people of both become one",
                spec.name(),
                other.name(),
                place_of(first, other, ids),
                side.id
            );
            diagnostics.warning(&place_of(side, spec, ids), what);
        }
        side.map.disk_ranges().for_each(|ids| drop(taken.add(ids, number)));
    }
}

fn check_strangers(known: &[(Side<'_>, &ClientSpec)], diagnostics: &mut Diagnostics) {
    for (side, spec) in known {
        let meets = |(other, _): &&(Side<'_>, &ClientSpec)| {
            other.map != side.map
                && matches!(other.map.to_wire(side.anonymous), Inverse::Shown { .. })
        };
        if let Some((other, host)) = known.iter().find(meets) {
            let anonymous = side.anonymous;
            let what = format!(
                "the anonymous {} {anonymous} of {} lies in a range of {} ({})",
                side.id,
                spec.name(),
                host.name(),
                place_of(other, host, Range::single(anonymous))
            );
            diagnostics.warning(side.place_of_anonymous(spec), what);
        }
    }
}

/// Returns the location of the rule that leads to these server ids.
fn place_of(side: &Side<'_>, spec: &ClientSpec, ids: Range) -> Location {
    match side.map.to_wire(ids.first) {
        Inverse::Shown { rule, .. } => side.place(rule, spec),
        Inverse::Unreached => spec.place.clone(),
    }
}
