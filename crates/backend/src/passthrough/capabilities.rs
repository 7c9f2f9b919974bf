/// The abilities of a served directory in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// True if the kernel opens handles for this process (CAP_DAC_READ_SEARCH and a file system
    /// that has handles).
    pub kernel_handles: bool,
    /// True if each caller acts under its own ids (root).
    pub caller_identities: bool,
    /// True if the directory is accessed through a separate mount of the server (CAP_SYS_ADMIN),
    /// which contains no other mounts and does not extend above the root.
    pub private_mount: bool,
    /// True if reading a link does not change its time of last access.
    pub still_links: bool,
    /// True if files of all users can be held against programs that open them (CAP_LEASE), or if
    /// that is not required.
    pub all_leases: bool,
}

impl Capabilities {
    /// Returns the abilities that are missing, one sentence each for the log.
    pub fn shortcomings(&self) -> impl Iterator<Item = &'static str> {
        let sentences = [
            (
                self.kernel_handles,
                "files that others rename while no client uses them are found by searching the \
                 tree, which can take seconds; for handles of the kernel run as root on a file \
                 system that has them",
            ),
            (
                self.caller_identities,
                "all clients act with the rights of the server's own user, and what they create is \
                 its; to tell callers apart run as root",
            ),
            (
                self.private_mount,
                "directories that other file systems are mounted on cannot be entered",
            ),
            (
                self.still_links,
                "reading a symbolic link may set its time of last access, as the file system's \
                 mount options say",
            ),
            (
                self.all_leases,
                "no more than files of the server's own user is delegated to clients of NFSv4, \
                 since programs that open others would not be seen; run as root with CAP_LEASE, or \
                 with --no-local-locks",
            ),
        ];
        sentences.into_iter().filter(|(present, _)| !present).map(|(_, sentence)| sentence)
    }
}
