//! Layouts belong to a client. These tests check which of its users may return them.

use comity_state::{ByteRange, Engine, Error, LayoutIomode, LayoutScope, Share, Stateid};

use crate::people::{
    NAME, NEIGHBOUR, NOW, PLAIN, Person, USER, VICTIM, Wish, caller, client_41, engine, file, open,
};

const READ: LayoutIomode = LayoutIomode::Read;

/// An engine and a client whose user has a layout of file 1.
struct Held {
    engine: Engine,
    person: Person,
    open: Stateid,
    layout: Stateid,
}

impl Held {
    fn new() -> Self {
        let engine = engine();
        let (client, _) = client_41(&engine, VICTIM, NAME);
        let person = Person { client, has_sessions: true };
        let open = open(&engine, &person, PLAIN).stateid;
        let at = (person.sender(NOW, USER), &file(1));
        let layout = engine.layoutget(at, &open, (READ, ByteRange::ALL)).unwrap();
        Self { engine, person, open, layout }
    }

    fn give_back(
        &self,
        principal: u64,
        (iomode, range): (Option<LayoutIomode>, ByteRange),
    ) -> Result<Option<Stateid>, Error> {
        let at = (self.person.sender(NOW, caller(principal, 1)), &file(1));
        self.engine.layoutreturn(at, &self.layout, (iomode, range))
    }

    /// Returns whether the data servers are told to refuse the handles of the layout.
    fn is_fenced(&self) -> bool {
        self.engine.poll_fence() == Some(file(1))
    }
}

const PART: (Option<LayoutIomode>, ByteRange) = (None, ByteRange { first: 0, last: 9 });

#[test]
fn the_client_and_every_user_that_has_opened_the_file_return_a_layout() {
    for principal in [0, 1000, 1001] {
        let held = Held::new();
        open(&held.engine, &held.person, Wish { caller: NEIGHBOUR, owner: b"p", ..PLAIN });
        let left = held.give_back(principal, PART).unwrap();
        assert_eq!(left, Some(Stateid { seqid: 2, ..held.layout }), "{principal}");
        assert!(!held.is_fenced(), "{principal}");
    }
}

/// Linux returns a layout as the user for whom it asked for it first, even if that user has closed
/// the file.
#[test]
fn the_user_that_asked_for_a_layout_returns_it_after_its_close() {
    let held = Held::new();
    open(&held.engine, &held.person, Wish { caller: NEIGHBOUR, owner: b"p", ..PLAIN });
    held.engine.close((held.person.sender(NOW, USER), &file(1)), &held.open).unwrap();
    assert_eq!(held.give_back(1000, (None, ByteRange::ALL)), Ok(None));
    assert!(!held.is_fenced());
}

/// The client may not know that its layout was returned, and would go on using the data servers.
#[test]
fn a_layout_that_a_user_without_the_file_returns_is_fenced() {
    for range in [PART, (None, ByteRange::ALL)] {
        let held = Held::new();
        let reading = Wish { share: Share::access(Share::READ), file: 2, ..PLAIN };
        open(&held.engine, &held.person, Wish { caller: NEIGHBOUR, owner: b"p", ..reading });
        assert_eq!(held.give_back(1001, range), Ok(None));
        assert!(held.is_fenced());
        assert_eq!(held.engine.census().layouts, 0);
    }
}

#[test]
fn only_the_principal_of_the_client_returns_all_layouts_at_once() {
    let key = file(1);
    for scope in [LayoutScope::ServerBut(&[]), LayoutScope::FileSystem(&key)] {
        let held = Held::new();
        let give_back = |caller| {
            held.engine.layoutreturn_all((NOW, caller), &held.person.client, (scope, None))
        };
        assert_eq!(
            (give_back(NEIGHBOUR), give_back(USER)),
            (Err(Error::WrongCred), Err(Error::WrongCred))
        );
        assert_eq!(held.engine.census().layouts, 1);
        assert_eq!(give_back(VICTIM), Ok(()));
        assert_eq!(held.engine.census().layouts, 0);
    }
}
