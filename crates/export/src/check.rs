//! What can be said about exports as they are declared, before anything is opened.

use std::collections::HashMap;
use std::path::Path;

use crate::check_rooms::check_rooms;
use crate::finding::Findings;
use crate::offer::{Declaration, Offer, Settings};
use comity_idmap::Squash;

use crate::{Client, Rules};

/// Everything that is declared of one path.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) declaration: Declaration,
    pub(crate) settings: Settings,
}

/// Puts declarations of the same path together, in the order of the first of each.
pub(crate) fn merge(declarations: Vec<Declaration>, findings: &mut Findings) -> Vec<Merged> {
    let mut merged: Vec<Declaration> = Vec::new();
    let mut places = HashMap::new();
    for declaration in declarations {
        let at = *places.entry(declaration.path.clone()).or_insert(merged.len());
        match merged.get_mut(at) {
            Some(first) => first.offers.extend(declaration.offers),
            None => merged.push(declaration),
        }
    }
    let settled = |declaration: Declaration| {
        let settings = settle(&declaration.offers, findings);
        Merged { declaration, settings }
    };
    merged.into_iter().map(settled).collect()
}

/// Says what is wrong or unwise.
pub(crate) fn check(exports: &[Merged], findings: &mut Findings) {
    for export in exports {
        check_twice(&export.declaration, findings);
        check_widths(&export.declaration, findings);
        check_rooms(&export.declaration, findings);
        for offer in &export.declaration.offers {
            check_offer(offer, findings);
        }
        let above = above(exports, &export.declaration.path);
        if let Some(above) = above {
            check_overlap(export, above, findings);
        }
    }
}

/// What the options of all clients say about the export.
fn settle(offers: &[Offer], findings: &mut Findings) -> Settings {
    let mut settled = Settings::default();
    let crossing = offers.first().is_some_and(|offer| offer.terms.settings.crosses_mounts);
    for offer in offers {
        let settings = &offer.terms.settings;
        let mut agree = |same: bool, name| {
            if !same {
                let what = format!("option {name}: all clients of an export must have the same");
                findings.error(&offer.place, what);
            }
        };
        agree(settings.crosses_mounts == crossing, "crossmnt");
        agree(goes_with(&settled.fsid, &settings.fsid), "fsid");
        agree(goes_with(&settled.mount_point, &settings.mount_point), "mountpoint");
        settled.fsid = settled.fsid.or(settings.fsid);
        settled.mount_point = settled.mount_point.or_else(|| settings.mount_point.clone());
        settled.is_unhidden |= settings.is_unhidden;
        settled.crosses_mounts |= settings.crosses_mounts;
    }
    settled
}

fn goes_with<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_none() || other.is_none() || one == other
}

fn check_twice(export: &Declaration, findings: &mut Findings) {
    let mut seen = HashMap::new();
    for offer in &export.offers {
        let Some(first) = seen.insert(offer.client.to_string(), offer) else { continue };
        let (client, path, place) = (&offer.client, export.path.display(), &first.place);
        if first.terms == offer.terms {
            let what = format!("client {client} of {path} stands twice, first at {place}");
            findings.warning(&offer.place, what);
        } else {
            findings.error(
                &offer.place,
                format!("client {client} of {path} stands at {place} with other options"),
            );
        }
    }
}

/// Entries by name that are stricter than a wider one bind only those who want to have a name.
fn check_widths(export: &Declaration, findings: &mut Findings) {
    let named = |offer: &&Offer| offer.client.needs_names() && offer.terms.rules.read_only;
    let wide = |offer: &&Offer| offer.client == Client::Everybody && !offer.terms.rules.read_only;
    let (Some(named), Some(_)) =
        (export.offers.iter().find(named), export.offers.iter().find(wide))
    else {
        return;
    };
    let what = format!(
        "{} may only read but everybody may write: a client without a name is everybody",
        named.client
    );
    findings.warning(&named.place, what);
}

fn check_offer(offer: &Offer, findings: &mut Findings) {
    let (rules, everybody) = (&offer.terms.rules, offer.client == Client::Everybody);
    if everybody && rules.ids.squash == Squash::None {
        findings.warning(
            &offer.place,
            "no_root_squash for everybody: any machine's superuser is the server's on these files",
        );
    }
    if everybody && !rules.secure && !rules.read_only {
        findings.warning(
            &offer.place,
            "rw and insecure for everybody: any program on any machine may act as any user",
        );
    }
    if !rules.sync {
        let what = "async: changes that were answered may be lost by a crash of the server";
        findings.warning(&offer.place, what);
    }
}

/// The export that a path below it would be found in.
fn above<'a>(exports: &'a [Merged], path: &Path) -> Option<&'a Merged> {
    let holds = |export: &&Merged| {
        let own = &export.declaration.path;
        own != path && path.starts_with(own)
    };
    exports.iter().filter(holds).max_by_key(|export| export.declaration.path.components().count())
}

fn check_overlap(export: &Merged, above: &Merged, findings: &mut Findings) {
    let (inner, outer) = (&export.declaration, &above.declaration);
    let (path, wider, place) = (inner.path.display(), outer.path.display(), &outer.place);
    if export.settings.is_unhidden && !above.settings.crosses_mounts {
        let what = format!("option nohide: {wider} ({place}) has to have crossmnt for it");
        findings.error(&inner.place, what);
    }
    let own: HashMap<String, &Rules> =
        inner.offers.iter().map(|offer| (offer.client.to_string(), &offer.terms.rules)).collect();
    let same = |offer: &Offer| own.get(&offer.client.to_string()) == Some(&&offer.terms.rules);
    if !outer.offers.iter().all(same) {
        let what = format!(
            "{path} is also below {wider} ({place}), under other rules: who comes in there meets \
             those"
        );
        findings.warning(&inner.place, what);
    }
}
