//! The credentials that a server lists, page by page.

use anyhow::{Result, ensure};
use comity_keynote::AssertionDigest;
use comity_programs::{ProgramClient, whole};
use comity_proto::grants::{self, ListArgs, ListOk, procedure};
use comity_xdr::Counted;

/// Most bytes of texts in a list. A server of this project keeps 16 MiB for each key.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// A credential that a server lists.
pub(super) struct Listed {
    pub(super) digest: AssertionDigest,
    pub(super) holder: String,
    pub(super) text: String,
    pub(super) revoked: bool,
}

/// The pages that have come.
#[derive(Default)]
struct ListedPages {
    all: Vec<Listed>,
    text_bytes: usize,
    /// The digest after which the next page begins.
    after: [u8; 32],
}

/// Lists the credentials that the key holds, or that it has given.
///
/// # Errors
/// A call failed, or the list is too long.
pub(super) fn list(client: &mut ProgramClient, given: bool) -> Result<Vec<Listed>> {
    let mut pages = ListedPages::default();
    loop {
        let args = ListArgs { given, after: pages.after };
        let (page, is_last) = client.call(procedure::LIST, &args, |reply| {
            let ListOk { listed: Counted(listed), end } = whole(reply)?;
            Some((listed.iter().map(Listed::from).collect(), end))
        })?;
        if !pages.add(page)? || is_last {
            return Ok(pages.all);
        }
    }
}

impl ListedPages {
    /// Adds a page. Returns whether another one may follow: the digests of a list ascend.
    ///
    /// # Errors
    /// The list is too long.
    fn add(&mut self, page: Vec<Listed>) -> Result<bool> {
        self.text_bytes += page.iter().map(Listed::bytes).sum::<usize>();
        ensure!(
            self.text_bytes <= TEXT_BYTES_MAX,
            "the server lists more than {} MiB of credentials, and no server keeps so many for a \
             key: look whether it is the right one",
            TEXT_BYTES_MAX >> 20
        );
        let last = page.last().map(|one| *one.digest.as_bytes());
        self.all.extend(page);
        let is_further = last.is_some_and(|last| last > self.after);
        self.after = last.unwrap_or_default();
        Ok(is_further)
    }
}

impl Listed {
    /// Returns the memory that it takes, in bytes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.holder.len() + self.text.len()
    }
}

impl From<&grants::Listed<'_>> for Listed {
    fn from(listed: &grants::Listed<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            digest: AssertionDigest::from_bytes(listed.digest),
            holder: text(listed.holder.0),
            text: text(listed.text.0),
            revoked: listed.revoked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(number: u64, text: usize) -> Listed {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&number.to_be_bytes());
        let (digest, text) = (AssertionDigest::from_bytes(digest), "x".repeat(text));
        Listed { digest, holder: String::new(), text, revoked: false }
    }

    #[test]
    fn a_list_goes_on_as_long_as_its_digests_ascend() {
        let mut pages = ListedPages::default();
        assert!(pages.add(vec![credential(1, 1), credential(2, 1)]).unwrap());
        assert!(pages.add(vec![credential(3, 1)]).unwrap());
        assert!(!pages.add(vec![credential(3, 1)]).unwrap());
        assert!(!pages.add(Vec::new()).unwrap());
        assert_eq!(pages.all.len(), 4);
    }

    #[test]
    fn a_list_without_end_is_given_up() {
        for text in [0, 64 << 10] {
            let mut pages = ListedPages::default();
            let endless = (1..).map(|number| vec![credential(number, text)]);
            let count = endless.map_while(|page| pages.add(page).ok()).count();
            let bytes = count * credential(0, text).bytes();
            assert!((TEXT_BYTES_MAX - (1 << 20)..=TEXT_BYTES_MAX).contains(&bytes), "{bytes}");
        }
    }
}
