//! Credentials are submitted and revoked, expire, and survive a restart.
#![allow(clippy::unwrap_used)]

mod world;

use comity_grants::{
    Moment, Outcome, Revocation, RevokeError, Revoked, Revoker, RightsClock, SubmitError,
};
use comity_vfs::{Fs, Handle};
use world::{BEGUN, Kept, Person, World};

/// Alice with an account, Bob and Carol without, and a directory.
struct Case {
    world: World,
    alice: Person,
    bob: Person,
    carol: Person,
    dir: Handle,
}

fn case() -> Case {
    let world = World::new();
    let [alice, bob, carol] = [(); 3].map(|()| Person::new());
    world.bind(&[(&alice, 1000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    Case { world, alice, bob, carol, dir }
}

impl Case {
    /// Carol reads by a chain from Alice over Bob.
    fn chain(&self) -> (String, String) {
        let first = self.alice.grants(&self.bob, &self.dir, "rx");
        let second = self.bob.grants(&self.carol, &self.dir, "r");
        self.world.submit(&self.bob, &[&first]);
        self.world.submit(&self.carol, &[&first, &second]);
        assert_eq!(self.reads(), [true, true]);
        (first, second)
    }

    /// Returns whether Bob and whether Carol may read.
    fn reads(&self) -> [bool; 2] {
        [&self.bob, &self.carol].map(|who| self.world.allowed(who, &self.dir).contains("read"))
    }

    fn outcomes(&self, who: &Person, texts: &[&str]) -> Vec<Outcome> {
        let submitted = self.world.grants.submit(who.key(), &texts.join("\n")).unwrap();
        submitted.iter().map(|one| one.outcome).collect()
    }

    fn revoke(&self, by: Revoker, what: &Revocation) -> Result<Vec<Revoked>, RevokeError> {
        self.world.grants.revoke(by, what)
    }
}

fn digest(text: &str) -> Revocation {
    Revocation::Credential(*comity_keynote::SignedAssertion::parse(text).unwrap().digest())
}

#[test]
fn only_credentials_from_an_account_to_the_key_are_held() {
    let case = case();
    let Case { world, alice, bob, carol, dir } = &case;
    let good = alice.grants(bob, dir, "r");
    assert_eq!(case.outcomes(bob, &[&good]), [Outcome::Held]);
    assert_eq!(case.outcomes(bob, &[&good]), [Outcome::Known]);
    // A credential of another key has no effect, replayed or not.
    assert_eq!(case.outcomes(carol, &[&good]), [Outcome::NotYours]);
    // Everybody can sign a credential.
    let stranger = Person::new();
    assert_eq!(case.outcomes(bob, &[&stranger.grants(bob, dir, "r")]), [Outcome::NoAccount]);
    let ended = alice.grants_if(bob, dir, "r", "now < \"2020-01-01T00:00:00Z\"");
    assert_eq!(case.outcomes(bob, &[&ended]), [Outcome::Ended]);
    assert_eq!(world.grants.held_by(&bob.key()).len(), 1);
    assert_eq!(world.grants.held_by(&carol.key()), []);
}

#[test]
fn faulty_credentials_are_named_with_their_number_and_line() {
    let case = case();
    let Case { world, alice, bob, dir, .. } = &case;
    let good = alice.grants(bob, dir, "r");
    let edited = good.replace("-> \"r\"", "-> \"w\"");
    assert_ne!(edited, good);
    let text = format!("\n\n{good}\n{edited}");
    let Err(SubmitError::Credential { number, line, why }) = world.grants.submit(bob.key(), &text)
    else {
        panic!("an edited credential was taken");
    };
    assert_eq!((number, line), (2, 4 + good.lines().count()));
    assert!(why.to_string().contains("the text was changed"), "{why}");
    assert_eq!(world.grants.held_by(&bob.key()), [], "no credential is held if one is faulty");
    for (text, part) in [("", "this has 0"), ("hello", "line 1")] {
        let error = world.grants.submit(bob.key(), text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let many = vec![good.as_str(); 65].join("\n");
    assert!(matches!(world.grants.submit(bob.key(), &many), Err(SubmitError::Number(65))));
}

#[test]
fn a_revoked_link_ends_all_links_below_it_at_once() {
    let case = case();
    let (first, second) = case.chain();
    // Carol is below Bob and may not revoke Bob's rights, nor may a stranger.
    for who in [&case.carol, &Person::new()] {
        let refused = case.revoke(Revoker::Key(who.key()), &digest(&first));
        assert!(matches!(refused, Err(RevokeError::NotAbove)));
    }
    // Alice is above Bob in the chain.
    case.revoke(Revoker::Key(case.alice.key()), &digest(&second)).unwrap();
    assert_eq!(case.reads(), [true, false]);
    case.revoke(Revoker::Key(case.alice.key()), &digest(&first)).unwrap();
    assert_eq!(case.reads(), [false, false]);
    assert_eq!(case.outcomes(&case.bob, &[&first]), [Outcome::Revoked]);
}

#[test]
fn a_credential_is_revoked_before_the_server_has_met_it() {
    let case = case();
    let text = case.alice.grants(&case.bob, &case.dir, "r");
    let by = Revoker::Key(case.alice.key());
    assert!(matches!(case.revoke(by, &digest(&text)), Err(RevokeError::Unknown)));
    case.revoke(by, &Revocation::Text(text.clone())).unwrap();
    assert_eq!(case.outcomes(&case.bob, &[&text]), [Outcome::Revoked]);
}

#[test]
fn an_account_revokes_a_key_for_what_comes_from_it_and_the_administrator_for_all() {
    let case = case();
    let dave = Person::new();
    case.world.bind(&[(&case.alice, 1000), (&dave, 2000)]);
    case.chain();
    case.world.submit(&case.carol, &[&dave.grants(&case.carol, &case.dir, "r")]);
    // Bob's key grants Carol nothing any more, but Dave's grant holds.
    case.revoke(Revoker::Key(case.alice.key()), &Revocation::Key(case.bob.key())).unwrap();
    assert_eq!(case.reads(), [false, true]);
    case.revoke(Revoker::Administrator, &Revocation::Key(case.carol.key())).unwrap();
    assert_eq!(case.reads(), [false, false]);
}

#[test]
fn a_key_without_an_account_revokes_what_it_gave_to_another() {
    let case = case();
    case.chain();
    let (bob, carol) = (Revoker::Key(case.bob.key()), Revocation::Key(case.carol.key()));
    case.revoke(bob, &carol).unwrap();
    assert_eq!(case.reads(), [true, false]);
    let nothing = case.revoke(bob, &Revocation::Key(case.alice.key()));
    assert!(matches!(nothing, Err(RevokeError::NothingGiven)));
}

#[test]
fn the_end_of_an_account_ends_the_rights_that_depend_on_it() {
    let case = case();
    case.chain();
    case.world.bind(&[]);
    assert_eq!(case.reads(), [false, false]);
    case.world.bind(&[(&case.alice, 1000)]);
    assert_eq!(case.reads(), [true, true]);
}

#[test]
fn submissions_decisions_and_revocations_are_counted() {
    let case = case();
    case.chain();
    let before = case.world.grants.counts();
    assert_eq!((before.keys, before.credentials, before.revocations), (2, 3, 0));
    let count = |name: &str| {
        let counts = case.world.grants.counts();
        counts.submitted.iter().find(|(known, _)| *known == name).unwrap().1
    };
    assert_eq!(count("held"), 3);
    assert!(case.world.grants.submit(case.bob.key(), "hello").is_err());
    assert_eq!(count("malformed"), 1);
    let good = case.alice.grants(&case.bob, &case.dir, "r");
    assert_eq!(case.outcomes(&Person::new(), &[&good]), [Outcome::NotYours]);
    assert_eq!(count("not_for_this_key"), 1);
    let holder = case.world.holder(&case.bob);
    for _ in 0..3 {
        let read = comity_grants::Operation::Read;
        assert!(case.world.grantor(&holder, &case.dir, read).unwrap().is_some());
    }
    case.revoke(Revoker::Administrator, &Revocation::Key(case.carol.key())).unwrap();
    let after = case.world.grants.counts();
    assert_eq!((after.queries - before.queries, after.cache_hits - before.cache_hits), (1, 2));
    assert_eq!((after.revoked, after.revocations), (1, 1));
}

#[test]
fn credentials_and_revocations_outlive_a_restart() {
    let case = case();
    let (first, second) = case.chain();
    case.revoke(Revoker::Key(case.bob.key()), &digest(&second)).unwrap();
    let Case { world, alice, bob, carol, .. } = &case;
    let again = World::after(world.kept.clone(), &world.fs, BEGUN + 5);
    again.bind(&[(alice, 1000)]);
    assert_eq!(again.allowed(bob, &case.dir), "look read search");
    assert_eq!(again.allowed(carol, &case.dir), "");
    assert_eq!(again.grants.held_by(&bob.key())[0].text.trim(), first.trim());
}

#[test]
fn a_submission_that_cannot_be_stored_is_not_acknowledged_and_leaves_nothing_behind() {
    let case = case();
    let Case { world, alice, bob, dir, .. } = &case;
    let text = alice.grants(bob, dir, "r");
    world.kept.fail(true);
    assert!(matches!(world.grants.submit(bob.key(), &text), Err(SubmitError::Store(_))));
    assert_eq!(world.allowed(bob, dir), "");
    assert_eq!(world.grants.held_by(&bob.key()), []);
    // A second after the disk has room again, all is stored.
    world.kept.fail(false);
    world.pass_seconds(1);
    world.submit(bob, &[&text]);
    assert_eq!(world.kept.recovered().held.len(), 1);
    world.kept.fail(true);
    let by = Revoker::Key(alice.key());
    assert!(matches!(case.revoke(by, &digest(&text)), Err(RevokeError::Store(_))));
    assert!(world.allowed(bob, dir).contains("read"), "nothing was revoked");
    world.kept.fail(false);
    world.pass_seconds(1);
    case.revoke(by, &digest(&text)).unwrap();
    assert_eq!(world.kept.recovered().revoked.len(), 1);
}

#[test]
fn ended_credentials_and_their_revocations_are_forgotten() {
    let case = case();
    let Case { world, alice, bob, dir, .. } = &case;
    let end = Moment::from_seconds(BEGUN + 10);
    let text = alice.grants_if(bob, dir, "r", &format!("now < \"{end}\""));
    world.submit(bob, &[&text]);
    case.revoke(Revoker::Key(alice.key()), &digest(&text)).unwrap();
    world.grants.expire().unwrap();
    assert_eq!(world.grants.held_by(&bob.key()).len(), 1);
    world.pass_seconds(11);
    world.grants.expire().unwrap();
    assert_eq!(world.grants.held_by(&bob.key()), []);
    let recovered = world.kept.recovered();
    assert!(recovered.held.is_empty() && recovered.revoked.is_empty());
    assert_eq!(recovered.seen, Moment::from_seconds(BEGUN + 11));
}

#[test]
fn a_right_that_has_ended_stays_ended_when_the_clock_is_set_back_over_a_restart() {
    let case = case();
    let Case { world, alice, bob, dir, .. } = &case;
    let end = Moment::from_seconds(BEGUN + 10);
    let text = alice.grants_if(bob, dir, "r", &format!("now < \"{end}\""));
    world.submit(bob, &[&text]);
    world.pass_seconds(11);
    world.grants.expire().unwrap();
    let seen = world.kept.recovered().seen;
    let clock = RightsClock::after(seen, 0);
    let now = clock.now(0, (BEGUN - 1_000_000) * 1000);
    let again = World::after(Kept::clone(&world.kept), &world.fs, now.seconds());
    again.bind(&[(alice, 1000)]);
    let outcome = again.grants.submit(bob.key(), &text).unwrap()[0].outcome;
    assert_eq!(outcome, Outcome::Ended);
}

#[test]
fn the_report_names_the_link_that_grants_nothing_and_the_reason() {
    let case = case();
    let Case { world, alice, bob, carol, dir } = &case;
    let first = alice.grants_if(bob, dir, "rx", "operation != \"write\"");
    world.submit(carol, &[&first, &bob.grants(carol, dir, "w")]);
    let holder = world.holder(carol);
    let why = |operation| {
        world.through(world::EXPORT, |scene| {
            world.grants.why(holder.caller(), scene, dir, operation)
        })
    };
    let report = why(comity_grants::Operation::Write).unwrap();
    assert!(report.starts_with("write of x") && report.contains(": denied\n"), "{report}");
    assert!(report.contains("from user user1000"), "{report}");
    assert!(report.contains("`operation != \"write\"` is false"), "{report}");
    world.bind(&[]);
    let report = why(comity_grants::Operation::Read).unwrap();
    assert!(
        report.contains("none of the credentials for it was signed by a user of this server"),
        "{report}"
    );
}
