use std::collections::BTreeSet;

use comity_vfs::{Listed, Status};

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{Fixture, name};

super::topic! { "listing"
    Needs::NONE => an_empty_directory_shows_nothing, every_entry_is_shown_once_in_small_steps,
        cookies_are_distinct_and_lead_on, a_cookie_gives_the_same_rest_twice,
        entries_that_stay_are_shown_once_while_others_go,
        entries_that_stay_are_shown_once_while_others_come,
        a_cookie_is_good_after_its_entry_went, ten_thousand_entries,
        with_nodes_it_shows_handles_and_attributes, without_nodes_it_shows_numbers,
        fileids_are_those_of_getattr, a_file_cannot_be_listed, the_visitor_can_break_off,
        a_renamed_entry_is_shown_under_one_name, dots_are_not_shown;
}

fn fill(f: &Fixture<'_>, count: usize) -> std::result::Result<BTreeSet<Vec<u8>>, Status> {
    let mut names = BTreeSet::new();
    for number in 0..count {
        let name = format!("entry-{number}");
        f.file(&name)?;
        names.insert(name.into_bytes());
    }
    Ok(names)
}

/// Lists the top directory in steps of `count`, calling `between` after each; returns all names.
fn walk(
    f: &Fixture<'_>,
    count: usize,
    mut between: impl FnMut(usize) -> Check,
) -> std::result::Result<Vec<Vec<u8>>, super::Failure> {
    let (mut names, mut cookie) = (Vec::new(), 0);
    for step in 0.. {
        let shown = f.list(&f.top, cookie, Listed::Names, count)?;
        let Some(last) = shown.last() else { break };
        cookie = last.cookie;
        names.extend(shown.into_iter().map(|entry| entry.name));
        between(step)?;
    }
    Ok(names)
}

fn an_empty_directory_shows_nothing(f: &Fixture<'_>) -> Check {
    same(f.list(&f.top, 0, Listed::Nodes, 10)?, vec![])
}

fn every_entry_is_shown_once_in_small_steps(f: &Fixture<'_>) -> Check {
    let made = fill(f, 300)?;
    for count in [1, 2, 7, 1000] {
        let names = walk(f, count, |_| Ok(()))?;
        same(names.len(), 300)?;
        ensure(names.into_iter().collect::<BTreeSet<_>>() == made, "all names are shown")?;
    }
    Ok(())
}

fn cookies_are_distinct_and_lead_on(f: &Fixture<'_>) -> Check {
    fill(f, 100)?;
    let all = f.list(&f.top, 0, Listed::Names, 200)?;
    let cookies: BTreeSet<u64> = all.iter().map(|entry| entry.cookie).collect();
    same(cookies.len(), 100)?;
    ensure(!cookies.contains(&0), "0 is the start")?;
    for (place, entry) in all.iter().enumerate() {
        let rest = f.list(&f.top, entry.cookie, Listed::Names, 1)?;
        same(rest.first(), all.get(place + 1))?;
    }
    Ok(())
}

fn a_cookie_gives_the_same_rest_twice(f: &Fixture<'_>) -> Check {
    fill(f, 50)?;
    let first = f.list(&f.top, 0, Listed::Names, 20)?;
    let cookie = first.last().map_or(0, |entry| entry.cookie);
    let rest = f.list(&f.top, cookie, Listed::Names, 100)?;
    same(rest.len(), 30)?;
    same(f.list(&f.top, cookie, Listed::Names, 100)?, rest)
}

fn entries_that_stay_are_shown_once_while_others_go(f: &Fixture<'_>) -> Check {
    fill(f, 200)?;
    let names = walk(f, 10, |step| {
        for number in (step * 20..step * 20 + 20).filter(|n| n % 2 == 1 && *n < 200) {
            f.remove(&format!("entry-{number}"))?;
        }
        Ok(())
    })?;
    for number in (0..200).step_by(2) {
        let name = format!("entry-{number}").into_bytes();
        same(names.iter().filter(|one| **one == name).count(), 1)?;
    }
    Ok(())
}

fn entries_that_stay_are_shown_once_while_others_come(f: &Fixture<'_>) -> Check {
    let made = fill(f, 200)?;
    let names = walk(f, 10, |step| {
        // The changes stop after some steps, so that the listing ends.
        for number in (0..20).filter(|_| step < 10) {
            f.file(&format!("late-{step}-{number}"))?;
        }
        Ok(())
    })?;
    let distinct: BTreeSet<_> = names.iter().cloned().collect();
    same(distinct.len(), names.len())?;
    ensure(distinct.is_superset(&made), "all that stayed are shown")
}

fn a_cookie_is_good_after_its_entry_went(f: &Fixture<'_>) -> Check {
    fill(f, 20)?;
    let all = f.list(&f.top, 0, Listed::Names, 100)?;
    let gone = &all[9];
    f.fs.remove(&f.owner, &f.top, comity_vfs::Name::new(&gone.name)?)?;
    let rest = f.list(&f.top, gone.cookie, Listed::Names, 100)?;
    same(&rest[..], &all[10..])
}

fn ten_thousand_entries(f: &Fixture<'_>) -> Check {
    let made = fill(f, 10_000)?;
    let names = walk(f, 333, |_| Ok(()))?;
    same(names.len(), 10_000)?;
    ensure(names.into_iter().collect::<BTreeSet<_>>() == made, "all names are shown")?;
    for name in &made {
        f.fs.remove(&f.owner, &f.top, comity_vfs::Name::new(name)?)?;
    }
    same(f.names(&f.top, 10)?.len(), 0)
}

fn with_nodes_it_shows_handles_and_attributes(f: &Fixture<'_>) -> Check {
    let nodes = [f.filled("a", b"data")?, f.dir("d")?, f.symlink("l", b"a")?];
    let shown = f.list(&f.top, 0, Listed::Nodes, 10)?;
    same(shown.len(), 3)?;
    for entry in shown {
        let Some(node) = entry.node else { continue };
        ensure(nodes.contains(&node.handle), "the handle is the object's")?;
        same(node.attr, f.attr(&node.handle)?)?;
        same(node.attr.fileid, entry.fileid)?;
    }
    Ok(())
}

fn without_nodes_it_shows_numbers(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    let shown = f.list(&f.top, 0, Listed::Names, 10)?;
    let fileids: Vec<u64> = shown.iter().map(|entry| entry.fileid).collect();
    same(fileids, vec![f.attr(&file)?.fileid])
}

fn fileids_are_those_of_getattr(f: &Fixture<'_>) -> Check {
    fill(f, 30)?;
    f.dir("d")?;
    for entry in f.list(&f.top, 0, Listed::Names, 100)? {
        let node = f.fs.lookup(&f.owner, &f.top, comity_vfs::Name::new(&entry.name)?)?.node;
        same(node.attr.fileid, entry.fileid)?;
    }
    Ok(())
}

fn a_file_cannot_be_listed(f: &Fixture<'_>) -> Check {
    for node in [f.file("a")?, f.symlink("l", b".")?] {
        fails(f.list(&node, 0, Listed::Names, 10), &[Status::NotDir])?;
    }
    Ok(())
}

fn the_visitor_can_break_off(f: &Fixture<'_>) -> Check {
    fill(f, 10)?;
    same(f.list(&f.top, 0, Listed::Names, 1)?.len(), 1)?;
    same(f.list(&f.top, 0, Listed::Nodes, 3)?.len(), 3)
}

fn a_renamed_entry_is_shown_under_one_name(f: &Fixture<'_>) -> Check {
    fill(f, 10)?;
    f.rename("entry-3", "other")?;
    let names = f.names(&f.top, 4)?;
    same(names.len(), 10)?;
    ensure(!names.contains(&b"entry-3".to_vec()), "the old name is gone")?;
    f.fs.lookup(&f.owner, &f.top, name("other")?)?;
    Ok(())
}

fn dots_are_not_shown(f: &Fixture<'_>) -> Check {
    f.dir("d")?;
    f.file(".hidden")?;
    same(f.names(&f.top, 10)?, vec![b".hidden".to_vec(), b"d".to_vec()])
}
