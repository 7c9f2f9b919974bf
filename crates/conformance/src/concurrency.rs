use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use comity_vfs::{Create, Listed, Result, Status};

use super::Needs;
use super::failure::{Check, Failure, ensure, same};
use super::fixture::{Fixture, mode, name};

super::topic! { "concurrency"
    Needs::NONE => one_of_many_creates_wins, one_of_many_removes_wins, one_of_many_renames_wins,
        one_of_many_renames_to_one_name_wins, writes_to_parts_of_a_file_all_count,
        links_are_all_counted,
        directories_swapped_both_ways_do_not_hang, two_directories_do_not_go_below_each_other,
        an_exclusive_create_has_one_winner, listing_while_others_work,
        a_directory_is_removed_or_filled_not_both;
}

const THREADS: usize = 4;
const ROUNDS: usize = 100;

/// Runs `work` on several threads at once; returns the outcome of each.
fn at_once<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let waiting = AtomicUsize::new(0);
    let go = |thread| {
        waiting.fetch_add(1, Ordering::SeqCst);
        // Threads that sleep would wake too far apart to conflict with each other.
        while waiting.load(Ordering::SeqCst) < THREADS {
            thread::yield_now();
        }
        work(thread)
    };
    let go = &go;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || go(n))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

/// Returns whether one call succeeded and all others failed with one of `statuses`.
fn one_won<T>(outcomes: &[Result<T>], statuses: &[Status]) -> Check {
    same(outcomes.len(), THREADS)?;
    same(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1)?;
    let lost = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    match lost.into_iter().find(|status| !statuses.contains(status)) {
        Some(status) => Err(Failure::from(*status)),
        None => Ok(()),
    }
}

fn one_of_many_creates_wins(f: &Fixture<'_>) -> Check {
    for round in 0..ROUNDS {
        let name = round.to_string();
        one_won(&at_once(|_| f.file(&name)), &[Status::Exist])?;
    }
    same(f.names(&f.top, 100)?.len(), ROUNDS)
}

fn one_of_many_removes_wins(f: &Fixture<'_>) -> Check {
    for round in 0..ROUNDS {
        let name = round.to_string();
        f.file(&name)?;
        one_won(&at_once(|_| f.remove(&name)), &[Status::NoEnt, Status::Stale])?;
    }
    same(f.names(&f.top, 100)?.len(), 0)
}

fn one_of_many_renames_wins(f: &Fixture<'_>) -> Check {
    for round in 0..ROUNDS {
        let name = round.to_string();
        f.file(&name)?;
        let renamed = at_once(|thread| f.rename(&name, &format!("{name}-{thread}")));
        one_won(&renamed, &[Status::NoEnt])?;
    }
    same(f.names(&f.top, 100)?.len(), ROUNDS)
}

/// A caller that comes too late finds its object at the new name, which is no success.
fn one_of_many_renames_to_one_name_wins(f: &Fixture<'_>) -> Check {
    let into = f.dir("into")?;
    for round in 0..ROUNDS {
        let name = round.to_string();
        if round % 2 == 0 {
            f.dir(&name)?
        } else {
            f.file(&name)?
        };
        let renamed = at_once(|_| f.rename_between((&f.top, &name), (&into, &name)));
        one_won(&renamed, &[Status::NoEnt])?;
    }
    same(f.names(&into, 100)?.len(), ROUNDS)
}

fn an_exclusive_create_has_one_winner(f: &Fixture<'_>) -> Check {
    for round in 0..ROUNDS {
        let at = round.to_string();
        let made = at_once(|thread| {
            let how = Create::Exclusive([thread as u8; 8]);
            f.fs.create(&f.owner, &f.top, name(&at)?, &how)
        });
        one_won(&made, &[Status::Exist])?;
    }
    Ok(())
}

fn writes_to_parts_of_a_file_all_count(f: &Fixture<'_>) -> Check {
    const PART: usize = 5_000;
    let file = f.file("a")?;
    let written = at_once(|thread| {
        (0..ROUNDS).try_for_each(|round| {
            let at = (round * THREADS + thread) * PART;
            f.write(&file, at as u64, &[thread as u8 + 1; PART])
        })
    });
    written.into_iter().collect::<Result<()>>()?;
    same(f.attr(&file)?.size as usize, ROUNDS * THREADS * PART)?;
    for part in 0..ROUNDS * THREADS {
        let data = f.read(&file, (part * PART) as u64, PART as u32)?.0;
        let whole = data.len() == PART && data.iter().all(|b| *b as usize == part % THREADS + 1);
        ensure(whole, "no write is lost or torn")?;
    }
    Ok(())
}

fn links_are_all_counted(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let linked = at_once(|thread| {
        (0..ROUNDS).try_for_each(|round| {
            f.link(&file, &format!("{thread}-{round}"))?;
            if round % 3 == 0 { f.remove(&format!("{thread}-{round}")).map(drop) } else { Ok(()) }
        })
    });
    linked.into_iter().collect::<Result<()>>()?;
    same(f.attr(&file)?.links as usize, f.names(&f.top, 100)?.len())
}

fn directories_swapped_both_ways_do_not_hang(f: &Fixture<'_>) -> Check {
    let dirs = [f.dir("one")?, f.dir("other")?];
    for number in 0..THREADS {
        f.dir_in(&dirs[number % 2], &number.to_string())?;
    }
    let moved = at_once(|thread| {
        (0..ROUNDS * 4).try_for_each(|round| {
            let (from, to) = (&dirs[(thread + round) % 2], &dirs[(thread + round + 1) % 2]);
            let name = thread.to_string();
            f.rename_between((from, &name), (to, &name)).map(drop)
        })
    });
    moved.into_iter().collect::<Result<()>>()?;
    same(f.names(&dirs[0], 10)?.len() + f.names(&dirs[1], 10)?.len(), THREADS)
}

/// Each directory may be moved below the other, but not both: they would be cut off from the root.
fn two_directories_do_not_go_below_each_other(f: &Fixture<'_>) -> Check {
    for round in 0..ROUNDS {
        let names = [format!("a{round}"), format!("b{round}")];
        let dirs = [f.dir(&names[0])?, f.dir(&names[1])?];
        let moved = at_once(|thread| {
            let (moved, into) = (thread % 2, (thread + 1) % 2);
            f.rename_between((&f.top, &names[moved]), (&dirs[into], "x"))
        });
        let worked = moved.iter().filter(|outcome| outcome.is_ok()).count();
        same(worked, 1)?;
        let left = names.iter().filter(|name| f.lookup(name).is_ok()).count();
        same(left, 1)?;
    }
    Ok(())
}

fn listing_while_others_work(f: &Fixture<'_>) -> Check {
    for number in 0..100 {
        f.file(&format!("stay-{number}"))?;
    }
    let done = at_once(|thread| -> Check {
        for round in 0..ROUNDS {
            if thread == 0 {
                let names = f.names(&f.top, 9)?;
                let stayed = names.iter().filter(|name| name.starts_with(b"stay-")).count();
                same(stayed, 100)?;
                f.list(&f.top, 0, Listed::Nodes, 500)?;
            } else {
                let name = format!("go-{thread}-{round}");
                f.fs.create(&f.owner, &f.top, self::name(&name)?, &Create::Guarded(mode(0o600)))?;
                f.rename(&name, &format!("{name}-on"))?;
                f.remove(&format!("{name}-on"))?;
            }
        }
        Ok(())
    });
    same(done.len(), THREADS)?;
    done.into_iter().collect()
}

fn a_directory_is_removed_or_filled_not_both(f: &Fixture<'_>) -> Check {
    for round in 0..ROUNDS {
        let name = round.to_string();
        let dir = f.dir(&name)?;
        let done = at_once(|thread| match thread {
            0 => f.rmdir(&name).map(drop),
            _ => f.file_in(&dir, &thread.to_string()).map(drop),
        });
        let filled = done[1..].iter().any(std::result::Result::is_ok);
        same(done[0].is_ok(), !filled)?;
        same(f.lookup(&name).is_ok(), filled)?;
    }
    Ok(())
}
