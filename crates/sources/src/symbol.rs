//! The characters of the fonts Symbol and Wingdings, which have no codes of their own: documents give positions in the
//! font, as bytes or as U+F020 to U+F0FF of Unicode's private use.

/// Symbol from 0x20 to 0x7E (Adobe's encoding).
const LOW: &str = " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼";
/// Symbol from 0xA0 to 0xFE.
const HIGH: &str =
    "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…|—↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪\u{fffd}⟩∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭";
/// What people use of Wingdings: what Word makes of `-->` and `:-)`, bullets, and marks in lists.
const WINGDINGS: [(u32, char); 18] = [
    (0x20, ' '),
    (0x4A, '☺'),
    (0x4C, '☹'),
    (0x6C, '●'),
    (0x6E, '■'),
    (0x6F, '□'),
    (0x71, '❑'),
    (0x9F, '•'),
    (0xA7, '▪'),
    (0xA8, '◻'),
    (0xD8, '➢'),
    (0xDF, '←'),
    (0xE0, '→'),
    (0xF3, '⇔'),
    (0xFB, '✗'),
    (0xFC, '✓'),
    (0xFD, '☒'),
    (0xFE, '☑'),
];

/// Whether a font has symbols in the places of letters.
pub(crate) fn is_symbolic(font: &str) -> bool {
    ["Symbol", "Wingdings"].iter().any(|known| known.eq_ignore_ascii_case(font.trim()))
}

/// The character of a font at a code; `None` where it is not known, or for private use.
pub(crate) fn character(font: &str, code: u32) -> Option<char> {
    let position = match code {
        0xF020..=0xF0FF => code - 0xF000,
        _ => code,
    };
    let character = if position > 0xFF || !is_symbolic(font) {
        char::from_u32(code)
            .filter(|character| !character.is_control() && !('\u{e000}'..='\u{f8ff}').contains(character))
    } else if font.trim().eq_ignore_ascii_case("Symbol") {
        let (characters, first) = if position < 0xA0 { (LOW, 0x20) } else { (HIGH, 0xA0) };
        characters.chars().nth(position.checked_sub(first)? as usize)
    } else {
        WINGDINGS.iter().find(|(known, _)| *known == position).map(|&(_, character)| character)
    };
    character.filter(|character| *character != '\u{fffd}')
}

/// A text with the symbols that a font shows for its characters of private use.
pub(crate) fn readable(font: &str, text: &str) -> String {
    let is_private = |character: &char| ('\u{f020}'..='\u{f0ff}').contains(character);
    text.chars().filter_map(|c| if is_private(&c) { character(font, c.into()) } else { Some(c) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_in_a_font_become_characters() {
        assert_eq!((LOW.chars().count(), HIGH.chars().count()), (0x7F - 0x20, 0xFF - 0xA0));
        let check = |font: &str, codes: &[u32], expect: &str| {
            let found: String = codes.iter().filter_map(|code| character(font, *code)).collect();
            assert_eq!(found, expect, "{font} {codes:x?}");
        };
        check("Symbol", &[0x41, 0x57, 0x61, 0x6D, 0x70, 0x7A, 0x7E], "ΑΩαμπζ∼");
        check("symbol ", &[0xF062, 0xF0A3, 0xF0B3, 0xF0B1, 0xF0E5, 0xF0F2, 0xF0FE, 0xF0DE], "β≤≥±∑∫⎭⇒");
        check("Symbol", &[0xF0CE, 0xF0D7, 0xF0B9, 0x3B1, 0xF0F0, 0x7F, 0x80, 0xFF, 0x1F, 0xF000], "∈⋅≠α");
        check("Wingdings", &[0xE0, 0xF0FC, 0x2022, 0xF041], "→✓•");
        check("MS Gothic", &[0x2612, 0xF061, 0xD800, 7], "☒");
        assert_eq!(readable("Symbol", "a \u{f061}\u{f0f0} b"), "a α b");
    }
}
