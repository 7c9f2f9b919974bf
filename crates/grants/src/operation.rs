use comity_keynote::Rights;

/// The class of an operation on an object, for which a caller needs a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// Learn the attributes of an object.
    Look,
    /// Read data or list a directory.
    Read,
    /// Find a name in a directory.
    Search,
    /// Change data.
    Write,
    /// Change attributes.
    SetAttributes,
    /// Put a name into a directory.
    Create,
    /// Take a name out of a directory.
    Delete,
}

impl Operation {
    /// All operations, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Look,
        Self::Read,
        Self::Search,
        Self::Write,
        Self::SetAttributes,
        Self::Create,
        Self::Delete,
    ];

    /// Its name, which is the value of the action attribute `operation`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Read => "read",
            Self::Search => "search",
            Self::Write => "write",
            Self::SetAttributes => "set_attributes",
            Self::Create => "create",
            Self::Delete => "delete",
        }
    }

    /// Returns whether the operation makes a change.
    #[must_use]
    pub const fn changes(self) -> bool {
        matches!(self, Self::Write | Self::SetAttributes | Self::Create | Self::Delete)
    }

    /// The right that the operation needs; `None` if any right suffices.
    #[must_use]
    pub const fn needs(self) -> Option<Rights> {
        match self {
            Self::Look => None,
            Self::Read => Some(Rights::READ),
            Self::Search => Some(Rights::EXECUTE),
            Self::Write => Some(Rights::WRITE),
            Self::SetAttributes => Some(Rights::ATTRIBUTES),
            Self::Create => Some(Rights::CREATE),
            Self::Delete => Some(Rights::DELETE),
        }
    }

    /// Returns whether these rights suffice for the operation.
    #[must_use]
    pub fn is_allowed(self, rights: Rights) -> bool {
        match self.needs() {
            None => !rights.is_none(),
            Some(needed) => rights.contains(needed),
        }
    }
}
