//! Calendars and contacts.

use sources::Kind;

use crate::{complaint, read_one};

pub const CALENDAR: &str = "BEGIN:VCALENDAR
METHOD:REQUEST
BEGIN:VTIMEZONE
DTSTART:19700101T000000
END:VTIMEZONE
BEGIN:VEVENT
DTEND;TZID=Europe/Zurich:20240501T113000
DTSTART;TZID=Europe/Zurich:20240501T100000
SUMMARY:Lamps\\, again
LOCATION:North
  pier
ORGANIZER;CN=\"Ann: O.\":mailto:ann@x
ATTENDEE;CN=Bo;PARTSTAT=ACCEPTED:mailto:bo@x
DESCRIPTION:Bring oil.\\nAnd a wick.
BEGIN:VALARM
DESCRIPTION:Reminder
END:VALARM
END:VEVENT
END:VCALENDAR
";

/// The event of [`CALENDAR`].
pub const EVENT: &str = "\
# Lamps, again
Start: 2024-05-01 10:00 (Europe/Zurich)
End: 2024-05-01 11:30 (Europe/Zurich)
Place: North pier
Organizer: Ann: O. <ann@x>
Attendee: Bo <bo@x> (ACCEPTED)

Bring oil.
And a wick.";

#[test]
fn a_calendar_gives_a_section_for_each_entry() {
    let day = "BEGIN:VEVENT\r\nSUMMARY:Holiday\r\nDTSTART;VALUE=DATE:20240502\r\nDTEND;VALUE=DATE:20240503\r\n\
        RRULE:FREQ=YEARLY\r\nEND:VEVENT\r\nBEGIN:VTODO\r\nSUMMARY:Oil\r\nDUE:20240504T080000Z\r\n";
    let source = read_one("a.ics", CALENDAR.replace("END:VCALENDAR\n", day).as_bytes());
    let expect = "\n\n# Holiday\nStart: 2024-05-02\nEnd: before 2024-05-03\nRepeats: every year\n\n\
        # Oil\nDue: 2024-05-04 08:00 UTC";
    assert_eq!(source.text, format!("{EVENT}{expect}"));
    let sections: Vec<_> = source.sections.iter().map(|s| (s.title.as_deref(), s.time.as_deref())).collect();
    let first = (Some("Lamps, again"), Some("2024-05-01 10:00 (Europe/Zurich)"));
    assert_eq!(sections, [first, (Some("Holiday"), Some("2024-05-02")), (Some("Oil"), None)]);
    assert_eq!(source.kind, Kind::Calendar);
}

#[test]
fn an_event_that_is_repeated_has_its_rule_in_words_and_its_exceptions() {
    let event = "BEGIN:VEVENT\nSUMMARY:Lamps\nDTSTART;TZID=Europe/Zurich:20240501T100000\n\
        RRULE:FREQ=WEEKLY;BYDAY=WE;UNTIL=20240630T080000Z\n\
        EXDATE;TZID=Europe/Zurich:20240508T100000,20240515T100000\nRDATE;VALUE=DATE:20240516\nEND:VEVENT\n\
        BEGIN:VEVENT\nSUMMARY:Oil\nRECURRENCE-ID:20240522T080000Z\nDTSTART:20240523T080000Z\n\
        RRULE:FREQ=MONTHLY;BYSETPOS=1;BYDAY=MO,TU\nEND:VEVENT\n";
    let first = "# Lamps\nStart: 2024-05-01 10:00 (Europe/Zurich)\nRepeats: every week on Wednesday, until 2024-06-30 08:00 UTC\n\
        Except: 2024-05-08 10:00 (Europe/Zurich), 2024-05-15 10:00 (Europe/Zurich)\nAlso: 2024-05-16";
    let second = "# Oil\nStart: 2024-05-23 08:00 UTC\nIn place of: 2024-05-22 08:00 UTC\n\
        Repeats: FREQ=MONTHLY;BYSETPOS=1;BYDAY=MO,TU";
    assert_eq!(read_one("a.ics", format!("BEGIN:VCALENDAR\n{event}").as_bytes()).text, format!("{first}\n\n{second}"));
}

pub const CONTACTS: &str = "BEGIN:VCARD
VERSION:2.1
N;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:Orsini;J=F6rg
FN;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:J=F6rg =
Orsini
TEL;CELL;VOICE:+41 79
item1.EMAIL;TYPE=work:j@x
ADR;TYPE=home:;;Pier 1;Pell;;8000;CH
PHOTO;BASE64:
 AAAA

END:VCARD
BEGIN:VCARD
FN:Bo
NOTE:one\\ntwo\\; three
END:VCARD
";

#[test]
fn contacts_give_a_section_for_each_person() {
    let source = read_one("a.vcf", CONTACTS.as_bytes());
    let expect = "# Jörg Orsini\nName: Orsini, Jörg\nPhone (cell, voice): +41 79\nE-mail (work): j@x\n\
        Address (home): Pier 1, Pell, 8000, CH\n\n# Bo\nNote: one\ntwo; three";
    assert_eq!((source.text.as_str(), source.kind), (expect, Kind::Contacts));
    let titles: Vec<_> = source.sections.iter().map(|section| section.title.as_deref()).collect();
    assert_eq!(titles, [Some("Jörg Orsini"), Some("Bo")]);
}

#[test]
fn birthdays_are_dates_in_every_version() {
    let check = |birthday: &str, expect: &str| {
        let contact = format!("BEGIN:VCARD\nFN:Bo\nBDAY:{birthday}\nEND:VCARD\n");
        assert_eq!(read_one("a.vcf", contact.as_bytes()).text, format!("# Bo\nBirthday: {expect}"));
    };
    check("19900501", "1990-05-01");
    check("19900501T000000Z", "1990-05-01");
    for unchanged in ["1990-05-01", "--0501", "19900501T101500Z", "in May 1990", "1990050"] {
        check(unchanged, unchanged);
    }
}

#[test]
fn other_files_than_calendars_and_contacts_say_why() {
    assert_eq!(complaint("a.ics", b"words"), "damaged calendar: it does not start with BEGIN:VCALENDAR");
    assert_eq!(complaint("a.vcf", b"words"), "damaged contacts: it does not start with BEGIN:VCARD");
    assert_eq!(complaint("a.ics", b"BEGIN:VCALENDAR\nEND:VCALENDAR\n"), "the file contains no text");
}
