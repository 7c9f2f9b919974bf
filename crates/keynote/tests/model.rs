//! Canonical grants among a few people, compared with a model of their meaning.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::LazyLock;

use comity_keynote::{Grant, Principal, Query, Rights, SignedAssertion, Validity};
use comity_keys::{Algorithm, PrivateKey, Signer};
use proptest::collection::vec;
use proptest::prelude::*;

/// The people. The first has the account whose rights are handed on.
static PEOPLE: LazyLock<Vec<PrivateKey>> = LazyLock::new(|| {
    let algorithms = Algorithm::ALL.into_iter().cycle();
    algorithms.take(5).map(|algorithm| PrivateKey::generate(algorithm).unwrap()).collect()
});

/// The parent folder of each object. The first object is the root and its own parent.
const ABOVE: [usize; 6] = [0, 0, 0, 1, 1, 4];

const EXPORTS: [&str; 2] = ["/srv/p", "/srv/p q"];

const TIMES: [&str; 4] = [
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:01Z",
    "2026-12-31T23:59:59Z",
    "2027-01-01T00:00:00Z",
];

/// A grant, as indexes into the tables above.
#[derive(Debug, Clone)]
struct Given {
    from: usize,
    to: usize,
    export: usize,
    object: usize,
    rights: Rights,
    expires: Option<usize>,
    is_final: bool,
}

/// A request, as indexes into the tables above.
#[derive(Debug, Clone, Copy)]
struct Asked {
    by: usize,
    export: usize,
    object: usize,
    now: usize,
}

fn id(object: usize) -> String {
    format!("x{object:032x}z")
}

/// The folders above an object, beginning with its parent.
fn folders(object: usize) -> Vec<usize> {
    let mut folders = Vec::new();
    let mut at = object;
    while at != 0 {
        at = ABOVE[at];
        folders.push(at);
    }
    folders
}

impl Given {
    fn sign(&self) -> SignedAssertion {
        let [authorizer, licensee] = [self.from, self.to].map(|who| *PEOPLE[who].public_key());
        let grant = Grant {
            authorizer,
            licensee,
            export: Some(EXPORTS[self.export].into()),
            object: id(self.object),
            rights: self.rights,
            expires: self.expires.map(|time| TIMES[time].to_owned()),
            is_final: self.is_final,
            comment: None,
        };
        SignedAssertion::parse(grant.sign(&PEOPLE[self.from]).unwrap()).unwrap()
    }

    /// Returns whether the grant is about the object, export and time of a request, whoever makes
    /// it.
    fn covers(&self, asked: Asked) -> bool {
        let is_below = folders(asked.object).contains(&self.object);
        self.export == asked.export
            && (asked.object == self.object || is_below)
            && self.expires.is_none_or(|end| asked.now < end)
            && (!self.is_final || asked.by == self.to)
    }
}

/// Returns whether `who` gives one right to the requester, directly or through others.
fn gives(given: &[Given], asked: Asked, right: Rights, (who, seen): (usize, &[usize])) -> bool {
    if who == asked.by {
        return true;
    }
    let seen = [seen, &[who]].concat();
    given.iter().any(|grant| {
        grant.from == who
            && !seen.contains(&grant.to)
            && grant.rights.contains(right)
            && grant.covers(asked)
            && gives(given, asked, right, (grant.to, &seen))
    })
}

fn expected(given: &[Given], asked: Asked) -> Rights {
    let rights = Rights::LETTERS.iter().map(|(_, right)| *right);
    let held = rights.filter(|right| gives(given, asked, *right, (0, &[])));
    held.fold(Rights::NONE, Rights::union)
}

/// The rights that the first person's key gives, and the time for which they hold.
fn evaluated(signed: &[SignedAssertion], asked: Asked) -> (Rights, Validity) {
    let within: Vec<String> = folders(asked.object).into_iter().map(id).collect();
    let (within, object) = (within.join(" "), id(asked.object));
    let requester = *PEOPLE[asked.by].public_key();
    let name = requester.to_keynote();
    let attributes = [
        ("app_domain", "Comity"),
        ("export", EXPORTS[asked.export]),
        ("object", &object),
        ("within", &within),
        ("now", TIMES[asked.now]),
        ("requester", &name),
    ];
    let requesters = [Principal::from(requester)];
    let query = Query { requesters: &requesters, attributes: &attributes };
    let evaluation = query.rights(signed.iter().map(SignedAssertion::prepared)).unwrap();
    let account = Principal::from(*PEOPLE[0].public_key());
    (evaluation.value(&account), evaluation.validity().clone())
}

fn given() -> impl Strategy<Value = Given> {
    let expires = prop::option::weighted(0.4, 0..TIMES.len());
    let rights = (1..64_u8).prop_map(Rights::from_bits);
    let people = (0..PEOPLE.len(), 0..PEOPLE.len());
    (people, 0..EXPORTS.len(), 0..ABOVE.len(), rights, expires, prop::bool::weighted(0.3)).prop_map(
        |((from, to), export, object, rights, expires, is_final)| Given {
            from,
            to,
            export,
            object,
            rights,
            expires,
            is_final,
        },
    )
}

fn asked() -> impl Strategy<Value = Asked> {
    let numbers = (0..PEOPLE.len(), 0..EXPORTS.len(), 0..ABOVE.len(), 0..TIMES.len());
    numbers.prop_map(|(by, export, object, now)| Asked { by, export, object, now })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn signed_grants_give_the_rights_of_the_model(
        given in vec(given(), 0..12),
        asked in vec(asked(), 8),
    ) {
        let signed: Vec<SignedAssertion> = given.iter().map(Given::sign).collect();
        for asked in asked {
            let (rights, validity) = evaluated(&signed, asked);
            prop_assert_eq!(rights, expected(&given, asked), "{:?}", asked);
            // Until the end of its validity, a result is the one that the model gives for later
            // times.
            for (now, time) in TIMES.iter().enumerate().skip(asked.now) {
                let holds = match &validity {
                    Validity::Unlimited => true,
                    Validity::Until(end) => *time < end.as_str(),
                    Validity::Now => now == asked.now,
                };
                let later = Asked { now, ..asked };
                prop_assert!(!holds || expected(&given, later) == rights, "{:?}", later);
            }
        }
    }

    #[test]
    fn a_revoked_grant_ends_the_rights_that_rest_on_it(
        given in vec(given(), 1..10),
        revoked in any::<prop::sample::Index>(),
        asked in vec(asked(), 4),
    ) {
        let mut given = given;
        let mut signed: Vec<SignedAssertion> = given.iter().map(Given::sign).collect();
        let digest = *signed[revoked.index(signed.len())].digest();
        // Equal grants have the same digest, so they are revoked together.
        let keeps: Vec<bool> = signed.iter().map(|one| *one.digest() != digest).collect();
        let mut keep = keeps.iter();
        given.retain(|_| *keep.next().unwrap());
        let mut keep = keeps.iter();
        signed.retain(|_| *keep.next().unwrap());
        for asked in asked {
            prop_assert_eq!(evaluated(&signed, asked).0, expected(&given, asked));
        }
    }
}

#[test]
fn a_chain_of_sixteen_links_gives_the_rights_that_every_link_gives() {
    let keys: Vec<PrivateKey> =
        (0..17).map(|_| PrivateKey::generate(Algorithm::Ed25519).unwrap()).collect();
    let link = |at: usize| {
        // The eighth link gives "rx" only.
        let rights = if at == 7 { "rx" } else { "rwxcda" };
        let [authorizer, licensee] = [at, at + 1].map(|at| *keys[at].public_key());
        let grant = Grant {
            authorizer,
            licensee,
            export: Some(EXPORTS[0].into()),
            object: id(at % 2),
            rights: rights.parse().unwrap(),
            expires: None,
            is_final: false,
            comment: None,
        };
        SignedAssertion::parse(grant.sign(&keys[at]).unwrap()).unwrap()
    };
    let links: Vec<_> = (0..16).map(link).collect();
    let (object, within) = (id(3), format!("{} {}", id(1), id(0)));
    let attributes = [
        ("app_domain", "Comity"),
        ("export", EXPORTS[0]),
        ("object", &object),
        ("within", &within),
    ];
    let requesters = [Principal::from(*keys[16].public_key())];
    let query = Query { requesters: &requesters, attributes: &attributes };
    let account = Principal::from(*keys[0].public_key());
    let rights = |without: usize| {
        let used = links.iter().enumerate().filter(|(at, _)| *at != without);
        let evaluation = query.rights(used.map(|(_, link)| link.prepared())).unwrap();
        evaluation.value(&account).to_string()
    };
    assert_eq!(rights(16), "rx");
    for without in 0..16 {
        assert_eq!(rights(without), "none", "{without}");
    }
}
