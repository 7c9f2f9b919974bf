use std::fmt;

/// Something that a server can run out of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// All processors of the machine.
    Processor,
    /// The part of the processors that the server itself uses.
    ServerProcessor,
    /// The part of the processors that hard and soft interrupts use.
    Interrupts,
    /// Time in which a task waited for a processor (PSI).
    ProcessorStall,
    /// Memory that is not available.
    Memory,
    /// Time in which a task waited for memory (PSI).
    MemoryStall,
    /// Time in which a task waited for storage (PSI).
    StorageStall,
    /// A disk: time in which it had something to do.
    Disk(String),
    /// Bytes received by a network interface, of what its line carries.
    NetworkReceive(String),
    /// Bytes sent by a network interface, of what its line carries.
    NetworkSend(String),
    /// Threads of the server, of the most that it starts.
    Threads,
    /// Open connections, of the most that are let in.
    Connections,
    /// Bytes held for peers, of the server's memory for that.
    Buffers,
    /// Clients of NFSv4 and hosts that lock, of the most that are known.
    Clients,
    /// Bytes of opens, locks and delegations, of the most for these.
    ClientState,
    /// Delegations, of the most that are granted.
    Delegations,
    /// Bytes set aside for replies that are kept, of the most for these.
    ReplyCache,
}

impl Resource {
    /// Returns whether the server as a whole slows down when the resource is full. The others are
    /// a part of another resource, or are full on a healthy machine: memory is used for caches.
    #[must_use]
    pub const fn can_limit(&self) -> bool {
        !matches!(self, Self::ServerProcessor | Self::Interrupts | Self::Memory)
    }

    /// Returns the name of the kind of resource, as in metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::ServerProcessor => "server_processor",
            Self::Interrupts => "interrupts",
            Self::ProcessorStall => "processor_stall",
            Self::Memory => "memory",
            Self::MemoryStall => "memory_stall",
            Self::StorageStall => "storage_stall",
            Self::Disk(_) => "disk",
            Self::NetworkReceive(_) => "network_receive",
            Self::NetworkSend(_) => "network_send",
            Self::Threads => "threads",
            Self::Connections => "connections",
            Self::Buffers => "buffers",
            Self::Clients => "clients",
            Self::ClientState => "client_state",
            Self::Delegations => "delegations",
            Self::ReplyCache => "reply_cache",
        }
    }

    /// Returns the name of the disk or the network interface, if it is one.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        match self {
            Self::Disk(device) | Self::NetworkReceive(device) | Self::NetworkSend(device) => {
                Some(device)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.kind().replace('_', " "))?;
        self.device().map_or(Ok(()), |device| write!(out, " {device}"))
    }
}
