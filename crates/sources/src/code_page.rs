//! Encodings by the numbers of Windows' code pages.

use encoding_rs::{self as encodings, Encoding};

/// The encoding of a code page; `None` for one that is not supported. ASCII and ISO-8859-1 are read as Windows-1252, which
/// contains their letters, as browsers do.
pub(crate) fn encoding_of_page(page: i32) -> Option<&'static Encoding> {
    Some(match page {
        866 => encodings::IBM866,
        874 | 28_601 => encodings::WINDOWS_874,
        932 => encodings::SHIFT_JIS,
        936 => encodings::GBK,
        949 | 51_949 => encodings::EUC_KR,
        950 => encodings::BIG5,
        1250 => encodings::WINDOWS_1250,
        1251 => encodings::WINDOWS_1251,
        1252 | 20_127 | 28_591 => encodings::WINDOWS_1252,
        1253 => encodings::WINDOWS_1253,
        1254 | 28_599 => encodings::WINDOWS_1254,
        1255 => encodings::WINDOWS_1255,
        1256 => encodings::WINDOWS_1256,
        1257 => encodings::WINDOWS_1257,
        1258 => encodings::WINDOWS_1258,
        10_000 => encodings::MACINTOSH,
        20_866 => encodings::KOI8_R,
        20_932 | 51_932 => encodings::EUC_JP,
        21_866 => encodings::KOI8_U,
        28_592 => encodings::ISO_8859_2,
        28_593 => encodings::ISO_8859_3,
        28_594 => encodings::ISO_8859_4,
        28_595 => encodings::ISO_8859_5,
        28_596 => encodings::ISO_8859_6,
        28_597 => encodings::ISO_8859_7,
        28_598 => encodings::ISO_8859_8,
        28_603 => encodings::ISO_8859_13,
        28_605 => encodings::ISO_8859_15,
        38_598 => encodings::ISO_8859_8_I,
        50_220..=50_222 => encodings::ISO_2022_JP,
        54_936 => encodings::GB18030,
        65_001 => encodings::UTF_8,
        _ => return None,
    })
}
