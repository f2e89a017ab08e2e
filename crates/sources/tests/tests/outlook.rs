//! Messages of Outlook's.

use sources::{Cause, Kind, Limit};

use crate::calendars::{CALENDAR, EVENT};
use crate::mail::LETTER;
use crate::outlook_file::{OutlookFile, SENT, letter};
use crate::{complaint, read_bytes, read_one};

/// `hello world` in compressed RTF: an example of its specification.
const RTF: &[u8] = b"\x2d\0\0\0\x2b\0\0\0LZFu\xf1\xc5\xc7\xa7\x03\0\x0a\0rcpg125B2\x0a\xf3 hel\x09\0 bw\x05\xb0ld}\
    \x0a\x80\x0f\xa0";

/// The text of a message with a subject and what `build` adds.
fn text_of(fixed: &[(u32, u64)], build: impl FnOnce(&mut OutlookFile)) -> String {
    read_one("a.msg", &message(fixed, build)).text
}

fn message(fixed: &[(u32, u64)], build: impl FnOnce(&mut OutlookFile)) -> Vec<u8> {
    let mut file = OutlookFile::new(fixed);
    file.text("", 0x0037, "x");
    build(&mut file);
    file.finish()
}

#[test]
fn a_message_of_outlooks_gives_headers_text_attachments_and_attached_messages() {
    let source = read_one("a.msg", &letter());
    let expect = "\
# Lamp 😡 report
From: Jörg Orsini <orsini@example.org>
To: Ann <ann@example.org>, bo@example.org
Cc: Cy
Date: Wed, 1 May 2024 10:02:00 +0000

The lamp was out,
café closed.

[attachment: cost.pdf]

[attached message]
# Earlier
From: Bo <bo@example.org>

A new wick at the café.

[attachment: Plan]";
    assert_eq!(source.text, expect);
    assert_eq!((source.kind, source.title.as_deref()), (Kind::Email, Some("Lamp 😡 report")));
    assert_eq!(source.sections[0].time.as_deref(), Some("Wed, 1 May 2024 10:02:00 +0000"));
}

#[test]
fn html_or_rtf_is_read_where_the_plain_text_is_blank() {
    let html = b"<ul><li>one<li>caf\xe9</ul>";
    let both = |file: &mut OutlookFile| {
        file.text("", 0x1000, " \r\n");
        file.bytes("", 0x1013_0102, html);
        file.bytes("", 0x1009_0102, RTF);
    };
    assert_eq!(text_of(&[(0x3FDE_0003, 28_591)], both), "# x\n\n- one\n- café");
    // Without a code page the page's own declaration counts.
    let declared = |file: &mut OutlookFile| file.bytes("", 0x1013_0102, b"<meta charset=macintosh><p>caf\x8e");
    assert_eq!(text_of(&[], declared), "# x\n\ncafé");
    assert_eq!(text_of(&[], |file| file.text("", 0x1013, "<p>café")), "# x\n\ncafé");
    let blank = |file: &mut OutlookFile| {
        file.bytes("", 0x1013_0102, b"<p> ");
        file.bytes("", 0x1009_0102, RTF);
    };
    assert_eq!(text_of(&[], blank), "# x\n\nhello world");
}

#[test]
fn texts_of_8_bits_are_in_the_code_page_of_their_message() {
    let cyrillic = |file: &mut OutlookFile| {
        file.bytes("", 0x1000_001E, b"\xcb\xe0\xec\xef\xe0\0");
        let attachment = file.part("", "attach", 0, &[]);
        file.bytes(&attachment, 0x3707_001E, b"\xcb.txt");
    };
    let expect = "# x\n\nЛампа\n\n[attachment: Л.txt]";
    assert_eq!(text_of(&[(0x3FFD_0003, 1251), (0x3FDE_0003, 65_001)], cyrillic), expect);
    assert_eq!(text_of(&[(0x3FDE_0003, 1251)], cyrillic), expect);
    let undeclared = |file: &mut OutlookFile| file.bytes("", 0x1000_001E, b"Sch\xf6ne Gr\xfc\xdfe \x96 5 \x80");
    assert_eq!(text_of(&[], undeclared), "# x\n\nSchöne Grüße – 5 €");
    let utf8 = |file: &mut OutlookFile| file.bytes("", 0x1000_001E, "café".as_bytes());
    assert_eq!(text_of(&[], utf8), "# x\n\ncafé");
    assert_eq!(text_of(&[(0x3FFD_0003, 65_001)], |file| file.bytes("", 0x1000_001E, b"caf\xe9")), "# x\n\ncaf\u{fffd}");
}

#[test]
fn headers_that_are_no_properties_are_those_with_which_the_message_came() {
    let headers = "Microsoft Mail Internet Headers Version 2.0\r\nReceived: from a by b\r\n\
        From: Ann <ann@example.org>\r\nTo: Bo <bo@example.org>\r\nDate: Wed, 1 May 2024 10:02:00 +0200\r\n\
        Subject: y\r\n";
    let came = |file: &mut OutlookFile| file.text("", 0x007D, headers);
    let [from, to] = ["From: Ann <ann@example.org>", "To: Bo <bo@example.org>"];
    assert_eq!(text_of(&[], came), format!("# x\n{from}\n{to}\nDate: Wed, 1 May 2024 10:02:00 +0200"));
    // The time of delivery is used if that of sending is missing, and the lists of names without recipients.
    let names = |file: &mut OutlookFile| {
        came(file);
        file.text("", 0x0E04, "Bo; Cy");
        file.text("", 0x0E03, "Di");
    };
    let expect = format!("# x\n{from}\nTo: Bo; Cy\nCc: Di\nDate: Wed, 1 May 2024 10:02:00 +0000");
    assert_eq!(text_of(&[(0x0E06_0040, SENT)], names), expect);
    // Outlook writes the year 4501 where there is no date.
    assert_eq!(text_of(&[(0x0039_0040, 0x0CB3_4557_A3DD_4000), (0x0E06_0040, SENT)], names), expect);
}

#[test]
fn attached_calendars_and_mails_are_read_and_outlooks_format_is_named() {
    let attach = |file: &mut OutlookFile| {
        let mail = "From: Bo <bo@example.org>\nSubject: y\n\nYes.\n";
        let attachments = [
            (Some("text/calendar"), "invite", CALENDAR),
            (None, "again.ics", CALENDAR),
            (Some("message/rfc822"), "mail", mail),
            (None, "no.eml", "words"),
            (None, "winmail.dat", "x"),
            (Some("application/ms-tnef"), "part", "x"),
            (Some("image/png"), "", "x"),
            (None, "", "x"),
        ];
        for (number, (kind, name, data)) in attachments.into_iter().enumerate() {
            let attachment = file.part("", "attach", number as u32, &[]);
            file.text(&attachment, 0x3707, name);
            file.bytes(&attachment, 0x3701_0102, data.as_bytes());
            if let Some(kind) = kind {
                file.text(&attachment, 0x370E, kind);
            }
        }
    };
    let tnef = "in Outlook's format TNEF, which is not read";
    let expect = format!(
        "# x\n\n[calendar: invite]\n{EVENT}\n\n[attachment: again.ics]\n\n[attached message]\n# y\n\
         From: Bo <bo@example.org>\n\nYes.\n\n[attachment: no.eml]\n\n[attachment: winmail.dat, {tnef}]\n\n\
         [attachment: part, {tnef}]\n\n[attachment: image/png]\n\n[attachment: without a name]"
    );
    assert_eq!(text_of(&[], attach), expect);
}

/// PSETID_Common, PSETID_Appointment and PSETID_Meeting.
const SETS: [[u8; 16]; 3] = [
    [0x08, 0x20, 0x06, 0, 0, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0x46],
    [0x02, 0x20, 0x06, 0, 0, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0x46],
    [0x90, 0xDA, 0xD8, 0x6E, 0x0B, 0x45, 0x1B, 0x10, 0x98, 0xDA, 0, 0xAA, 0, 0x3F, 0x13, 0x05],
];

/// What the numbers of named properties from 0x8000 mean: another property, start, end, whether it lasts whole days, how
/// it is repeated, place, time zone, another place, and the start and end that an answer proposes. Each has the number of its
/// set and its name.
const NAMES: [(u32, u32); 10] = [
    (0, 0x820D),
    (1, 0x820D),
    (1, 0x820E),
    (1, 0x8215),
    (1, 0x8232),
    (1, 0x8208),
    (1, 0x825E),
    (2, 2),
    (1, 0x8250),
    (1, 0x8251),
];

/// A message of a class with named properties.
fn meeting(class: &str, fixed: &[(u32, u64)], build: impl FnOnce(&mut OutlookFile)) -> Vec<u8> {
    message(fixed, |file| {
        let names = "/__nameid_version1.0";
        file.storage(names);
        file.bytes(names, 0x0002_0102, &SETS.concat());
        // Before them an entry whose name is a string.
        let string = [0x820D, 1 | ((3 + 1) << 1) | (0x100 << 16)];
        let numeric = (0..).zip(NAMES).map(|(number, (set, name))| [name, ((3 + set) << 1) | (number << 16)]);
        let entries: Vec<u8> = [string].into_iter().chain(numeric).flatten().flat_map(u32::to_le_bytes).collect();
        file.bytes(names, 0x0003_0102, &entries);
        file.text("", 0x001A, class);
        build(file);
    })
}

/// `W. Europe Standard Time` with its rule of 2024.
fn time_zone() -> Vec<u8> {
    let words = |words: &[u16]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let name: Vec<u16> = "W. Europe Standard Time".encode_utf16().collect();
    let length = name.len() as u16;
    let biases: Vec<u8> = [-60_i32, 0, -60].iter().flat_map(|minutes| minutes.to_le_bytes()).collect();
    [
        words(&[0x0102, 6 + 2 * length, 2, length]),
        words(&name),
        words(&[1, 0x0102, 0x3E, 2, 2024, 0, 0, 0, 0, 0, 0, 0]),
        biases,
        words(&[0, 10, 0, 5, 3, 0, 0, 0, 0, 3, 0, 5, 2, 0, 0, 0]),
    ]
    .concat()
}

/// Units of 100 ns in an hour.
const HOUR: u64 = 36_000_000_000;

/// An appointment with all properties that are read.
pub fn appointment() -> Vec<u8> {
    let times = [(0x8000_0040, 0), (0x8001_0040, SENT), (0x8002_0040, SENT + HOUR), (0x8003_000B, 0)];
    meeting("IPM.Appointment", &times, |file| {
        file.text("", 0x8004, "every Wednesday from 12:02 to 13:02");
        file.text("", 0x8005, "North pier");
        file.bytes("", 0x8006_0102, &time_zone());
        file.text("", 0x1000, "Bring oil.");
    })
}

#[test]
fn a_meeting_has_its_time_and_place() {
    let source = read_one("a.msg", &appointment());
    let zone = "(W. Europe Standard Time)";
    let start = format!("2024-05-01 12:02 {zone}");
    let lines = "Repeats: every Wednesday from 12:02 to 13:02\nPlace: North pier\n\nBring oil.";
    assert_eq!(source.text, format!("# x\nStart: {start}\nEnd: 2024-05-01 13:02 {zone}\n{lines}"));
    assert_eq!(source.sections[0].time.as_deref(), Some(start.as_str()));

    // Without a time zone the times are in UTC; the place of a request may be in another property.
    let times = [(0x8001_0040, SENT), (0x8002_0040, SENT + HOUR), (0x0039_0040, SENT - HOUR)];
    let request = |class: &str| meeting(class, &times, |file| file.text("", 0x8007, "Pier 2"));
    let date = "Date: Wed, 1 May 2024 09:02:00 +0000";
    let expect = format!("# x\n{date}\nStart: 2024-05-01 10:02 UTC\nEnd: 2024-05-01 11:02 UTC\nPlace: Pier 2");
    let source = read_one("a.msg", &request("IPM.Schedule.Meeting.Request"));
    assert_eq!(
        (source.text.as_str(), source.sections[0].time.as_deref()),
        (expect.as_str(), date.strip_prefix("Date: "))
    );
    // A mail that has such properties is no meeting.
    assert_eq!(read_one("a.msg", &request("IPM.Note")).text, format!("# x\n{date}"));
}

#[test]
fn a_meeting_of_whole_days_has_its_days() {
    // From midnight to midnight in the time zone, which is 22:00 UTC of the day before.
    let midnight = SENT - 12 * HOUR - HOUR / 30;
    let times = [(0x8001_0040, midnight), (0x8002_0040, midnight + 24 * HOUR), (0x8003_000B, 1)];
    let text = |build: fn(&mut OutlookFile)| read_one("a.msg", &meeting("IPM.Appointment", &times, build)).text;
    let days = "# x\nStart: 2024-05-01\nEnd: before 2024-05-02";
    assert_eq!(text(|file| file.bytes("", 0x8006_0102, &time_zone())), days);
    assert_eq!(text(|_| {}), "# x\nStart: 2024-04-30 22:00 UTC\nEnd: 2024-05-01 22:00 UTC");
    // Start and end are also properties without a name, and the year 4501 means that there is no date.
    let times = [(0x0060_0040, SENT), (0x0061_0040, 0x0CB3_4557_A3DD_4000)];
    let plain = message(&times, |file| file.text("", 0x001A, "IPM.Appointment"));
    assert_eq!(read_one("a.msg", &plain).text, "# x\nStart: 2024-05-01 10:02 UTC");
}

#[test]
fn an_answer_to_a_meeting_has_the_times_that_it_proposes() {
    let proposed = [(0x8008_0040, SENT + HOUR), (0x8009_0040, SENT + 2 * HOUR)];
    let text = |class: &str, times: &[(u32, u64)]| read_one("a.msg", &meeting(class, times, |_| {})).text;
    let times = [&proposed[..], &[(0x8001_0040, SENT), (0x8002_0040, SENT + HOUR)]].concat();
    let own = "# x\nStart: 2024-05-01 10:02 UTC\nEnd: 2024-05-01 11:02 UTC";
    let answer = "IPM.Schedule.Meeting.Resp.Tent";
    let proposal = "Proposed start: 2024-05-01 11:02 UTC\nProposed end: 2024-05-01 12:02 UTC";
    assert_eq!(text(answer, &times), format!("{own}\n{proposal}"));
    assert_eq!(text("IPM.Schedule.Meeting.Request", &times), own);
    // There is no date, and the meeting lasts whole days.
    let no_date = [(0x8008_0040, 0x0CB3_4557_A3DD_4000), (0x8001_0040, SENT)];
    assert_eq!(text(answer, &no_date), own.split_once("\nEnd").unwrap().0);
    let days = [&proposed[..], &[(0x8001_0040, SENT), (0x8003_000B, 1)]].concat();
    let zone = |file: &mut OutlookFile| file.bytes("", 0x8006_0102, &time_zone());
    let expect = "Start: 2024-05-01\nProposed start: 2024-05-01 13:02 (W. Europe Standard Time)\nProposed end: ";
    let source = read_one("a.msg", &meeting(answer, &days, zone));
    assert!(source.text.contains(expect), "{}", source.text);
}

#[test]
fn messages_within_one_another_are_read_to_a_limit() {
    let nested = |levels: usize| {
        message(&[], |file| {
            let mut path = String::new();
            for level in 1..=levels {
                let attachment = file.part(&path, "attach", 0, &[]);
                path = file.attached_message(&attachment, &[]);
                file.text(&path, 0x0037, &format!("level {level}"));
            }
        })
    };
    let text = read_one("a.msg", &nested(32)).text;
    assert!(text.ends_with("[attached message]\n# level 32"), "{text}");
    let limit = read_bytes("a.msg", &nested(33)).unwrap_err();
    assert!(matches!(limit, Cause::LimitExceeded(Limit::Nesting(32))), "{limit}");
}

#[test]
fn an_object_that_is_no_message_is_named() {
    // Pictures and files that a program has put into a message are storages too.
    let object = |file: &mut OutlookFile| {
        let attachment = file.part("", "attach", 0, &[]);
        file.text(&attachment, 0x3001, "Picture");
        file.storage(&format!("{attachment}/__substg1.0_3701000D"));
    };
    assert_eq!(text_of(&[], object), "# x\n\n[attachment: Picture]");
}

#[test]
fn the_content_of_a_mail_tells_its_format() {
    let text = |name: &str, bytes: &[u8]| read_one(name, bytes).text;
    assert_eq!(text("a.eml", &letter()), text("a.msg", &letter()));
    let mail = LETTER.as_bytes();
    assert_eq!(text("a.msg", mail), text("a.eml", mail));
}

#[test]
fn damaged_messages_of_outlooks_say_why() {
    let whole = letter();
    let cut = complaint("a.msg", &whole[..whole.len() / 2]);
    assert!(cut.starts_with("damaged e-mail: ") && cut.ends_with("; the file may have been cut short"), "{cut}");
    assert_eq!(complaint("a.msg", b"words"), "damaged e-mail: a message has none of the headers of an e-mail");
    assert_eq!(complaint("a.msg", &OutlookFile::new(&[]).finish()), "the file contains no text");

    // A directory entry has the name in UTF-16 at its beginning and the length of the stream in its last eight bytes.
    let name: Vec<u8> = "__substg1.0_1000001F".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let entry = whole.windows(name.len()).position(|window| window == name).unwrap();
    let mut long = whole.clone();
    long[entry + 120..entry + 124].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(complaint("a.msg", &long), "damaged e-mail: its streams are longer than the file");

    let mut other = whole;
    let name: Vec<u8> = "__properties".encode_utf16().flat_map(u16::to_le_bytes).collect();
    while let Some(entry) = other.windows(name.len()).position(|window| window == name) {
        // The names stay in their order.
        other[entry + 4] = b'q';
    }
    let expect = "damaged e-mail: it is not a message of Outlook: it has no properties";
    assert_eq!(complaint("a.msg", &other), expect);

    let mut changed = RTF.to_vec();
    changed[30] ^= 1;
    let rtf = message(&[], |file| file.bytes("", 0x1009_0102, &changed));
    assert_eq!(complaint("a.msg", &rtf), "damaged e-mail: the RTF of a message: its checksum is wrong");
    // What is left out needs no valid RTF.
    let plain = |file: &mut OutlookFile| {
        file.text("", 0x1000, "Words.");
        file.bytes("", 0x1009_0102, &changed);
    };
    assert_eq!(text_of(&[], plain), "# x\n\nWords.");
}
