//! `comity explain` decides each question as the server does.
#![allow(clippy::unwrap_used, clippy::panic)]

mod site;

use comity_export::{Decision, Explanation, Operation, Question, Refusal, explain};
use comity_vfs::{Cred, Gid, Status, Uid};

use site::Site;

const OPTIONS: &str = "rw,insecure,range_map_uid=1000-1999:51000-51999,range_map_gid=100-199:52100-\
                       52199,cloak_uid=51000-51999:+070,no_client_cache";

fn asked(
    site: &Site,
    from: &str,
    (uid, gid): (u32, u32),
    path: &str,
    operation: Operation,
) -> Explanation {
    let caller = Cred::new(Uid::new(uid), Gid::new(gid)).with_groups([150, 7].map(Gid::new));
    let (export, path, from) = ("/srv".into(), path.into(), from.parse().unwrap());
    explain(site.plan(), &Question { export, path, from, caller, operation })
}

fn shown(decision: &Decision) -> String {
    let place = decision.place.as_ref().map(|place| format!(" [{place}]")).unwrap_or_default();
    format!("{}: {}{place}", decision.about, decision.text)
}

#[test]
fn every_decision_is_explained_with_its_rule() {
    let site = Site::new(OPTIONS);
    site.file(b"secret", (51_006, 7), 0o604);
    let found = asked(&site, "10.0.0.2", (1005, 105), "secret", Operation::Read);
    let chain: Vec<_> = found.decisions.iter().map(shown).collect();
    assert_eq!(
        chain,
        [
            "export: /srv",
            "client: 10.0.0.2 comes in as 10.0.0.2 [e:1:43]",
            "user: uid 1005 is uid 51005 of the server, by its range [e:1:64]",
            "group: gid 105 is gid 52105 of the server, by its range [e:1:100]",
            "supplementary group: gid 150 is gid 52150 of the server, by its range [e:1:100]",
            "supplementary group: gid 7 is in no range and dropped",
            "acts as: uid 51005, gid 52105, supplementary groups: 52150",
            "cloak: secret (server uid 51006, gid 7, mode 604) is hidden by the cloak [e:1:134]",
            "lookup: secret: no such file or directory",
        ]
    );
    assert_eq!(found.answer, Err(Refusal::Status(Status::NoEnt)));
}

#[test]
fn an_explanation_ends_with_the_answer_of_the_server() {
    let site = Site::new(OPTIONS);
    site.file(b"open", (7, 7), 0o604);
    site.file(b"closed", (7, 7), 0o600);
    site.dir(b"dir", (7, 7), 0o755);
    let end = |path: &str, operation| asked(&site, "10.0.0.2", (1005, 105), path, operation).answer;
    let status = |status| Err(Refusal::Status(status));
    assert_eq!(end("open", Operation::Read), Ok(()));
    assert_eq!(end("/srv/open", Operation::Stat), Ok(()));
    assert_eq!(end("open", Operation::Write), status(Status::Acces));
    assert_eq!(end("closed", Operation::Read), status(Status::Acces));
    assert_eq!(end("closed", Operation::Execute), status(Status::Acces));
    assert_eq!(end("missing", Operation::Stat), status(Status::NoEnt));
    assert_eq!(end("open/x", Operation::Stat), status(Status::NotDir));
    assert_eq!(end("dir", Operation::Read), status(Status::IsDir));
    assert_eq!(end("dir", Operation::List), Ok(()));
    assert_eq!(end("dir", Operation::Execute), Ok(()));
    assert_eq!(end("..", Operation::Stat), status(Status::Inval));
    assert_eq!(end("", Operation::Write), Ok(()));
}

#[test]
fn the_rule_that_refuses_a_client_is_named() {
    let site = Site::new(&OPTIONS.replace("rw,insecure", "ro,map_default=deny"));
    let ask = |from, who, operation| asked(&site, from, who, "", operation);
    let last = |found: &Explanation| found.decisions.last().map(shown).unwrap();
    let found = ask("10.0.0.3", (1005, 105), Operation::Stat);
    assert_eq!(last(&found), "client: no entry of the export is for 10.0.0.3");
    assert_eq!(found.answer, Err(Refusal::Status(Status::Acces)));
    let found = ask("10.0.0.2", (7, 105), Operation::Stat);
    assert_eq!(shown(&found.decisions[2]), "user: uid 7 is in no range and denied [e:1:55]");
    assert_eq!(
        (last(&found), found.answer),
        ("caller: is refused".into(), Err(Refusal::Status(Status::Acces)))
    );
    let found = ask("10.0.0.2", (0, 105), Operation::Write);
    assert_eq!(shown(&found.decisions[2]), "user: uid 0 is squashed to 65534");
    assert_eq!(last(&found), "write: the export is read-only for this client [e:1:52]");
    assert_eq!(found.answer, Err(Refusal::Status(Status::RoFs)));
}
