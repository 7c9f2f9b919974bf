use std::sync::Arc;
use std::time::Duration;

use comity_credential::Channel;
use comity_export::{Clearance, Node, Outside, RpcPeer, Seen, View};
use comity_state::{Client, Engine, Error};
use comity_vfs::{Attr, FileType, Result, Status, Wire};

use crate::act::Act;
use crate::asker::Asker;
use crate::changes::given;
use crate::holders::Changer;
use crate::names::ChangesDirectories;
use crate::{Pause, Settle};

/// The delegations, deny modes and reclaims of other clients, for calls of NFSv3.
pub struct Hosts {
    engine: Arc<Engine>,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    pause: Option<Box<Pause>>,
    settle: Option<Arc<Settle>>,
}

/// A call of a host of NFSv3.
#[derive(Clone, Copy)]
pub struct HostCall<'a> {
    /// The state of clients; `None` if the server has no such state.
    pub hosts: Option<&'a Hosts>,
    /// The host.
    pub peer: &'a RpcPeer,
}

impl<'a> Changer<'a> for HostCall<'a> {
    fn client(&self) -> Option<&'a Client> {
        None
    }

    fn now(&self) -> Duration {
        self.hosts.map_or(Duration::ZERO, |hosts| (hosts.clock)())
    }

    fn pause(&self, moment: Duration) -> bool {
        let pause = self.hosts.and_then(|hosts| hosts.pause.as_ref());
        pause.is_some_and(|pause| pause(moment))
    }
}

impl<'a> ChangesDirectories<'a> for HostCall<'a> {
    fn engine(&self) -> Option<&'a Engine> {
        self.hosts.map(|hosts| &*hosts.engine)
    }

    fn clear_object(&self, object: (&View<'_>, &Node), act: Act<'_>) -> Result<()> {
        Hosts::clear(self.hosts, self.peer, object, act).map(drop)
    }

    fn clear_object_named(
        &self,
        view: &View<'_>,
        (dir, name): (&Node, &[u8]),
        act: Act<'_>,
    ) -> Result<()> {
        Hosts::clear_named(self.hosts, self.peer, (view, dir, name), act)
    }
}

/// Returns the name of a host of NFSv3: its address; with TLS, the address and the channel, or the
/// key that the host has proved. The name that a host gives itself is not used, because it proves
/// nothing. A host whose name is not an address is never called back: such calls would not be
/// encrypted.
#[must_use]
pub fn host_name(peer: &RpcPeer) -> Vec<u8> {
    let address = peer.peer().ip();
    match peer.channel() {
        Channel::Plain => plain_name(peer),
        Channel::Tls(None) => format!("{} by TLS", address.to_canonical()).into_bytes(),
        Channel::Tls(Some(identity)) => identity.key.to_string().into_bytes(),
    }
}

fn plain_name(peer: &RpcPeer) -> Vec<u8> {
    peer.peer().ip().to_canonical().to_string().into_bytes()
}

impl Hosts {
    /// Makes the checks for the state in `engine`; `clock` returns the time that the engine uses.
    #[must_use]
    pub fn new(engine: Arc<Engine>, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { engine, clock: Box::new(clock), pause: None, settle: None }
    }

    /// Returns a copy for state that outlives a restart: a client that has lost a delegation
    /// because of a call must not reclaim it and overwrite the call's changes.
    #[must_use]
    pub fn settling(self, settle: Option<Arc<Settle>>) -> Self {
        Self { settle, ..self }
    }

    /// Returns a copy that waits for clients by `pause`; without it, no call waits.
    #[must_use]
    pub fn pausing(self, pause: Box<Pause>) -> Self {
        Self { pause: Some(pause), ..self }
    }

    /// Returns whether any file is delegated. The cost is one load.
    #[must_use]
    #[inline]
    pub fn have_delegations(&self) -> bool {
        self.engine.has_delegations()
    }

    /// Returns whether a client may have written data to a file that has not arrived at the server.
    #[must_use]
    pub fn may_be_written(&self, view: &View<'_>, node: &Node) -> bool {
        self.engine.may_be_written(None, &view.key(node))
    }

    /// Returns the newest attributes of an object.
    ///
    /// # Errors
    /// [`Status`]; [`Status::Delay`]: the client that has them did not answer at once.
    pub fn newest(&self, view: &View<'_>, object: &Outside) -> Result<Attr<Wire>> {
        let Seen { node, attr } = view.look_closely(object)?;
        let pause = |moment| self.pause.as_ref().is_some_and(|pause| pause(moment));
        Ok(self.asker().newest((view, &node), &attr, pause)?.attr)
    }

    /// Checks a call of a host against the state of other clients: recalls their
    /// delegations, enforces deny modes, and delays the call for reclaims in grace.
    ///
    /// # Errors
    /// [`Status::Delay`]: a delegation is being recalled, or may still be reclaimed.
    /// [`Status::Locked`] for a WRITE, else [`Status::Acces`]: a deny mode forbids it. Any other
    /// [`Status`]: the caller has no right to do this, and nothing was recalled.
    #[inline]
    pub fn clear<'h>(
        this: Option<&'h Self>,
        peer: &RpcPeer,
        (view, node): (&View<'_>, &Node),
        act: Act<'_>,
    ) -> Result<Clearance<'h>> {
        match this {
            Some(hosts) if hosts.concerns(act) => hosts.check(peer, (view, node), act),
            Some(hosts) => Ok(given(&hosts.engine, None)),
            None => Ok(Clearance::given()),
        }
    }

    /// Checks the object of a name as [`Hosts::clear`] does. If there is no such object, or the
    /// caller may not see it, the call itself fails later.
    ///
    /// # Errors
    /// As [`Hosts::clear`].
    pub fn clear_named(
        this: Option<&Self>,
        peer: &RpcPeer,
        (view, dir, name): (&View<'_>, &Node, &[u8]),
        act: Act<'_>,
    ) -> Result<()> {
        let Some(hosts) = this.filter(|hosts| hosts.concerns(act)) else { return Ok(()) };
        match view.lookup(dir, name) {
            Ok((seen, _)) => hosts.check(peer, (view, &seen.node), act).map(drop),
            Err(_) => Ok(()),
        }
    }

    fn asker(&self) -> Asker<'_> {
        Asker { engine: &self.engine, now: (self.clock)(), client: None, patience: None }
    }

    /// Returns whether an act may conflict with the state of any client. The cost is two or three
    /// loads.
    #[inline]
    fn concerns(&self, act: Act<'_>) -> bool {
        self.engine.has_delegations()
            || self.asker().contradicts_layouts(act)
            || self.engine.has_denies()
            || act != Act::Read && (self.engine.is_in_grace() || self.engine.has_export_graces())
    }

    /// A separate function, so that the common case, in which nothing is checked, stays small.
    #[inline(never)]
    fn check(
        &self,
        peer: &RpcPeer,
        object: (&View<'_>, &Node),
        act: Act<'_>,
    ) -> Result<Clearance<'_>> {
        self.await_reclaims(object, act)?;
        self.check_denied(peer, object, act)?;
        let is_delegated = self.engine.has_delegations();
        let clearance = self.asker().clear(object, act)?;
        // A READ changes nothing, so no delegation has to be settled first.
        if act == Act::Read || !is_delegated {
            return Ok(clearance);
        }
        // A client that gets JUKEBOX keeps the data of its WRITE. It would discard the data if it
        // got an error.
        let settled = self.engine.is_settled(self.settle.as_deref());
        if settled { Ok(clearance) } else { Err(Status::Delay) }
    }

    /// Delays a change while a client may reclaim a write delegation: its data would overwrite the
    /// change.
    fn await_reclaims(&self, (view, node): (&View<'_>, &Node), act: Act<'_>) -> Result<()> {
        if act == Act::Read || !self.engine.awaits_opens(view.export_id().0) {
            return Ok(());
        }
        // Only files are opened and delegated.
        let is_file = view.getattr(node)?.file_type == FileType::Regular;
        if is_file { Err(Status::Delay) } else { Ok(()) }
    }

    fn check_denied(
        &self,
        peer: &RpcPeer,
        (view, node): (&View<'_>, &Node),
        act: Act<'_>,
    ) -> Result<()> {
        if act.access() == 0 || !self.engine.has_denies() {
            return Ok(());
        }
        let what = (&view.key(node), act.access());
        // Linux sends NLM in clear even where NFS comes by TLS.
        let names = [host_name(peer), plain_name(peer)];
        let names = names.each_ref().map(Vec::as_slice);
        let checked = self.engine.check_denied((self.clock)(), &names, what);
        checked.map_err(|error| match error {
            Error::ShareDenied => act.denied(),
            _ => Status::Delay,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use comity_credential::{KeyId, PeerIdentity, PeerKey};

    use super::*;

    #[test]
    fn only_a_host_that_comes_in_clear_has_an_address_for_a_name() {
        let identity = PeerIdentity {
            key: PeerKey::new(b"", KeyId([1; 32])),
            names: Box::default(),
            authorities: Box::default(),
            user: None,
            expires: 0,
        };
        let [here, there] = ["192.0.2.7:700", "192.0.2.8:700"].map(|peer| {
            RpcPeer::new(peer.parse().unwrap_or_else(|_| unreachable!("this is an address")))
        });
        let keyed = Channel::Tls(Some(Arc::new(identity)));
        assert_eq!(host_name(&here), b"192.0.2.7");
        assert_eq!(host_name(&here.over(Channel::Tls(None))), b"192.0.2.7 by TLS");
        assert_eq!(host_name(&here.over(keyed.clone())), host_name(&there.over(keyed.clone())));
        let address =
            String::from_utf8(host_name(&here.over(keyed))).map(|it| it.parse::<IpAddr>());
        assert!(address.is_ok_and(|address| address.is_err()));
    }
}
