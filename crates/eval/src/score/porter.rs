//! Porter's stemmer (Porter 1980) with NLTK's default extensions: LoCoMo's scorer uses it.
//!
//! Words are lists of characters; any character but an ASCII vowel counts as a consonant, as in NLTK.

/// Conditions on the stem before a suffix.
type Condition = fn(&[char]) -> bool;

/// A suffix, its replacement, and the condition on the stem. The first matching suffix decides.
type Rule = (&'static str, &'static str, Condition);

/// Irregular forms.
const IRREGULAR: [(&str, &str); 16] = [
    ("sky", "sky"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("news", "news"),
    ("innings", "inning"),
    ("inning", "inning"),
    ("outings", "outing"),
    ("outing", "outing"),
    ("cannings", "canning"),
    ("canning", "canning"),
    ("howe", "howe"),
    ("proceed", "proceed"),
    ("exceed", "exceed"),
    ("succeed", "succeed"),
];

const STEP_2: [Rule; 22] = [
    ("ational", "ate", some),
    ("tional", "tion", some),
    ("enci", "ence", some),
    ("anci", "ance", some),
    ("izer", "ize", some),
    ("bli", "ble", some),
    ("alli", "al", some),
    ("entli", "ent", some),
    ("eli", "e", some),
    ("ousli", "ous", some),
    ("ization", "ize", some),
    ("ation", "ate", some),
    ("ator", "ate", some),
    ("alism", "al", some),
    ("iveness", "ive", some),
    ("fulness", "ful", some),
    ("ousness", "ous", some),
    ("aliti", "al", some),
    ("iviti", "ive", some),
    ("biliti", "ble", some),
    ("fulli", "ful", some),
    ("logi", "log", some_with_l),
];

const STEP_3: [Rule; 7] = [
    ("icate", "ic", some),
    ("ative", "", some),
    ("alize", "al", some),
    ("iciti", "ic", some),
    ("ical", "ic", some),
    ("ful", "", some),
    ("ness", "", some),
];

const STEP_4: [Rule; 19] = [
    ("al", "", several),
    ("ance", "", several),
    ("ence", "", several),
    ("er", "", several),
    ("ic", "", several),
    ("able", "", several),
    ("ible", "", several),
    ("ant", "", several),
    ("ement", "", several),
    ("ment", "", several),
    ("ent", "", several),
    ("ion", "", several_before_s_or_t),
    ("ou", "", several),
    ("ism", "", several),
    ("ate", "", several),
    ("iti", "", several),
    ("ous", "", several),
    ("ive", "", several),
    ("ize", "", several),
];

/// The stem of a word in lower case.
pub fn stem(word: &str) -> String {
    let word = word.to_lowercase();
    if let Some((_, stem)) = IRREGULAR.iter().find(|(form, _)| *form == word) {
        return (*stem).to_owned();
    }
    let chars: Vec<char> = word.chars().collect();
    if chars.len() <= 2 {
        return word;
    }
    let chars = step_2(step_1c(step_1b(step_1a(chars))));
    let chars = apply(apply(chars, &STEP_3), &STEP_4);
    step_5b(step_5a(chars)).into_iter().collect()
}

/// Plurals.
fn step_1a(word: Vec<char>) -> Vec<char> {
    if word.len() == 4 && ends(&word, "ies") {
        return replaced(&word, "ies", "ie");
    }
    apply(word, &[("sses", "ss", always), ("ies", "i", always), ("ss", "ss", always), ("s", "", always)])
}

/// `-ed` and `-ing`.
fn step_1b(word: Vec<char>) -> Vec<char> {
    if ends(&word, "ied") {
        return replaced(&word, "ied", if word.len() == 4 { "ie" } else { "i" });
    }
    if ends(&word, "eed") {
        return apply(word, &[("eed", "ee", some)]);
    }
    let cut = |suffix| ends(&word, suffix).then(|| replaced(&word, suffix, "")).filter(|stem| has_vowel(stem));
    let Some(mut stem) = cut("ed").or_else(|| cut("ing")) else { return word };
    if ends(&stem, "at") || ends(&stem, "bl") || ends(&stem, "iz") {
        stem.push('e');
    } else if ends_double_consonant(&stem) {
        if !matches!(stem.last(), Some('l' | 's' | 'z')) {
            stem.pop();
        }
    } else if measure(&stem) == 1 && ends_cvc(&stem) {
        stem.push('e');
    }
    stem
}

/// `-y` after a consonant that is not the only letter.
fn step_1c(word: Vec<char>) -> Vec<char> {
    apply(word, &[("y", "i", |stem| stem.len() > 1 && consonants(stem).last() == Some(&true))])
}

fn step_2(word: Vec<char>) -> Vec<char> {
    if ends(&word, "alli") && some(&word[..word.len() - 4]) {
        return step_2(replaced(&word, "alli", "al"));
    }
    apply(word, &STEP_2)
}

/// `-e`, with two alternative conditions.
fn step_5a(word: Vec<char>) -> Vec<char> {
    apply(word, &[("e", "", |stem| measure(stem) > 1 || measure(stem) == 1 && !ends_cvc(stem))])
}

/// `-ll`.
fn step_5b(word: Vec<char>) -> Vec<char> {
    if ends(&word, "ll") && measure(&word[..word.len() - 1]) > 1 { replaced(&word, "ll", "l") } else { word }
}

fn apply(word: Vec<char>, rules: &[Rule]) -> Vec<char> {
    let Some((suffix, replacement, condition)) = rules.iter().find(|(suffix, ..)| ends(&word, suffix)) else {
        return word;
    };
    if condition(&word[..word.len() - suffix.len()]) { replaced(&word, suffix, replacement) } else { word }
}

fn ends(word: &[char], suffix: &str) -> bool {
    word.len() >= suffix.len() && suffix.chars().eq(word[word.len() - suffix.len()..].iter().copied())
}

/// `word` ends in `suffix`, which is ASCII.
fn replaced(word: &[char], suffix: &str, replacement: &str) -> Vec<char> {
    word[..word.len() - suffix.len()].iter().copied().chain(replacement.chars()).collect()
}

fn always(_: &[char]) -> bool {
    true
}

fn some(stem: &[char]) -> bool {
    measure(stem) > 0
}

/// The `l` of `-logi` counts with the stem.
fn some_with_l(stem: &[char]) -> bool {
    measure(&[stem, &['l']].concat()) > 0
}

fn several(stem: &[char]) -> bool {
    measure(stem) > 1
}

fn several_before_s_or_t(stem: &[char]) -> bool {
    several(stem) && matches!(stem.last(), Some('s' | 't'))
}

/// For each letter whether it is a consonant; `y` is one where the letter before it is not.
fn consonants(word: &[char]) -> Vec<bool> {
    let mut flags: Vec<bool> = Vec::with_capacity(word.len());
    for letter in word {
        flags.push(match letter {
            'a' | 'e' | 'i' | 'o' | 'u' => false,
            'y' => flags.last().is_none_or(|before| !before),
            _ => true,
        });
    }
    flags
}

/// How often a consonant follows a vowel.
fn measure(stem: &[char]) -> usize {
    consonants(stem).windows(2).filter(|pair| matches!(pair, [false, true])).count()
}

fn has_vowel(stem: &[char]) -> bool {
    consonants(stem).contains(&false)
}

fn ends_double_consonant(word: &[char]) -> bool {
    matches!(word, [.., a, b] if a == b) && consonants(word).last() == Some(&true)
}

/// Consonant, vowel, consonant that is not `w`, `x` or `y`; or a vowel and a consonant alone.
fn ends_cvc(word: &[char]) -> bool {
    match consonants(word)[..] {
        [.., true, false, true] => !matches!(word.last(), Some('w' | 'x' | 'y')),
        [false, true] => true,
        _ => false,
    }
}
