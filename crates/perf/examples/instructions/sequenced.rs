//! COMPOUNDs of version 4.1, made again and again.

use std::sync::Arc;

use anyhow::{Result, ensure};
use comity_bench::call_templates::{CallSlot, SlotPlace, Stamp};
use comity_bench::fixture_tree::{CALLER, FixtureTree};
use comity_bench::prober::Pages;
use comity_bench::prober::nfs4::Prober;
use comity_bench::{InSession, Operation};
use comity_export::Exports;
use comity_nfs4::{Nfs4, Versions};
use comity_remote::nfs4::{Backchannel, Session, Wire};

use crate::setting;
use crate::stack::Stack;

/// Number of slots, which are used in turn. A load has as many calls outstanding.
const SLOTS: u32 = 32;

/// A server of version 4.
pub(crate) fn serving(exports: Arc<Exports>) -> Stack {
    let nfs = Nfs4::new(Arc::clone(&exports), [1; 8], Versions::ALL, setting::memory());
    Stack::new(vec![Arc::new(nfs)], exports)
}

/// Makes `calls` calls.
pub(crate) fn run(
    stack: Stack,
    layout: &FixtureTree,
    operation: InSession,
    calls: u64,
) -> Result<()> {
    let mut session = Session::begin(stack, (CALLER, CALLER), Backchannel::No)?;
    let root = session.mount(&layout.root().to_string_lossy())?;
    let mut prober = Prober { session: &mut session, root, locked: 0 };
    let script = prober.script(Operation::InSession(operation), &Pages::default())?;
    let (sessionid, _) = session.another(SLOTS)?;
    let mut stamps = [Stamp::default(); SLOTS as usize];
    let mut call = Vec::new();
    for number in 0..calls {
        let place = (number % u64::from(SLOTS)) as usize;
        let before = (number / u64::from(SLOTS)) as usize;
        let (sequenceid, slotid, highest) = (before as u32 + 1, place as u32, SLOTS - 1);
        let place = SlotPlace { sessionid, sequenceid, slotid, highest };
        let stamp = &mut stamps[slotid as usize];
        *stamp = Stamp { xid: number as u32, place, ..*stamp };
        // Use one file for all calls, as the calls of version 3 do.
        let template = script.choose(CallSlot { number: 7, place: slotid as usize, before });
        call.clear();
        script.encode(template, stamp, &mut call);
        let reply = session.wire.exchange_within(&mut call)?;
        let settled = script.settle(template, stamp, reply);
        ensure!(settled.is_ok(), "call {number}: {settled:?}");
    }
    Ok(())
}

impl Wire for Stack {
    fn exchange(&mut self, record: &[&[u8]]) -> Result<Vec<u8>> {
        Ok(self.exchange_within(&mut record.concat())?.to_vec())
    }
}
