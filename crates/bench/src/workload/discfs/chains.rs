use anyhow::Result;

use super::contenders::{by_key, labelled};
use super::{plant, time, tree};
use crate::suite::{ByKey, Context};
use crate::workload::grep::search;

/// A search of a tree that a new key meets for the first time, by longer and longer chains.
pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let lengths = context.parameters().counts("chains")?;
    let tree = tree(context, context.parameters().count("chain-files")?, "splnet");
    let decisions = 1_024;
    let mut account = by_key(context, ByKey { chain: 0, decisions })?;
    let place = context.path("chains");
    let home = std::mem::replace(&mut context.directory, place);
    plant(context, &mut account, &tree)?;
    for length in std::iter::once(0).chain(lengths) {
        let mut driver = by_key(context, ByKey { chain: length as usize, decisions })?;
        labelled(context, "chain", &[("links", length.into())], |context| {
            search(context, &mut driver, &tree)?;
            time(context, &mut driver);
            Ok(())
        })?;
    }
    context.directory = home;
    Ok(())
}
