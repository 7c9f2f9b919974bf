//! The memory of many directory delegations, and the time of a recall among them, in the engine
//! itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use comity_bench::process;
use comity_state::{
    Always, Caller, ChannelAttrs, Client, ClientOwner, ConnectionId, CreateSession,
    DirectoryRequest, Effect, Engine, ExchangeId, FileKey, Limits, NoDirectory, NoticeWishes,
    Origin, Principal, Recovered, Sender, Settings, Share, Stateid, Verifier,
};
use comity_vfs::{Cred, Disk, Gid, Handle, Uid};

use super::site::DelegationBench;
use crate::judged_figure::JudgedFigure;

/// Number of directory delegations in a full run, and in a quick run.
const DELEGATIONS: (usize, usize) = (100_000, 20_000);
/// Number of clients, among which the delegations are divided.
const CLIENTS: usize = 100;
/// Most bytes of a delegation with notifications, and the record of the directory's use.
const BYTES_MOST: f64 = 1000.0;
/// Most bytes of one in the second half, as a multiple of one in the first half.
const BYTES_GROWTH_MOST: f64 = 1.1;
/// Most that a recall among all of them may take, as a multiple of one among a hundredth of them.
const GROWTH_MOST: f64 = 3.0;
/// Recalls whose median counts.
const RECALLS: usize = 501;
const NOW: Duration = Duration::from_secs(1);
/// Attributes of both channels of a session.
const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 1 << 20,
    response_bytes_max: 1 << 20,
    response_cached_bytes_max: 4096,
    operations_max: 16,
    requests_max: 8,
};

/// An engine, and its clients.
struct Crowd {
    engine: Engine,
    clients: Vec<Arc<Client>>,
    user: Arc<Cred<Disk>>,
}

/// Measures the memory and the time.
pub(super) fn measure(bench: &DelegationBench) -> Result<Vec<JudgedFigure>> {
    let most = if bench.is_quick { DELEGATIONS.1 } else { DELEGATIONS.0 };
    let crowd = Crowd::new(most)?;
    crowd.hold(0..most / 100)?;
    let few = crowd.recall_time(most / 100)?;
    let start = resident_bytes()?;
    crowd.hold(most / 100..most / 2)?;
    let half = resident_bytes()?;
    crowd.hold(most / 2..most)?;
    let all = resident_bytes()?;
    let many = crowd.recall_time(most)?;
    let refused = crowd.ask(most);
    ensure!(refused == Err(NoDirectory::Resource), "one more than the bound: {refused:?}");
    let first = (half - start) / (most / 2 - most / 100) as f64;
    let second = (all - half) / (most - most / 2) as f64;
    let each = (all - start) / (most - most / 100) as f64;
    let name = |what: &str| format!("{most} directory delegations: {what}");
    Ok(vec![
        JudgedFigure::bounded(name("bytes each"), each, BYTES_MOST),
        JudgedFigure::bounded(
            name("those of the second half, times the first"),
            second / first,
            BYTES_GROWTH_MOST,
        ),
        JudgedFigure::shown(name("us of a recall among a hundredth"), few.as_secs_f64() * 1e6),
        JudgedFigure::shown(name("us of a recall among all"), many.as_secs_f64() * 1e6),
        JudgedFigure::bounded(
            name("that time as a multiple"),
            many.as_secs_f64() / few.as_secs_f64(),
            GROWTH_MOST,
        ),
        JudgedFigure::bounded(
            name("held when one more was refused"),
            crowd.held() as f64,
            most as f64,
        ),
    ])
}

impl Crowd {
    /// An engine with a bound of delegations.
    fn new(most: usize) -> Result<Self> {
        let limits = Limits { delegations: most, ..Limits::DEFAULT };
        let settings = Settings { limits, ..Settings::new(1, [7; 16]) };
        let engine = Engine::new(NOW, settings, Recovered::new());
        let clients = (0..CLIENTS).map(|number| client(&engine, number)).collect::<Result<_>>()?;
        let user = Arc::new(Cred::new(Uid::new(1), Gid::new(1)));
        Ok(Self { engine, clients, user })
    }

    fn held(&self) -> usize {
        self.engine.census().directories
    }

    fn holder(&self, directory: usize) -> Option<&Arc<Client>> {
        self.clients.get(directory % CLIENTS)
    }

    fn hold(&self, directories: std::ops::Range<usize>) -> Result<()> {
        for directory in directories {
            let asked = self.ask(directory);
            asked.map_err(|why| anyhow!("directory {directory} is not delegated: {why:?}"))?;
        }
        Ok(())
    }

    /// Requests the delegation of a directory with notifications, as a mount does.
    fn ask(&self, directory: usize) -> Result<Stateid, NoDirectory> {
        let client = self.holder(directory).ok_or(NoDirectory::Resource)?;
        let wishes = NoticeWishes {
            kinds: Share::ADDED | Share::REMOVED | Share::RENAMED,
            handles: true,
            fileids: true,
            types: true,
            directory: NoticeWishes::CHANGE,
            children: 0,
            child_delay: Duration::ZERO,
            bytes_max: 4096,
            unacknowledged_max: 64,
        };
        let request = DirectoryRequest {
            client,
            caller: caller(directory % CLIENTS),
            directory: key(directory).ok_or(NoDirectory::Resource)?,
            parent: key(usize::MAX).ok_or(NoDirectory::Resource)?,
            user: &self.user,
            policy: &Always,
            notices: Some(wishes),
        };
        self.engine.delegate_directory(NOW, &request)
    }

    /// The median time from a change of a directory to the recall of its holder, while so many are
    /// delegated. Each is delegated again.
    fn recall_time(&self, delegated: usize) -> Result<Duration> {
        let mut times = Vec::new();
        for number in 0..RECALLS {
            times.push(self.recall(number * delegated / RECALLS)?);
        }
        times.sort_unstable();
        times.get(RECALLS / 2).copied().context("no recall")
    }

    fn recall(&self, number: usize) -> Result<Duration> {
        let directory = key(number).context("a handle")?;
        let begun = Instant::now();
        // An attribute of the directory itself changes, which is not notified.
        let change =
            || self.engine.break_delegations(NOW, None, &directory, Share::access(Share::BOTH));
        let changed = change();
        let effects = std::iter::from_fn(|| self.engine.poll_effect());
        let recalled: Vec<Stateid> = effects.filter_map(recalled).collect();
        let taken = begun.elapsed();
        ensure!(changed.is_err() && recalled.len() == 1, "{} recalls", recalled.len());
        let client = self.holder(number).context("the holder")?;
        for stateid in &recalled {
            let returned = self.engine.delegreturn((Sender::of(NOW, client), &directory), stateid);
            returned.map_err(|error| anyhow!("DELEGRETURN: {error:?}"))?;
        }
        // The directory is not delegated before the change that waits has come back.
        change().map_err(|error| anyhow!("the change: {error:?}"))?;
        self.hold(number..number + 1)?;
        Ok(taken)
    }
}

fn recalled(effect: Effect) -> Option<Stateid> {
    match effect {
        Effect::Recall { stateid, .. } => Some(stateid),
        _ => None,
    }
}

fn client(engine: &Engine, number: usize) -> Result<Arc<Client>> {
    let (owner, caller) = (format!("client {number}").into_bytes().into(), caller(number));
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: owner };
    let known = engine.exchange_id(NOW, ExchangeId { owner, caller, update: false });
    let known = known.map_err(|error| anyhow!("EXCHANGE_ID: {error:?}"))?;
    let arguments = CreateSession {
        clientid: known.clientid,
        sequenceid: known.sequenceid,
        caller,
        connection: ConnectionId(number as u64),
        back_wanted: true,
        fore: ATTRS,
        back: ATTRS,
        minor: 1,
        program: 1,
        security: Box::default(),
    };
    let session = engine.create_session(NOW, &arguments);
    let session = session.map_err(|error| anyhow!("CREATE_SESSION: {error:?}"))?.session;
    let session = engine.session(&session).context("the session")?;
    let client = Arc::clone(session.client());
    engine.callbacks_work(&client);
    let complete = engine.reclaim_complete(NOW, &client, caller);
    complete.map_err(|error| anyhow!("RECLAIM_COMPLETE: {error:?}"))?;
    Ok(client)
}

/// Each client has an address of its own: the clients of one address may not use all memory.
fn caller(number: usize) -> Caller {
    let origin = Origin::from_bytes((((number + 1) as u128) << 64).to_be_bytes());
    Caller { principal: Principal::default(), origin }
}

/// The key of a directory whose handle has the length of those of ext4.
fn key(number: usize) -> Option<FileKey> {
    let bytes = [&number.to_be_bytes()[..], &[7; 12]].concat();
    Some(FileKey { volume: 1, export: 1, handle: Handle::new(&bytes).ok()? })
}

fn resident_bytes() -> Result<f64> {
    Ok(process::resident_kib(std::process::id())? as f64 * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_directory_delegations_holds_while_one_is_recalled_and_granted_again() {
        let crowd = Crowd::new(10).unwrap();
        crowd.hold(0..10).unwrap();
        crowd.recall(3).unwrap();
        assert_eq!(crowd.ask(10), Err(NoDirectory::Resource));
        assert_eq!(crowd.held(), 10);
    }
}
