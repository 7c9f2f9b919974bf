//! All options of exports(5), and how the server treats them. `docs/exports.md` shows this table to
//! users.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::PathBuf;

use comity_credential::{ChannelKind, Flavor};
use comity_vfs::{Gid, Uid};

use super::ceph_options::{ceph, ceph_conf, ceph_fs, ceph_id};
use super::idmap_options::{
    IdmapOptions, cloak_groups, cloak_users, map_default, map_groups, map_users,
};
use crate::export_spec::{Fsid, Terms};
use crate::path::normal;
use crate::peer_server::peer_name;
use crate::{Channels, DirectoryDelegations, KeyUse, Location, Referral, directory_delegations};

/// An option of exports(5).
#[derive(Debug)]
pub(crate) struct Choice {
    /// The name of the option.
    pub(crate) name: &'static str,
    /// The kind of value after `=`.
    pub(crate) argument: Argument,
    /// The subject that it decides: options about the same subject exclude each other.
    pub(crate) about: &'static str,
    /// True if it may be repeated in a list, adding one thing each time.
    pub(crate) repeats: bool,
    /// The treatment of the option.
    pub(crate) verdict: Verdict,
    /// The reason, for users.
    pub(crate) note: &'static str,
}

/// The kind of value after the `=` of an option.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument {
    /// The option takes no value.
    None,
    /// The option may have a value of this form.
    Possible(&'static str),
    /// The option needs a value of this form.
    Needed(&'static str),
}

/// The treatment of an option.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verdict {
    /// The option does what exports(5) says, by this function.
    Honoured(Effect),
    /// The option makes the configuration invalid.
    Refused,
}

/// The effect of an option, given its value.
pub(crate) type Effect = fn(&mut Draft, &str) -> Result<(), String>;

/// Terms while options are parsed. Two options together determine which callers are squashed.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) terms: Terms,
    pub(crate) root_squash: bool,
    pub(crate) all_squash: bool,
    pub(crate) idmap: IdmapOptions,
    /// The location of the option that is being read.
    pub(crate) place: Location,
}

const fn flag(
    name: &'static str,
    about: &'static str,
    effect: Effect,
    note: &'static str,
) -> Choice {
    valued(name, Argument::None, about, effect, note)
}

const fn valued(
    name: &'static str,
    argument: Argument,
    about: &'static str,
    effect: Effect,
    note: &'static str,
) -> Choice {
    Choice { name, argument, about, repeats: false, verdict: Verdict::Honoured(effect), note }
}

const fn repeated(
    name: &'static str,
    argument: Argument,
    about: &'static str,
    effect: Effect,
    note: &'static str,
) -> Choice {
    Choice { name, argument, about, repeats: true, verdict: Verdict::Honoured(effect), note }
}

const fn refused(name: &'static str, argument: Argument, note: &'static str) -> Choice {
    Choice { name, argument, about: name, repeats: false, verdict: Verdict::Refused, note }
}

/// The effect of an option that asks for what the server does anyway.
const NOTHING: Effect = |_, _| Ok(());

/// All options, in the order of exports(5).
pub(crate) const OPTIONS: &[Choice] = &[
    flag(
        "secure",
        "secure",
        |draft, _| set(&mut draft.terms.rules.secure, true),
        "calls must come from a port below 1024; the default",
    ),
    flag(
        "insecure",
        "secure",
        |draft, _| set(&mut draft.terms.rules.secure, false),
        "calls may come from any port",
    ),
    flag(
        "rw",
        "access",
        |draft, _| set(&mut draft.terms.rules.read_only, false),
        "reading and writing",
    ),
    flag(
        "ro",
        "access",
        |draft, _| set(&mut draft.terms.rules.read_only, true),
        "reading only: everything else is ROFS; the default",
    ),
    flag(
        "sync",
        "sync",
        |draft, _| set(&mut draft.terms.rules.sync, true),
        "changes are on stable storage before they are answered; the default",
    ),
    flag(
        "async",
        "sync",
        |draft, _| set(&mut draft.terms.rules.sync, false),
        "changes of names and attributes may be lost by a crash after they were answered; COMMIT \
         and stable writes stay real, which is stricter than knfsd; `check` warns",
    ),
    flag(
        "wdelay",
        "wdelay",
        NOTHING,
        "changes that wait for stable storage together share one barrier, always; the default",
    ),
    flag(
        "no_wdelay",
        "wdelay",
        NOTHING,
        "no barrier is held back in the hope of more writes, so there is nothing to turn off",
    ),
    flag(
        "hide",
        "nohide",
        |draft, _| set(&mut draft.terms.settings.is_unhidden, false),
        "an export is not seen from the export above it if a file system begins there; the default",
    ),
    flag(
        "nohide",
        "nohide",
        |draft, _| set(&mut draft.terms.settings.is_unhidden, true),
        "honoured if the export above it has `crossmnt` or there is none above it; else refused, \
         for then nothing leads from the one into the other. The part seen from the export above \
         is served under the rules of that export",
    ),
    flag(
        "crossmnt",
        "crossmnt",
        |draft, _| set(&mut draft.terms.settings.crosses_mounts, true),
        "file systems mounted below the export are part of it, under its rules; all clients of an \
         export must have it, or none",
    ),
    flag(
        "nocrossmnt",
        "crossmnt",
        |draft, _| set(&mut draft.terms.settings.crosses_mounts, false),
        "where a file system is mounted below the export, the directory beneath is seen; the \
         default",
    ),
    flag(
        "no_subtree_check",
        "subtree_check",
        NOTHING,
        "no look at an object's place in the tree at every call; the default. Handles are signed, \
         so nobody can make up one for a file outside the export",
    ),
    refused(
        "subtree_check",
        Argument::None,
        "it breaks files that are renamed while they are open, and what it guards against, forged \
         handles, the signature in every handle prevents; take it out",
    ),
    refused(
        "insecure_locks",
        Argument::None,
        "locks take the credential that files take; leave it out",
    ),
    flag(
        "secure_locks",
        "locks",
        NOTHING,
        "locks take the credential that files take; the default",
    ),
    refused(
        "no_auth_nlm",
        Argument::None,
        "locks take the credential that files take; leave it out",
    ),
    flag("auth_nlm", "locks", NOTHING, "another name of `secure_locks`"),
    valued(
        "mountpoint",
        Argument::Possible("PATH"),
        "mountpoint",
        mount_point,
        "the export is offered only while it (or PATH) is a mount point: looked at when the \
         configuration is loaded, and whenever a client mounts",
    ),
    valued(
        "mp",
        Argument::Possible("PATH"),
        "mountpoint",
        mount_point,
        "another name of `mountpoint`",
    ),
    valued(
        "fsid",
        Argument::Needed("NUMBER, root or a UUID"),
        "fsid",
        fsid,
        "the export's number in handles and attributes, the same over moves of its path. `0` and \
         `root` name the top of what NFSv4 clients see; NFSv3 clients mount by path and see no \
         difference",
    ),
    flag(
        "nordirplus",
        "rdirplus",
        |draft, _| set(&mut draft.terms.rules.readdirplus, false),
        "READDIRPLUS is NOTSUPP",
    ),
    valued(
        "refer",
        Argument::Needed("PATH@HOST[+HOST][:PATH@HOST]"),
        "refer",
        refer,
        "the files are not here but at PATH on HOST (a name or an address; IPv6 in brackets), or \
         at the other places: NFSv4 clients that may use the export are told where, and NFSv3 \
         clients are refused. All clients of an export must have the same. Its directory need not \
         exist, and no export can be below it",
    ),
    valued(
        "home",
        Argument::Needed("PEER"),
        "home",
        home,
        "the peer with this name serves the export until `comity migrate` moves it here: NFSv4 \
         clients are referred to it, and NFSv3 clients are refused. In a cluster, the head that \
         serves the export when it is up. All clients of an export must have the same",
    ),
    valued(
        "address",
        Argument::Needed("ADDRESS"),
        "address",
        address,
        "in a cluster, the address that goes with the export from head to head: all exports with \
         the same address have the same head, other heads refer clients to it, and `comity cluster \
         addresses` gives it to the host of that head. All clients of an export must have the same",
    ),
    valued(
        "ceph",
        Argument::Needed("PATH"),
        "ceph",
        ceph,
        "the files are those below PATH in a Ceph file system, by libcephfs; the path of the \
         export is only the name under which clients mount it. All clients of an export must have \
         the same `ceph` options. [docs/ceph.md](ceph.md) shows the set-up",
    ),
    valued(
        "ceph_conf",
        Argument::Needed("FILE"),
        "ceph_conf",
        ceph_conf,
        "the configuration file of Ceph, instead of `/etc/ceph/ceph.conf`",
    ),
    valued(
        "ceph_id",
        Argument::Needed("NAME"),
        "ceph_id",
        ceph_id,
        "the user of Ceph, without `client.`, instead of `admin`",
    ),
    valued(
        "ceph_fs",
        Argument::Needed("NAME"),
        "ceph_fs",
        ceph_fs,
        "the name of the file system, instead of the default of the cluster",
    ),
    refused(
        "replicas",
        Argument::Needed("PATH@HOST"),
        "other places of the same files are not told yet; leave it out",
    ),
    refused(
        "pnfs",
        Argument::None,
        "leave it out; a `[[placement]]` in TOML puts files on data servers",
    ),
    flag("no_pnfs", "pnfs", NOTHING, "the default; only a `[[placement]]` gives layouts"),
    refused(
        "security_label",
        Argument::None,
        "labels of mandatory access control are not served yet; leave it out",
    ),
    refused(
        "reexport",
        Argument::Needed("auto-fsidnum"),
        "numbers of re-exported file systems are not kept in a database; give each export its \
         `fsid=`",
    ),
    flag("sign_fh", "sign_fh", NOTHING, "all handles are signed, always"),
    flag(
        "no_acl",
        "acl",
        NOTHING,
        "no ACL is shown to clients: NFSACL, the protocol beside NFSv3 for it, is not served. ACLs \
         are obeyed all the same",
    ),
    refused(
        "acl",
        Argument::None,
        "NFSACL, the protocol beside NFSv3 that shows ACLs, is not served",
    ),
    valued(
        "sec",
        Argument::Needed("sys, none, key, or several as sys:none"),
        "sec",
        sec,
        "`sys`, the default, and `none` (everybody is anonymous); `key` lets in callers that have \
         proved a key by TLS, as the user of an account or by what was granted to the key; \
         `sys:key` takes others by their numbers. `krb5`, `krb5i`, `krb5p` are refused: Kerberos \
         is not spoken. A second `sec=` in one list is refused: rules by flavor are not kept",
    ),
    valued(
        "policy",
        Argument::Needed("FILE"),
        "policy",
        policy,
        "keys have the rights that the KeyNote policy in FILE (an absolute path) gives them, and \
         act as the anonymous user then; needs `sec=key`. All clients of an export must have the \
         same, or none. `reload` reads FILE again",
    ),
    valued(
        "xprtsec",
        Argument::Needed("none, tls, mtls, or several as tls:mtls"),
        "xprtsec",
        xprtsec,
        "calls must come without TLS (`none`), by TLS (`tls`), or by TLS of a client that has \
         proved a key (`mtls`); several of them, and all by default. MOUNT tells the handle of the \
         export in clear, as Linux asks for it so",
    ),
    flag(
        "root_squash",
        "root_squash",
        |draft, _| set(&mut draft.root_squash, true),
        "uid 0 and gid 0 become the anonymous ids; the default",
    ),
    flag(
        "no_root_squash",
        "root_squash",
        |draft, _| set(&mut draft.root_squash, false),
        "the client's superuser is the server's; `check` warns if everybody may come",
    ),
    flag(
        "all_squash",
        "all_squash",
        |draft, _| set(&mut draft.all_squash, true),
        "everybody acts under the anonymous ids, whatever `no_root_squash` says",
    ),
    flag(
        "no_all_squash",
        "all_squash",
        |draft, _| set(&mut draft.all_squash, false),
        "users act under their own ids; the default",
    ),
    valued(
        "anonuid",
        Argument::Needed("UID"),
        "anonuid",
        |draft, value| set(&mut draft.terms.rules.ids.anonymous.uid, Uid::new(id(value)?)),
        "as which user the squashed act; 65534 by default, and -2 is 4294967294",
    ),
    valued(
        "anongid",
        Argument::Needed("GID"),
        "anongid",
        |draft, value| set(&mut draft.terms.rules.ids.anonymous.gid, Gid::new(id(value)?)),
        "the same for the group",
    ),
    repeated(
        "range_map_uid",
        Argument::Needed("C1[-C2]:S1[-S2]"),
        "range_map_uid",
        map_users,
        "client uids C1 to C2 are server uids S1 to S2, or all of them S1; repeatable, the first \
         that covers an id counts",
    ),
    repeated(
        "range_map_gid",
        Argument::Needed("C1[-C2]:S1[-S2]"),
        "range_map_gid",
        map_groups,
        "the same for gids, supplementary groups included",
    ),
    valued(
        "map_default",
        Argument::Needed("squash, pass or deny"),
        "map_default",
        map_default,
        "an id in no range becomes the anonymous one (the default once there is a range), passes \
         unchanged, or the call is refused",
    ),
    repeated(
        "cloak_uid",
        Argument::Needed("A[-B]:+MASK or A[-B]:-MASK"),
        "cloak",
        cloak_users,
        "files whose owner is one of the server uids A to B do not exist for those whom the mask \
         of three octal digits does not let see them; repeatable, the first that covers a file \
         counts",
    ),
    repeated(
        "cloak_gid",
        Argument::Needed("A[-B]:+MASK or A[-B]:-MASK"),
        "cloak",
        cloak_groups,
        "the same by owning group",
    ),
    flag(
        "no_client_cache",
        "no_client_cache",
        |draft, _| set(&mut draft.terms.rules.no_client_cache, true),
        "every reply shows a directory as changed, so that a client shared by several users keeps \
         no listing of one for another",
    ),
    flag(
        "utf8_names",
        "utf8_names",
        |draft, _| set(&mut draft.terms.rules.utf8_names, true),
        "NFSv4 clients are refused names that are not UTF-8; such as are there already are listed, \
         and cannot be used until they are renamed on the server",
    ),
    valued(
        "dir_delegations",
        Argument::Needed(directory_delegations::VALUE),
        "dir_delegations",
        dir_delegations,
        directory_delegations::ABOUT,
    ),
];

fn set<T>(place: &mut T, value: T) -> Result<(), String> {
    *place = value;
    Ok(())
}

/// The highest id is invalid: to chown(2) it means "leave as it is".
fn id(value: &str) -> Result<u32, String> {
    let number: i64 = decimal(value, true)?;
    let wrapped = if number < 0 { number + (1 << 32) } else { number };
    match u32::try_from(wrapped) {
        Ok(id) if id != u32::MAX && number >= i64::from(i32::MIN) => Ok(id),
        _ => Err(format!("{value} is no id: expected 0 to 4294967294, or -2 and below")),
    }
}

fn fsid(draft: &mut Draft, value: &str) -> Result<(), String> {
    let fsid = match (value, uuid(value)) {
        ("root", _) => Fsid::Number(0),
        (_, Some(uuid)) => Fsid::Uuid(uuid),
        _ => Fsid::Number(u32::try_from(decimal(value, false)?).map_err(|_| {
            format!("{value} is too large: expected 0 to 4294967295, root or a UUID")
        })?),
    };
    set(&mut draft.terms.settings.fsid, Some(fsid))
}

/// Parses 32 hexadecimal digits with any dashes or colons between them.
fn uuid(value: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = value
        .chars()
        .filter(|letter| !matches!(letter, '-' | ':'))
        .map(|letter| letter.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    (digits.len() == 32).then(|| bytes.try_into().ok()).flatten()
}

fn decimal(value: &str, signed: bool) -> Result<i64, String> {
    let digits = if signed { value.strip_prefix('-').unwrap_or(value) } else { value };
    let number = value.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    number.ok_or_else(|| format!("{value:?} is no number"))
}

fn mount_point(draft: &mut Draft, value: &str) -> Result<(), String> {
    let path = if value.is_empty() { PathBuf::new() } else { normal(OsStr::new(value))? };
    set(&mut draft.terms.settings.mount_point, Some(path))
}

fn policy(draft: &mut Draft, value: &str) -> Result<(), String> {
    let path = normal(OsStr::new(value))?;
    set(&mut draft.terms.settings.policy, Some(path))
}

fn refer(draft: &mut Draft, value: &str) -> Result<(), String> {
    set(&mut draft.terms.settings.refer, Some(Referral::parse(value)?))
}

fn home(draft: &mut Draft, value: &str) -> Result<(), String> {
    peer_name(value)?;
    set(&mut draft.terms.settings.home, Some(value.into()))
}

fn address(draft: &mut Draft, value: &str) -> Result<(), String> {
    let address: IpAddr = value.parse().map_err(|_| format!("{value} is no address of a host"))?;
    if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
        return Err(format!("{address} cannot be the address of an export"));
    }
    set(&mut draft.terms.settings.address, Some(address))
}

fn sec(draft: &mut Draft, value: &str) -> Result<(), String> {
    let (mut flavors, mut has_key) = (Vec::new(), false);
    for name in value.split(':') {
        let flavor = match name {
            "key" if has_key => return Err("flavor key stands twice".into()),
            "key" => {
                has_key = true;
                continue;
            }
            "sys" | "unix" => Flavor::SYS,
            "none" | "null" => Flavor::NONE,
            "krb5" | "krb5i" | "krb5p" => {
                return Err(format!("{name} is refused: Kerberos is not spoken"));
            }
            _ => return Err(format!("unknown flavor {name:?}: expected sys, none or key")),
        };
        if flavors.contains(&flavor) {
            return Err(format!("flavor {name} stands twice"));
        }
        flavors.push(flavor);
    }
    draft.terms.rules.key_use = match (has_key, flavors.is_empty()) {
        (false, _) => KeyUse::AccountsOnly,
        (true, false) => KeyUse::Preferred,
        (true, true) => KeyUse::Only,
    };
    if flavors.is_empty() {
        // A caller with a key needs no other flavor.
        flavors = vec![Flavor::SYS, Flavor::NONE];
    }
    set(&mut draft.terms.rules.flavors, flavors)
}

fn dir_delegations(draft: &mut Draft, value: &str) -> Result<(), String> {
    set(&mut draft.terms.rules.dir_delegations, DirectoryDelegations::parse(value)?)
}

fn xprtsec(draft: &mut Draft, value: &str) -> Result<(), String> {
    let mut channels = Channels::NONE;
    for name in value.split(':') {
        let kind = ChannelKind::ALL.into_iter().find(|kind| kind.name() == name);
        let unknown = || format!("unknown transport security {name:?}: expected none, tls or mtls");
        let with = channels.with(kind.ok_or_else(unknown)?);
        if with == channels {
            return Err(format!("{name} stands twice"));
        }
        channels = with;
    }
    set(&mut draft.terms.rules.channels, channels)
}
