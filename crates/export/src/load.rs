//! Makes a plan of a configuration: resolves hosts, opens backends, assigns numbers.

use std::collections::HashMap;
use std::hash::Hasher;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use comity_grants::{Policy, PolicyError};
use comity_vfs::Fs;
use siphasher::sip::SipHasher24;

use crate::check::{Merged, check, merge};
use crate::check_ceph::check_ceph;
use crate::check_idmap::{check_directory_writers, check_maker, check_targets};
use crate::check_volumes::Tops;
use crate::diagnostic::Diagnostics;
use crate::export::identity;
use crate::export_spec::{ClientSpec, ExportSpec, Fsid, Settings};
use crate::file_text::text_of;
use crate::host_cache::HostCache;
use crate::limits::{EXPORTS_MAX, LOOKUPS_FAILED_MAX};
use crate::peer_server::resolve;
use crate::placement::{PlacementSpec, check_placements, placement_of};
use crate::whereabouts::find_whereabouts;
use crate::{
    CephSource, Client, Diagnostic, Export, ExportId, HandleKey, Location, Netgroups, Plan, Proof,
    ReadAuthorities, Resolver, Sources, Unresolved,
};

/// The export that a backend is opened for.
#[derive(Clone, Copy)]
pub struct ExportRequest<'a> {
    /// The directory.
    pub path: &'a Path,
    /// True if file systems mounted below it are part of it.
    pub crosses_mounts: bool,
    /// True if other servers have its files (`refer`): an empty file system will do then, because
    /// nobody enters it.
    pub is_absent: bool,
    /// The directory of a Ceph file system that it shows, if it shows one.
    pub ceph: &'a CephSource,
    /// The data servers of its new files, if the export does not keep all bytes itself.
    pub placement: Option<&'a PlacementSpec>,
    /// The file system that the export has so far, if it keeps all but its placement.
    pub kept: Option<&'a Arc<dyn Fs>>,
    /// A file system with a placement that was opened for the same directory and is still used, or
    /// that another export has just got, if none is kept. The new one must know of the uses and
    /// moves of its files.
    pub shared: Option<&'a Arc<dyn Fs>>,
}

/// Opens the backend of an export; the error is a reason and a remedy in words.
pub type Open<'a> = dyn Fn(&ExportRequest<'_>) -> Result<Arc<dyn Fs>, String> + 'a;

/// Makes a plan of a configuration. It opens all exports even after a mistake, so that all mistakes
/// are found at once. An export that is also in `old` keeps its backend, and all that clients have
/// open, as long as its path leads to the same directory. `open` is called for it only if it has or
/// gets a placement, which may have changed.
///
/// # Errors
/// All diagnostics in order, if one of them is an error; otherwise they come with the plan.
pub fn load(
    sources: &Sources,
    open: &Open<'_>,
    key: HandleKey,
    old: Option<&Plan>,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (configuration, mut diagnostics) = sources.declarations();
    check_placements(&configuration.placements, &configuration.exports, &mut diagnostics);
    let placements = configuration.placements;
    let mut merged = merge(configuration.exports, &mut diagnostics);
    let mut peers = configuration.peers;
    let mut hosts = Hosts { resolver: &*sources.resolver, known: HashMap::new(), failed: 0 };
    resolve(&mut peers, |name| hosts.addresses(name), &mut diagnostics);
    find_whereabouts(&mut merged, (&peers, &sources.moved), &mut diagnostics);
    check(&merged, &mut diagnostics);
    merged.iter().for_each(|export| check_ceph(export, &placements, &mut diagnostics));
    check_count(&merged, &mut diagnostics);
    find_clients(&mut merged, (&sources.netgroups, &mut hosts), &mut diagnostics);
    let trusted = &configuration.server.tls_client_ca;
    find_authorities(&mut merged, trusted, &*sources.authorities, &mut diagnostics);
    let ids = numbers(&merged, &mut diagnostics);
    if merged.len() > EXPORTS_MAX {
        return Err(diagnostics.sorted());
    }
    let known = old.and_then(Plan::names);
    let names = Arc::new(HostCache::new(Arc::clone(&sources.resolver), known));
    let (mut exports, mut tops) = (Vec::with_capacity(merged.len()), Tops::now());
    for (export, id) in merged.into_iter().zip(ids) {
        if let Some(fs) = backend(&export, (open, &placements), (old, &exports), &mut diagnostics) {
            if let Ok(top) = fs.getattr(&fs.root()) {
                check_targets(&export.declaration, &top, &mut diagnostics);
            }
            check_directory_writers(&export.declaration, &*fs, &mut diagnostics);
            tops.add(&export, &*fs);
            let properties = fs.properties(&fs.root());
            if let Some(maker) = properties.ok().and_then(|properties| properties.maker) {
                check_maker(&export.declaration, maker, &mut diagnostics);
            }
            let policy = policy_of(&export, &mut diagnostics);
            exports.push(Arc::new(made(export, id, fs, &names, old).under(policy)));
        }
    }
    tops.report(&mut diagnostics);
    let plan = Plan::new(key, exports).peering(peers);
    let plan = if let Some(old) = old { plan.after(old) } else { plan };
    if diagnostics.has_errors() {
        Err(diagnostics.sorted())
    } else {
        Ok((plan, diagnostics.sorted()))
    }
}

fn check_count(exports: &[Merged], diagnostics: &mut Diagnostics) {
    let place = |export: &Merged| export.declaration.place.clone();
    match exports.get(EXPORTS_MAX) {
        Some(export) => diagnostics.error(&place(export), format!("over {EXPORTS_MAX} exports")),
        None if exports.is_empty() => {
            diagnostics.warning(&Location::file("configuration"), "nothing is exported");
        }
        None => {}
    }
}

fn find_clients(
    exports: &mut [Merged],
    (netgroups, hosts): (&Path, &mut Hosts<'_>),
    diagnostics: &mut Diagnostics,
) {
    let netgroups = Netgroups::read(netgroups).unwrap_or_else(|what| {
        let place = Location::file(&netgroups.display().to_string());
        diagnostics.error(&place, format!("cannot be read: {what}"));
        Netgroups::default()
    });
    for export in exports {
        let declaration = &mut export.declaration;
        for at in 0..declaration.specs.len() {
            find_client(declaration, at, hosts, &netgroups, diagnostics);
        }
        check_addresses(declaration, diagnostics);
    }
}

/// Finds the keys of the authorities for entries by certificate; `trusted` are the files of the
/// authorities for entries that name none.
fn find_authorities(
    exports: &mut [Merged],
    trusted: &[PathBuf],
    read: &ReadAuthorities,
    diagnostics: &mut Diagnostics,
) {
    for spec in exports.iter_mut().flat_map(|export| &mut export.declaration.specs) {
        let Client::Proved(Proof::Certificate(certificate)) = &spec.client else { continue };
        let files: Vec<&Path> = match certificate.file() {
            Some(file) => vec![file],
            None => trusted.iter().map(PathBuf::as_path).collect(),
        };
        if files.is_empty() {
            let what = format!(
                "client {} needs a certificate authority: name one behind it, as in \
                 cert=NAME@/etc/ca.pem, or set tls_client_ca in [server]",
                spec.client
            );
            diagnostics.error(&spec.place, what);
            continue;
        }
        let keys: Result<Vec<_>, _> = files.into_iter().map(read).collect();
        match keys {
            Ok(keys) => {
                let certificate = certificate.below(keys.concat().into());
                spec.client = Client::Proved(Proof::Certificate(certificate));
            }
            Err(what) => diagnostics.error(&spec.place, format!("client {}: {what}", spec.client)),
        }
    }
}

fn find_client(
    export: &mut ExportSpec,
    at: usize,
    hosts: &mut Hosts<'_>,
    netgroups: &Netgroups,
    diagnostics: &mut Diagnostics,
) {
    let Some(spec) = export.specs.get(at).cloned() else { return };
    let found = match &spec.client {
        Client::Host(name, _) => match hosts.addresses(name) {
            Ok(addresses) => Ok(Client::Host(name.clone(), addresses)),
            Err(what) => return unresolved(&export.specs, &spec, &what, diagnostics),
        },
        Client::Netgroup(name, _) => {
            let members = netgroups.members(name);
            members.map(|members| Client::Netgroup(name.clone(), Arc::new(members)))
        }
        _ => return,
    };
    match (found, export.specs.get_mut(at)) {
        (Ok(client), Some(spec)) => spec.client = client,
        (Err(what), _) => diagnostics.error(&spec.place, what),
        _ => {}
    }
}

/// Addresses of the hosts in one configuration. Each name is looked up once.
struct Hosts<'a> {
    resolver: &'a dyn Resolver,
    known: HashMap<Box<str>, Result<Box<[IpAddr]>, Unresolved>>,
    failed: usize,
}

impl Hosts<'_> {
    fn addresses(&mut self, name: &str) -> Result<Box<[IpAddr]>, Unresolved> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let found = match self.failed {
            LOOKUPS_FAILED_MAX.. => {
                Err(Unresolved::Failed("not asked for, as others got no answer".into()))
            }
            _ => self.resolver.addresses(name),
        };
        self.failed += usize::from(matches!(found, Err(Unresolved::Failed(_))));
        let found = found.map(|found| found.iter().map(IpAddr::to_canonical).collect());
        self.known.insert(name.into(), found.clone());
        found
    }
}

/// Reports a host without an address. That is harmless if the host would only be refused, but not
/// if a wider entry admits it under other rules.
fn unresolved(
    specs: &[ClientSpec],
    spec: &ClientSpec,
    what: &Unresolved,
    diagnostics: &mut Diagnostics,
) {
    let wider = specs.iter().find(|other| {
        other.client.rank() > spec.client.rank() && other.terms.rules != spec.terms.rules
    });
    let what = format!("client {} is not found: {what}", spec.client);
    match wider {
        Some(wider) => diagnostics.error(
            &spec.place,
            format!("{what}; it would come in under the rules of {}", wider.client),
        ),
        None => diagnostics.warning(&spec.place, format!("{what}; it cannot come in")),
    }
}

/// Warns of two entries for one address: the first decides.
fn check_addresses(export: &ExportSpec, diagnostics: &mut Diagnostics) {
    let mut seen: HashMap<IpAddr, &ClientSpec> = HashMap::new();
    for spec in &export.specs {
        let addresses = match &spec.client {
            Client::Address(address) => std::slice::from_ref(address),
            Client::Host(_, addresses) => addresses,
            _ => continue,
        };
        for address in addresses {
            let first = *seen.entry(*address).or_insert(spec);
            if first.terms != spec.terms && first.client != spec.client {
                let what = format!(
                    "{} has the address {address} of {} ({}), whose rules come first: these are \
                     never used for it",
                    spec.client, first.client, first.place
                );
                diagnostics.warning(&spec.place, what);
            }
        }
    }
}

fn numbers(exports: &[Merged], diagnostics: &mut Diagnostics) -> Vec<ExportId> {
    let mut taken: HashMap<ExportId, &ExportSpec> = HashMap::new();
    let mut ids = Vec::with_capacity(exports.len());
    for Merged { declaration, settings } in exports {
        let id = number(settings, &declaration.path);
        if id == ExportId::PSEUDO {
            let what = format!("the export number {} is the server's own: set another fsid=", id.0);
            diagnostics.error(&declaration.place, what);
        }
        if let Some(other) = taken.insert(id, declaration) {
            let (path, place) = (other.path.display(), &other.place);
            let what = format!("same export number as {path} ({place}): set another fsid=");
            diagnostics.error(&declaration.place, what);
        }
        ids.push(id);
    }
    ids
}

/// Returns the number of an export, from settings that do not change over restarts and reloads. The
/// hash is part of every handle: another hash would make all handles stale.
fn number(settings: &Settings, path: &Path) -> ExportId {
    let hash = |bytes: &[u8]| {
        let mut hasher = SipHasher24::new();
        hasher.write(bytes);
        let hash = hasher.finish();
        (hash >> 32) as u32 ^ hash as u32
    };
    ExportId(match settings.fsid {
        Some(Fsid::Number(number)) => number,
        Some(Fsid::Uuid(uuid)) => hash(&uuid),
        None => hash(path.as_os_str().as_bytes()),
    })
}

fn backend(
    export: &Merged,
    (open, placements): (&Open<'_>, &[PlacementSpec]),
    (old, opened): (Option<&Plan>, &[Arc<Export>]),
    diagnostics: &mut Diagnostics,
) -> Option<Arc<dyn Fs>> {
    let Merged { declaration: ExportSpec { path, place, .. }, settings } = export;
    if !settings.is_mounted(path) {
        let what = format!("{} is not offered: nothing is mounted there", path.display());
        diagnostics.warning(place, format!("{what} (mountpoint); reload when it is"));
        return None;
    }
    let crosses_mounts = settings.crosses_mounts;
    let placement = placement_of(placements, path);
    let former = old.and_then(|old| former(old, (path, settings), placement.is_some()));
    let former = former.as_deref();
    let twin = placement.and_then(|_| placed_twin(opened, path));
    if former.is_some_and(|former| placement_is_lost(former, placement, settings)) {
        let what = "a reload does not change crossmnt of an export with a [[placement]]: restart";
        diagnostics.error(place, format!("{}: {what} the server", path.display()));
        return None;
    }
    if let Some(twin) = twin.filter(|twin| placement_is_lost(twin, placement, settings)) {
        let [path, other] = [path, twin.path()].map(Path::display);
        let what = "two exports of one directory with a [[placement]] need the same crossmnt";
        diagnostics.error(place, format!("{path}, {other}: {what}"));
        return None;
    }
    let kept = former.filter(|it| it.path() == path).and_then(|former| kept(former, settings));
    if let Some(fs) = kept.filter(|fs| placement.is_none() && fs.placement().is_none()) {
        return Some(Arc::clone(fs));
    }
    let is_absent = settings.refer.is_some();
    if is_absent && placement.is_some() {
        diagnostics.error(place, "option refer: the export has a placement, too; leave one out");
    }
    let mut placed = former.into_iter().chain(twin).map(Export::fs);
    let shared = placed.find(|fs| fs.placement().is_some()).filter(|_| kept.is_none());
    let ceph = &settings.ceph;
    let request = ExportRequest { path, crosses_mounts, is_absent, ceph, placement, kept, shared };
    let opened = open(&request);
    opened.map_err(|what| diagnostics.error(place, format!("{}: {what}", path.display()))).ok()
}

/// Returns the export with a placement that was opened for the same directory just before, if there
/// is one: uses and moves of its files must be known to both.
fn placed_twin<'o>(opened: &'o [Arc<Export>], path: &Path) -> Option<&'o Export> {
    let identity = Some(identity(path, &Settings::default())?);
    let is_twin =
        |export: &&Arc<Export>| export.placement().is_some() && export.identity() == identity;
    opened.iter().find(is_twin).map(|export| &**export)
}

/// Returns whether an export with a placement would be opened anew, because it crosses mounts now
/// or no longer does. The new file system would not know of the uses and moves of its files.
fn placement_is_lost(
    former: &Export,
    placement: Option<&PlacementSpec>,
    settings: &Settings,
) -> bool {
    let is_placed = placement.is_some() || former.fs().placement().is_some();
    is_placed && former.settings().crosses_mounts != settings.crosses_mounts
}

/// Reads the policy of an export, if it names one.
fn policy_of(export: &Merged, diagnostics: &mut Diagnostics) -> Option<Arc<Policy>> {
    let (file, text) = text_of(export.settings.policy.as_deref()?, diagnostics)?;
    let fault = |PolicyError { line, column, why }| {
        let file = Arc::clone(&file);
        diagnostics.error(&Location { file, line, column }, format!("the policy: {why}"));
    };
    Policy::parse(&text).map_err(fault).map(Arc::new).ok()
}

/// Returns the export that a path has so far, if it still leads to the same directory. For the sake
/// of placements, this may also be an export that an earlier reload has removed, or one of another
/// path of the directory: moves and calls that use it must be known to the new one.
fn former(
    old: &Plan,
    (path, settings): (&Path, &Settings),
    is_placed: bool,
) -> Option<Arc<Export>> {
    let identity = identity(path, settings);
    let is_same = |export: &Arc<Export>| export.identity() == identity;
    let current = old.export_at(path).cloned().filter(is_same);
    if current.as_ref().is_some_and(|it| it.placement().is_some() || !is_placed) {
        return current;
    }
    let is_meant = |export: &Arc<Export>| {
        is_same(export) && (export.path() == path || is_placed && identity.is_some())
    };
    let used = old.placed().filter(is_meant).min_by_key(|export| export.path() != path);
    used.or(current)
}

/// Returns the file system of an export that stays open.
fn kept<'p>(former: &'p Export, settings: &Settings) -> Option<&'p Arc<dyn Fs>> {
    let stays = former.settings().crosses_mounts == settings.crosses_mounts
        && former.referral().is_some() == settings.refer.is_some()
        && former.settings().ceph == settings.ceph;
    let fs = former.fs();
    (stays && fs.getattr(&fs.root()).is_ok()).then_some(fs)
}

fn made(
    export: Merged,
    id: ExportId,
    fs: Arc<dyn Fs>,
    names: &Arc<HostCache>,
    old: Option<&Plan>,
) -> Export {
    let old = old.and_then(|old| old.export(id)).map(|old| &**old);
    let Merged { declaration: ExportSpec { path, specs, .. }, settings } = export;
    let mut specs = specs;
    specs.sort_by_key(|spec| spec.client.rank());
    let client = |spec: ClientSpec| ((spec.client, Arc::new(spec.terms.rules)), spec.origin);
    let (clients, origins) = specs.into_iter().map(client).unzip();
    Export::new(id, path, fs, clients).configured(settings, Arc::clone(names), origins, old)
}
