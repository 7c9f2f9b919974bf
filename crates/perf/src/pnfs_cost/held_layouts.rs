//! Very many layouts that one client holds: the memory of the metadata server, and the time of
//! getting, recalling and returning them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use comity_bench::fixture_tree::FixtureTree;
use comity_bench::process;
use comity_proto::nfs4::{
    Createhow4, Layoutiomode4, Nfsstat4, Openflag4, Setattr4args, Stateid4, operation as op, share,
};
use comity_remote::nfs4::{Backchannel, Compound, GotLayout, Opened, Opening, made};

use super::PnfsBench;
use super::placed_site::{PlacedSite, StorePlace};
use crate::judged_figure::JudgedFigure;
use crate::server_process::ServerProcess;
use crate::state_cost::person::Person;

/// Numbers of layouts that are held at once.
const HELD: [u64; 3] = [25_000, 50_000, 100_000];
/// Layouts of these that are recalled, one by one.
const RECALLED: u64 = 200;
/// Bytes that a layout may use: as many as a delegation.
const BYTES_MOST: f64 = 500.0;
/// Largest growth of a cost for four times as many layouts.
const GROWTH_MOST: f64 = 1.2;
/// Time until the server is idle.
const REST: Duration = Duration::from_millis(2_000);
/// Longest time of a recall.
const RECALL_MOST: Duration = Duration::from_secs(10);
/// Wait before the retry of a call that was answered with DELAY.
const PAUSE: Duration = Duration::from_micros(100);

/// The figures for one number of layouts.
struct LayoutCosts {
    count: u64,
    /// Bytes of memory for each.
    bytes: f64,
    /// The server's time for getting one, in microseconds.
    get: f64,
    /// The server's time for a recall, in microseconds.
    recall: f64,
    /// The client's time for returning all with one call, in milliseconds.
    return_all: f64,
}

/// Measures each number of layouts, one after the other.
pub(super) fn measure(bench: &PnfsBench) -> Result<Vec<JudgedFigure>> {
    let places = StorePlace::on_loopback(1)?;
    let mut site = PlacedSite::start(bench, bench.memory.path(), &places)?;
    let files = bench.scaled(HELD[2]) + 3 * bench.scaled(RECALLED);
    drop(LayoutHolder::new(&site, files)?);
    site.replace_mds(bench)?;
    let mut holder = LayoutHolder::new(&site, files)?;
    let before = resting_bytes(&site.mds)?;
    let mut all = Vec::new();
    for count in HELD.map(|count| bench.scaled(count)) {
        all.push(holder.hold(&site.mds, count, (before, bench.scaled(RECALLED)))?);
    }
    let mut figures = Vec::new();
    for held in &all {
        let name = |what: &str| format!("{} layouts: {what}", held.count);
        figures.extend([
            JudgedFigure::bounded(name("memory of each, bytes"), held.bytes, BYTES_MOST),
            JudgedFigure::shown(name("LAYOUTGET, us of the server's time"), held.get),
            JudgedFigure::shown(name("recall of one, us of the server's time"), held.recall),
            JudgedFigure::shown(name("LAYOUTRETURN of all by one call, ms"), held.return_all),
        ]);
    }
    let growth = |name: &str, of: fn(&LayoutCosts) -> f64| {
        let name = format!("four times as many: {name} times");
        JudgedFigure::bounded(name, of(&all[2]) / of(&all[0]), GROWTH_MOST)
    };
    figures.extend([
        growth("memory of each", |held| held.bytes),
        growth("LAYOUTGET", |held| held.get),
        growth("recall of one", |held| held.recall),
        growth("LAYOUTRETURN of all, each", |held| held.return_all / held.count as f64),
    ]);
    println!("not measured: the server has no recall of FSID, it recalls files one by one");
    Ok(figures)
}

/// A client with many open files, and another one that changes some of them.
struct LayoutHolder {
    person: Person,
    other: Person,
    files: Vec<Opened>,
    /// The number of files that were recalled: the first ones, of which none is held.
    recalled: usize,
}

impl LayoutHolder {
    /// Opens the files, which are made if they do not exist. Each has had a layout then, so that
    /// its data file exists, and what the server remembers of files does not count as state.
    fn new(site: &PlacedSite, files: u64) -> Result<Self> {
        let mut person = Person::new(&site.mds, Backchannel::Yes)?;
        let dir = person.session.mount(&site.small())?;
        let mut opened = Vec::new();
        for number in 0..files as usize {
            let attributes = made(0o644, None);
            let how = Openflag4::Create(Createhow4::Unchecked(attributes.fattr()));
            let (name, access) = (FixtureTree::file(number), share::BOTH | share::WANT_NO_DELEG);
            let opening = Opening { dir: &dir, name: &name, owner: b"holder", how, access };
            let file = person.session.open(&opening)?;
            let layout = person.session.layout(&file, Layoutiomode4::Read)?;
            person.session.perform(&layout.returning())?;
            opened.push(file);
        }
        let other = Person::new(&site.mds, Backchannel::No)?;
        Ok(Self { person, other, recalled: 0, files: opened })
    }

    fn hold(
        &mut self,
        mds: &ServerProcess,
        count: u64,
        (before, recalled): (f64, u64),
    ) -> Result<LayoutCosts> {
        let start = mds.cpu_time()?;
        // The server remembers the places of the files that were used last.
        for file in self.files.iter().rev().take(count as usize) {
            self.person.session.layout(file, Layoutiomode4::Read)?;
        }
        let get = mds.cpu_time()?.since(&start) as f64 / 1e3 / count as f64;
        let bytes = (resting_bytes(mds)? - before) / count as f64;
        let recall = self.recall(mds, recalled)?;
        let begun = Instant::now();
        self.person.session.return_layouts_of_file_system(&self.files[0].handle)?;
        let return_all = begun.elapsed().as_secs_f64() * 1e3;
        Ok(LayoutCosts { count, bytes, get, recall, return_all })
    }

    /// Recalls some layouts, which are got for it, while the others are held. Returns the server's
    /// time for each.
    fn recall(&mut self, mds: &ServerProcess, count: u64) -> Result<f64> {
        let files = self.recalled..self.recalled + count as usize;
        self.recalled = files.end;
        let mut time = 0;
        for number in files {
            let file = self.files[number].clone();
            let layout = self.person.session.layout(&file, Layoutiomode4::Read)?;
            let start = mds.cpu_time()?;
            self.recall_one(&file, &layout)?;
            time += mds.cpu_time()?.since(&start);
        }
        Ok(time as f64 / 1e3 / count as f64)
    }

    fn recall_one(&mut self, file: &Opened, layout: &GotLayout) -> Result<()> {
        let begun = Instant::now();
        ensure!(!self.change(file)?, "no layout was recalled");
        self.person.session.wire.await_recall()?;
        self.person.session.perform(&layout.returning())?;
        while !self.change(file)? {
            ensure!(begun.elapsed() < RECALL_MOST, "the recall does not end");
            sleep(PAUSE);
        }
        Ok(())
    }

    /// Changes the size of a file; returns false if the caller has to try again.
    fn change(&mut self, file: &Opened) -> Result<bool> {
        let attributes = made(0o644, Some(1));
        let (stateid, obj_attributes) = (Stateid4::ANONYMOUS, attributes.fattr());
        let arguments = Setattr4args { stateid, obj_attributes };
        let compound = Compound::on(&file.handle).with(op::SETATTR, &arguments);
        let reply = self.other.session.attempt(&compound, &[])?;
        if reply.status == Nfsstat4::Delay {
            return Ok(false);
        }
        reply.settled().context("SETATTR")?;
        Ok(true)
    }
}

fn resting_bytes(server: &ServerProcess) -> Result<f64> {
    sleep(REST);
    Ok(process::resident_kib(server.process())? as f64 * 1024.0)
}
