use std::fmt;

use comity_credential::ChannelKind;

/// The channels by which an export may be used (`xprtsec`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    plain: bool,
    tls: bool,
    mutual_tls: bool,
}

impl Channels {
    /// All channels, which is the default of exports(5).
    pub const ALL: Self = Self { plain: true, tls: true, mutual_tls: true };

    /// No channel.
    pub(crate) const NONE: Self = Self { plain: false, tls: false, mutual_tls: false };

    /// Returns whether a channel of this kind is allowed. A peer that has proved a key may do all
    /// that a peer over TLS without a key may.
    #[must_use]
    pub const fn take(&self, kind: ChannelKind) -> bool {
        match kind {
            ChannelKind::Plain => self.plain,
            ChannelKind::Tls => self.tls,
            ChannelKind::MutualTls => self.mutual_tls || self.tls,
        }
    }

    /// Returns the channel that asks least of a client: plain before TLS, TLS before a proved key.
    #[must_use]
    pub fn least(&self) -> Option<ChannelKind> {
        ChannelKind::ALL.into_iter().find(|kind| self.names(*kind))
    }

    /// Returns these channels and one more.
    pub(crate) const fn with(mut self, kind: ChannelKind) -> Self {
        match kind {
            ChannelKind::Plain => self.plain = true,
            ChannelKind::Tls => self.tls = true,
            ChannelKind::MutualTls => self.mutual_tls = true,
        }
        self
    }

    const fn names(&self, kind: ChannelKind) -> bool {
        match kind {
            ChannelKind::Plain => self.plain,
            ChannelKind::Tls => self.tls,
            ChannelKind::MutualTls => self.mutual_tls,
        }
    }
}

/// Formats the channels as the value of `xprtsec=`.
impl fmt::Display for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sign = "";
        for kind in ChannelKind::ALL.into_iter().filter(|kind| self.names(*kind)) {
            write!(f, "{sign}{}", kind.name())?;
            sign = ":";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proved_key_is_enough_where_tls_is_required() {
        let [plain, tls, mutual] = ChannelKind::ALL;
        let takes = |channels: Channels| ChannelKind::ALL.map(|kind| channels.take(kind));
        assert_eq!(takes(Channels::NONE.with(plain)), [true, false, false]);
        assert_eq!(takes(Channels::NONE.with(tls)), [false, true, true]);
        assert_eq!(takes(Channels::NONE.with(mutual)), [false, false, true]);
        assert_eq!(takes(Channels::ALL), [true, true, true]);
        assert_eq!(Channels::NONE.with(mutual).with(plain).to_string(), "none:mtls");
        assert_eq!(Channels::NONE.with(mutual).with(tls).least(), Some(tls));
        assert_eq!(Channels::NONE.least(), None);
    }
}
