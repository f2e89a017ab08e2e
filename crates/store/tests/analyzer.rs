//! Index terms of words, in English and other languages.

use proptest::prelude::*;

#[test]
fn texts_become_terms() {
    let check = |text: &str, terms: &[&str]| assert_eq!(store::analyze(text), terms, "terms of {text:?}");
    check("", &[]);
    check("The cats are running to the stations", &["cat", "run", "station"]);
    check("This is not it, and that will be", &[]);
    check("Maria's sisters' books", &["maria", "sister", "book"]);
    check("Maria\u{2019}s don\u{2019}t don't", &["maria", "don't", "don't"]);
    check("li\u{ad}brary \u{2068}Ann\u{2069} pa\u{2060}ge", &["librari", "ann", "page"]);
    check("CAFÉ cafe\u{301} naïve", &["café", "café", "naïv"]);
    check("ﬁle №5 １９.９９ 3.14", &["file", "no5", "19.99", "3.14"]);
    check("well-known e.g. U.S.A. foo_bar", &["well", "known", "e.g", "u.s.a", "foo_bar"]);
    check("good👍 👨‍👩‍👧 ❤️ morning", &["good", "morn"]);
    check("长江大桥", &["长", "长江", "江", "江大", "大", "大桥", "桥"]);
    check("长，江", &["长", "江"]);
    check("東京タワーは", &["東", "東京", "京", "京タワー", "タワー", "タワーは", "は"]);
    check("서울에서 만나요", &["서울에서", "만나요"]);
    check("Привет, мир", &["привет", "мир"]);
    check("ΣΊΣΥΦΟΣ İstanbul", &["σίσυφος", "i\u{307}stanbul"]);
    check("D1:3 iPhone15", &["d1", "3", "iphone15"]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_can_be_analyzed(text in "\\PC*", controls in any::<String>()) {
        for text in [&text, &controls] {
            prop_assert!(store::analyze(text).iter().all(|term| !term.is_empty()));
        }
    }

    #[test]
    fn words_with_odd_endings_can_be_stemmed(stem in "[a-zé'’ıſ字]{0,6}", ending in "(ed|ly|'s|s'|ational|eed|é)?") {
        store::analyze(&format!("{stem}{ending}"));
    }
}
