//! The addresses that go with exports. An address has one head at a time, and all exports with the
//! address are served by that head.

use std::collections::BTreeSet;
use std::net::IpAddr;

use anyhow::Result;
use comity_export::{Export, Plan, Whereabouts};
use comity_store::etcd::{Compare, Op};
use serde_json::{Value, json};

use super::export_watch::ClusterView;
use super::head::Head;
use super::keys::{self, HeadRun};

/// Takes an address, unless another head has it; returns whether this head has it then.
pub(super) fn claim(head: &Head, address: IpAddr) -> Result<bool> {
    let key = keys::address(address);
    let put = Op::Put { key: key.clone(), value: head.run.value(), lease: head.lease.id };
    head.change_cluster_if(vec![Compare::Created(key.clone(), 0)], &[put])?;
    Ok(head.etcd.get(&key)?.is_some_and(|stored| stored.value == head.run.value()))
}

/// Takes the addresses of exports that have come here by a move, and gives those away of which this
/// head serves no export any more.
pub(super) fn follow(head: &Head, (view, plan): (&ClusterView, &Plan)) -> Result<()> {
    let is_here = |export: &&Export| view.served.get(export.path()) == Some(&head.run);
    let exports = plan.exports().iter().map(|export| &**export);
    let served: BTreeSet<IpAddr> =
        exports.filter(is_here).filter_map(|export| export.settings().address).collect();
    for address in &served {
        if !view.addresses.contains_key(address) {
            claim(head, *address)?;
        }
    }
    for (address, at) in &view.addresses {
        if *at == head.run && !served.contains(address) {
            give_away(head, *address)?;
        }
    }
    Ok(())
}

/// Gives an address away, unless it has gone to another head since etcd was read.
fn give_away(head: &Head, address: IpAddr) -> Result<()> {
    let key = keys::address(address);
    let stored = head.etcd.get(&key)?.filter(|entry| entry.value == head.run.value());
    let Some(stored) = stored else { return Ok(()) };
    let unchanged = vec![Compare::Changed(key.clone(), stored.changed)];
    if head.change_cluster_if(unchanged, &[Op::Delete(key)])? {
        tracing::info!(%address, "no export with this address is served here, so it is given away");
    }
    Ok(())
}

impl ClusterView {
    /// Returns the head that has the address of an export.
    pub(super) fn head_of_address(&self, export: &Export) -> Option<&HeadRun> {
        self.addresses.get(&export.settings().address?)
    }

    /// Returns where callers of an export that `at` serves go: to the address of the export, if the
    /// head has it. While the address is on its way there they wait.
    pub(super) fn place_of(&self, export: &Export, (at, own): (&HeadRun, &HeadRun)) -> Whereabouts {
        let by_name = || Whereabouts::AtHost(at.name.as_str().into());
        let Some(address) = export.settings().address else { return by_name() };
        match self.addresses.get(&address) {
            Some(holder) if holder == at => Whereabouts::AtHost(address.to_string().into()),
            Some(holder) if holder != own => by_name(),
            _ => Whereabouts::Moving,
        }
    }

    /// Returns the addresses of all exports with their heads.
    pub(super) fn addresses_json(&self, (plan, own): (&Plan, &HeadRun)) -> Vec<Value> {
        let all = plan.exports().iter().filter_map(|export| export.settings().address);
        let all: BTreeSet<IpAddr> = all.collect();
        let shown = all.iter().map(|address| {
            let at = self.addresses.get(address);
            json!({
                "address": address,
                "head": at.map(|at| &at.name),
                "is_here": at == Some(own),
            })
        });
        shown.collect()
    }
}
