use comity_export::{Door, Node, Plan, Refusal, View, Visitor};
use comity_rpc::{AuthStat, Call};
use comity_vfs::Status;
use comity_xdr::Decode;

/// One call on its way to its verb: what the verbs of both programs need.
pub(crate) struct Request<'a> {
    /// What is offered while it is answered.
    pub(crate) plan: &'a Plan,
    /// Who calls.
    pub(crate) visitor: &'a Visitor,
    call: &'a Call<'a>,
}

/// Why a verb ends before it has an answer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The arguments make no sense.
    Garbage,
    /// The credential will not do.
    Denied(AuthStat),
    /// A failure about which nothing more is known.
    Status(Status),
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl<'a> Request<'a> {
    pub(crate) const fn new(plan: &'a Plan, visitor: &'a Visitor, call: &'a Call<'a>) -> Self {
        Self { plan, visitor, call }
    }

    /// Reads the arguments, all of them.
    pub(crate) fn arguments<T: Decode<'a>>(&self) -> Result<T, Stop> {
        self.call.arguments().map_err(|_| Stop::Garbage)
    }

    /// Lets the request in.
    pub(crate) fn enter(&self, door: Door<'_>) -> Result<(View<'a>, Node), Stop> {
        let credential = &self.call.header.credential;
        View::enter(self.plan, self.visitor, credential, door).map_err(|refusal| match refusal {
            Refusal::Status(status) => Stop::Status(status),
            Refusal::Denied(why) => Stop::Denied(why),
        })
    }
}
