use std::os::unix::ffi::OsStrExt;

use comity_export::{Door, Export, Found, Node, Seen, View};
use comity_proto::nfs4::Nfsstat4;
use comity_vfs::{Attr, FileType, Status, Wire};

use crate::compound::Compound;
use crate::filehandle::{Finding, Object};
use crate::stop::Stop;

/// Lookups from one object to another, and checks of the object's type.
impl<'a> Compound<'a> {
    /// Looks up a name in the current directory. A name that is not found in the root of an export
    /// with `fsid=0` is looked up above the exports, so that paths of NFSv3 are valid, too.
    pub(crate) fn find(&self, name: &[u8]) -> Result<Finding<'a>, Stop> {
        let pseudo = self.pseudo();
        match self.object()? {
            Object::Pseudo(node) => Ok(pseudo.lookup(*node, name)?.into()),
            Object::Absent(_) => Err(Nfsstat4::Moved.into()),
            Object::In(view, node) => match self.look_up((view, node), name) {
                Ok((seen, _)) => {
                    if seen.attr.file_type == FileType::Directory
                        && let Some(export) = view.covering(&pseudo, &seen.node, name)?
                    {
                        return Ok(Finding::Export(export));
                    }
                    Ok(Finding::Object(Object::In(view.clone(), seen.node)))
                }
                Err(Status::NoEnt) if view.export().is_v4_root() && view.is_root(node) => {
                    Ok(pseudo.lookup(pseudo.top(), name)?.into())
                }
                Err(Status::NotDir) => Err(not_dir(view, node)),
                Err(status) => Err(status.into()),
            },
        }
    }

    /// Looks up a name in a directory, and notes its object for notifications of its attributes.
    pub(crate) fn look_up(
        &self,
        (view, dir): (&View<'_>, &Node),
        name: &[u8],
    ) -> comity_vfs::Result<(Seen, Option<Attr<Wire>>)> {
        let record = self.child_record(view, dir);
        let found = view.lookup(dir, name)?;
        if let Some(record) = record {
            record.note(view, name, &found.0.node);
        }
        Ok(found)
    }

    /// Returns the parent of the current directory. The parent of an export's root is outside the
    /// export.
    pub(crate) fn above(&self) -> Result<Object<'a>, Stop> {
        let pseudo = self.pseudo();
        match self.object()? {
            Object::Pseudo(node) => {
                let above = pseudo.parent(*node).ok_or(Nfsstat4::NoEnt)?;
                Ok(Object::Pseudo(above))
            }
            Object::Absent(_) => Err(Nfsstat4::Moved.into()),
            Object::In(view, node) if view.is_root(node) => self.out_of(view.export()),
            Object::In(view, node) => match view.lookup(node, b"..") {
                Ok((above, _)) => Ok(Object::In(view.clone(), above.node)),
                Err(Status::NotDir) => Err(not_dir(view, node)),
                Err(status) => Err(status.into()),
            },
        }
    }

    /// Returns the root of an export.
    pub(crate) fn enter_export(&self, export: &Export) -> Result<Object<'a>, Stop> {
        self.enter(Door::Path(export.path().as_os_str().as_bytes()))
    }

    /// Checks that an object is a regular file. The error for other types depends on the minor
    /// version (RFC 7530, 13.1.8; RFC 8881, 15.1.2).
    pub(crate) const fn must_be_file(&self, file_type: FileType) -> Result<(), Nfsstat4> {
        match file_type {
            FileType::Regular => Ok(()),
            FileType::Directory => Err(Nfsstat4::IsDir),
            _ if self.minor == 0 => Err(Nfsstat4::Inval),
            FileType::Symlink => Err(Nfsstat4::Symlink),
            _ => Err(Nfsstat4::WrongType),
        }
    }

    fn out_of(&self, export: &Export) -> Result<Object<'a>, Stop> {
        let pseudo = self.pseudo();
        if matches!(pseudo.root()?, Found::Export(top) if top.id() == export.id()) {
            return Err(Nfsstat4::NoEnt.into());
        }
        let path = export.path().parent().ok_or(Nfsstat4::NoEnt)?;
        match pseudo.around(export)? {
            Some(_) => self.enter(Door::Path(path.as_os_str().as_bytes())),
            None => Ok(Object::Pseudo(pseudo.above(export)?)),
        }
    }
}

impl<'a> Finding<'a> {
    /// Returns the object, after the caller has entered its export.
    pub(crate) fn entered(self, compound: &Compound<'a>) -> Result<Object<'a>, Stop> {
        match self {
            Self::Object(object) => Ok(object),
            Self::Export(export) => compound.enter_export(export),
        }
    }
}

impl<'a> From<Found<'a>> for Finding<'a> {
    fn from(found: Found<'a>) -> Self {
        match found {
            Found::Pseudo(node) => Self::Object(Object::Pseudo(node)),
            Found::Export(export) => Self::Export(export),
        }
    }
}

/// Returns the error for a lookup in an object that is no directory.
pub(crate) fn not_dir(view: &View<'_>, node: &Node) -> Stop {
    match view.getattr(node) {
        Ok(attr) if attr.file_type == FileType::Symlink => Nfsstat4::Symlink.into(),
        _ => Nfsstat4::NotDir.into(),
    }
}
