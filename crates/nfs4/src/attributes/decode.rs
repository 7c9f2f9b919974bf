use comity_coherence::Clearance;
use comity_export::{Node, View};
use comity_proto::nfs4::{
    Acl4, Bitmap4, Fattr4, ModeMasked4, Nfsstat4, Nfstime4, Owner4, Settime4, attribute as a,
};
use comity_vfs::{AclKind, Mode, SetAttr, SetTime, Status, Time, Wire};
use comity_xdr::Decoder;

use super::acl::{self, Acls};
use super::owner::Owners;
use super::supported::{SETTABLE, supported};
use crate::stop::Stop;

const NANOSECONDS_PER_SECOND: u32 = 1_000_000_000;

/// Attributes that a client wants set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// The attributes that the file system sets in one call.
    pub(crate) set: SetAttr<Wire>,
    /// The ACLs of the object.
    pub(crate) acls: Option<Acls>,
    /// A mode, and the umask that applies unless the directory has an ACL for new objects (RFC
    /// 8275).
    mode_umask: Option<ModeMasked4>,
    /// The numbers of the attributes.
    pub(crate) mask: Bitmap4,
}

impl Settings {
    /// Decodes attributes for an object. `view` maps the names of users and groups.
    ///
    /// # Errors
    /// [`Nfsstat4::AttrNotSupp`] for an unknown attribute, [`Nfsstat4::Inval`] for one that cannot
    /// be set, [`Nfsstat4::BadOwner`] for a user or group that the caller's domain does not know,
    /// [`Nfsstat4::BadXdr`] for invalid values or bytes after the last one.
    pub(crate) fn read(
        view: &View<'_>,
        said: &Fattr4<'_>,
        is_dir: bool,
        minor: u32,
    ) -> Result<Self, Stop> {
        if !said.attrmask.is_within(&supported(minor)) {
            return Err(Nfsstat4::AttrNotSupp.into());
        }
        if !said.attrmask.is_within(&SETTABLE) {
            return Err(Nfsstat4::Inval.into());
        }
        let mut values = Decoder::new(said.attr_vals.0);
        let mut settings = Self { mask: said.attrmask, ..Self::default() };
        for number in said.attrmask.iter() {
            settings.read_one(number, &mut values, (view, is_dir))?;
        }
        values.finish()?;
        Ok(settings)
    }

    fn read_one(
        &mut self,
        number: u32,
        values: &mut Decoder<'_>,
        (view, is_dir): (&View<'_>, bool),
    ) -> Result<(), Stop> {
        let set = &mut self.set;
        match number {
            a::SIZE => set.size = Some(values.value()?),
            a::ACL => self.acls = Some(acl::read(&values.value::<Acl4<'_>>()?, view, is_dir)?),
            a::MODE => set.mode = Some(mode(values.value()?)?),
            a::OWNER => set.uid = Some(view.user_in(values.value::<Owner4<'_>>()?.0)?),
            a::OWNER_GROUP => set.gid = Some(view.group_in(values.value::<Owner4<'_>>()?.0)?),
            a::TIME_ACCESS_SET => set.atime = Some(set_time(values.value()?)?),
            a::TIME_MODIFY_SET => set.mtime = Some(set_time(values.value()?)?),
            a::MODE_UMASK => self.mode_umask = Some(values.value()?),
            _ => return Err(Nfsstat4::Inval.into()),
        }
        Ok(())
    }

    /// Decides the mode of a new object in a directory. If the client gave a mode and a umask, the
    /// umask is applied unless the directory has an ACL for new objects.
    ///
    /// # Errors
    /// [`Nfsstat4::Inval`] if two modes were given.
    pub(crate) fn for_new(mut self, view: &View<'_>, dir: &Node) -> Result<Self, Stop> {
        if let Some(ModeMasked4 { value, mask }) = self.mode_umask.take() {
            if self.set.mode.is_some() {
                return Err(Nfsstat4::Inval.into());
            }
            let inherits = match view.getacl(dir, AclKind::Default) {
                Ok(acl) => acl.is_some(),
                Err(Status::NotSupp) => false,
                Err(status) => return Err(status.into()),
            };
            self.set.mode = Some(mode(if inherits { value } else { value & !mask })?);
        }
        Ok(self)
    }

    /// Returns whether they contain an attribute that is allowed for new objects only.
    pub(crate) const fn is_for_new(&self) -> bool {
        self.mode_umask.is_some()
    }

    /// Returns whether ACLs were given.
    pub(crate) const fn has_acls(&self) -> bool {
        self.acls.is_some()
    }

    /// Sets the ACLs, if any were given.
    ///
    /// # Errors
    /// [`Nfsstat4::AttrNotSupp`] where the file system has none.
    pub(crate) fn set_acls(
        &self,
        clearance: Clearance<'_>,
        (view, node): (&View<'_>, &Node),
        is_dir: bool,
    ) -> Result<(), Stop> {
        let Some(acls) = &self.acls else { return Ok(()) };
        let supported = |status| match status {
            Status::NotSupp => Stop::Status(Nfsstat4::AttrNotSupp),
            status => status.into(),
        };
        let access = Some(&acls.access).filter(|acl| !acl.is_minimal());
        if access.is_none() {
            // An ACL of three entries is the same as a mode, so the earlier ACL is removed.
            view.setacl(clearance, node, AclKind::Access, None).map_err(supported)?;
            let kept = view.getattr(node)?.mode;
            let set = SetAttr { mode: Some(acls.access.mode(kept)), ..SetAttr::default() };
            view.setattr(clearance, node, &set, None)?;
        } else {
            view.setacl(clearance, node, AclKind::Access, access).map_err(supported)?;
        }
        if is_dir {
            view.setacl(clearance, node, AclKind::Default, acls.default.as_ref())
                .map_err(supported)?;
        }
        Ok(())
    }
}

fn mode(bits: u32) -> Result<Mode, Nfsstat4> {
    if bits & !0o7777 != 0 { Err(Nfsstat4::Inval) } else { Ok(Mode::new(bits)) }
}

fn set_time(wanted: Settime4) -> Result<SetTime, Nfsstat4> {
    match wanted {
        Settime4::SetToServerTime => Ok(SetTime::Now),
        Settime4::SetToClientTime(Nfstime4 { nseconds: NANOSECONDS_PER_SECOND.., .. }) => {
            Err(Nfsstat4::Inval)
        }
        Settime4::SetToClientTime(Nfstime4 { seconds, nseconds }) => {
            Ok(SetTime::To(Time { seconds, nanoseconds: nseconds }))
        }
    }
}
