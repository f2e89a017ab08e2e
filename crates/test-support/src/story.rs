//! A small text that is memorised once and used by many tests.

use std::sync::OnceLock;

use crate::home::Home;

/// Its characters have one to four bytes, so that byte and character offsets differ.
pub const STORY: &str = "\
Zoë Lindqvist kept the café at the north pier — “The Lantern” 🏮 — for thirty-one years.

Every morning at five she lit the stove, baked cardamom buns, and carried the first two up to Captain Orsini, who looked \
after the lighthouse. The captain paid in stories, never in money.

In May 1921 the lamp was out for two hours. Captain Orsini had slept; Zoë climbed the 212 steps herself, found the wick \
burnt down, and cut a new one from her own apron. No ship was lost that night.

The harbour office sent a bill of twelve crowns for the wick. Zoë framed it and hung it above the stove, where it is \
still to be seen. Her granddaughter Ingrid bakes the buns now, and takes money for them.
";

/// Small pages, so that there are several.
pub const PAGE_TOKENS: &str = "64";

/// A home in which the corpus `story` is memorised for every method; the trace of that is `memorised.jsonl`.
/// It is read-only for tests.
pub fn memorised() -> Option<&'static Home> {
    static MEMORISED: OnceLock<Option<Home>> = OnceLock::new();
    let memorise = || {
        let home = Home::new("memorised")?;
        home.write("story.txt", STORY);
        let ingest = ["ingest", "story.txt", "--corpus", "story", "--page-tokens", PAGE_TOKENS];
        home.get(&[&ingest[..], &["--method", "gam", "--trace", "memorised.jsonl"]].concat());
        home.get(&[&ingest[..], &["--method", "rag"]].concat());
        Some(home)
    };
    MEMORISED.get_or_init(memorise).as_ref()
}
