//! The English names of the whole numbers below 100. Answers, claims and training data are compared by this one list.

/// The names of the numbers from 0 to 19.
const UNITS: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];

/// The names of the tens from 20 to 90.
const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// The number that one lower-case word names: 0 to 19, or a ten up to 90. `None` for all other words.
pub fn value(word: &str) -> Option<u32> {
    let of = |names: &[&str]| names.iter().position(|name| *name == word).map(|at| at as u32);
    of(&UNITS).or_else(|| Some(20 + 10 * of(&TENS)?))
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn a_word_names_a_number_below_twenty_or_a_ten() {
        let named = ["zero", "one", "nine", "ten", "twelve", "nineteen", "twenty", "forty", "ninety"];
        assert_eq!(named.map(value), [0, 1, 9, 10, 12, 19, 20, 40, 90].map(Some));
        assert_eq!(["", "a", "Two", "twenty-one", "hundred", "first", "20"].map(value), [None; 7]);
    }
}
