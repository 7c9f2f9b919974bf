/// The number of a set of data servers (`deviceid4`).
pub type DeviceId = [u8; 16];

/// The distribution of a file over data servers. Stripe units are on the servers in turn, beginning
/// with the first server. Each server stores its units at the offsets that they have in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Striping {
    /// The data servers.
    pub device: DeviceId,
    /// The length of a stripe unit in bytes.
    pub unit_bytes: u32,
    /// For each data server, the handle by which a client reads or writes the file there.
    pub handles: Vec<Box<[u8]>>,
}

/// The kind of layouts by which clients use the data servers of a placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutKind {
    /// Stripes on data servers that know the metadata server (RFC 8881, 13).
    Files,
    /// Mirrors on servers of NFSv3 that know nothing of layouts (RFC 8435).
    FlexibleFiles,
}

/// The distribution of a file over data servers, with what a client needs to use them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distribution {
    /// Each data server has a part of the file.
    Stripes(Striping),
    /// Each data server has the whole file. A client reads from one and writes to all.
    Mirrors(Vec<MirrorFile>),
}

impl Distribution {
    /// The kind of layout that describes it.
    #[must_use]
    pub const fn kind(&self) -> LayoutKind {
        match self {
            Self::Stripes(_) => LayoutKind::Files,
            Self::Mirrors(_) => LayoutKind::FlexibleFiles,
        }
    }
}

/// A mirror of a file, for a client with a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorFile {
    /// The data server.
    pub device: DeviceId,
    /// The data server's own handle of the file.
    pub handle: Box<[u8]>,
    /// The user as which the client calls the data server.
    pub uid: u32,
    /// The group as which it does.
    pub gid: u32,
}
