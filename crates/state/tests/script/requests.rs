//! Requests that are done once: sessions with their slots, and the owners of minor version 0.

use std::hash::{DefaultHasher, Hash, Hasher};

use comity_state::{
    CallbackSecurity, ChannelAttrs, ConnectionId, CreateSession, Direction, SeqidCheck, Sequence,
    Sequenced, SessionId, StatusFlags,
};

use crate::world::{Told, World, said, text};

const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 1 << 20,
    response_bytes_max: 1 << 20,
    response_cached_bytes_max: 2048,
    operations_max: 16,
    requests_max: 4,
};

impl World {
    pub(super) fn requests(&mut self, verb: &str, args: &[&str]) -> Told {
        match (verb, args) {
            ("session", [client, name, sequence, rest @ ..]) => {
                self.session(client, name, sequence.parse().unwrap(), rest)
            }
            ("destroy-session", [name, rest @ ..]) => {
                let connection = rest.first().map_or(1, |connection| connection.parse().unwrap());
                let (session, by) =
                    (&self.sessions[*name], (ConnectionId(connection), self.caller));
                said(self.engine.destroy_session(session, by))
            }
            ("sequence", [session, slot, seqid, request, rest @ ..]) => {
                let (slot, seqid) = (slot.parse().unwrap(), seqid.parse().unwrap());
                self.sequence(session, (slot, seqid), request, rest)
            }
            ("answer", [request, words @ ..]) => {
                let Some(ticket) = self.tickets.remove(*request) else {
                    return vec!["there is no such request".into()];
                };
                let answer = words.join(" ");
                ticket.answered((answer != "-").then_some(answer.as_bytes()));
                Vec::new()
            }
            ("bind", [session, connection]) => {
                let wanted = (ConnectionId(connection.parse().unwrap()), Direction::Both);
                let (session, caller) = (&self.sessions[*session], self.caller);
                let bound = self.engine.bind_connection(self.now, session, wanted, caller);
                vec![format!("{bound:?}")]
            }
            ("disconnect", [session, connection]) => {
                let connection = ConnectionId(connection.parse().unwrap());
                self.engine.connection_lost(&self.sessions[*session], connection);
                Vec::new()
            }
            // The client has answered CB_RECALL_SLOT.
            ("slots", [session, "told", target]) => {
                self.engine.slots_recalled(&self.sessions[*session], target.parse().unwrap());
                Vec::new()
            }
            ("slots", [session]) => {
                let session = self.engine.session(&self.sessions[*session]).unwrap();
                let bytes = self.engine.census().reply_cache_bytes;
                let full = bytes * 100 / self.engine.settings().limits.reply_cache_bytes;
                vec![format!("{}, memory used {full} %", session.slots_len())]
            }
            ("turn", [client, owner, seqid]) => self.turn(client, owner, seqid.parse().unwrap()),
            ("turn-of", [stateid, seqid]) => {
                let (shown, stateid) = (self.at(None, stateid), self.stateids[*stateid]);
                let turn = self.engine.stateid_turn(shown, &stateid, seqid.parse().unwrap());
                self.begun(turn)
            }
            ("do", []) => {
                let turn = self.turns.remove("turn").unwrap();
                self.unanswered = Some(turn.done());
                Vec::new()
            }
            ("untrue", []) => {
                self.unanswered = None;
                Vec::new()
            }
            ("true", words) => {
                self.unanswered.take().unwrap().told(words.join(" ").as_bytes(), None);
                Vec::new()
            }
            ("done", words) => {
                let turn = self.turns.remove("turn").unwrap();
                turn.answered(words.join(" ").as_bytes(), None);
                Vec::new()
            }
            _ => panic!("{verb} {args:?}"),
        }
    }

    fn session(&mut self, client: &str, name: &str, sequenceid: u32, rest: &[&str]) -> Told {
        let small = rest.contains(&"small");
        let response_bytes_max = if small { 1 } else { 1 << 20 };
        let number = rest.iter().find_map(|word| word.parse().ok());
        let usual = if rest.contains(&"wide") { 32 } else { ATTRS.requests_max };
        let requests_max = number.unwrap_or(usual);
        let fore = ChannelAttrs { response_bytes_max, requests_max, ..ATTRS };
        let args = CreateSession {
            clientid: self.clients[client].0,
            sequenceid,
            caller: self.caller,
            connection: ConnectionId(1),
            back_wanted: rest.contains(&"back"),
            fore,
            back: ATTRS,
            minor: 1,
            program: 7,
            security: [CallbackSecurity::None].into(),
        };
        match self.engine.create_session(self.now, &args) {
            Ok(made) => {
                let known = self.sessions.values().any(|known| *known == made.session);
                self.sessions.insert(name.into(), made.session);
                let known = if known { "the same as before" } else { "new" };
                vec![format!("{known}, {} slots", made.fore.requests_max)]
            }
            Err(error) => vec![error.to_string()],
        }
    }

    fn sequence(
        &mut self,
        session: &str,
        (slot, seqid): (u32, u32),
        request: &str,
        rest: &[&str],
    ) -> Told {
        let mut hasher = DefaultHasher::new();
        request.hash(&mut hasher);
        let nowhere = SessionId([9; 16]);
        let args = Sequence {
            session: self.sessions.get(session).copied().unwrap_or(nowhere),
            seqid,
            slot,
            highest_slot: match rest {
                ["high"] => 99,
                ["up-to", highest] => highest.parse().unwrap(),
                _ => slot,
            },
            cache_this: rest.contains(&"cache"),
            operations: 2,
            request_bytes: 200,
            digest: hasher.finish(),
            connection: ConnectionId(1),
            origin: self.caller.origin,
        };
        let told = match self.engine.sequence(self.now, &args) {
            Ok(Sequenced::New(ticket)) => {
                let answer = *ticket.answer();
                self.tickets.insert(request.into(), ticket);
                let flags = answer.status;
                let flags = if flags == StatusFlags::default() {
                    String::new()
                } else {
                    format!(", flags {:#x}", flags.0)
                };
                format!("new, slots 0..={}{flags}", answer.target_highest_slot)
            }
            Ok(Sequenced::Again(answer)) => format!("again: {}", text(&answer)),
            Ok(Sequenced::Forgotten(_)) => "again, but the answer was not kept".into(),
            Err(error) => error.to_string(),
        };
        vec![told]
    }

    fn turn(&mut self, client: &str, owner: &str, seqid: u32) -> Told {
        let Some(client) = self.client(client) else { return vec!["gone".into()] };
        let turn = self.engine.open_turn((self.now, self.caller), &client, owner.as_bytes(), seqid);
        self.begun(turn)
    }

    fn begun(&mut self, turn: Result<SeqidCheck, comity_state::Error>) -> Told {
        vec![match turn {
            Ok(SeqidCheck::New(turn)) => {
                self.turns.insert("turn".into(), turn);
                "its turn".into()
            }
            Ok(SeqidCheck::Again(reply)) => format!("again: {}", text(&reply.result)),
            Err(error) => error.to_string(),
        }]
    }
}
