use std::net::IpAddr;

use comity_credential::CredentialRef;
use comity_export::{Door, Node, Outside, Plan, Refusal, RpcPeer, View};
use comity_rpc::{AuthStat, Call, Flavor};
use comity_vfs::Status;
use comity_xdr::Decode;

/// A call on its way to its verb: the data that the verbs of both programs need.
pub(crate) struct Request<'a> {
    /// The exports in force while it is answered.
    pub(crate) plan: &'a Plan,
    /// The caller's connection.
    pub(crate) visitor: &'a RpcPeer,
    call: &'a Call<'a>,
}

/// The reason why a verb ends before it has an answer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The arguments make no sense.
    Garbage,
    /// The credential is refused.
    Denied(AuthStat),
    /// A failure about which nothing more is known.
    Status(Status),
    /// Other servers have the files, and NFSv3 has no way to say which.
    Referred,
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl Stop {
    const fn refused(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Status(status) => Self::Status(status),
            Refusal::Denied(why) => Self::Denied(why),
            Refusal::Referred(_) => Self::Referred,
        }
    }
}

impl<'a> Request<'a> {
    pub(crate) const fn new(plan: &'a Plan, visitor: &'a RpcPeer, call: &'a Call<'a>) -> Self {
        Self { plan, visitor, call }
    }

    /// Returns the address of the caller.
    #[inline]
    pub(crate) const fn address(&self) -> IpAddr {
        self.visitor.peer().ip()
    }

    /// Reads the arguments, all of them.
    pub(crate) fn arguments<T: Decode<'a>>(&self) -> Result<T, Stop> {
        self.call.arguments().map_err(|_| Stop::Garbage)
    }

    /// Lets the request in.
    #[inline]
    pub(crate) fn enter(&self, door: Door<'_>) -> Result<(View<'a>, Node), Stop> {
        self.enter_by(&self.credential(), door)
    }

    /// Lets a request in that asks for the attributes of an object and nothing else.
    #[inline]
    pub(crate) fn approach(&self, sealed: &[u8]) -> Result<(View<'a>, Outside), Stop> {
        View::approach(self.plan, self.visitor, &self.credential(), sealed).map_err(Stop::refused)
    }

    /// Lets a request in that belongs to mounting. A caller that sends AUTH_NONE (RFC 2623, 2.3.2)
    /// becomes nobody where AUTH_SYS is wanted: an AUTH_SYS credential would prove as little.
    pub(crate) fn enter_to_mount(&self, door: Door<'_>) -> Result<(View<'a>, Node), Stop> {
        let is_anonymous = self.call.header.credential.flavor == Flavor::NONE;
        match self.enter(door) {
            Err(Stop::Denied(AuthStat::TooWeak)) if is_anonymous => {
                self.enter_by(&CredentialRef::NOBODY, door)
            }
            entered => entered,
        }
    }

    #[inline]
    fn credential(&self) -> CredentialRef<'a> {
        CredentialRef::parse(&self.call.header.credential)
    }

    #[inline]
    fn enter_by(
        &self,
        credential: &CredentialRef<'_>,
        door: Door<'_>,
    ) -> Result<(View<'a>, Node), Stop> {
        View::enter(self.plan, self.visitor, credential, door).map_err(Stop::refused)
    }
}
