use std::net::IpAddr;
use std::ops::RangeInclusive;

use comity_proto::portmap::{
    List, Mapping, PORTMAP_VERSION, PROGRAM, RPCBIND_VERSION_3, RPCBIND_VERSION_4, Rpcb, netid,
    procedure, universal_address,
};
use comity_rpc::{Call, Done, Outcome, Program, Repeat};
use comity_xdr::{Encoder, Malformed, Opaque};

use super::Advertised;

/// The portmapper as a program that only answers: SET and UNSET are refused, and calls on behalf of
/// others (CALLIT), which would let a client attack others through it, are unknown.
pub(super) struct PortmapProgram(pub(super) Vec<Advertised>);

impl Program<IpAddr> for PortmapProgram {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        PORTMAP_VERSION..=RPCBIND_VERSION_4
    }

    fn procedure_name(&self, version: u32, number: u32) -> &'static str {
        match (version, number) {
            (_, procedure::NULL) => "NULL",
            (_, procedure::SET) => "SET",
            (_, procedure::UNSET) => "UNSET",
            (PORTMAP_VERSION, procedure::GETPORT) => "GETPORT",
            (_, procedure::GETADDR) => "GETADDR",
            (_, procedure::DUMP) => "DUMP",
            (RPCBIND_VERSION_4, procedure::GETVERSADDR) => "GETVERSADDR",
            _ => "UNKNOWN",
        }
    }

    fn repeat(&self, _: u32, _: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, _: &IpAddr, reply: &mut Encoder) -> Outcome {
        let answered = match (call.header.version, call.header.procedure) {
            (_, procedure::NULL) => call.arguments::<()>(),
            (_, procedure::SET | procedure::UNSET) => {
                reply.value(&false);
                Ok(())
            }
            (PORTMAP_VERSION, procedure::GETPORT) => self.port(call, reply),
            (PORTMAP_VERSION, procedure::DUMP) => self.mappings(call, reply),
            (RPCBIND_VERSION_4, procedure::GETVERSADDR) => self.address(call, true, reply),
            (RPCBIND_VERSION_3 | RPCBIND_VERSION_4, procedure::GETADDR) => {
                self.address(call, false, reply)
            }
            (RPCBIND_VERSION_3 | RPCBIND_VERSION_4, procedure::DUMP) => self.rpcbs(call, reply),
            _ => return Outcome::ProcUnavail,
        };
        answered.map_or(Outcome::GarbageArgs, |()| Outcome::Done(Done::default()))
    }
}

impl PortmapProgram {
    fn port(&self, call: &Call<'_>, reply: &mut Encoder) -> Result<(), Malformed> {
        let asked: Mapping = call.arguments()?;
        // For a client of IPv4; another version of the program is better than none (RFC 1833, 3.2).
        let of_program =
            || self.0.iter().filter(|o| (o.protocol, o.program) == (asked.protocol, asked.program));
        let exact = of_program().find(|offered| offered.version == asked.version);
        let port = exact.or_else(|| of_program().next()).map_or(0, |o| o.address.port());
        reply.value(&u32::from(port));
        Ok(())
    }

    fn mappings(&self, call: &Call<'_>, reply: &mut Encoder) -> Result<(), Malformed> {
        call.arguments::<()>()?;
        let mut mappings: Vec<Mapping> = Vec::new();
        for mapping in self.0.iter().map(mapping) {
            if !mappings.contains(&mapping) {
                mappings.push(mapping);
            }
        }
        reply.value(&List(mappings));
        Ok(())
    }

    /// GETVERSADDR asks for exactly this version, GETADDR for any (RFC 1833, 2.2.1).
    fn address(&self, call: &Call<'_>, exact: bool, reply: &mut Encoder) -> Result<(), Malformed> {
        let asked: Rpcb<'_> = call.arguments()?;
        let found = self.0.iter().filter(|o| {
            o.program == asked.program
                && netid(o.protocol, o.address.ip()).as_bytes() == asked.netid.0
        });
        let best = found.max_by_key(|offered| offered.version == asked.version);
        let best = best.filter(|offered| !exact || offered.version == asked.version);
        let address = best.map(|offered| universal_address(offered.address));
        reply.opaque(address.unwrap_or_default().as_bytes());
        Ok(())
    }

    fn rpcbs(&self, call: &Call<'_>, reply: &mut Encoder) -> Result<(), Malformed> {
        call.arguments::<()>()?;
        for offered in &self.0 {
            reply.value(&true);
            let address = universal_address(offered.address);
            reply.value(&rpcb(offered, &address));
        }
        reply.value(&false);
        Ok(())
    }
}

pub(super) fn mapping(offered: &Advertised) -> Mapping {
    let Advertised { program, version, protocol, address } = *offered;
    Mapping { program, version, protocol, port: address.port().into() }
}

pub(super) fn rpcb<'a>(offered: &Advertised, address: &'a str) -> Rpcb<'a> {
    Rpcb {
        program: offered.program,
        version: offered.version,
        netid: Opaque(netid(offered.protocol, offered.address.ip()).as_bytes()),
        address: Opaque(address.as_bytes()),
        owner: Opaque(b"superuser"),
    }
}
