use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use comity_proto::portmap::{self, Mapping, TCP};
use comity_vfs::{Interrupt, Result, Status};

use super::call::{StatelessCall, StatelessReply};
use super::lasting_call::{AskFailure, LastingCall};
use super::machine::{StatelessMachine, StatelessSettings};
use crate::engine::{ClientEngine, StartFailure};
use crate::limits::PROGRAM_PATIENCE;
use crate::machine::pause;
use crate::session::Persistence;
use crate::transport::Transport;

/// Finds the other programs of an NFS server: on its port, or at the port that its portmapper
/// names.
pub(crate) struct ProgramFinder {
    transport: Arc<dyn Transport>,
    settings: StatelessSettings,
    /// The time within which a program must answer its first call.
    introduction: Duration,
    /// The time without a reply after which the port of a program is looked up again.
    patience: Duration,
    /// The program whose connection is kept, if it has a port of its own.
    lasting: Mutex<Option<Arc<ProgramAtPort>>>,
}

/// A program at a port of its own.
struct ProgramAtPort {
    port: u16,
    engine: ClientEngine<StatelessMachine>,
}

impl ProgramFinder {
    /// Makes a finder for the host that a transport leads to.
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        settings: StatelessSettings,
        introduction: Duration,
    ) -> Self {
        let (patience, lasting) = (PROGRAM_PATIENCE, Mutex::default());
        Self { transport, settings, introduction, patience, lasting }
    }

    /// Calls a program; tries the connection to NFS first.
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

    /// The same for a program whose connection is kept. If it does not answer, its port is looked
    /// up again.
    ///
    /// # Errors
    /// As [`ProgramFinder::ask`].
    pub(crate) fn ask_lasting(
        &self,
        nfs: &ClientEngine<StatelessMachine>,
        program: (u32, u32),
        call: &LastingCall<'_>,
    ) -> Result<StatelessReply> {
        let known = self.lasting().clone();
        if let Some(known) = known {
            return self.ask_at(known, program, call);
        }
        match call.perform(nfs) {
            Err(AskFailure::Unavailable) => self.ask_at(self.keep(program)?, program, call),
            Err(AskFailure::Late) => {
                call.abandon(nfs);
                Err(AskFailure::Late.into())
            }
            asked => Ok(asked?),
        }
    }

    /// Calls a program at its last known port, and at its new port if it has moved.
    fn ask_at(
        &self,
        mut known: Arc<ProgramAtPort>,
        program: (u32, u32),
        call: &LastingCall<'_>,
    ) -> Result<StatelessReply> {
        let began = Instant::now();
        for attempt in 0.. {
            match call.perform(&known.engine) {
                Err(AskFailure::Late) => known = self.look_again(known, program),
                Err(AskFailure::Unavailable) => known = self.keep(program)?,
                asked => return Ok(asked?),
            }
            let is_over = self.is_over(began);
            if is_over || Interrupt::is_raised() {
                call.abandon(&known.engine);
                return Err(if is_over { AskFailure::Late.into() } else { Status::Interrupted });
            }
            thread::park_timeout(pause(attempt));
        }
        Err(Status::ServerFault)
    }

    /// Returns whether a call that began then has timed out (`soft`).
    fn is_over(&self, began: Instant) -> bool {
        self.settings.persistence.patience().is_some_and(|all| began.elapsed() >= all)
    }

    /// Looks up the port of a program that did not answer. If no other port is found, the old one
    /// is kept.
    fn look_again(&self, known: Arc<ProgramAtPort>, program: (u32, u32)) -> Arc<ProgramAtPort> {
        match self.port(program) {
            Ok(port) if port != known.port => self.keep(program).unwrap_or(known),
            _ => known,
        }
    }

    /// Finds a program, and keeps the connection to it.
    fn keep(&self, program: (u32, u32)) -> Result<Arc<ProgramAtPort>> {
        let port = self.port(program)?;
        let engine = self.connect(port, program, self.patience)?;
        let found = Arc::new(ProgramAtPort { port, engine });
        *self.lasting() = Some(Arc::clone(&found));
        Ok(found)
    }

    fn lasting(&self) -> MutexGuard<'_, Option<Arc<ProgramAtPort>>> {
        self.lasting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to a program at the port that the portmapper names.
    ///
    /// # Errors
    /// [`Status::NotSupp`] if the program is not registered.
    fn find(&self, program: (u32, u32)) -> Result<ClientEngine<StatelessMachine>> {
        self.connect(self.port(program)?, program, self.introduction)
    }

    /// Asks the portmapper for the port of a program.
    fn port(&self, (program, version): (u32, u32)) -> Result<u16> {
        let of_portmapper = (portmap::PROGRAM, portmap::PORTMAP_VERSION);
        let portmapper = self.connect(portmap::PORT, of_portmapper, self.patience)?;
        let question = Mapping { program, version, protocol: TCP, port: 0 };
        let procedure = (portmap::PROGRAM, portmap::PORTMAP_VERSION, portmap::procedure::GETPORT);
        let call = StatelessCall::new(procedure, &self.settings.credential, &question);
        let reply = portmapper.perform(call.record.len(), call)??;
        match u16::try_from(reply.read::<u32>().map_err(|_| Status::Io)?) {
            Ok(port) if port != 0 => Ok(port),
            _ => Err(Status::NotSupp),
        }
    }

    /// Connects to a program; its replies may take up to `patience`.
    fn connect(
        &self,
        port: u16,
        program: (u32, u32),
        patience: Duration,
    ) -> Result<ClientEngine<StatelessMachine>> {
        let transport = self.transport.to_port(port).ok_or(Status::NotSupp)?;
        let peer = transport.peer();
        let persistence = Persistence::Soft(patience);
        let settings = self.settings.clone();
        let settings = StatelessSettings { program, connections: 1, persistence, ..settings };
        let machine = StatelessMachine::new(settings);
        ClientEngine::start(machine, 1, transport, patience.min(self.introduction)).map_err(
            |failure| {
                tracing::warn!(
                    server = peer,
                    program = program.0,
                    ?failure,
                    "the program does not answer at its port"
                );
                match failure {
                    StartFailure::Refused(_) | StartFailure::Unreachable(_) => Status::NotSupp,
                    StartFailure::Threads(_) | StartFailure::NoAnswer => Status::Io,
                }
            },
        )
    }
}

fn perform(
    engine: &ClientEngine<StatelessMachine>,
    call: StatelessCall,
) -> std::result::Result<StatelessReply, AskFailure> {
    LastingCall { call, then: None }.perform(engine)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};

    use comity_rpc::{ReplyVerifier, accepted};
    use comity_xdr::{Decoder, Encoder};

    use super::*;
    use crate::engine::{Aftermath, Unanswered};
    use crate::transport::Duplex;

    const PROGRAM: (u32, u32) = (7, 3);
    const NFS_PORT: u16 = 2049;

    /// A host with NFS, a portmapper, and a program at a port that may change.
    #[derive(Clone)]
    struct Host {
        port: u16,
        program_at: Arc<AtomicU16>,
        /// True if no call is answered any more.
        is_deaf: Arc<AtomicBool>,
        /// The number of calls that have arrived.
        calls: Arc<AtomicUsize>,
    }

    impl Host {
        /// A host whose program is at this port.
        fn at(program_at: Arc<AtomicU16>) -> Self {
            let (is_deaf, calls) = (Arc::default(), Arc::default());
            Self { port: NFS_PORT, program_at, is_deaf, calls }
        }

        fn is_there(&self) -> bool {
            let at = self.program_at.load(Ordering::SeqCst);
            [NFS_PORT, portmap::PORT, at].contains(&self.port)
        }

        /// Answers calls for as long as the program is registered at this port.
        fn serve(&self, mut stream: UnixStream) -> io::Result<()> {
            loop {
                let mut mark = [0; 4];
                stream.read_exact(&mut mark)?;
                let mut call = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
                stream.read_exact(&mut call)?;
                self.calls.fetch_add(1, Ordering::SeqCst);
                let [xid, _, _, program, ..] = Decoder::new(&call).words::<4>().unwrap();
                if self.is_there() && !self.is_deaf.load(Ordering::SeqCst) {
                    stream.write_all(&self.reply(xid, program))?;
                }
            }
        }

        fn reply(&self, xid: u32, program: u32) -> Vec<u8> {
            let mut reply = Encoder::new();
            let start = reply.begin_record();
            if (program, self.port) == (PROGRAM.0, NFS_PORT) {
                accepted::prog_unavail(&mut reply, xid, &ReplyVerifier::Empty);
            } else {
                accepted::success(&mut reply, xid, &ReplyVerifier::Empty);
                reply.value(&u32::from(self.program_at.load(Ordering::SeqCst)));
            }
            reply.end_record(start);
            reply.bytes().to_vec()
        }
    }

    impl Transport for Host {
        fn connect(&self) -> io::Result<Duplex> {
            if !self.is_there() {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (here, there) = UnixStream::pair()?;
            let host = self.clone();
            thread::spawn(move || host.serve(there));
            let (reader, closer) = (Box::new(here.try_clone()?), here.try_clone()?);
            let close = Box::new(move || drop(closer.shutdown(std::net::Shutdown::Both)));
            Ok(Duplex { reader, writer: Box::new(here), close })
        }

        fn peer(&self) -> String {
            "host".to_owned()
        }

        fn to_port(&self, port: u16) -> Option<Box<dyn Transport>> {
            Some(Box::new(Self { port, ..self.clone() }))
        }
    }

    /// A client of the host's NFS program.
    fn client(host: &Host, settings: &StatelessSettings) -> ClientEngine<StatelessMachine> {
        let machine = StatelessMachine::new(settings.clone());
        let started = ClientEngine::start(machine, 1, Box::new(host.clone()), LONG);
        started.unwrap_or_else(|_| unreachable!("the host answers"))
    }

    const LONG: Duration = Duration::from_secs(10);

    fn settings(persistence: Persistence) -> StatelessSettings {
        StatelessSettings {
            program: (100_003, 3),
            credential: Vec::new(),
            connections: 1,
            patience: Duration::from_secs(60),
            persistence,
            seed: 1,
        }
    }

    #[test]
    fn a_call_without_room_times_out_if_the_mount_is_soft() {
        let host = Host::at(Arc::default());
        let nfs = client(&host, &settings(Persistence::Soft(Duration::from_secs(2))));
        host.is_deaf.store(true, Ordering::SeqCst);
        let send = |bytes| {
            let call = StatelessCall::new((100_003, 3, 7), b"", &());
            let then = || -> Aftermath<_> { Box::new(|_| None) };
            match bytes {
                // Calls without a waiting caller take all the room, and end later than the last
                // call.
                0 => nfs.perform_to_the_end(call, &then).map(drop),
                bytes => nfs.perform(bytes, call).map(drop),
            }
        };
        thread::scope(|scope| {
            let arrived = host.calls.load(Ordering::SeqCst);
            scope.spawn(|| send(0));
            let deadline = Instant::now() + LONG;
            while host.calls.load(Ordering::SeqCst) == arrived {
                assert!(Instant::now() < deadline, "the first call is not sent");
                thread::yield_now();
            }
            let began = Instant::now();
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(1000));
                send(0)
            });
            assert_eq!(send(crate::limits::IN_FLIGHT_BYTES_MAX), Err(Unanswered::NoRoom));
            assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        });
    }

    #[test]
    fn a_program_that_has_moved_to_another_port_is_found_again() {
        let program_at = Arc::new(AtomicU16::new(4045));
        let host = Host::at(Arc::clone(&program_at));
        let (patience, settings) = (Duration::from_millis(200), settings(Persistence::Hard));
        let nfs = client(&host, &settings);
        let programs = ProgramFinder::new(Arc::new(host), settings, LONG);
        let programs = ProgramFinder { patience, ..programs };
        let ask = || {
            let call = StatelessCall::new((PROGRAM.0, PROGRAM.1, 1), b"", &());
            let reply = programs.ask_lasting(&nfs, PROGRAM, &LastingCall { call, then: None });
            reply.unwrap().read::<u32>().unwrap()
        };
        assert_eq!(ask(), 4045);
        program_at.store(5045, Ordering::SeqCst);
        assert_eq!(ask(), 5045);
    }
}
