//! A call, which is made to both servers.

use comity_proto::nfs3::{
    Access3args, Commit3args, Create3args, Createhow3, Diropargs3, Link3args, Mkdir3args,
    Mknod3args, Mknoddata3, NfsFh3, Nfstime3, Read3args, Readdir3args, Readdirplus3args,
    Rename3args, Sattr3, SetTime3, Setattr3args, Specdata3, StableHow, Symlink3args, Write3args,
    procedure,
};
use comity_proto::{mount, nfs3};
use comity_vfs::Handle;
use comity_xdr::Opaque;

use super::exception::Place;
use super::rng::Rng;
use super::twins::{Target, sealed};
use crate::world::encoded;

pub(crate) struct Shot {
    pub(crate) program: u32,
    pub(crate) procedure: u32,
    pub(crate) arguments: [Vec<u8>; 2],
    /// The name that the call would make.
    pub(crate) onto: Option<Place>,
    /// The object that the call would remove or replace.
    pub(crate) emptied: Option<Place>,
    pub(crate) told: String,
}

impl Shot {
    pub(crate) fn mount(path: &str) -> Self {
        Self::of_mounting(mount::procedure::MNT, Some(path))
    }

    /// A call of MOUNT, with the path of an object or without arguments.
    fn of_mounting(procedure: u32, path: Option<&str>) -> Self {
        let path = path.map(|path| format!("/srv{path}"));
        let arguments = path.as_ref().map_or_else(Vec::new, |path| {
            encoded(&Opaque::<{ mount::PATH_BYTES_MAX }>(path.as_bytes()))
        });
        Self {
            program: mount::PROGRAM,
            procedure,
            arguments: [arguments.clone(), arguments],
            onto: None,
            emptied: None,
            told: format!("procedure {procedure} of MOUNT on {path:?}"),
        }
    }

    /// A call about an object.
    pub(crate) fn on(
        procedure: u32,
        target: &Target,
        arguments: impl Fn(&[u8]) -> Vec<u8>,
    ) -> Self {
        Self {
            program: nfs3::PROGRAM,
            procedure,
            arguments: target.handles.map(|handle| arguments(&sealed(&handle))),
            onto: None,
            emptied: None,
            told: format!("procedure {procedure} on {}", target.path),
        }
    }

    /// A call about two objects.
    fn on_both(
        procedure: u32,
        (one, other): (&Target, &Target),
        arguments: impl Fn(&[u8], &[u8]) -> Vec<u8>,
    ) -> Self {
        let both = |side: usize| {
            let handle = |target: &Target| -> Handle { target.handles[side] };
            arguments(&sealed(&handle(one)), &sealed(&handle(other)))
        };
        let told = format!("procedure {procedure} on {} and {}", one.path, other.path);
        let (onto, emptied) = (None, None);
        let arguments = [both(0), both(1)];
        Self { program: nfs3::PROGRAM, procedure, arguments, onto, emptied, told }
    }

    fn named(self, name: &[u8]) -> Self {
        let told = format!("{} {:?}", self.told, String::from_utf8_lossy(name));
        Self { told, ..self }
    }

    fn onto(self, dir: &Target, name: &[u8]) -> Self {
        Self { onto: Some((dir.clone(), name.to_vec())), ..self }
    }

    fn emptying(self, dir: &Target, name: &[u8]) -> Self {
        Self { emptied: Some((dir.clone(), name.to_vec())), ..self }
    }
}

/// All calls about an object that do not change it.
pub(crate) fn questions(rng: &mut Rng, target: &Target) -> Vec<Shot> {
    let bare = |handle: &[u8]| encoded(&handle_of(handle));
    let mut shots: Vec<Shot> = [
        procedure::GETATTR,
        procedure::READLINK,
        procedure::FSSTAT,
        procedure::FSINFO,
        procedure::PATHCONF,
    ]
    .into_iter()
    .map(|procedure| Shot::on(procedure, target, bare))
    .collect();
    shots.push(Shot::on(procedure::ACCESS, target, |handle| {
        encoded(&Access3args { object: Opaque(handle), access: 0x3f })
    }));
    shots.push(Shot::on(procedure::READ, target, |handle| {
        encoded(&Read3args { file: Opaque(handle), offset: 2, count: 100 })
    }));
    shots.push(Shot::on(procedure::COMMIT, target, |handle| {
        encoded(&Commit3args { file: Opaque(handle), offset: 0, count: 0 })
    }));
    let names = target.names.iter().flatten().cloned();
    shots.extend(names.chain((0..3).map(|_| odd_name(rng))).map(|name| {
        let place = |dir: &[u8]| encoded(&place(dir, &name));
        Shot::on(procedure::LOOKUP, target, place).named(&name)
    }));
    shots.push(Shot::mount(&target.path));
    shots.push(Shot::of_mounting(mount::procedure::DUMP, None));
    shots.push(Shot::of_mounting(mount::procedure::UMNT, Some(&target.path)));
    shots.push(Shot::of_mounting(mount::procedure::UMNTALL, None));
    shots.push(Shot::of_mounting(mount::procedure::EXPORT, None));
    shots
}

/// Calls that list a directory from any cookie, with small and large counts.
pub(crate) fn listings(rng: &mut Rng, dir: &Target) -> Vec<Shot> {
    let mut shots = Vec::new();
    let last = dir.names.as_ref().map_or(0, |names| names.len() as u64 + 4);
    for cookie in 0..=last {
        let count = *rng.pick(&[120, 180, 260, 4096]);
        shots.push(Shot::on(procedure::READDIR, dir, |handle| {
            let (dir, cookieverf) = (Opaque(handle), [0; 8]);
            encoded(&Readdir3args { dir, cookie, cookieverf, count })
        }));
        shots.push(Shot::on(procedure::READDIRPLUS, dir, |handle| {
            let (dircount, maxcount) = (count / 4, count * 2);
            let (dir, cookieverf) = (Opaque(handle), [0; 8]);
            encoded(&Readdirplus3args { dir, cookie, cookieverf, dircount, maxcount })
        }));
    }
    shots
}

/// Calls that list a whole directory at once.
pub(crate) fn whole_listings(dir: &Target) -> Vec<Shot> {
    let (cookie, cookieverf, count) = (0, [0; 8], 1 << 15);
    vec![
        Shot::on(procedure::READDIR, dir, |handle| {
            encoded(&Readdir3args { dir: Opaque(handle), cookie, cookieverf, count })
        }),
        Shot::on(procedure::READDIRPLUS, dir, |handle| {
            let (dir, dircount, maxcount) = (Opaque(handle), count, count);
            encoded(&Readdirplus3args { dir, cookie, cookieverf, dircount, maxcount })
        }),
    ]
}

/// A random call that changes something, or fails to.
pub(crate) fn change(rng: &mut Rng, targets: &[Target], owners: &[u32]) -> Shot {
    let (one, other) = (rng.pick(targets), rng.pick(targets));
    let (name, new) = (name_in(rng, one), name_in(rng, other));
    match rng.below(12) {
        0 => Shot::on(procedure::REMOVE, one, |dir| encoded(&place(dir, &name))).named(&name),
        1 => Shot::on(procedure::RMDIR, one, |dir| encoded(&place(dir, &name)))
            .named(&name)
            .emptying(one, &name),
        2 | 3 => renamed((one, &name), (other, &new)),
        4 => Shot::on_both(procedure::LINK, (one, other), |file, dir| {
            encoded(&Link3args { file: Opaque(file), link: place(dir, &new) })
        })
        .named(&new)
        .onto(other, &new),
        5 => setattr(rng, one, owners),
        6 => Shot::on(procedure::WRITE, one, |handle| {
            let (file, data) = (Opaque(handle), Opaque(&b"other"[..]));
            let stable = StableHow::Unstable;
            encoded(&Write3args { file, offset: 3, count: 5, stable, data })
        }),
        _ => make(rng, (other, &new), owners).named(&new).onto(other, &new),
    }
}

/// Usually a name that existed at the beginning.
fn name_in(rng: &mut Rng, dir: &Target) -> Vec<u8> {
    match &dir.names {
        Some(names) if !names.is_empty() && !rng.one_in(4) => rng.pick(names).clone(),
        _ => odd_name(rng),
    }
}

fn odd_name(rng: &mut Rng) -> Vec<u8> {
    let names = [&b"."[..], b"..", b"n00", b"n03", b"new", b"newer", b"", b"a/b", &[b'x'; 256]];
    rng.pick(&names).to_vec()
}

fn renamed((source, old): (&Target, &[u8]), (target, new): (&Target, &[u8])) -> Shot {
    Shot::on_both(procedure::RENAME, (source, target), |source, target| {
        encoded(&Rename3args { from: place(source, old), to: place(target, new) })
    })
    .named(old)
    .named(new)
    .onto(target, new)
    .emptying(target, new)
}

fn make(rng: &mut Rng, (dir, name): (&Target, &[u8]), owners: &[u32]) -> Shot {
    let attributes = attributes(rng, owners);
    let create = |how: Createhow3| {
        Shot::on(procedure::CREATE, dir, |dir| {
            encoded(&Create3args { place: place(dir, name), how })
        })
    };
    let mknod = |what: Mknoddata3| {
        Shot::on(procedure::MKNOD, dir, |dir| {
            encoded(&Mknod3args { place: place(dir, name), what })
        })
    };
    let device = Specdata3 { major: 1, minor: 3 };
    match rng.below(7) {
        0 => create(Createhow3::Unchecked(attributes)),
        1 => create(Createhow3::Guarded(attributes)),
        2 => create(Createhow3::Exclusive([3; 8])),
        3 => mknod(Mknoddata3::Fifo(attributes)),
        4 => mknod(Mknoddata3::Chr(attributes, device)),
        5 => Shot::on(procedure::MKDIR, dir, |dir| {
            encoded(&Mkdir3args { place: place(dir, name), attributes })
        }),
        _ => Shot::on(procedure::SYMLINK, dir, |dir| {
            let target = Opaque(&b"n01"[..]);
            encoded(&Symlink3args { place: place(dir, name), attributes, target })
        }),
    }
}

fn setattr(rng: &mut Rng, target: &Target, owners: &[u32]) -> Shot {
    let new_attributes = attributes(rng, owners);
    let guard = rng.one_in(4).then_some(Nfstime3 { seconds: 7, nseconds: 5 });
    Shot::on(procedure::SETATTR, target, |handle| {
        encoded(&Setattr3args { object: Opaque(handle), new_attributes, guard })
    })
}

/// Sometimes sets an owner that the caller may not set, or that no id stands for.
fn attributes(rng: &mut Rng, owners: &[u32]) -> Sattr3 {
    let id = |rng: &mut Rng| rng.one_in(6).then(|| *rng.pick(owners));
    let time =
        Nfstime3 { seconds: 9, nseconds: *[1, 1_000_000_000].get(rng.below(9)).unwrap_or(&1) };
    Sattr3 {
        mode: rng.one_in(2).then(|| *rng.pick(&[0o600, 0o755, 0o070, 0o2770])),
        uid: id(rng),
        gid: id(rng),
        size: rng.one_in(4).then_some(3),
        mtime: if rng.one_in(4) { SetTime3::SetToClientTime(time) } else { SetTime3::DontChange },
        ..Sattr3::default()
    }
}

fn place<'a>(dir: &'a [u8], name: &'a [u8]) -> Diropargs3<'a> {
    Diropargs3 { dir: Opaque(dir), name: Opaque(name) }
}

fn handle_of(handle: &[u8]) -> NfsFh3<'_> {
    Opaque(handle)
}
