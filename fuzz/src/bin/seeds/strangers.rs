//! Seeds of requests of strangers, as `Strangers` reads them.

use super::write;

/// Steps of the victim, with strangers before each of them.
const STEPS: usize = 10;

/// A call of stranger `who` before every step.
fn always(who: u8, call: &[u8]) -> Vec<u8> {
    [&[1, who], call].concat().repeat(STEPS)
}

pub(crate) fn all() -> std::io::Result<()> {
    for (name, who) in [("wrong-port", 0), ("listed", 1), ("unlisted", 2)] {
        for (operation, number, words) in [
            ("close", 4, 1),
            ("delegreturn", 8, 0),
            ("locku", 14, 2),
            ("open-confirm", 20, 0),
            ("open-downgrade", 21, 0),
            ("read", 25, 0),
            ("write", 38, 0),
            ("free-stateid", 45, 0),
        ] {
            // A call with the first file and its open, unaltered: in 4.0, and in 4.1 in the
            // victim's session. The next request of its open-owner has number 4.
            let behind =
                [&[1, number, words, 0, 3][..], &vec![4; usize::from(words)], &[0]].concat();
            for (version, begin) in [("4.0", &[2, 0, 0][..]), ("4.1", &[2, 1, 1, 1])] {
                let name = format!("{name}-{operation}-{version}");
                write("strangers", &name, &always(who, &[begin, &behind].concat()))?;
            }
        }
        // NLM UNLOCK of raw arguments: the handle of the first file.
        let unlock = [0, 2, 4, 3, 0xfb, 0, 1];
        write("strangers", &format!("{name}-nlm"), &always(who, &unlock))?;
        // A COMPOUND of one raw operation: the minor version, the number 1, and seven bytes.
        for (operation, minor, number, kind) in
            [("renew", 0, 30, 2), ("destroy-session", 1, 44, 3), ("destroy-clientid", 1, 57, 2)]
        {
            let raw = [1, minor, 1, 7, 0, 0, 0, number, 0xfb, kind, 1 & minor];
            write("strangers", &format!("{name}-{operation}"), &always(who, &raw))?;
        }
    }
    Ok(())
}
