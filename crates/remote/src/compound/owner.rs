/// A caller as an owner of opens: its opens of a file are one to the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenOwner {
    /// Its number, by which its opens are told from those of others.
    pub(crate) id: u32,
    /// Its credential, as AUTH_SYS has it.
    pub(crate) credential: Vec<u8>,
}
