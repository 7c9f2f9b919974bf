//! Exports that have moved to another server with state of a client, until the client knows.

use crate::limits::MOVES_MAX;

/// The exports of which a client has to hear that they have moved.
#[derive(Debug, Default)]
pub(crate) struct Moves(Vec<Move>);

/// Exports of a volume that has moved. The client knows of the move when it has asked for any of
/// them.
#[derive(Debug, PartialEq, Eq)]
struct Move {
    volume: u64,
    exports: Box<[u32]>,
}

impl Moves {
    /// Notes that the client has to ask for one of these exports. Beyond the bound the oldest move
    /// is forgotten: the client is still told that the files have moved when it uses them.
    pub(crate) fn note(&mut self, volume: u64, exports: &[u32]) {
        let is_it = |it: &Move| it.volume == volume && *it.exports == *exports;
        if exports.is_empty() || self.0.iter().any(is_it) {
            return;
        }
        if self.0.len() >= MOVES_MAX {
            self.0.remove(0);
        }
        self.0.push(Move { volume, exports: exports.into() });
    }

    /// Notes that the client has asked where an export is.
    pub(crate) fn know(&mut self, export: u32) {
        self.0.retain(|it| !it.exports.contains(&export));
    }

    /// Forgets the moves of which this returns true, by their volumes and exports.
    pub(crate) fn end(&mut self, is_over: impl Fn(u64, &[u32]) -> bool) {
        self.0.retain(|it| !is_over(it.volume, &it.exports));
    }

    /// Returns whether the client has to hear of nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_known_when_any_of_its_exports_was_asked_for() {
        let mut moves = Moves::default();
        moves.note(1, &[3]);
        moves.note(1, &[3]);
        moves.note(1, &[4, 5]);
        moves.know(3);
        assert_eq!(moves.0.len(), 1, "the same move is noted once");
        moves.know(6);
        assert!(!moves.is_empty());
        moves.know(5);
        assert!(moves.is_empty());
        moves.note(1, &[]);
        assert!(moves.is_empty(), "nobody can ask for no export");
    }

    #[test]
    fn the_moves_of_a_volume_end_together_and_their_number_is_bounded() {
        let mut moves = Moves::default();
        (0..2).for_each(|volume| moves.note(volume, &[7]));
        moves.end(|volume, _| volume == 1);
        assert_eq!(moves.0, [Move { volume: 0, exports: [7].into() }]);
        (0..=MOVES_MAX as u32).for_each(|export| moves.note(2, &[export]));
        assert_eq!(moves.0.len(), MOVES_MAX);
        assert!(moves.0.iter().all(|it| it.volume == 2 && *it.exports != [0]), "the oldest went");
    }
}
