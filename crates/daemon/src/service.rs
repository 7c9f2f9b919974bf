mod callback_layer;
mod error_log_layer;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use comity_coherence::Hosts;
use comity_credential::Channel;
use comity_export::{Exports, RpcPeer};
use comity_granting::GrantProgram;
use comity_grants::Grants;
use comity_migrate::{ForwardedCalls, MigrationProgram, MigrationTarget};
use comity_nfs3::{CallForwarder, Message, Mount, Nfs3, Nlm, Nsm};
use comity_nfs4::{Memory, Nfs4, OperationCounters};
use comity_rpc::{Admission, Backchannel, Dispatcher, Gate, Program};
use comity_server::metrics::{Measured, Metrics};
use comity_server::{Endpoints, Service, blocking_for_long_hook};

use self::callback_layer::CallbackLayer;
use self::error_log_layer::ErrorLogLayer;
use crate::head_lease::HeadLease;
use crate::migration::{ForwardedPrograms, MovedExports};
use crate::program_gate::ProgramGate;
use crate::status_names;
use crate::versions::Spoken;

/// The programs of this server: NFS versions 3 and 4, MOUNT, NLM and NSM.
pub(crate) struct Programs {
    dispatcher: Dispatcher<RpcPeer, ProgramGate>,
    /// The programs of NFSv3; none if that version is disabled.
    version_three: Vec<Arc<dyn Program<RpcPeer>>>,
    exports: Arc<Exports>,
    memory: Memory,
    operations: Option<Arc<OperationCounters>>,
    offers_tls: bool,
}

impl Programs {
    /// Makes the programs for `exports`; `metrics` measures calls, if set. The verifier tells
    /// clients when the server has restarted and uncommitted data may be lost.
    pub(crate) fn new(
        exports: &Arc<Exports>,
        verifier: [u8; 8],
        (memory, hosts): (Memory, &HostParts),
        spoken: Spoken,
        metrics: Option<&Arc<Metrics>>,
    ) -> Self {
        let version_three = match spoken.three {
            true => version_three(exports, verifier, (&memory, hosts), metrics),
            false => Vec::new(),
        };
        let (mut programs, mut operations) = (version_three.clone(), None);
        if spoken.speaks_four() {
            let nfs = Nfs4::new(Arc::clone(exports), verifier, spoken.four, memory.clone());
            let nfs = nfs.blocking(blocking_for_long_hook);
            operations = Some(Arc::clone(nfs.operation_counters()));
            let nfs = ErrorLogLayer::new(nfs, Arc::clone(exports));
            let nfs = CallbackLayer::new(nfs, memory.clone());
            programs.push(counted(nfs, "nfs", status_names::name4, metrics));
        }
        let exports = Arc::clone(exports);
        let dispatcher =
            Dispatcher::new(programs, ProgramGate::new(&exports, hosts.lease.as_ref()));
        Self { dispatcher, version_three, exports, memory, operations, offers_tls: false }
    }

    /// Sets whether peers may start TLS.
    pub(crate) fn offering_tls(self, offers_tls: bool) -> Self {
        Self { offers_tls, ..self }
    }

    /// Adds the program by which keys submit and revoke grants.
    pub(crate) fn granting(mut self, grants: &Arc<Grants>) -> Self {
        let program = GrantProgram::new(Arc::clone(&self.exports), Arc::clone(grants));
        self.dispatcher.add(Arc::new(program));
        self
    }

    /// Adds the program by which peers hand exports over. `run` differs in every run of the server.
    pub(crate) fn migrating(
        mut self,
        target: Arc<dyn MigrationTarget>,
        moved: &Arc<MovedExports>,
        run: u64,
    ) -> Self {
        let (programs, exports) = (self.version_three.clone(), (&self.exports, moved));
        let forwarded = ForwardedPrograms::new(programs, exports, &self.memory.engine, run);
        let forwarded = (!self.version_three.is_empty()).then(|| Arc::new(forwarded));
        let program = MigrationProgram::new(Arc::clone(&self.exports), target)
            .answering(forwarded.map(|it| it as Arc<dyn ForwardedCalls>));
        self.dispatcher.add(Arc::new(program));
        self
    }

    /// Returns the counts of NFSv4 operations, if that version is enabled.
    pub(crate) fn operation_counters(&self) -> Option<Arc<OperationCounters>> {
        self.operations.clone()
    }
}

/// The parts of the server that the programs of NFSv3 need, beside the exports and the state of
/// clients.
#[derive(Clone)]
pub(crate) struct HostParts {
    /// The state number of the status monitor.
    pub(crate) monitor_state: i32,
    /// The queue of replies of the lock manager that are sent as calls.
    pub(crate) messages: SyncSender<Message>,
    /// Forwards calls about exports that have moved.
    pub(crate) forwarder: Arc<dyn CallForwarder>,
    /// The lease of this head, if the server is one.
    pub(crate) lease: Option<Arc<HeadLease>>,
}

/// The programs of NFSv3: NFS, MOUNT, NLM and NSM.
fn version_three(
    exports: &Arc<Exports>,
    verifier: [u8; 8],
    (memory, hosts): (&Memory, &HostParts),
    metrics: Option<&Arc<Metrics>>,
) -> Vec<Arc<dyn Program<RpcPeer>>> {
    let forwarder = || Arc::clone(&hosts.forwarder);
    let nfs = Nfs3::new(Arc::clone(exports), verifier).recalling(delegated(memory));
    let nfs = nfs.blocking(blocking_for_long_hook).forwarding(forwarder());
    let nfs = ErrorLogLayer::new(nfs, Arc::clone(exports));
    let nfs = CallbackLayer::new(nfs, memory.clone());
    let mount = Mount::new(Arc::clone(exports)).forwarding(forwarder());
    let nlm = CallbackLayer::new(lock_manager(exports, (memory, hosts)), memory.clone());
    vec![
        counted(nfs, "nfs", status_names::name, metrics),
        counted(mount, "mount", status_names::name, metrics),
        counted(nlm, "nlm", status_names::name_nlm, metrics),
        status_monitor(memory, hosts),
    ]
}

fn delegated(memory: &Memory) -> Hosts {
    let clock = memory.clock;
    let delegated = Hosts::new(Arc::clone(&memory.engine), move || clock.now());
    let memory = memory.clone();
    delegated
        .settling(memory.settle.clone())
        .pausing(Box::new(move |moment| memory.wait_for_clients(clock.now(), moment)))
}

fn lock_manager(exports: &Arc<Exports>, (memory, hosts): (&Memory, &HostParts)) -> Nlm {
    let clock = memory.clock;
    let settle = memory.settle.clone().unwrap_or_else(|| Arc::new(|_| true));
    let engine = Arc::clone(&memory.engine);
    let nlm = Nlm::new(Arc::clone(exports), engine, move || clock.now(), settle);
    nlm.beside(memory.locals.clone())
        .messaging(hosts.messages.clone())
        .forwarding(Arc::clone(&hosts.forwarder))
}

/// Returns a dispatcher for UDP: of the status monitor and the lock manager.
pub(crate) fn by_datagrams(
    exports: &Arc<Exports>,
    memory: &Memory,
    hosts: &HostParts,
) -> Dispatcher<RpcPeer, ProgramGate> {
    let nlm = lock_manager(exports, (memory, hosts));
    let nlm = Arc::new(CallbackLayer::new(nlm, memory.clone()));
    let gate = ProgramGate::new(exports, hosts.lease.as_ref());
    Dispatcher::new(vec![status_monitor(memory, hosts), nlm], gate)
}

fn status_monitor(memory: &Memory, hosts: &HostParts) -> Arc<dyn Program<RpcPeer>> {
    let clock = memory.clock;
    let nsm = Nsm::new(Arc::clone(&memory.engine), move || clock.now(), hosts.monitor_state);
    let nsm = nsm.forwarding(Arc::clone(&hosts.forwarder));
    Arc::new(CallbackLayer::new(nsm, memory.clone()))
}

fn counted(
    program: impl Program<RpcPeer> + 'static,
    name: &'static str,
    status_name: fn(u32) -> &'static str,
    metrics: Option<&Arc<Metrics>>,
) -> Arc<dyn Program<RpcPeer>> {
    match metrics {
        Some(metrics) => Arc::new(Measured::new(program, name, status_name, metrics)),
        None => Arc::new(program),
    }
}

impl Service for Programs {
    type Visitor = RpcPeer;
    type Gate = ProgramGate;

    fn lists(&self, peer: IpAddr) -> bool {
        self.exports.admits(&peer) == Admission::Admitted
            || self.exports.is_address_of_peer_server(peer)
    }

    /// The clients of a data server are known by the handles of their layouts.
    fn serves_unlisted(&self) -> bool {
        self.exports.current().stores_data()
    }

    fn visitor(&self, ends: Endpoints, line: &Arc<Backchannel>) -> RpcPeer {
        let local = ends.local.map(|local| local.ip().to_canonical());
        RpcPeer::on(ends.peer, line).at(local).offering_tls(self.offers_tls)
    }

    fn secured(&self, visitor: &RpcPeer, channel: Channel) -> Option<RpcPeer> {
        Some(visitor.over(channel))
    }

    fn dispatcher(&self) -> &Dispatcher<RpcPeer, ProgramGate> {
        &self.dispatcher
    }

    fn heard(&self, visitor: &RpcPeer, record: &[u8]) -> bool {
        let line = visitor.line().map(|line| line.id());
        let heard = self.memory.callbacks.as_ref().zip(line);
        heard
            .is_some_and(|(callbacks, line)| callbacks.heard(self.memory.clock.now(), line, record))
    }
}
