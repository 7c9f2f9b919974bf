//! Results as text: the status and the essential fields of the body.

use std::fmt::Write;

use comity_proto::nfs3::{
    Access3res, Commit3res, Create3res, DirlistHead, Entry3, Entryplus3, Fattr3, Fsinfo3res,
    Fsstat3res, Ftype3, Getattr3res, Link3res, Lookup3res, Nfsstat3, Nfstime3, Pathconf3res,
    PostOpAttr, Read3res, Readlink3res, Remove3res, Rename3res, Result3, WccData, Write3res,
};
use comity_xdr::Decoder;

use crate::world::decoded;

pub(crate) fn attributes(body: &[u8]) -> String {
    match decoded::<Getattr3res>(body) {
        Result3::Ok(attr) => format!("OK {}", object(&attr)),
        Result3::Fail(status, ()) => name(status),
    }
}

pub(crate) fn times(body: &[u8]) -> String {
    let Result3::Ok(attr) = decoded::<Getattr3res>(body) else { panic!("no attributes") };
    format!("OK atime={} mtime={}", moment(attr.atime), moment(attr.mtime))
}

/// SETATTR, REMOVE and RMDIR: wcc data only.
pub(crate) fn changed(body: &[u8]) -> String {
    match decoded::<Remove3res>(body) {
        Result3::Ok(change) => format!("OK {}", wcc(&change)),
        Result3::Fail(status, change) => format!("{} {}", name(status), wcc(&change)),
    }
}

pub(crate) fn lookup(body: &[u8]) -> String {
    match decoded::<Lookup3res<'_>>(body) {
        Result3::Ok(found) => {
            assert!(!found.object.0.is_empty());
            let attr = found.obj_attributes.expect("attributes with every handle");
            format!("OK {}; dir={}", object(&attr), seen(&found.dir_attributes))
        }
        Result3::Fail(status, dir) => format!("{} dir={}", name(status), seen(&dir)),
    }
}

pub(crate) fn access(body: &[u8]) -> String {
    match decoded::<Access3res>(body) {
        Result3::Ok(granted) => {
            format!("OK {:02x} attributes={}", granted.access, seen(&granted.obj_attributes))
        }
        Result3::Fail(status, attr) => format!("{} attributes={}", name(status), seen(&attr)),
    }
}

pub(crate) fn readlink(body: &[u8]) -> String {
    match decoded::<Readlink3res<'_>>(body) {
        Result3::Ok(link) => format!("OK {}", link.data.0.escape_ascii()),
        Result3::Fail(status, attr) => format!("{} attributes={}", name(status), seen(&attr)),
    }
}

pub(crate) fn read(body: &[u8]) -> String {
    match decoded::<Read3res<'_>>(body) {
        Result3::Ok(read) => {
            assert_eq!(read.count as usize, read.data.0.len());
            assert!(read.file_attributes.is_some());
            format!("OK count={} eof={} {}", read.count, read.eof, read.data.0.escape_ascii())
        }
        Result3::Fail(status, attr) => format!("{} attributes={}", name(status), seen(&attr)),
    }
}

pub(crate) fn written(body: &[u8]) -> String {
    match decoded::<Write3res>(body) {
        Result3::Ok(written) => {
            assert_eq!(written.verf, crate::world::VERIFIER);
            let committed = format!("{:?}", written.committed);
            format!("OK count={} {committed} {}", written.count, wcc(&written.file_wcc))
        }
        Result3::Fail(status, change) => format!("{} {}", name(status), wcc(&change)),
    }
}

/// CREATE, MKDIR, SYMLINK and MKNOD.
pub(crate) fn made(body: &[u8]) -> String {
    match decoded::<Create3res<'_>>(body) {
        Result3::Ok(made) => {
            assert!(made.obj.is_some_and(|handle| !handle.0.is_empty()));
            let attr = made.obj_attributes.expect("attributes with every handle");
            format!("OK {}; dir {}", object(&attr), wcc(&made.dir_wcc))
        }
        Result3::Fail(status, change) => format!("{} dir {}", name(status), wcc(&change)),
    }
}

pub(crate) fn renamed(body: &[u8]) -> String {
    let (text, told) = match decoded::<Rename3res>(body) {
        Result3::Ok(told) => ("OK".to_owned(), told),
        Result3::Fail(status, told) => (name(status), told),
    };
    format!("{text} from {}; to {}", wcc(&told.fromdir_wcc), wcc(&told.todir_wcc))
}

pub(crate) fn linked(body: &[u8]) -> String {
    let (text, told) = match decoded::<Link3res>(body) {
        Result3::Ok(told) => ("OK".to_owned(), told),
        Result3::Fail(status, told) => (name(status), told),
    };
    let links = told.file_attributes.map_or("?".to_owned(), |attr| attr.nlink.to_string());
    format!("{text} links={links}; dir {}", wcc(&told.linkdir_wcc))
}

pub(crate) fn committed(body: &[u8]) -> String {
    match decoded::<Commit3res>(body) {
        Result3::Ok(told) => {
            assert_eq!(told.verf, crate::world::VERIFIER);
            format!("OK {}", wcc(&told.file_wcc))
        }
        Result3::Fail(status, change) => format!("{} {}", name(status), wcc(&change)),
    }
}

pub(crate) fn listing(body: &[u8], plus: bool) -> String {
    let mut decoder = Decoder::new(body);
    let status: Nfsstat3 = decoder.value().unwrap();
    if status != Nfsstat3::Ok {
        let attr: PostOpAttr = decoder.value().unwrap();
        return format!("{} dir={}", name(status), seen(&attr));
    }
    let head: DirlistHead = decoder.value().unwrap();
    let mut text = format!("OK dir={}", seen(&head.dir_attributes));
    while decoder.value::<bool>().unwrap() {
        let (entry, more) = if plus {
            let entry: Entryplus3<'_> = decoder.value().unwrap();
            let attr = entry.name_attributes.expect("attributes of what is there");
            assert!(entry.name_handle.is_some());
            assert_eq!(attr.fileid, entry.entry.fileid);
            (entry.entry, format!("({})", object(&attr)))
        } else {
            (decoder.value::<Entry3<'_>>().unwrap(), String::new())
        };
        write!(text, " {}={}{more}", entry.name.0.escape_ascii(), entry.cookie).unwrap();
    }
    write!(text, " eof={}", decoder.value::<bool>().unwrap()).unwrap();
    decoder.finish().unwrap();
    text
}

pub(crate) fn fsstat(body: &[u8]) -> String {
    match decoded::<Fsstat3res>(body) {
        Result3::Ok(stat) => format!(
            "OK bytes={} files={} free={} invarsec={}",
            stat.tbytes,
            stat.tfiles,
            stat.fbytes <= stat.tbytes && stat.abytes <= stat.fbytes && stat.ffiles > 0,
            stat.invarsec
        ),
        Result3::Fail(status, attr) => format!("{} attributes={}", name(status), seen(&attr)),
    }
}

pub(crate) fn fsinfo(body: &[u8]) -> String {
    match decoded::<Fsinfo3res>(body) {
        Result3::Ok(info) => format!(
            "OK read={}/{}/{} write={}/{}/{} dir={} file={} delta={} properties={:x}",
            info.rtmax,
            info.rtpref,
            info.rtmult,
            info.wtmax,
            info.wtpref,
            info.wtmult,
            info.dtpref,
            info.maxfilesize,
            moment(info.time_delta),
            info.properties
        ),
        Result3::Fail(status, attr) => format!("{} attributes={}", name(status), seen(&attr)),
    }
}

pub(crate) fn pathconf(body: &[u8]) -> String {
    match decoded::<Pathconf3res>(body) {
        Result3::Ok(conf) => format!(
            "OK links={} name={} no_trunc={} chown_restricted={} case={}/{}",
            conf.linkmax,
            conf.name_max,
            conf.no_trunc,
            conf.chown_restricted,
            conf.case_insensitive,
            conf.case_preserving
        ),
        Result3::Fail(status, attr) => format!("{} attributes={}", name(status), seen(&attr)),
    }
}

fn object(attr: &Fattr3) -> String {
    let Fattr3 { ftype, mode, uid, gid, nlink, size, rdev, .. } = attr;
    let kind = format!("{ftype:?}").to_lowercase();
    // The size of a directory depends on the backend.
    let size = if *ftype == Ftype3::Dir { String::new() } else { format!(" size={size}") };
    let device = match ftype {
        Ftype3::Blk | Ftype3::Chr => format!(" {}:{}", rdev.major, rdev.minor),
        _ => String::new(),
    };
    format!("{kind} {mode:o} {uid}:{gid} links={nlink}{size}{device}")
}

fn wcc(change: &WccData) -> String {
    let text = match (change.before.is_some(), change.after.is_some()) {
        (true, true) => "before+after",
        (false, true) => "after",
        (true, false) => "before",
        (false, false) => "none",
    };
    format!("wcc={text}")
}

fn seen(attr: &PostOpAttr) -> &'static str {
    if attr.is_some() { "seen" } else { "absent" }
}

fn moment(time: Nfstime3) -> String {
    format!("{}.{:09}", time.seconds, time.nseconds)
}

fn name(status: Nfsstat3) -> String {
    format!("{status:?}").to_uppercase()
}
