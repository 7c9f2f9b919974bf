//! Seeds of requests to the lock manager, as `Locksmith` reads them.

use super::write;

const TEST: u8 = 0;
const LOCK: u8 = 1;
const CANCEL: u8 = 2;
const UNLOCK: u8 = 3;
const SHARE: u8 = 8;
const UNSHARE: u8 = 9;
const NM_LOCK: u8 = 10;
const FREE_ALL: u8 = 11;

/// The difference between the numbers of a message, such as NLM_LOCK_MSG, and of the procedure with
/// a direct reply.
const MESSAGE: u8 = 4;

const EXCLUSIVE: u8 = 1;
const BLOCK: u8 = 2;
const RECLAIM: u8 = 4;

/// A request of a host for the first file: host, procedure, options, owner, range.
fn wish(who: u8, what: u8, how: u8, owner: u8, (offset, length): (u8, u8)) -> Vec<u8> {
    vec![who, 7, what, 1, how, owner, offset, length]
}

/// The server is killed.
const RESTART: [u8; 2] = [0, 1];

/// Time after which the grace period is over.
const MINUTES: [u8; 3] = [0, 0, 120];

/// A host takes the lock that it was granted.
const TAKEN: [u8; 4] = [0, 3, 0, 0];

pub(crate) fn all() -> std::io::Result<()> {
    for (name, by) in [("at-once", 0), ("messages", MESSAGE)] {
        let held = wish(0, LOCK + by, EXCLUSIVE, 0, (10, 10));
        let asks = wish(1, TEST + by, EXCLUSIVE, 2, (0, 0));
        let waits = wish(1, LOCK + by, EXCLUSIVE | BLOCK, 2, (15, 0));
        let freed = wish(0, UNLOCK + by, 0, 0, (0, 0));
        let met = [held.clone(), asks, waits.clone()].concat();
        let given = [&met[..], &freed, &TAKEN, &wish(1, UNLOCK + by, 0, 2, (16, 1))].concat();
        write("nlm", name, &given)?;
        let cancel = wish(1, CANCEL + by, EXCLUSIVE | BLOCK, 2, (15, 0));
        write("nlm", &format!("{name}-cancelled"), &[&met[..], &cancel, &freed].concat())?;
        let refused = [0, 3, 0, 1];
        write("nlm", &format!("{name}-refused"), &[&met[..], &freed, &refused].concat())?;
        let again = [&held[..], &[0, 5], &waits, &[1, 5], &freed, &[0, 5]].concat();
        write("nlm", &format!("{name}-again"), &again)?;
        let reclaims = wish(0, LOCK + by, EXCLUSIVE | RECLAIM, 0, (10, 10));
        let restarted = [&held[..], &RESTART, &reclaims, &waits, &MINUTES, &waits].concat();
        write("nlm", &format!("{name}-restarted"), &restarted)?;
    }
    // Queue more answers than there is room for, and then send them.
    let unread = [wish(2, LOCK + MESSAGE, 0, 0, (0, 0)), [2, 5].repeat(5), vec![0, 4]];
    write("nlm", "unread", &unread.concat())?;
    let shares = [
        wish(0, SHARE, 0x68, 0, (0, 0)),
        wish(1, SHARE, 0x68, 0, (0, 0)),
        wish(0, UNSHARE, 0, 0, (0, 0)),
        wish(2, NM_LOCK, 0, 1, (255, 255)),
        wish(2, FREE_ALL, 0, 0, (0, 0)),
    ];
    write("nlm", "shares", &[&shares.concat()[..], &[1, 2, 5]].concat())
}
