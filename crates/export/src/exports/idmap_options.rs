//! The options that only this server has: maps of ids, and cloaks.

use comity_cloak::{Cloak, CloakEntry, Owned};
use comity_idmap::{Conflict, IdMapBuilder, MapDefault, Range, Rule};

use super::table::Draft;
use crate::limits::DIAGNOSTICS_MAX;
use crate::{Location, RuleSource, Rules};

/// The maps and cloaks of the options parsed so far, each rule with its location.
#[derive(Debug, Default)]
pub(crate) struct IdmapOptions {
    users: Ranges,
    groups: Ranges,
    cloaks: Vec<CloakEntry>,
    cloak_places: Vec<Location>,
    /// The warnings about them.
    doubts: Vec<(Location, String)>,
}

#[derive(Debug, Default)]
struct Ranges {
    builder: IdMapBuilder,
    places: Vec<Location>,
}

/// `range_map_uid=`
pub(super) fn map_users(draft: &mut Draft, value: &str) -> Result<(), String> {
    let Draft { place, idmap, .. } = draft;
    idmap.users.add(value, place, &mut idmap.doubts)
}

/// `range_map_gid=`
pub(super) fn map_groups(draft: &mut Draft, value: &str) -> Result<(), String> {
    let Draft { place, idmap, .. } = draft;
    idmap.groups.add(value, place, &mut idmap.doubts)
}

/// `map_default=`
pub(super) fn map_default(draft: &mut Draft, value: &str) -> Result<(), String> {
    draft.terms.rules.ids.default = match value {
        "squash" => MapDefault::Squash,
        "pass" => MapDefault::Pass,
        "deny" => MapDefault::Deny,
        _ => return Err(format!("{value:?} is none of squash, pass and deny")),
    };
    Ok(())
}

/// `cloak_uid=`
pub(super) fn cloak_users(draft: &mut Draft, value: &str) -> Result<(), String> {
    draft.idmap.cloak(Owned::ByUser, value, &draft.place)
}

/// `cloak_gid=`
pub(super) fn cloak_groups(draft: &mut Draft, value: &str) -> Result<(), String> {
    draft.idmap.cloak(Owned::ByGroup, value, &draft.place)
}

impl IdmapOptions {
    fn cloak(&mut self, owned: Owned, value: &str, place: &Location) -> Result<(), String> {
        let (ids, mask) = value
            .split_once(':')
            .ok_or_else(|| format!("{value:?} is no cloak: expected A[-B]:+MASK or A[-B]:-MASK"))?;
        let mask = mask.parse().map_err(|wrong| format!("{mask:?}: {wrong}"))?;
        self.cloaks.push(CloakEntry { owned, ids: range(ids)?, mask });
        self.cloak_places.push(place.clone());
        Ok(())
    }

    /// Puts the finished maps and cloaks into the rules, and their locations into the source of the
    /// rules. Returns the warnings about them.
    pub(super) fn finish(
        self,
        rules: &mut Rules,
        origin: &mut RuleSource,
    ) -> Vec<(Location, String)> {
        let (cloak, shadowed) = Cloak::new(&self.cloaks);
        let mut doubts = self.doubts;
        // Further shadowed rules are not reported, since it takes long to find the entry that
        // shadows each.
        for number in shadowed.into_iter().take(DIAGNOSTICS_MAX) {
            doubts.extend(shadowed_cloak(&self.cloaks, &self.cloak_places, number as usize));
        }
        rules.cloak = cloak;
        rules.ids.users = self.users.builder.build();
        rules.ids.groups = self.groups.builder.build();
        origin.users = self.users.places.into();
        origin.groups = self.groups.places.into();
        origin.cloaks = self.cloak_places.into();
        doubts
    }
}

impl Ranges {
    fn add(
        &mut self,
        value: &str,
        place: &Location,
        doubts: &mut Vec<(Location, String)>,
    ) -> Result<(), String> {
        let rule = rule(value)?;
        let decided = self.builder.decided(rule.wire);
        let left = self.builder.add(rule).map_err(|conflict| self.conflict(conflict))?;
        self.places.push(place.clone());
        if let Some((ids, earlier)) = decided {
            let what = if left.is_empty() { "is never met" } else { "is not met everywhere" };
            let (wire, other) = (rule.wire, self.place(earlier));
            let what = format!("the range {wire} {what}: client ids {ids} go by {other} already");
            doubts.push((place.clone(), what));
        }
        Ok(())
    }

    fn conflict(&self, conflict: Conflict) -> String {
        match conflict {
            Conflict::Lengths(_) => conflict.to_string(),
            Conflict::Ambiguous { ids, earlier } => {
                let other = self.place(earlier);
                format!(
                    "server ids {ids} are the target of {other} too: which client id they are \
                     shown as could not be told"
                )
            }
        }
    }

    fn place(&self, rule: u32) -> String {
        self.places.get(rule as usize).map(Location::to_string).unwrap_or_default()
    }
}

fn shadowed_cloak(
    entries: &[CloakEntry],
    places: &[Location],
    number: usize,
) -> Option<(Location, String)> {
    let (entry, place) = (entries.get(number)?, places.get(number)?);
    let covers =
        |other: &CloakEntry| other.owned == entry.owned && other.ids.covers(entry.ids.first);
    let other = places.get(entries.iter().position(covers)?)?;
    Some((place.clone(), format!("the cloak of {} is never met: {other} comes first", entry.ids)))
}

fn rule(value: &str) -> Result<Rule, String> {
    let (wire, disk) = value
        .split_once(':')
        .ok_or_else(|| format!("{value:?} is no map: expected C1[-C2]:S1[-S2]"))?;
    Ok(Rule { wire: range(wire)?, disk: range(disk)? })
}

fn range(text: &str) -> Result<Range, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = Range { first: id(first)?, last: id(last)? };
    if range.first > range.last {
        return Err(format!("ids {text} run backwards"));
    }
    Ok(range)
}

/// The highest id is invalid, because it cannot be set.
fn id(text: &str) -> Result<u32, String> {
    if text.is_empty() || !text.bytes().all(|letter| letter.is_ascii_digit()) {
        return Err(format!("{text:?} is no id"));
    }
    let id = text.parse().ok().filter(|&id: &u32| id != u32::MAX);
    id.ok_or_else(|| format!("{text} is no id: expected 0 to 4294967294"))
}
