use std::net::IpAddr;

use comity_credential::CredentialRef;
use comity_export::{Door, Node, Outside, Plan, Referred, Refusal, RpcPeer, View};
use comity_rpc::{AuthStat, Call, Flavor};
use comity_vfs::Status;
use comity_xdr::Decode;

use crate::forward::CallForwarder;

/// A call on its way to its verb: the data that the verbs of both programs need.
pub(crate) struct Request<'a> {
    /// The exports in force while it is answered.
    pub(crate) plan: &'a Plan,
    /// The caller's connection.
    pub(crate) visitor: &'a RpcPeer,
    call: &'a Call<'a>,
    forwarder: Option<&'a dyn CallForwarder>,
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
    /// Another server has the files, and answers the call.
    Forward(Referred),
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl<'a> Request<'a> {
    pub(crate) const fn new(plan: &'a Plan, visitor: &'a RpcPeer, call: &'a Call<'a>) -> Self {
        Self { plan, visitor, call, forwarder: None }
    }

    /// Returns the request with a way to other servers.
    pub(crate) fn forwarded_by(self, forwarder: Option<&'a dyn CallForwarder>) -> Self {
        Self { forwarder, ..self }
    }

    /// Returns how a verb ends after a refusal. A call that another server has forwarded goes no
    /// further.
    #[cold]
    fn refused(&self, refusal: Refusal) -> Stop {
        match refusal {
            Refusal::Status(status) => Stop::Status(status),
            Refusal::Denied(why) => Stop::Denied(why),
            Refusal::Referred(referred) => match self.forwarder {
                Some(forwarder) if !self.visitor.is_confined() && forwarder.forwards(referred) => {
                    Stop::Forward(referred)
                }
                _ => Stop::Referred,
            },
        }
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
        let approached = View::approach(self.plan, self.visitor, &self.credential(), sealed);
        approached.map_err(|refusal| self.refused(refusal))
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
        let entered = View::enter(self.plan, self.visitor, credential, door);
        entered.map_err(|refusal| self.refused(refusal))
    }
}
