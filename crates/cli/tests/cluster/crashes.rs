//! The source or the target of a move is killed at a random moment, or the target hangs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use comity_proto::nfs4::Nfsstat4;
use comity_vfs::SplitMix64;
use rustix::process::Signal;

use crate::common::four::Four;
use crate::common::wait_until;
use crate::common::whereabouts::fileid;
use crate::heads::{Heads, NAMES};
use crate::holder::{Holder, rival};

/// Rounds of an ordinary run.
const ROUNDS: u64 = 4;

/// The target logs this when it has the export.
const TAKEN: &str = "exports taken over with their state";

/// The lease of clients. A grace period waits for the rivals of earlier rounds as long as that.
const CLIENT_LEASE: Duration = Duration::from_secs(20);

/// Time after an undisturbed move within which a head may still be killed.
const LATER: Duration = Duration::from_millis(5);

/// The moment at which a head is killed.
#[derive(Debug)]
struct Crash {
    victim: usize,
    /// True if the target has taken the export before.
    is_after: bool,
    /// Time since the beginning of the command, or since the target has taken the export.
    pause: Duration,
}

impl Crash {
    /// Chooses a crash in a move that takes so long: of the source or the target, at any time or at
    /// the end, in turn.
    fn of(round: u64, whole: Duration) -> Self {
        let (victim, is_after) = ((round % 2) as usize, round / 2 % 2 == 1);
        let longest = if is_after { LATER } else { whole };
        let pause = SplitMix64::new(round).below(longest.as_micros() as u64);
        Self { victim, is_after, pause: Duration::from_micros(pause) }
    }
}

/// Ends the work of a client when it is dropped.
struct EndOfWork<'w>(&'w AtomicBool);

impl Drop for EndOfWork<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Heads whose first one has the export `one`, with a client of it.
struct World {
    heads: Heads,
    holder: Holder,
    name: String,
}

impl World {
    fn new(heads: Heads, round: u64) -> Self {
        let name = format!("f{round}");
        let client = format!("holder {round}");
        let holder = Holder::new(heads.port(0), &heads.file("one", &name), &client);
        Self { heads, holder, name }
    }

    /// Begins to move the export, and kills a head meanwhile.
    fn crash(&mut self, crash: &Crash) {
        let Self { heads, holder, .. } = self;
        let is_over = AtomicBool::new(false);
        let taken = heads.log(1).matches(TAKEN).count();
        thread::scope(|scope| {
            // The client stops working even if an assertion fails.
            let end = EndOfWork(&is_over);
            scope.spawn(|| holder.work(&is_over));
            let moving = scope.spawn(|| heads.move_export((0, 1), &[]));
            while crash.is_after && heads.log(1).matches(TAKEN).count() == taken {
                assert!(!moving.is_finished(), "it was not moved");
                thread::sleep(Duration::from_micros(100));
            }
            thread::sleep(crash.pause);
            heads.signal(crash.victim, Signal::KILL);
            drop(end);
        });
        heads.kill(crash.victim);
    }

    fn rival(&self, head: usize, range: u64) -> Nfsstat4 {
        rival(self.heads.port(head), (&self.heads.file("one", &self.name), range))
    }

    /// Has rivals want the locks of the client. They must not get them.
    fn no_rival_has_a_lock(&self, head: usize) {
        for range in [0, self.holder.range] {
            let answer = self.rival(head, range);
            assert_ne!(answer, Nfsstat4::Ok, "{} gives range {range} away", NAMES[head]);
        }
    }

    /// Waits until one head of two serves the export, and the other one refers to it.
    fn serving(&self) -> usize {
        let handle = &self.holder.file.handle;
        let ports = [0, 1].map(|head| self.heads.port(head));
        let mut lookers = ports.map(|port| Four::follow(port, 0, "looker"));
        let mut serving = None;
        wait_until("one head serves", || {
            let answers = lookers.each_mut().map(|looker| fileid(looker, handle));
            assert_ne!(answers, [Ok(()), Ok(())], "both serve");
            serving = answers.iter().position(Result::is_ok);
            serving.is_some() && answers.contains(&Err(Nfsstat4::Moved))
        });
        serving.unwrap()
    }

    fn is_in_grace(&self, head: usize) -> bool {
        !self.heads.status(head)["exports"][0]["grace_left_seconds"].is_null()
    }

    /// Has the client go on where the export is served, and give its locks back.
    fn go_on(&mut self, serving: usize) {
        let is_in_grace = self.is_in_grace(serving);
        self.holder.arrive(self.heads.port(serving), (true, is_in_grace));
        for range in [0, self.holder.range] {
            wait_until("the lock is known", || {
                let answer = self.rival(serving, range);
                assert_ne!(answer, Nfsstat4::Ok, "range {range} is lost");
                answer == Nfsstat4::Denied
            });
        }
        self.holder.let_go();
        for range in [0, self.holder.range] {
            wait_until("the lock is free", || self.rival(serving, range) == Nfsstat4::Ok);
        }
    }
}

/// Kills a head, starts it again, and has the client go on. Returns the heads, the number of the
/// one that served, and whether clients had to reclaim.
fn survive((heads, round): (Heads, u64), crash: &Crash) -> (Heads, (usize, bool)) {
    let mut world = World::new(heads, round);
    world.crash(crash);
    world.no_rival_has_a_lock(1 - crash.victim);
    world.heads.start(crash.victim);
    [0, 1].iter().for_each(|head| world.no_rival_has_a_lock(*head));
    let serving = world.serving();
    world.no_rival_has_a_lock(serving);
    let reclaimed = world.is_in_grace(serving);
    world.go_on(serving);
    (world.heads, (serving, reclaimed))
}

/// Moves the export back to the first head, if it is at the other one.
fn move_back(heads: &Heads, serving: usize) -> Duration {
    let begun = Instant::now();
    if serving == 1 {
        let said = heads.move_export((1, 0), &[]);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    begun.elapsed()
}

#[test]
fn one_head_serves_and_no_lock_is_lost_whenever_a_head_is_killed() {
    // `cargo xtask soak` sets a higher number.
    let rounds = std::env::var("COMITY_CLUSTER_CRASHES").ok();
    let rounds = rounds.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let Some(mut heads) = Heads::new(CLIENT_LEASE) else { return };
    assert_eq!(heads.move_export((0, 1), &[]).code, Some(0));
    let whole = move_back(&heads, 1) + LATER;
    let mut outcomes = [[[0; 2]; 2]; 2];
    for round in 0..rounds {
        let crash = Crash::of(round, whole);
        println!("{crash:?} of {whole:?}");
        let (kept, (serving, reclaimed)) = survive((heads, round), &crash);
        println!("{} serves, and clients reclaimed: {reclaimed}", NAMES[serving]);
        // A target that has failed after it took the export is followed by the source.
        let is_expected =
            (serving, reclaimed) == if crash.victim == 0 { (1, false) } else { (0, true) };
        assert!(is_expected || !crash.is_after, "{crash:?}");
        outcomes[crash.victim][serving][usize::from(reclaimed)] += 1;
        heads = kept;
        move_back(&heads, serving);
    }
    println!("rounds by the victim, the head that serves, and reclaims: {outcomes:?}");
}

/// The source ends the move when the target has not answered for ten seconds. The target must not
/// serve the export when it goes on.
#[test]
fn an_export_stays_if_the_target_hangs() {
    let Some(heads) = Heads::new(Duration::from_secs(90)) else { return };
    let mut world = World::new(heads, 0);
    world.heads.signal(1, Signal::STOP);
    let said = world.heads.move_export((0, 1), &[]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("did not answer"), "{}", said.err);
    world.no_rival_has_a_lock(0);
    world.heads.signal(1, Signal::CONT);
    assert!(!world.is_in_grace(0));
    world.holder.arrive(world.heads.port(0), (false, false));
    world.holder.let_go();
}
