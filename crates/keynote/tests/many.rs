//! One key has many assertions; they are found by the object that they are about.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use comity_keynote::{Assertion, Grant, NeededValue, PolicyAssertion, Principal, Query, Rights};
use comity_keys::{Algorithm, PrivateKey, PublicKey, Signer};
use proptest::prelude::*;

fn keys(count: usize) -> Vec<PublicKey> {
    let key = |_| *PrivateKey::generate(Algorithm::Ed25519).unwrap().public_key();
    (0..count).map(key).collect()
}

fn id(number: usize) -> String {
    format!("x{number:032x}z")
}

fn grant(from: PublicKey, to: PublicKey, object: usize, rights: Rights) -> PolicyAssertion {
    let grant = Grant {
        authorizer: from,
        licensee: to,
        export: Some("/srv".into()),
        object: id(object),
        rights,
        expires: None,
        is_final: false,
        comment: None,
    };
    PolicyAssertion::trust(Assertion::parse(grant.text().unwrap()).unwrap())
}

/// Assertions by the ids of objects that they require, as a server keeps them.
#[derive(Default)]
struct Index {
    by_id: BTreeMap<String, Vec<usize>>,
    always: Vec<usize>,
}

impl Index {
    fn of(assertions: &[PolicyAssertion]) -> Self {
        let mut index = Self::default();
        for (place, assertion) in assertions.iter().enumerate() {
            match assertion.prepared().needs(&["object", "within"]) {
                None => index.always.push(place),
                Some(needs) => {
                    for need in needs {
                        let (NeededValue::Whole(id) | NeededValue::Part(id)) = need.value;
                        index.by_id.entry(id.to_owned()).or_default().push(place);
                    }
                }
            }
        }
        index
    }

    /// The assertions that may give rights to an object.
    fn find(&self, object: &str, within: &[String]) -> BTreeSet<usize> {
        let ids = within.iter().map(String::as_str).chain([object]);
        let found = ids.filter_map(|id| self.by_id.get(id)).flatten();
        found.chain(&self.always).copied().collect()
    }
}

fn rights<'a>(
    assertions: impl IntoIterator<Item = &'a PolicyAssertion>,
    (from, to): (PublicKey, PublicKey),
    (object, within): (&str, &[String]),
) -> Rights {
    let within = within.join(" ");
    let attributes =
        [("app_domain", "Comity"), ("export", "/srv"), ("object", object), ("within", &within)];
    let requesters = [Principal::from(to)];
    let prepared: Vec<_> = assertions.into_iter().map(PolicyAssertion::prepared).collect();
    let query = Query { requesters: &requesters, attributes: &attributes };
    let evaluation = query.rights(prepared).unwrap();
    evaluation.value(&Principal::from(from))
}

#[test]
fn ten_thousand_grants_to_one_key_are_found_by_their_object() {
    let keys = keys(3);
    let (alice, bob, carol) = (keys[0], keys[1], keys[2]);
    let read = Rights::READ;
    let mut assertions: Vec<_> =
        (0..10_000).map(|object| grant(bob, carol, object, read)).collect();
    assertions.push(grant(alice, bob, 7777, "rw".parse().unwrap()));
    let index = Index::of(&assertions);
    let within = [id(1), id(2)];
    let found = index.find(&id(7777), &within);
    assert_eq!(found, BTreeSet::from([1, 2, 7777, 10_000]));
    let found = found.iter().map(|place| &assertions[*place]);
    assert_eq!(rights(found, (alice, carol), (&id(7777), &within)), read);
    // The work for all of them together is within the limit, too.
    assert_eq!(rights(&assertions, (alice, carol), (&id(7777), &within)), read);
    assert_eq!(rights(&assertions, (alice, carol), (&id(5), &within)), Rights::NONE);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn assertions_found_by_the_index_give_as_much_as_all(
        links in prop::collection::vec((0..4_usize, 0..4_usize, 0..5_usize, 1..64_u8), 0..25),
        object in 0..5_usize,
        within in prop::collection::vec(0..5_usize, 0..3),
    ) {
        let keys = keys(4);
        let link = |(from, to, object, bits): &(usize, usize, usize, u8)| {
            grant(keys[*from], keys[*to], *object, Rights::from_bits(*bits))
        };
        let assertions: Vec<_> = links.iter().map(link).collect();
        let within: Vec<String> = within.into_iter().map(id).collect();
        let about = (id(object), within);
        let found = Index::of(&assertions).find(&about.0, &about.1);
        let found = found.iter().map(|place| &assertions[*place]);
        let (between, about) = ((keys[0], keys[3]), (about.0.as_str(), about.1.as_slice()));
        prop_assert_eq!(rights(found, between, about), rights(&assertions, between, about));
    }
}
