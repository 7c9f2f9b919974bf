use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::server::{ServerEnd, ServerSettings, SimServer};
use crate::calls::{LinkAction, LinkPlace};
use crate::machine::StateEvent;
use crate::machine::{Machine, MachineOutput, Notice};
use crate::session::{
    ClientIdentity, ClientMachine, MachineSettings, Persistence, SessionOutcome, SessionRequest,
};

/// The time that a record takes to arrive.
const LATENCY: Duration = Duration::from_millis(1);
/// Longest simulated wait for any condition.
const PATIENCE: Duration = Duration::from_secs(600);

/// The probabilities of network faults, in thousandths per record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// The connection ends before the record arrives.
    pub(crate) cut_before: u64,
    /// The connection ends after the record has arrived, so that its reply is lost.
    pub(crate) cut_behind: u64,
    /// A record from the server arrives twice.
    pub(crate) doubled: u64,
}

/// Clients, a server, and the network.
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) server: SimServer,
    pub(crate) faults: Faults,
    pub(crate) clients: Vec<SimClient>,
    ends: HashMap<(usize, LinkPlace), ServerEnd>,
    queue: BTreeMap<(Duration, u64), Happening>,
    serial: u64,
    random: u64,
    ticked: Duration,
    /// True while the server ignores the records it receives.
    pub(crate) deaf: bool,
    /// The client to which callbacks are not delivered.
    pub(crate) mute: Option<usize>,
    /// The client that receives no events and no time.
    pub(crate) asleep: Option<usize>,
    /// Records that clients have sent, for tests that count them.
    pub(crate) sent: Vec<Vec<u8>>,
}

/// A client.
pub(crate) struct SimClient {
    pub(crate) machine: ClientMachine,
    pub(crate) done: HashMap<u64, SessionOutcome>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) events: Vec<StateEvent>,
    /// Number of times that the machine became ready.
    pub(crate) ready: usize,
    pub(crate) failed: bool,
}

impl SimClient {
    fn new(settings: MachineSettings) -> Self {
        Self {
            machine: ClientMachine::new(settings),
            done: HashMap::new(),
            notices: Vec::new(),
            events: Vec::new(),
            ready: 0,
            failed: false,
        }
    }
}

enum Happening {
    /// A connection is made.
    Up(usize, LinkPlace),
    /// A connection ends.
    Down(usize, LinkPlace),
    /// A record arrives at the server.
    AtServer(usize, LinkPlace, Vec<u8>),
    /// A record arrives at a client.
    AtClient(usize, LinkPlace, Vec<u8>),
}

/// Default settings of a client.
pub(crate) fn settings(client: usize) -> MachineSettings {
    let credential = crate::rpc::auth_sys(&super::cred(0), b"sim");
    MachineSettings {
        identity: ClientIdentity {
            owner: format!("client {client}").into_bytes(),
            verifier: [client as u8 + 1; 8],
        },
        credential,
        minors: (2, 1),
        connections: 1,
        patience: Duration::from_secs(60),
        persistence: Persistence::Hard,
        awaits_changes: false,
        data_bytes_max: 1 << 16,
        wants_delegations: true,
        hands_up_recalls: false,
        seed: client as u32,
    }
}

impl World {
    /// A server and clients with default settings, all connected and ready.
    pub(crate) fn new(clients: usize, server: ServerSettings) -> Self {
        Self::with(server, (0..clients).map(settings).collect())
    }

    /// A server and clients with these settings, all connected and ready.
    pub(crate) fn with(server: ServerSettings, settings: Vec<MachineSettings>) -> Self {
        let mut world = Self::unconnected(server, settings);
        for client in 0..world.clients.len() {
            world.until(|world| world.clients[client].ready > 0);
        }
        world
    }

    /// The same before anything was connected.
    pub(crate) fn unconnected(server: ServerSettings, settings: Vec<MachineSettings>) -> Self {
        let now = Duration::from_secs(1000);
        let mut world = Self {
            now,
            server: SimServer::new(now, server),
            faults: Faults::default(),
            clients: Vec::new(),
            ends: HashMap::new(),
            queue: BTreeMap::new(),
            serial: 0,
            random: 1,
            ticked: now,
            deaf: false,
            mute: None,
            asleep: None,
            sent: Vec::new(),
        };
        for settings in settings {
            world.join(settings);
        }
        world
    }

    /// Adds a client; returns its number.
    pub(crate) fn join(&mut self, settings: MachineSettings) -> usize {
        let client = self.clients.len();
        self.clients.push(SimClient::new(settings));
        self.clients[client].machine.begin(self.now);
        self.obey(client);
        client
    }

    /// Sets the seed of all later random choices.
    pub(crate) fn seed(&mut self, seed: u64) {
        self.random = seed | 1;
    }

    /// Returns a random number below `bound`.
    pub(crate) fn roll(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % bound
    }

    pub(crate) fn submit(&mut self, client: usize, request: SessionRequest) -> u64 {
        let id = self.clients[client].machine.submit(self.now, request);
        self.obey(client);
        id
    }

    pub(crate) fn forsake(&mut self, client: usize, id: u64) {
        self.clients[client].machine.forsake(id);
        self.obey(client);
    }

    /// Performs a request, and returns its outcome.
    pub(crate) fn perform(&mut self, client: usize, request: SessionRequest) -> SessionOutcome {
        let id = self.submit(client, request);
        self.outcome(client, id)
    }

    /// Runs until a request has ended, and returns its outcome.
    pub(crate) fn outcome(&mut self, client: usize, id: u64) -> SessionOutcome {
        self.until(|world| world.clients[client].done.contains_key(&id));
        self.clients[client].done.remove(&id).unwrap()
    }

    /// Runs until a condition holds.
    pub(crate) fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let end = self.now + PATIENCE;
        while !is_so(self) {
            assert!(self.now < end, "the condition never became true");
            self.step();
        }
    }

    /// Runs for this time.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.next().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = self.now.max(end);
        self.tick();
    }

    /// Ends all connections of a client.
    pub(crate) fn cut(&mut self, client: usize) {
        let places: Vec<LinkPlace> =
            self.ends.keys().filter(|(of, _)| *of == client).map(|(_, place)| *place).collect();
        places.into_iter().for_each(|place| self.end(client, place));
    }

    /// Stops the server, and with it all connections.
    pub(crate) fn stop_server(&mut self) {
        self.server.stop();
        (0..self.clients.len()).for_each(|client| self.cut(client));
    }

    pub(crate) fn start_server(&mut self) {
        self.server.start(self.now);
    }

    pub(crate) fn restart_server(&mut self) {
        self.stop_server();
        self.start_server();
    }

    /// Sends a record to a client as if the server had sent it.
    pub(crate) fn say(&mut self, client: usize, record: Vec<u8>) {
        let (_, place) = *self.ends.keys().find(|(of, _)| *of == client).unwrap();
        self.later(LATENCY, Happening::AtClient(client, place, record));
    }

    /// Makes the server execute a call in the name of a client, without the client's knowledge.
    pub(crate) fn whisper(&mut self, client: usize, record: &[u8]) {
        let end = self.ends.iter().find(|((of, _), _)| *of == client).unwrap().1;
        self.server.hear(self.now, end, &record[4..]).unwrap();
    }

    fn next(&self) -> Option<Duration> {
        let awake = self.clients.iter().enumerate();
        let awake = awake.filter(|(client, _)| self.asleep != Some(*client));
        let timers = awake.filter_map(|(_, client)| client.machine.poll_timeout());
        let first = self.queue.first_key_value().map(|((at, _), _)| *at);
        timers.chain(first).min()
    }

    fn step(&mut self) {
        let next = self.next().unwrap_or(self.now + Duration::from_secs(1));
        // The server's clock ticks each second.
        self.now = next.max(self.now).min(self.ticked + Duration::from_secs(1)).max(self.now);
        self.tick();
        while let Some(entry) = self.queue.first_entry()
            && entry.key().0 <= self.now
        {
            let happening = entry.remove();
            self.happen(happening);
        }
        let asleep = self.asleep;
        for client in (0..self.clients.len()).filter(|client| asleep != Some(*client)) {
            let machine = &mut self.clients[client].machine;
            if machine.poll_timeout().is_some_and(|at| at <= self.now) {
                machine.handle_timeout(self.now);
                self.obey(client);
            }
        }
    }

    fn tick(&mut self) {
        if self.ticked + Duration::from_secs(1) <= self.now {
            self.ticked = self.now;
            self.server.tick(self.now);
            self.hear_server();
        }
    }

    fn later(&mut self, after: Duration, happening: Happening) {
        self.serial += 1;
        self.queue.insert((self.now + after, self.serial), happening);
    }

    /// Carries out the outputs of a client.
    fn obey(&mut self, client: usize) {
        while let Some(output) = self.clients[client].machine.poll_output(self.now) {
            let it = &mut self.clients[client];
            match output {
                MachineOutput::Link(action) => self.act(client, action),
                MachineOutput::Done(id, outcome) => {
                    assert!(it.done.insert(id, outcome).is_none(), "answered twice");
                }
                MachineOutput::Ready => it.ready += 1,
                MachineOutput::Failed(_) => it.failed = true,
                MachineOutput::Note(notice) => it.notices.push(notice),
                MachineOutput::Event(event) => it.events.push(event),
            }
        }
    }

    fn act(&mut self, client: usize, action: LinkAction) {
        match action {
            LinkAction::Connect(place) if self.server.is_running() => {
                self.later(LATENCY, Happening::Up(client, place));
            }
            LinkAction::Connect(place) => self.later(LATENCY, Happening::Down(client, place)),
            LinkAction::Disconnect(place) => self.end(client, place),
            LinkAction::Send(place, record) => {
                self.sent.push(record.to_vec());
                let record = record[4..].to_vec();
                self.later(LATENCY, Happening::AtServer(client, place, record));
            }
        }
    }

    fn end(&mut self, client: usize, place: LinkPlace) {
        if let Some(end) = self.ends.remove(&(client, place)) {
            end.line.close();
            self.later(LATENCY, Happening::Down(client, place));
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Up(client, place) => {
                if !self.server.is_running() {
                    return self.later(LATENCY, Happening::Down(client, place));
                }
                self.ends.insert((client, place), ServerEnd::new(client));
                self.clients[client].machine.handle_up(self.now, place);
                self.obey(client);
            }
            Happening::Down(client, place) => {
                self.clients[client].machine.handle_down(self.now, place);
                self.obey(client);
            }
            Happening::AtServer(client, place, record) => self.at_server(client, place, &record),
            Happening::AtClient(client, place, record) => {
                if self.ends.contains_key(&(client, place)) {
                    self.clients[client].machine.handle_record(self.now, place, record);
                    self.obey(client);
                }
            }
        }
    }

    fn at_server(&mut self, client: usize, place: LinkPlace, record: &[u8]) {
        let Faults { cut_before, cut_behind, doubled } = self.faults;
        if self.roll(1000) < cut_before {
            return self.end(client, place);
        }
        let Some(end) = self.ends.get(&(client, place)).filter(|_| !self.deaf) else { return };
        let reply = self.server.hear(self.now, end, record);
        if self.roll(1000) < cut_behind {
            self.end(client, place);
        } else if let Some(reply) = reply {
            if self.roll(1000) < doubled {
                self.later(LATENCY, Happening::AtClient(client, place, reply.clone()));
            }
            self.later(LATENCY, Happening::AtClient(client, place, reply));
        }
        self.hear_server();
    }

    /// Sends the server's callbacks.
    fn hear_server(&mut self) {
        let mut said = Vec::new();
        for ((client, place), end) in &self.ends {
            let calls = end.calls().into_iter().filter(|_| self.mute != Some(*client));
            said.extend(calls.map(|call| (*client, *place, call)));
        }
        for (client, place, call) in said {
            self.later(LATENCY, Happening::AtClient(client, place, call));
        }
    }
}
