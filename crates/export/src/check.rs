//! Checks of exports as they are declared, before anything is opened.

use std::collections::HashMap;
use std::path::Path;

use crate::check_idmap::check_rooms;
use crate::diagnostic::Diagnostics;
use crate::export_spec::{ClientSpec, ExportSpec, Fsid, Settings};
use comity_credential::ChannelKind;
use comity_idmap::Squash;

use crate::{Client, KeyUse, Rules};

/// All declarations of one path.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) declaration: ExportSpec,
    pub(crate) settings: Settings,
}

/// Groups declarations by path, in the order in which the paths first appear.
pub(crate) fn merge(declarations: Vec<ExportSpec>, diagnostics: &mut Diagnostics) -> Vec<Merged> {
    let mut merged: Vec<ExportSpec> = Vec::new();
    let mut places = HashMap::new();
    for declaration in declarations {
        let at = *places.entry(declaration.path.clone()).or_insert(merged.len());
        match merged.get_mut(at) {
            Some(first) => first.specs.extend(declaration.specs),
            None => merged.push(declaration),
        }
    }
    let settled = |declaration: ExportSpec| {
        let settings = settle(&declaration.specs, diagnostics);
        Merged { declaration, settings }
    };
    merged.into_iter().map(settled).collect()
}

/// Reports mistakes and unwise settings.
pub(crate) fn check(exports: &[Merged], diagnostics: &mut Diagnostics) {
    for export in exports {
        check_twice(&export.declaration, diagnostics);
        check_policy(export, diagnostics);
        check_referral(export, exports, diagnostics);
        check_widths(&export.declaration, diagnostics);
        check_rooms(&export.declaration, diagnostics);
        for spec in &export.declaration.specs {
            check_offer(spec, diagnostics);
        }
        let above = above(exports, &export.declaration.path);
        if let Some(above) = above {
            check_overlap(export, above, diagnostics);
        }
    }
}

/// Merges the settings that the options of all clients give the export.
fn settle(specs: &[ClientSpec], diagnostics: &mut Diagnostics) -> Settings {
    let ceph = specs.first().map(|spec| spec.terms.settings.ceph.clone()).unwrap_or_default();
    let mut settled = Settings { ceph, ..Settings::default() };
    let crossing = specs.first().is_some_and(|spec| spec.terms.settings.crosses_mounts);
    let refer = specs.first().and_then(|spec| spec.terms.settings.refer.as_ref());
    let home = specs.first().and_then(|spec| spec.terms.settings.home.as_ref());
    let address = specs.first().and_then(|spec| spec.terms.settings.address);
    for spec in specs {
        let settings = &spec.terms.settings;
        let mut agree = |same: bool, name| {
            if !same {
                let what = format!("option {name}: all clients of an export must have the same");
                diagnostics.error(&spec.place, what);
            }
        };
        agree(settings.crosses_mounts == crossing, "crossmnt");
        agree(settings.refer.as_ref() == refer, "refer");
        agree(settings.ceph == settled.ceph, "ceph");
        agree(settings.home.as_ref() == home, "home");
        agree(settings.address == address, "address");
        agree(goes_with(&settled.fsid, &settings.fsid), "fsid");
        agree(goes_with(&settled.mount_point, &settings.mount_point), "mountpoint");
        agree(goes_with(&settled.policy, &settings.policy), "policy");
        settled.fsid = settled.fsid.or(settings.fsid);
        settled.mount_point = settled.mount_point.or_else(|| settings.mount_point.clone());
        settled.policy = settled.policy.or_else(|| settings.policy.clone());
        settled.home = settled.home.or_else(|| settings.home.clone());
        settled.address = settled.address.or(settings.address);
        settled.refer = settled.refer.or_else(|| settings.refer.clone());
        settled.is_unhidden |= settings.is_unhidden;
        settled.crosses_mounts |= settings.crosses_mounts;
    }
    settled
}

fn goes_with<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// Warns of a policy without `sec=key`: a policy is about keys, and no key is asked for then.
fn check_policy(export: &Merged, diagnostics: &mut Diagnostics) {
    let specs = &export.declaration.specs;
    let takes_keys = |spec: &ClientSpec| spec.terms.rules.key_use != KeyUse::AccountsOnly;
    if export.settings.policy.is_some() && !specs.iter().any(takes_keys) {
        let what = "option policy has no effect: no client of the export has sec=key";
        diagnostics.warning(&export.declaration.place, what);
    }
}

/// Reports a referral at the top of what NFSv4 clients see, and exports that nobody could reach
/// because a referral is above them.
fn check_referral(export: &Merged, exports: &[Merged], diagnostics: &mut Diagnostics) {
    if export.settings.refer.is_none() {
        return;
    }
    let (path, place) = (&export.declaration.path, &export.declaration.place);
    if path.as_path() == Path::new("/") || export.settings.fsid == Some(Fsid::Number(0)) {
        let what = "option refer: the top of what NFSv4 clients see cannot be on another server";
        diagnostics.error(place, what);
    }
    let is_below = |other: &&ExportSpec| other.path != *path && other.path.starts_with(path);
    for inner in exports.iter().map(|other| &other.declaration).filter(is_below) {
        let (inside, outside) = (inner.path.display(), path.display());
        let what = format!(
            "{inside} is below {outside} ({place}), whose files are on another server (refer): \
             NFSv4 clients cannot reach it"
        );
        diagnostics.error(&inner.place, what);
    }
}

fn check_twice(export: &ExportSpec, diagnostics: &mut Diagnostics) {
    let mut seen = HashMap::new();
    for spec in &export.specs {
        let Some(first) = seen.insert(spec.client.to_string(), spec) else { continue };
        let (client, path, place) = (&spec.client, export.path.display(), &first.place);
        if first.terms == spec.terms {
            let what = format!("client {client} of {path} stands twice, first at {place}");
            diagnostics.warning(&spec.place, what);
        } else {
            diagnostics.error(
                &spec.place,
                format!("client {client} of {path} stands at {place} with other options"),
            );
        }
    }
}

/// Warns of entries by name that are stricter than a wider entry: a client without a name gets the
/// wider one.
fn check_widths(export: &ExportSpec, diagnostics: &mut Diagnostics) {
    let named = |spec: &&ClientSpec| spec.client.needs_names() && spec.terms.rules.read_only;
    let wide = |spec: &&ClientSpec| spec.client == Client::Everybody && !spec.terms.rules.read_only;
    let (Some(named), Some(_)) = (export.specs.iter().find(named), export.specs.iter().find(wide))
    else {
        return;
    };
    let what = format!(
        "{} may only read but everybody may write: a client without a name is everybody",
        named.client
    );
    diagnostics.warning(&named.place, what);
}

/// Warns of `xprtsec=mtls` without an entry that names a key or an authority: any key will do then.
fn check_proof(spec: &ClientSpec, diagnostics: &mut Diagnostics) {
    let takes = |kind| spec.terms.rules.channels.take(kind);
    let is_mutual = !takes(ChannelKind::Plain) && !takes(ChannelKind::Tls);
    if is_mutual && !spec.client.is_proved() {
        let what = format!(
            "xprtsec=mtls for {}: any key that it proves will do; to let in certain machines only, \
             name them by key=, cert= or ca=",
            spec.client
        );
        diagnostics.warning(&spec.place, what);
    }
}

fn check_offer(spec: &ClientSpec, diagnostics: &mut Diagnostics) {
    check_proof(spec, diagnostics);
    let (rules, everybody) = (&spec.terms.rules, spec.client == Client::Everybody);
    if everybody && rules.ids.squash == Squash::None {
        diagnostics.warning(
            &spec.place,
            "no_root_squash for everybody: any machine's superuser is the server's on these files",
        );
    }
    if everybody && !rules.secure && !rules.read_only {
        diagnostics.warning(
            &spec.place,
            "rw and insecure for everybody: any program on any machine may act as any user",
        );
    }
    if !rules.sync {
        let what = "async: changes that were answered may be lost by a crash of the server";
        diagnostics.warning(&spec.place, what);
    }
}

/// Returns the export above that contains a path.
fn above<'a>(exports: &'a [Merged], path: &Path) -> Option<&'a Merged> {
    let holds = |export: &&Merged| {
        let own = &export.declaration.path;
        own != path && path.starts_with(own)
    };
    exports.iter().filter(holds).max_by_key(|export| export.declaration.path.components().count())
}

fn check_overlap(export: &Merged, above: &Merged, diagnostics: &mut Diagnostics) {
    let (inner, outer) = (&export.declaration, &above.declaration);
    let (path, wider, place) = (inner.path.display(), outer.path.display(), &outer.place);
    if export.settings.is_unhidden && !above.settings.crosses_mounts {
        let what = format!("option nohide: {wider} ({place}) has to have crossmnt for it");
        diagnostics.error(&inner.place, what);
    }
    let own: HashMap<String, &Rules> =
        inner.specs.iter().map(|spec| (spec.client.to_string(), &spec.terms.rules)).collect();
    let same = |spec: &ClientSpec| own.get(&spec.client.to_string()) == Some(&&spec.terms.rules);
    if !outer.specs.iter().all(same) {
        let what = format!(
            "{path} is also below {wider} ({place}), under other rules: who comes in there meets \
             those"
        );
        diagnostics.warning(&inner.place, what);
    }
}
