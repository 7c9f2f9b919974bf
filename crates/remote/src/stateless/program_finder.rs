use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use comity_proto::portmap::{self, Mapping, TCP};
use comity_vfs::{Result, Status};

use super::call::{StatelessCall, StatelessReply};
use super::machine::{StatelessMachine, StatelessSettings};
use crate::engine::{ClientEngine, StartFailure};
use crate::machine::CallFailure;
use crate::rpc::RpcRefusal;
use crate::transport::Transport;

/// Finds the programs of a server that are beside NFS: on its port, or where its portmapper says.
pub(crate) struct ProgramFinder {
    transport: Arc<dyn Transport>,
    settings: StatelessSettings,
    /// The time within which a program must have answered for the first time.
    introduction: Duration,
    /// The program that is asked again and again, if it has a port of its own.
    lasting: Mutex<Option<Arc<ClientEngine<StatelessMachine>>>>,
}

impl ProgramFinder {
    /// Looks for programs of the server that a transport leads to.
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        settings: StatelessSettings,
        introduction: Duration,
    ) -> Self {
        Self { transport, settings, introduction, lasting: Mutex::default() }
    }

    /// Makes a call to a program. It is asked for over the connection to NFS first.
    ///
    /// # Errors
    /// [`Status::NotSupp`] if the server does not have the program.
    pub(crate) fn ask(
        &self,
        nfs: &ClientEngine<StatelessMachine>,
        program: (u32, u32),
        call: &dyn Fn() -> StatelessCall,
    ) -> Result<StatelessReply> {
        match perform(nfs, call()) {
            Err(AskFailure::Unavailable) => Ok(perform(&self.find(program)?, call())?),
            asked => Ok(asked?),
        }
    }

    /// The same for a program that is asked again and again: the connection to it is kept.
    ///
    /// # Errors
    /// As [`ProgramFinder::ask`].
    pub(crate) fn ask_lasting(
        &self,
        nfs: &ClientEngine<StatelessMachine>,
        program: (u32, u32),
        call: &dyn Fn() -> StatelessCall,
    ) -> Result<StatelessReply> {
        let known = self.lasting.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known {
            return Ok(perform(&known, call())?);
        }
        match perform(nfs, call()) {
            Err(AskFailure::Unavailable) => {}
            asked => return Ok(asked?),
        }
        let found = Arc::new(self.find(program)?);
        *self.lasting.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&found));
        Ok(perform(&found, call())?)
    }

    /// Connects to a program where the portmapper says it is.
    ///
    /// # Errors
    /// [`Status::NotSupp`] if it is nowhere.
    pub(crate) fn find(&self, program: (u32, u32)) -> Result<ClientEngine<StatelessMachine>> {
        let portmapper =
            self.connect(portmap::PORT, (portmap::PROGRAM, portmap::PORTMAP_VERSION))?;
        let (number, version) = program;
        let question = Mapping { program: number, version, protocol: TCP, port: 0 };
        let procedure = (portmap::PROGRAM, portmap::PORTMAP_VERSION, portmap::procedure::GETPORT);
        let call = StatelessCall::new(procedure, &self.settings.credential, &question);
        let reply = portmapper.perform(call.record.len(), call)??;
        match u16::try_from(reply.read::<u32>().map_err(|_| Status::Io)?) {
            Ok(port) if port != 0 => self.connect(port, program),
            _ => Err(Status::NotSupp),
        }
    }

    fn connect(&self, port: u16, program: (u32, u32)) -> Result<ClientEngine<StatelessMachine>> {
        let transport = self.transport.to_port(port).ok_or(Status::NotSupp)?;
        let peer = transport.peer();
        let settings = StatelessSettings { program, connections: 1, ..self.settings.clone() };
        let machine = StatelessMachine::new(settings);
        ClientEngine::start(machine, 1, transport, self.introduction).map_err(|failure| {
            tracing::warn!(server = peer, program = program.0, ?failure, "a program is not there");
            match failure {
                StartFailure::Refused(_) | StartFailure::Unreachable(_) => Status::NotSupp,
                StartFailure::Threads(_) | StartFailure::NoAnswer => Status::Io,
            }
        })
    }
}

/// Why a call has no reply.
enum AskFailure {
    /// There is no such program where it was asked.
    Unavailable,
    /// The call has failed.
    Failed(Status),
}

impl From<AskFailure> for Status {
    fn from(failure: AskFailure) -> Self {
        match failure {
            AskFailure::Unavailable => Self::NotSupp,
            AskFailure::Failed(status) => status,
        }
    }
}

fn perform(
    engine: &ClientEngine<StatelessMachine>,
    call: StatelessCall,
) -> std::result::Result<StatelessReply, AskFailure> {
    let failed = |status: Status| AskFailure::Failed(status);
    match engine.perform(call.record.len(), call).map_err(|it| failed(it.into()))? {
        Err(CallFailure::Refused(RpcRefusal::ProgramUnavailable)) => Err(AskFailure::Unavailable),
        done => done.map_err(|failure| failed(failure.into())),
    }
}
