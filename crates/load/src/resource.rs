use std::fmt;

/// A resource that a server can use up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The processors on which the server may run: all of the machine, as a rule.
    Processor,
    /// The part of the processors that the server itself uses.
    ServerProcessor,
    /// Time in which threads of the server waited for a processor that others used, of the time in
    /// which they ran or waited.
    ServerStall,
    /// The part of the processors that hard and soft interrupts use.
    Interrupts,
    /// Time in which a task waited for a processor (PSI).
    ProcessorStall,
    /// Memory that is not available for new use.
    Memory,
    /// Time in which a task waited for memory (PSI).
    MemoryStall,
    /// Time in which a task waited for storage (PSI).
    StorageStall,
    /// A disk: the part of the time in which it was busy.
    Disk(String),
    /// A disk whose rates were measured once: the part of them that is in use.
    DiskRate(String),
    /// Bytes received by a network interface, relative to the capacity of its line.
    NetworkReceive(String),
    /// Bytes sent by a network interface, relative to the capacity of its line.
    NetworkSend(String),
    /// Threads of the server, relative to the most that it starts.
    Threads,
    /// Open connections, relative to the most that are accepted.
    Connections,
    /// Bytes buffered for peers, relative to the bound of that memory.
    Buffers,
    /// Clients of NFSv4 and hosts that lock, relative to the bound of clients.
    Clients,
    /// Bytes of opens, locks and delegations, relative to their bound.
    ClientState,
    /// Delegations, relative to the bound of delegations.
    Delegations,
    /// Bytes reserved for replies that are kept, relative to their bound.
    ReplyCache,
}

impl Resource {
    /// Returns whether the server as a whole slows down when the resource is full. Other resources
    /// are part of another one, or are full on a healthy machine: memory is used for caches.
    #[must_use]
    pub const fn can_limit(&self) -> bool {
        !matches!(self, Self::ServerProcessor | Self::Interrupts | Self::Memory)
    }

    /// Returns the name of the resource's kind in metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::ServerProcessor => "server_processor",
            Self::ServerStall => "server_stall",
            Self::Interrupts => "interrupts",
            Self::ProcessorStall => "processor_stall",
            Self::Memory => "memory",
            Self::MemoryStall => "memory_stall",
            Self::StorageStall => "storage_stall",
            Self::Disk(_) => "disk",
            Self::DiskRate(_) => "disk_rate",
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
            Self::Disk(device)
            | Self::DiskRate(device)
            | Self::NetworkReceive(device)
            | Self::NetworkSend(device) => Some(device),
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
