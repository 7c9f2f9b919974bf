//! The file of an OPEN: it is found by name or by filehandle, or created.

use std::sync::Arc;

use comity_credential::Grantee;
use comity_export::{Node, SeenMade, View};
use comity_proto::nfs4::{
    Bitmap4, ChangeInfo4, Createhow4, Fattr4, Nfsstat4, Open4args, OpenClaim4, Openflag4, attribute,
};
use comity_state::{FileKey, Opened, Share};
use comity_vfs::{Access, Attr, Change, Create, Cred, Disk, FileType, SetAttr, Status, Wire};

use crate::attributes::{EXCLUSIVE, Settings, change_info};
use crate::compound::Compound;
use crate::filehandle::Object;
use crate::lookup::not_dir;
use crate::stop::Stop;
use crate::undo::New;

/// The attributes in which an exclusive create stores its verifier. The reply names them, and the
/// client then sets them (RFC 8881, 18.16.3). Linux does so in both modes; otherwise a file that it
/// creates with O_EXCL would have meaningless times.
const HOLDS_VERIFIER: Bitmap4 = Bitmap4::of(&[attribute::TIME_ACCESS, attribute::TIME_MODIFY]);

/// A file that can be opened.
pub(super) struct File<'a> {
    view: View<'a>,
    node: Node,
    by_name: bool,
    /// The change of the directory by the creation.
    pub(super) cinfo: ChangeInfo4,
    /// The attributes that the creation set.
    pub(super) attrset: Bitmap4,
    /// True if the file must be truncated once the OPEN is granted.
    pub(super) empties: bool,
    /// True if the caller's right to open the file was checked.
    judged: bool,
    /// The new entry, if this OPEN created the file.
    new: Option<New<'a>>,
}

impl<'a> File<'a> {
    /// Returns the key of the file in the engine.
    pub(super) fn key(&self) -> FileKey {
        self.view.key(&self.node)
    }

    /// Returns the credentials of the caller, if its right to open the file was checked.
    pub(super) fn user(&self) -> Option<&Arc<Cred<Disk>>> {
        self.judged.then(|| self.view.user())
    }

    /// Returns the key by whose grants or account the caller opens the file.
    pub(super) fn grantee(&self) -> Option<Arc<Grantee>> {
        self.view.grantee()
    }

    /// Returns whether it may be delegated.
    pub(super) fn may_be_delegated(&self) -> Result<bool, Stop> {
        Ok(self.view.may_be_delegated(&self.node)?)
    }

    /// Truncates the file to zero, if the OPEN asks for that.
    pub(super) fn empty(&self, compound: &Compound<'_>, opened: &Opened) -> Result<(), Stop> {
        if self.empties {
            let set = SetAttr { size: Some(0), ..SetAttr::default() };
            let cleared = compound.asker(None).clear_opened(opened);
            self.view.setattr(cleared, &self.node, &set, None)?;
        }
        Ok(())
    }

    /// Removes the file if it was created for an open that failed.
    pub(super) fn undo(&self, compound: &Compound<'_>) {
        if let Some(new) = &self.new {
            new.take_back(compound, &self.view);
        }
    }

    /// Returns the file if the steps after its creation succeeded; otherwise removes it if it is
    /// new.
    fn once(self, compound: &Compound<'_>, done: Result<(), Stop>) -> Result<Self, Stop> {
        done.inspect_err(|_| self.undo(compound))?;
        Ok(self)
    }

    /// Returns the change attribute.
    pub(super) fn change(&self) -> Result<u64, Stop> {
        Ok(self.view.getattr(&self.node)?.change)
    }

    /// Returns the object that becomes the current one, if the OPEN named the file.
    pub(super) fn into_object(self) -> Option<Object<'a>> {
        let Self { view, node, by_name, .. } = self;
        by_name.then_some(Object::In(view, node))
    }
}

/// Finds or creates the file of an OPEN, and checks that the caller may open it.
pub(super) fn find<'a>(
    compound: &mut Compound<'a>,
    args: &Open4args<'a>,
    share: Share,
) -> Result<File<'a>, Stop> {
    if let Object::Pseudo(_) = compound.object()? {
        return Err(above(compound, args)?);
    }
    let (view, node) = compound.real(Nfsstat4::IsDir)?;
    let (view, node) = (view.clone(), *node);
    let name = match &args.claim {
        OpenClaim4::Null(name) | OpenClaim4::DelegateCur { file: name, .. } => name.0,
        _ => {
            let attr = view.getattr(&node)?;
            openable(attr.file_type)?;
            if matches!(args.claim, OpenClaim4::Previous(_)) {
                return Ok(File::there(view, node, ChangeInfo4::default(), false));
            }
            may_open(compound, (&view, &node), (&args.claim, share))?;
            return Ok(File::there(view, node, ChangeInfo4::default(), false).judged());
        }
    };
    if view.getattr(&node)?.file_type != FileType::Directory {
        return Err(not_dir(&view, &node));
    }
    let name = compound.component(name)?;
    match &args.openhow {
        Openflag4::NoCreate => existing(compound, (view, &node), name, (&args.claim, share)),
        Openflag4::Create(how) => {
            let made = made(compound, (view, &node), name, (how, share))?;
            Ok(made.judged_if_permitted(share))
        }
    }
}

/// Returns the error of an OPEN above the exports, where there are only directories.
fn above(compound: &Compound<'_>, args: &Open4args<'_>) -> Result<Stop, Stop> {
    let OpenClaim4::Null(name) = &args.claim else { return Ok(Nfsstat4::IsDir.into()) };
    let name = compound.component(name.0)?;
    match args.openhow {
        Openflag4::Create(_) => Ok(Nfsstat4::RoFs.into()),
        Openflag4::NoCreate => compound.find(name).map(|_| Nfsstat4::IsDir.into()),
    }
}

impl<'a> File<'a> {
    fn there(view: View<'a>, node: Node, cinfo: ChangeInfo4, by_name: bool) -> Self {
        let (attrset, empties, judged) = (Bitmap4::EMPTY, false, false);
        Self { view, node, by_name, cinfo, attrset, empties, judged, new: None }
    }

    /// Sets the attributes that an exclusive create cannot set.
    fn set(&self, compound: &Compound<'_>, settings: &Settings) -> Result<(), Stop> {
        if !settings.set.is_empty() {
            let cleared = compound.asker(None).clear_new();
            self.view.setattr(cleared, &self.node, &settings.set, None)?;
        }
        self.set_acls(compound, settings)
    }

    fn set_acls(&self, compound: &Compound<'_>, settings: &Settings) -> Result<(), Stop> {
        let cleared = compound.asker(None).clear_new();
        settings.set_acls(cleared, (&self.view, &self.node), false)
    }

    /// Notes that the caller's right to open the file was checked.
    fn judged(self) -> Self {
        Self { judged: true, ..self }
    }

    /// Notes whether the caller may open the new file. The client that created the file may open it
    /// in any case; after an exclusive create, the file may have been created by another client.
    fn judged_if_permitted(self, share: Share) -> Self {
        let judged = self.judged || permitted(&self.view, &self.node, share).is_ok();
        Self { judged, ..self }
    }
}

/// Returns an existing file.
fn existing<'a>(
    compound: &Compound<'a>,
    (view, dir): (View<'a>, &Node),
    name: &[u8],
    as_said: (&OpenClaim4<'a>, Share),
) -> Result<File<'a>, Stop> {
    let (seen, of_dir) = compound.look_up((&view, dir), name)?;
    openable(seen.attr.file_type)?;
    may_open(compound, (&view, &seen.node), as_said)?;
    Ok(File::there(view, seen.node, unchanged(of_dir), true).judged())
}

fn made<'a>(
    compound: &mut Compound<'a>,
    (view, dir): (View<'a>, &Node),
    name: &'a [u8],
    (how, share): (&Createhow4<'a>, Share),
) -> Result<File<'a>, Stop> {
    compound.outside_grace(&view)?;
    match how {
        Createhow4::Unchecked(attrs) => {
            let settings = settings(compound, (&view, dir), attrs)?;
            unchecked(compound, (view, dir), name, (settings, share))
        }
        Createhow4::Guarded(attrs) => {
            let settings = settings(compound, (&view, dir), attrs)?;
            let cleared = compound.clear_new_name(&view, dir)?;
            let made = view.create(cleared, dir, name, &Create::Guarded(settings.set))?;
            let fresh = Some(New::made(dir, name, &made));
            let file = new(compound, (view, dir), (&made, fresh), settings.mask);
            let done = file.set_acls(compound, &settings);
            file.once(compound, done)
        }
        Createhow4::Exclusive(verifier) => {
            let cleared = compound.clear_new_name(&view, dir)?;
            let made = view.create(cleared, dir, name, &Create::Exclusive(*verifier))?;
            let fresh = New::if_made(dir, name, &made);
            Ok(new(compound, (view, dir), (&made, fresh), HOLDS_VERIFIER))
        }
        Createhow4::Exclusive41(both) => {
            if compound.minor == 0 {
                return Err(Nfsstat4::BadXdr.into());
            }
            if !both.attrs.attrmask.is_within(&EXCLUSIVE) {
                return Err(Nfsstat4::Inval.into());
            }
            let mut settings = settings(compound, (&view, dir), &both.attrs)?;
            // The file is empty, and truncation would change a time that stores the verifier.
            settings.set.size = settings.set.size.filter(|size| *size != 0);
            let cleared = compound.clear_new_name(&view, dir)?;
            let made = view.create(cleared, dir, name, &Create::Exclusive(both.verf))?;
            let fresh = New::if_made(dir, name, &made);
            let mask = settings.mask.or(&HOLDS_VERIFIER);
            let file = new(compound, (view, dir), (&made, fresh), mask);
            let done = file.set(compound, &settings);
            file.once(compound, done)
        }
    }
}

/// UNCHECKED4: an existing file is opened as it is. If the attributes contain a size of zero, the
/// file is truncated after the open is granted.
fn unchecked<'a>(
    compound: &mut Compound<'a>,
    (view, dir): (View<'a>, &Node),
    name: &'a [u8],
    (settings, share): (Settings, Share),
) -> Result<File<'a>, Stop> {
    match compound.look_up((&view, dir), name) {
        Err(Status::NoEnt) => {}
        Err(status) => return Err(status.into()),
        Ok((seen, of_dir)) => {
            openable(seen.attr.file_type)?;
            permitted(&view, &seen.node, share)?;
            let empties = settings.set.size == Some(0);
            if empties {
                permitted(&view, &seen.node, Share::access(Share::WRITE))?;
            }
            let file = File::there(view, seen.node, unchanged(of_dir), true).judged();
            let size = if empties { Bitmap4::of(&[attribute::SIZE]) } else { Bitmap4::EMPTY };
            return Ok(File { empties, attrset: size, ..file });
        }
    }
    let cleared = compound.clear_new_name(&view, dir)?;
    let made = view.create(cleared, dir, name, &Create::Unchecked(settings.set))?;
    let fresh = New::if_made(dir, name, &made);
    let file = new(compound, (view, dir), (&made, fresh), settings.mask);
    let done = file.set_acls(compound, &settings);
    file.once(compound, done)
}

fn new<'a>(
    compound: &mut Compound<'a>,
    (view, dir): (View<'a>, &Node),
    (made, new): (&SeenMade, Option<New<'a>>),
    attrset: Bitmap4,
) -> File<'a> {
    let barrier = view.change_barrier(dir, Some(&made.value.node));
    compound.behind(barrier);
    let file = File::there(view, made.value.node, change_info(&made.change), true);
    File { attrset, new, ..file }
}

fn settings(
    compound: &Compound<'_>,
    (view, dir): (&View<'_>, &Node),
    attrs: &Fattr4<'_>,
) -> Result<Settings, Stop> {
    Settings::read(view, attrs, false, compound.minor)?.for_new(view, dir)
}

/// Checks that an object is a file. For every type other than file and directory the error is
/// SYMLINK, in all minor versions (RFC 7530, 16.16.5). The Linux client sends OPEN before it knows
/// the type; at SYMLINK it opens a FIFO or a device locally, but at WRONG_TYPE (RFC 8881, 18.16.3)
/// it returns EIO.
const fn openable(file_type: FileType) -> Result<(), Nfsstat4> {
    match file_type {
        FileType::Regular => Ok(()),
        FileType::Directory => Err(Nfsstat4::IsDir),
        _ => Err(Nfsstat4::Symlink),
    }
}

/// Checks that the caller may open the file. The user for whom the file was delegated may open it
/// again under the delegation, even if its mode has changed.
fn may_open(
    compound: &Compound<'_>,
    (view, node): (&View<'_>, &Node),
    (claim, share): (&OpenClaim4<'_>, Share),
) -> Result<(), Stop> {
    if let OpenClaim4::DelegateCur { delegate_stateid: delegation, .. }
    | OpenClaim4::DelegCurFh(delegation) = claim
        && let Ok((Some(shown), _)) = compound.check_io((view, node), delegation, share.access)
        && shown.opened
    {
        return Ok(());
    }
    permitted(view, node, share)
}

/// Checks the rights to open. Execution includes reading, so that clients can run a file.
fn permitted(view: &View<'_>, node: &Node, share: Share) -> Result<(), Stop> {
    let wanted = Access::READ | Access::MODIFY | Access::EXECUTE;
    let (granted, _) = view.access(node, wanted)?;
    let reads =
        share.access & Share::READ == 0 || granted.intersects(Access::READ | Access::EXECUTE);
    let writes = share.access & Share::WRITE == 0 || granted.contains(Access::MODIFY);
    if !writes && view.rules().read_only {
        return Err(Nfsstat4::RoFs.into());
    }
    if reads && writes { Ok(()) } else { Err(Nfsstat4::Access.into()) }
}

fn unchanged(dir: Option<Attr<Wire>>) -> ChangeInfo4 {
    change_info(&Change { before: dir, after: dir })
}
