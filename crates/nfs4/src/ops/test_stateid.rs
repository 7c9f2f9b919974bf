//! TEST_STATEID (RFC 8881, 18.48).

use comity_proto::nfs4::{Nfsstat4, Stateid4, TestStateid4args, TestStateid4resok};
use comity_state::Stateid;
use comity_xdr::{Counted, Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;
use crate::stop::verdict;

pub(super) fn test_stateid(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let stateids = args.value::<TestStateid4args>()?;
    let test = |stateid: &Stateid4| {
        let stateid = Stateid { seqid: stateid.seqid, other: stateid.other };
        let tested = compound.engine().test_stateid(compound.sender(), &stateid);
        tested.map_or_else(verdict, |()| Nfsstat4::Ok)
    };
    let verdicts: TestStateid4resok = Counted(stateids.0.iter().map(test).collect());
    reply.value(&verdicts);
    Ok(())
}
