/// A caller as an open-owner: the server counts all its opens of one file as one open.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenOwner {
    /// Its number; open-owners of one mount differ in it.
    pub(crate) id: u32,
    /// Its credential, as the body of AUTH_SYS.
    pub(crate) credential: Vec<u8>,
}
