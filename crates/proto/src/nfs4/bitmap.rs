use comity_xdr::{Decode, Decoder, Encode, Encoder, Malformed};

const WORDS: usize = 3;

/// Most words of a bitmap that are decoded. Some clients append zeros; no one needs more words.
const WORDS_MAX: u32 = 64;

/// A set of small numbers, such as attributes: `bitmap4` (RFC 7530, 3.3.7). Numbers from 96 on are
/// not assigned; the set only records whether it has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bitmap4 {
    words: [u32; WORDS],
    beyond: bool,
}

impl Bitmap4 {
    /// The empty bitmap.
    pub const EMPTY: Self = Self { words: [0; WORDS], beyond: false };

    /// Makes a set of numbers, each below 96.
    #[must_use]
    pub const fn of(numbers: &[u32]) -> Self {
        let (mut words, mut rest) = ([0; WORDS], numbers);
        while let Some((&number, more)) = rest.split_first() {
            let bit = 1 << (number % 32);
            match number / 32 {
                0 => words[0] |= bit,
                1 => words[1] |= bit,
                _ => words[2] |= bit,
            }
            rest = more;
        }
        Self { words, beyond: false }
    }

    /// Makes a set of words, with the lowest numbers in the first word.
    #[must_use]
    pub const fn from_words(words: [u32; WORDS]) -> Self {
        Self { words, beyond: false }
    }

    /// Returns the words, with the lowest numbers in the first word.
    #[must_use]
    pub const fn words(&self) -> [u32; WORDS] {
        self.words
    }

    /// Returns whether a number is in the set.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        let word = self.words.get(number as usize / 32);
        word.is_some_and(|word| word & (1 << (number % 32)) != 0)
    }

    /// Adds a number below 96.
    pub fn insert(&mut self, number: u32) {
        if let Some(word) = self.words.get_mut(number as usize / 32) {
            *word |= 1 << (number % 32);
        }
    }

    /// Removes a number.
    pub fn remove(&mut self, number: u32) {
        if let Some(word) = self.words.get_mut(number as usize / 32) {
            *word &= !(1 << (number % 32));
        }
    }

    /// The intersection.
    #[must_use]
    pub const fn and(&self, other: &Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.words, other.words);
        Self { words: [a & x, b & y, c & z], beyond: self.beyond && other.beyond }
    }

    /// The union.
    #[must_use]
    pub const fn or(&self, other: &Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.words, other.words);
        Self { words: [a | x, b | y, c | z], beyond: self.beyond || other.beyond }
    }

    /// The difference: the numbers that are only in this set.
    #[must_use]
    pub const fn without(&self, other: &Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.words, other.words);
        Self { words: [a & !x, b & !y, c & !z], beyond: self.beyond && !other.beyond }
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// Returns whether all numbers are in `other`, too.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.without(other).is_empty()
    }

    /// The numbers below 96, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let [low, middle, high] = self.words.map(u128::from);
        let mut rest = low | middle << 32 | high << 64;
        std::iter::from_fn(move || {
            let number = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (number < u128::BITS).then_some(number)
        })
    }
}

/// Encodes the words without trailing zeros.
impl Encode for Bitmap4 {
    fn encode(&self, encoder: &mut Encoder) {
        let empty = self.words.iter().rev().take_while(|&&word| word == 0).count();
        let words = self.words.get(..WORDS - empty).unwrap_or_default();
        encoder.value(&(words.len() as u32));
        words.iter().for_each(|word| encoder.value(word));
    }
}

impl Decode<'_> for Bitmap4 {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let mut set = Self::EMPTY;
        for at in 0..decoder.length(WORDS_MAX)? {
            let word = decoder.value()?;
            match set.words.get_mut(at) {
                Some(place) => *place = word,
                None => set.beyond |= word != 0,
            }
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(words: &[u32]) -> Bitmap4 {
        let mut encoder = Encoder::new();
        encoder.value(&(words.len() as u32));
        words.iter().for_each(|word| encoder.value(word));
        Decoder::whole(encoder.bytes()).unwrap()
    }

    #[test]
    fn a_bitmap_has_as_many_words_as_its_largest_number_needs() {
        let mut encoder = Encoder::new();
        encoder.value(&Bitmap4::of(&[1, 33]));
        assert_eq!(encoder.bytes(), [0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2]);
        encoder.clear(0);
        encoder.value(&Bitmap4::EMPTY);
        assert_eq!(encoder.bytes(), [0; 4]);
    }

    #[test]
    fn unassigned_numbers_are_recorded() {
        assert_eq!(decoded(&[2, 0, 0, 0]), Bitmap4::of(&[1]));
        assert!(!decoded(&[2, 0, 0, 1]).is_within(&Bitmap4::from_words([u32::MAX; 3])));
    }

    #[test]
    fn bitmaps_behave_as_sets() {
        let (one, two) = (Bitmap4::of(&[1, 40, 81]), Bitmap4::of(&[40]));
        assert_eq!(one.and(&two), two);
        assert_eq!(one.without(&two), Bitmap4::of(&[1, 81]));
        assert_eq!(one.iter().collect::<Vec<_>>(), [1, 40, 81]);
        assert!(two.is_within(&one) && !one.is_within(&two));
    }
}
