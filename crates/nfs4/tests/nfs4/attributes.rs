//! Attributes as text: `mode=644`, in both directions.

use comity_proto::nfs4::{
    Acl4, Bitmap4, Fattr4, FsLocation4, FsLocations4, Fsid4, ModeMasked4, Nfsace4, Nfstime4,
    Owner4, Pathname4, Settime4, Specdata4, attribute as a,
};
use comity_xdr::{Counted, Decoder, Encoder, Opaque};

/// Names of attributes, each with its number.
const NAMES: &[(&str, u32)] = &[
    ("supported", a::SUPPORTED_ATTRS),
    ("type", a::TYPE),
    ("fh_expire_type", a::FH_EXPIRE_TYPE),
    ("change", a::CHANGE),
    ("size", a::SIZE),
    ("link_support", a::LINK_SUPPORT),
    ("symlink_support", a::SYMLINK_SUPPORT),
    ("named_attr", a::NAMED_ATTR),
    ("fsid", a::FSID),
    ("unique_handles", a::UNIQUE_HANDLES),
    ("lease_time", a::LEASE_TIME),
    ("rdattr_error", a::RDATTR_ERROR),
    ("acl", a::ACL),
    ("aclsupport", a::ACLSUPPORT),
    ("archive", a::ARCHIVE),
    ("fileid", a::FILEID),
    ("fs_locations", a::FS_LOCATIONS),
    ("maxname", a::MAXNAME),
    ("maxread", a::MAXREAD),
    ("mode", a::MODE),
    ("numlinks", a::NUMLINKS),
    ("owner", a::OWNER),
    ("owner_group", a::OWNER_GROUP),
    ("rawdev", a::RAWDEV),
    ("space_used", a::SPACE_USED),
    ("time_access_set", a::TIME_ACCESS_SET),
    ("time_metadata", a::TIME_METADATA),
    ("time_modify", a::TIME_MODIFY),
    ("time_modify_set", a::TIME_MODIFY_SET),
    ("mounted_on_fileid", a::MOUNTED_ON_FILEID),
    ("suppattr_exclcreat", a::SUPPATTR_EXCLCREAT),
    ("change_attr_type", a::CHANGE_ATTR_TYPE),
    ("mode_umask", a::MODE_UMASK),
    ("clone_blksize", a::CLONE_BLKSIZE),
    ("xattr_support", a::XATTR_SUPPORT),
];

pub(crate) fn number(name: &str) -> u32 {
    let found = NAMES.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no attribute {name}")).1
}

fn name(number: u32) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == number).map_or("?", |(name, _)| name)
}

/// The set of the attributes of these names.
pub(crate) fn bitmap(names: &[&str]) -> Bitmap4 {
    Bitmap4::of(&names.iter().map(|name| number(name)).collect::<Vec<_>>())
}

/// Attributes to set, given in any order.
pub(crate) fn encode(settings: &[&str]) -> Vec<u8> {
    let mut settings: Vec<_> = settings.iter().map(|one| one.split_once('=').unwrap()).collect();
    settings.sort_by_key(|(name, _)| number(name));
    let mut values = Encoder::new();
    settings.iter().for_each(|(name, value)| encode_one(&mut values, number(name), value));
    let attrmask = bitmap(&settings.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let mut encoder = Encoder::new();
    encoder.value(&Fattr4 { attrmask, attr_vals: Opaque(values.bytes()) });
    encoder.bytes().to_vec()
}

fn encode_one(values: &mut Encoder, number: u32, value: &str) {
    let octal = |text| u32::from_str_radix(text, 8).unwrap();
    match number {
        a::SIZE | a::CHANGE => values.value(&value.parse::<u64>().unwrap()),
        a::MODE => values.value(&octal(value)),
        a::TYPE | a::RDATTR_ERROR => values.value(&value.parse::<u32>().unwrap()),
        a::OWNER | a::OWNER_GROUP => values.opaque(value.as_bytes()),
        a::ARCHIVE => values.value(&true),
        a::TIME_ACCESS_SET | a::TIME_MODIFY_SET => values.value(&match value {
            "now" => Settime4::SetToServerTime,
            _ => {
                let (seconds, nseconds) = value.split_once('.').unwrap();
                let (seconds, nseconds) = (seconds.parse().unwrap(), nseconds.parse().unwrap());
                Settime4::SetToClientTime(Nfstime4 { seconds, nseconds })
            }
        }),
        a::MODE_UMASK => {
            let (value, mask) = value.split_once('/').unwrap();
            values.value(&ModeMasked4 { value: octal(value), mask: octal(mask) });
        }
        a::ACL => {
            let entries: Vec<_> = value.split(',').map(entry).collect();
            values.value::<Acl4<'_>>(&Counted(entries));
        }
        _ => panic!("attribute {number} cannot be written here"),
    }
}

/// Reads `A:flags:mask:who`, with hexadecimal numbers.
fn entry(text: &str) -> Nfsace4<'_> {
    let mut parts = text.splitn(4, ':');
    let acetype = u32::from(parts.next().unwrap() == "D");
    let mut hex = || u32::from_str_radix(parts.next().unwrap(), 16).unwrap();
    let (flag, access_mask) = (hex(), hex());
    let who = Opaque(text.splitn(4, ':').nth(3).unwrap().as_bytes());
    Nfsace4 { acetype, flag, access_mask, who }
}

/// The attributes of a reply as text.
pub(crate) fn decode(fattr: &Fattr4<'_>) -> String {
    let mut values = Decoder::new(fattr.attr_vals.0);
    let said: Vec<String> = fattr
        .attrmask
        .iter()
        .map(|number| format!("{}={}", name(number), decode_one(&mut values, number)))
        .collect();
    values.finish().expect("no more values than attributes");
    said.join(" ")
}

fn decode_one(values: &mut Decoder<'_>, number: u32) -> String {
    match number {
        a::SUPPORTED_ATTRS | a::SUPPATTR_EXCLCREAT => {
            let set: Bitmap4 = values.value().unwrap();
            set.iter().map(|number| number.to_string()).collect::<Vec<_>>().join(",")
        }
        a::CHANGE | a::FILEID | a::MOUNTED_ON_FILEID | a::SIZE | a::MAXREAD | a::SPACE_USED => {
            number_or_some(number, values.value().unwrap())
        }
        a::FSID => {
            let Fsid4 { major, minor } = values.value().unwrap();
            if major == 0 { format!("0.{minor}") } else { format!("some.{minor}") }
        }
        a::FS_LOCATIONS => locations(&values.value().unwrap()),
        a::MODE => format!("{:o}", values.value::<u32>().unwrap()),
        a::OWNER | a::OWNER_GROUP => {
            values.value::<Owner4<'_>>().unwrap().0.escape_ascii().to_string()
        }
        a::ACL => {
            let acl: Acl4<'_> = values.value().unwrap();
            acl.0.iter().map(said).collect::<Vec<_>>().join(",")
        }
        a::RAWDEV => {
            let Specdata4 { major, minor } = values.value().unwrap();
            format!("{major}:{minor}")
        }
        a::TIME_METADATA | a::TIME_MODIFY => {
            let Nfstime4 { seconds, nseconds } = values.value().unwrap();
            if seconds > 100_000 { "some".to_owned() } else { format!("{seconds}.{nseconds}") }
        }
        _ => values.value::<u32>().unwrap().to_string(),
    }
}

/// The path of the file system, and each location after a `>`.
fn locations(locations: &FsLocations4<'_>) -> String {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let path = |path: &Pathname4<'_>| {
        let names: Vec<_> = path.0.iter().map(|name| text(name.0)).collect();
        format!("/{}", names.join("/"))
    };
    let location = |location: &FsLocation4<'_>| {
        let servers: Vec<_> = location.server.0.iter().map(|server| text(server.0)).collect();
        format!("{}:{}", servers.join(","), path(&location.rootpath))
    };
    let all: Vec<_> = locations.locations.0.iter().map(location).collect();
    format!("{}>{}", path(&locations.fs_root), all.join(">"))
}

/// The text of a number; numbers that the backend chooses are `some`.
fn number_or_some(number: u32, value: u64) -> String {
    match number {
        a::SIZE | a::MAXREAD => value.to_string(),
        _ => "some".to_owned(),
    }
}

fn said(entry: &Nfsace4<'_>) -> String {
    let kind = if entry.acetype == 0 { "A" } else { "D" };
    let who = entry.who.0.escape_ascii();
    format!("{kind}:{:x}:{:x}:{who}", entry.flag, entry.access_mask)
}
