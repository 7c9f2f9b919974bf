use comity_state::{ByteRange, ClientId, ClientSummary, LockType, StateDetails, Waiting};

use crate::world::{Told, World, file_name, text};

impl World {
    pub(super) fn inventory(&self, verb: &str, args: &[&str]) -> Told {
        match verb {
            "clients" => self.known(args),
            "states" => self.held(args),
            "waits" => self.waits(args),
            _ => vec![format!("{:?}", self.engine.totals())],
        }
    }

    /// `clients COUNT` lists clients page by page.
    fn known(&self, args: &[&str]) -> Told {
        let (mut told, mut after) = (Vec::new(), ClientId(0));
        loop {
            let page = self.engine.clients_after(self.now, after, args[0].parse().unwrap());
            let Some(last) = page.last() else { return told };
            after = last.client.id();
            told.extend(page.iter().map(|summary| self.short(summary)));
            told.push("--".into());
        }
    }

    fn short(&self, summary: &ClientSummary) -> String {
        let ClientSummary { client, confirmed, expired, age, silent, sessions, .. } = summary;
        let counts = summary.counts;
        let (name, waits) = (text(client.owner()), summary.waits);
        let blockers: Vec<_> = summary.waits_for.iter().map(|id| self.name_of(*id)).collect();
        format!(
            "{name}: confirmed {confirmed}, expired {expired}, known for {age:?}, silent for \
             {silent:?}, {sessions} sessions, {counts:?}, waits {waits} times for {blockers:?}"
        )
    }

    /// `states CLIENT COUNT` lists states of a client page by page.
    fn held(&self, args: &[&str]) -> Told {
        let [name, count] = args else { panic!("states CLIENT COUNT") };
        let client = self.client(name).unwrap();
        let (mut told, mut after) = (Vec::new(), 0);
        loop {
            let place = (after, count.parse().unwrap());
            let page = self.engine.states_after(self.now, &client, place);
            let Some(last) = page.last() else { return told };
            after = last.number;
            told.extend(page.iter().map(|state| {
                let (file, age) = (file_name(&state.file), state.age);
                format!("{file} for {age:?}: {}", what(&state.details))
            }));
        }
    }

    /// `waits [CLIENT]` lists waits, of one client or of all.
    fn waits(&self, args: &[&str]) -> Told {
        let client = args.first().map(|name| self.client(name).unwrap().id());
        let (found, all) = self.engine.waits(self.now, client, 2);
        let mut told: Told = found.iter().map(|waiting| self.waiting(waiting)).collect();
        told.push(format!("{all} in all"));
        told
    }

    fn waiting(&self, waiting: &Waiting) -> String {
        let Waiting { client, holder, file, age, awaited } = waiting;
        let name = |id: &Option<ClientId>| id.map_or("nobody".into(), |id| self.name_of(id));
        let (client, holder, file) = (name(client), name(holder), file_name(file));
        format!("{client} waits for {holder}: {awaited:?} of {file} for {age:?}")
    }

    fn name_of(&self, id: ClientId) -> String {
        self.engine.client_by_id(id).map_or("somebody".into(), |client| text(client.owner()))
    }
}

fn what(held: &StateDetails) -> String {
    let shown =
        |(range, kind): &(ByteRange, LockType)| format!("{kind:?} {}-{}", range.first, range.last);
    match held {
        StateDetails::Open { owner, share } => format!("open by {}, {share:?}", text(owner)),
        StateDetails::Locks { owner, count, ranges } => {
            let ranges: Vec<_> = ranges.iter().map(shown).collect();
            format!("{count} locks of {}: {}", text(owner), ranges.join(", "))
        }
        StateDetails::Delegation { kind, recalled } => {
            format!("{kind:?} delegation, recalled {recalled:?}")
        }
        StateDetails::Layout { read, read_write } => {
            format!("layout of {read} ranges to read and {read_write} to read and write")
        }
        StateDetails::Revoked(why) => format!("revoked: {why:?}"),
    }
}
