/// The knowledge of the size of a file that clients write by layouts. They may write to data
/// servers beyond the end of the file, and then die before they say so by LAYOUTCOMMIT.
#[derive(Debug, Default)]
pub(crate) struct UnsettledSize {
    /// Layouts for writing.
    writers: usize,
    /// True if stable storage has a record of the file: from the first layout for writing until
    /// there is none and the size is known.
    recorded: bool,
    doubt: Doubt,
    /// True if the file is in the queue of those with a next step.
    queued: bool,
}

/// The need to ask data servers for the size of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Doubt {
    /// The size is known, or clients with layouts will tell it.
    #[default]
    None,
    /// Data servers have to be asked.
    Due,
    /// They are being asked.
    Asked,
}

/// The next step to settle a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SizeStep {
    /// Data servers have to be asked.
    Ask,
    /// The size is known, and stable storage may forget the file.
    Forget,
}

impl UnsettledSize {
    /// Returns whether nothing is to be remembered.
    pub(crate) const fn is_settled(&self) -> bool {
        !self.recorded
    }

    /// Returns whether data servers must be asked, or are being asked.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubt != Doubt::None
    }

    /// Notes a new layout for writing; returns whether the file must be recorded.
    pub(crate) const fn begin_writing(&mut self) -> bool {
        self.writers += 1;
        !std::mem::replace(&mut self.recorded, true)
    }

    /// Notes the end of a layout for writing. Returns whether the file must be queued.
    pub(crate) fn end_writing(&mut self, doubtful: bool) -> bool {
        self.writers = self.writers.saturating_sub(1);
        if doubtful {
            self.doubt = Doubt::Due;
        }
        self.queue()
    }

    /// Notes that clients may have written without saying so, and that stable storage has a record
    /// of the file. Returns whether the file must be queued.
    pub(crate) fn doubt(&mut self) -> bool {
        self.recorded = true;
        self.doubt = Doubt::Due;
        self.queue()
    }

    /// Queues a file with a next step; returns false if there is none, or the file is queued.
    pub(crate) fn queue(&mut self) -> bool {
        let has_step = self.doubt == Doubt::Due || self.can_be_forgotten();
        has_step && !std::mem::replace(&mut self.queued, true)
    }

    /// Begins the next step of a file that has left the queue.
    pub(crate) fn begin_step(&mut self) -> Option<SizeStep> {
        self.queued = false;
        if self.doubt == Doubt::Due {
            self.doubt = Doubt::Asked;
            return Some(SizeStep::Ask);
        }
        let forgets = self.can_be_forgotten();
        self.recorded &= !forgets;
        forgets.then_some(SizeStep::Forget)
    }

    /// Leaves the queue without a step.
    pub(crate) const fn wait(&mut self) {
        self.queued = false;
    }

    /// Notes whether data servers have told the size. Returns whether the file must be queued.
    pub(crate) fn asked(&mut self, done: bool) -> bool {
        if self.doubt == Doubt::Asked {
            self.doubt = if done { Doubt::None } else { Doubt::Due };
        }
        self.queue()
    }

    fn can_be_forgotten(&self) -> bool {
        self.recorded && self.writers == 0 && self.doubt == Doubt::None
    }
}
