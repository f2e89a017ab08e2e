//! E-mails and mailboxes.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};

use sources::{Cause, Kind, Limit, Opened, ReadOptions, Source, find, open, read};

use crate::calendars::{CALENDAR, EVENT};
use crate::{complaint, read_bytes, read_one};

pub const LETTER: &str = "Received: from a by b; Wed, 1 May 2024 10:00:00 +0200\r
From: =?iso-8859-1?q?J=F6rg_Orsini?= <orsini@example.org>\r
To: Ann <ann@example.org>,\r
 bo@example.org\r
Date: Wed, 1 May 2024 10:02:00 +0200\r
Subject: =?utf-8?b?TGFtcCDwn5ih?= report\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=\"m\"\r
\r
--m\r
Content-Type: multipart/alternative; boundary=\"a\"\r
\r
--a\r
Content-Type: text/plain; charset=iso-8859-1\r
Content-Transfer-Encoding: quoted-printable\r
\r
The lamp was out,=20\r
caf=E9 closed.\r
--a\r
Content-Type: text/html\r
\r
<p>The lamp was <b>out</b>\r
--a--\r
--m\r
Content-Type: application/pdf; name=\"cost.pdf\"\r
Content-Transfer-Encoding: base64\r
\r
AAAA\r
--m\r
Content-Type: message/rfc822\r
\r
From: Bo <bo@example.org>\r
Subject: Earlier\r
Content-Type: text/html\r
\r
<p>A new <i>wick</i>.<script>x</script>\r
--m--\r
";

#[test]
fn an_email_gives_headers_text_attachments_and_forwarded_messages() {
    let source = read_one("a.eml", LETTER.as_bytes());
    let expect = "\
# Lamp 😡 report
From: Jörg Orsini <orsini@example.org>
To: Ann <ann@example.org>, bo@example.org
Date: Wed, 1 May 2024 10:02:00 +0200

The lamp was out, \ncafé closed.

[attachment: cost.pdf]

[attached message]
# Earlier
From: Bo <bo@example.org>

A new wick.";
    assert_eq!(source.text, expect);
    assert_eq!((source.kind, source.title.as_deref()), (Kind::Email, Some("Lamp 😡 report")));
    assert_eq!(source.sections[0].time.as_deref(), Some("Wed, 1 May 2024 10:02:00 +0200"));
}

#[test]
fn an_email_of_html_alone_is_converted() {
    let source = read_one("a.eml", b"Subject: x\nContent-Type: text/html\n\n<ul><li>one<li>two</ul>");
    assert_eq!(source.text, "# x\n\n- one\n- two");
}

#[test]
fn the_html_of_an_email_is_read_where_its_plain_text_is_blank() {
    let mail = |plain: &str| {
        format!(
            "Subject: x\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n{plain}\n\
             --b\nContent-Type: text/html\n\n<p>The lamp\n--b--\n"
        )
    };
    assert_eq!(read_one("a.eml", mail(" \n").as_bytes()).text, "# x\n\nThe lamp");
    assert_eq!(read_one("a.eml", mail("Words.").as_bytes()).text, "# x\n\nWords.");
}

#[test]
fn an_email_without_a_character_set_is_read_in_the_encoding_of_its_letters() {
    let check = |mail: &[u8], expect: &str| assert_eq!(read_one("a.eml", mail).text, expect);
    check(b"Subject: x\n\nSch\xf6ne Gr\xfc\xdfe \x96 5 \x80", "# x\n\nSchöne Grüße – 5 €");
    let page = b"Subject: x\nContent-Type: text/html\n\n<meta charset=macintosh><p>caf\x8e";
    check(page, "# x\n\ncafé");
    let declared = b"Subject: x\nContent-Type: text/plain; charset=utf-8\n\ncaf\xe9";
    check(declared, "# x\n\ncaf\u{fffd}");
}

#[test]
fn a_mailbox_gives_a_section_for_each_message() {
    let mbox = "From ann@x Wed May  1 10:02:00 2024\nFrom: Ann\nSubject: One\n\n>From here it was dark.\n\n\
        From bo@x Wed May  1 10:03:00 2024\nFrom: Bo\nSubject: Two\n\nYes.\n";
    let source = read_one("a.mbox", mbox.as_bytes());
    assert_eq!(source.text, "# One\nFrom: Ann\n\nFrom here it was dark.\n\n# Two\nFrom: Bo\n\nYes.");
    let titles: Vec<_> = source.sections.iter().map(|section| section.title.as_deref()).collect();
    assert_eq!(titles, [Some("One"), Some("Two")]);
    assert_eq!(source.kind, Kind::Mailbox);
}

#[test]
fn lines_of_a_mailbox_that_start_with_from_are_words_unless_a_header_follows() {
    let mbox = "From a\nSubject: One\n\nThe lamp:\nFrom here it was dark.\n\nFrom noon on, too.\nThen came light.\n\n\
        From b\nX-Mozilla-Status: 1\n\nYes.\n";
    let source = read_one("a.mbox", mbox.as_bytes());
    let first = "# One\n\nThe lamp:\nFrom here it was dark.\n\nFrom noon on, too.\nThen came light.";
    assert_eq!(source.text, format!("{first}\n\nYes."));
    assert_eq!(source.sections.len(), 2);
}

#[test]
fn invitations_are_read_and_outlooks_attachments_are_named() {
    let mail = format!(
        "From: Ann <ann@x>\nSubject: Lamps\nContent-Type: multipart/mixed; boundary=m\n\n\
         --m\nContent-Type: multipart/alternative; boundary=a\n\n--a\nContent-Type: text/plain\n\nPlease come.\n\
         --a\nContent-Type: text/calendar; method=REQUEST\n\n{CALENDAR}\n--a--\n\
         --m\nContent-Type: application/ics; name=invite.ics\n\n{CALENDAR}\n\
         --m\nContent-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\neJ8+\n--m--\n"
    );
    let expect = format!(
        "# Lamps\nFrom: Ann <ann@x>\n\nPlease come.\n\n[calendar: text/calendar]\n{EVENT}\n\n\
         [attachment: invite.ics]\n\n[attachment: winmail.dat, in Outlook's format TNEF, which is not read]"
    );
    assert_eq!(read_one("a.eml", mail.as_bytes()).text, expect);
}

#[test]
fn a_message_beyond_a_limit_is_left_out_and_named() {
    // The second message has 300 MiB, in one line without an end, so that the mailbox is larger than other files may be.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mbox");
    let mut file = File::create(&path).unwrap();
    file.write_all(b"From a\nSubject: One\n\nYes.\n\nFrom b\nSubject: =?utf-8?q?The_harbour?=\n\n").unwrap();
    file.seek(SeekFrom::Current(300 << 20)).unwrap();
    let nested = "Content-Type: message/rfc822\n\n".repeat(600);
    write!(file, "\nFrom c\nSubject: Deep\n{nested}\nFrom d\nSubject: Four\n\nNo.\n").unwrap();
    drop(file);
    let source = read(&path, &ReadOptions::default()).unwrap().remove(0);
    crate::check_spans(&source);
    let large = "[message 2 is left out: a message is larger than the limit of 64 MiB; save it without attachments]";
    let deep = "[message 3 is left out: its elements are nested deeper than the limit of 512; save it as text]";
    let count = "[2 of 4 messages are left out: their places say why]";
    assert_eq!(source.text, format!("# One\n\nYes.\n\n{large}\n\n{deep}\n\n# Four\n\nNo.\n\n{count}"));
    let titles: Vec<_> = source.sections.iter().map(|section| section.title.as_deref().unwrap()).collect();
    assert_eq!(titles, ["One", "The harbour", "Deep", "Four", "messages left out"]);
    // A mailbox of which nothing is read is refused.
    let only = format!("From c\nSubject: Deep\n{nested}\n");
    assert!(matches!(read_bytes("a.mbox", only.as_bytes()), Err(Cause::LimitExceeded(Limit::Nesting(512)))));
    let options = ReadOptions { max_text_bytes: 10, ..ReadOptions::default() };
    let cause = open(&path, &options).unwrap_err().cause;
    assert!(matches!(cause, Cause::LimitExceeded(Limit::FileBytes(10))), "{cause}");
}

#[test]
fn a_message_without_headers_is_read_as_text_or_left_out_and_the_others_are_read() {
    let next = "From b\nSubject: Two\n\nYes.\n";
    let read = |first: &[u8]| read_one("a.mbox", &[b"From a\n", first, b"\n", next.as_bytes()].concat());
    let source = read(b"The caf\xc3\xa9 closed.\n");
    assert_eq!(source.text, "From a\nThe café closed.\n\n# Two\n\nYes.");
    let titles: Vec<_> = source.sections.iter().map(|section| section.title.as_deref()).collect();
    assert_eq!(titles, [None, Some("Two")]);
    let none = "a message has none of the headers of an e-mail";
    let left_out = format!("[message 1 is left out: damaged mailbox: {none}]");
    let count = "[1 of 2 messages are left out: their places say why]";
    assert_eq!(read(b"\0\x01\xff\n").text, format!("{left_out}\n\n# Two\n\nYes.\n\n{count}"));
    assert_eq!(complaint("a.mbox", b"From a\n\0\x01\n"), format!("damaged mailbox: {none}"));
    // Nor does a line `From ` before another one end the mailbox.
    assert_eq!(read(b"").text, "# Two\n\nYes.");
    assert_eq!(read(b"From c\nSubject: One\n\nNo.\n").text, "# One\n\nNo.\n\n# Two\n\nYes.");
}

#[test]
fn a_long_mailbox_becomes_documents_that_stay_when_messages_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mbox");
    let message = |mib: usize| format!("From a\nSubject: x\n\n{}\n", "The lamp was out.\n".repeat((mib << 20) / 18));
    let documents = |mailbox: String| {
        fs::write(&path, mailbox).unwrap();
        let Ok(Opened::Sources(sources)) = open(&path, &ReadOptions::default()) else { panic!("it is a mailbox") };
        let sources: Vec<Source> = sources.map(Result::unwrap).collect();
        sources.iter().for_each(crate::check_spans);
        sources
    };
    let shape = |documents: &[Source]| -> Vec<(String, usize)> {
        let name = |document: &Source| document.path.strip_prefix(path.to_str().unwrap()).unwrap().to_owned();
        documents.iter().map(|document| (name(document), document.sections.len())).collect()
    };
    let expect = |messages: [usize; 3]| {
        let names = ["", "#2", "#3"].map(str::to_owned);
        names.into_iter().zip(messages).collect::<Vec<_>>()
    };
    let before = documents(message(3).repeat(5));
    assert_eq!(shape(&before), expect([2, 2, 1]));
    let after = documents(message(3).repeat(6));
    assert_eq!(shape(&after), expect([2, 2, 2]));
    assert!(after[..2] == before[..2]);
    assert!(read(&path, &ReadOptions::default()).unwrap() == after);
    // A message that is longer than a document is one alone.
    assert_eq!(shape(&documents([1, 9, 1].map(message).concat())), expect([1, 1, 1]));
    // A document may consist of messages that are left out.
    let nested = "Content-Type: message/rfc822\n\n".repeat(600);
    let last = documents(message(9) + &format!("From b\nSubject: Deep\n{nested}\n")).remove(1);
    let deep = "[message 2 is left out: its elements are nested deeper than the limit of 512; save it as text]";
    assert_eq!(last.text, format!("{deep}\n\n[1 of 1 messages are left out: their places say why]"));
}

#[test]
fn mailboxes_without_an_extension_are_found_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let mailbox = "From - Mon Jan  1 00:00:00 2024\nX-Mozilla-Status: 0001\nSubject: One\n\nYes.\n";
    write("Inbox", mailbox);
    write("Inbox.msf", mailbox);
    write("Archives.sbd/2024", mailbox);
    write("Letter", "From here it was dark.\n\nSubject: One\nDate: Monday\n");
    write("Makefile", "all:\n");
    let found = find(&[folder.path().to_owned()]);
    let files = ["Archives.sbd/2024", "Inbox"].map(|name| folder.path().join(name));
    assert_eq!((found.files.as_slice(), found.skipped.len()), (&files[..], 3));
    let source = read(&files[1], &ReadOptions::default()).unwrap().remove(0);
    assert_eq!((source.kind, source.text.as_str()), (Kind::Mailbox, "# One\n\nYes."));
    assert_eq!(read_one("Letter", b"From here it was dark.\n").kind, Kind::Text);
}

#[test]
fn the_mails_of_apple_mail_have_a_length_before_and_properties_after() {
    let mail = "Subject: Lamp\n\nIt was out.\n";
    let plist = "<?xml version=\"1.0\"?><plist><dict><key>flags</key><integer>1</integer></dict></plist>\n";
    let file = |length: usize| format!("{length:<10}\n{mail}{plist}");
    let source = read_one("1.emlx", file(mail.len()).as_bytes());
    assert_eq!((source.kind, source.text.as_str()), (Kind::Email, "# Lamp\n\nIt was out."));
    let expect = "damaged e-mail: it is shorter than its first line says; it may have been cut short";
    assert_eq!(complaint("1.emlx", file(1000).as_bytes()), expect);
}

pub const PAGE: &str =
    "From: <Saved by a browser>\r\nSubject: =?utf-8?q?Lamps_=E2=80=93_a_page?=\r\nMIME-Version: 1.0\r
Content-Type: multipart/related; type=\"text/html\"; boundary=\"b\"\r\n\r\n--b\r\nContent-Type: text/html\r
Content-Transfer-Encoding: quoted-printable\r\nContent-Location: https://example.org/\r\n\r
<html><head><meta charset=3Dwindows-1252></head><body><h1>The l=\r\namp</h1><p>caf=E9</body></html>\r\n--b\r
Content-Type: text/css\r\n\r\np { color: red }\r\n--b\r\nContent-Type: image/png\r
Content-Transfer-Encoding: base64\r\n\r\nAAAA\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n\r
<p>A frame\r\n--b--\r\n";

#[test]
fn a_saved_web_page_gives_its_page_and_frames() {
    for name in ["a.mht", "a.MHTML"] {
        let source = read_one(name, PAGE.as_bytes());
        assert_eq!(source.text, "# The lamp\n\ncafé\n\nA frame");
        assert_eq!((source.kind, source.title.as_deref()), (Kind::WebArchive, Some("Lamps – a page")));
    }
    let check = |page: &str, expect: &str| assert_eq!(complaint("a.mht", page.as_bytes()), expect);
    check("", "the file is empty");
    for page in ["Subject: x\n\nwords", "<p>words"] {
        check(page, "damaged web archive: it has no page in HTML");
    }
    let deep = format!("Subject: x\nContent-Type: text/html\n\n{}x", "<div>".repeat(1000));
    check(&deep, "its elements are nested deeper than the limit of 512; save it as text");
}

#[test]
fn damaged_mail_says_why() {
    let check = |name, bytes: &str, expect: &str| assert_eq!(complaint(name, bytes.as_bytes()), expect);
    check("a.eml", "just words\n", "damaged e-mail: a message has none of the headers of an e-mail");
    check("a.mbox", "Subject: x\n\ny\n", "damaged mailbox: it does not start with a line `From `");
}

#[test]
fn mail_that_nests_or_repeats_without_end_is_refused() {
    let limit = |text: String| match read_bytes("a.eml", text.as_bytes()) {
        Err(Cause::LimitExceeded(limit)) => limit,
        other => panic!("{:?}", other.map(|sources| sources.len())),
    };
    let nested = |levels| "Content-Type: MESSAGE/ rfc822\n\n".repeat(levels) + "Subject: x\n\ny\n";
    assert_eq!(limit(nested(600)), Limit::Nesting(512));
    assert_eq!(limit("a:\n".repeat(3_000_000)), Limit::MailLines(2_000_000));
    let parameters = format!("Content-Type: text/plain;\n{}\nx", " a=b;\n".repeat(20_000));
    assert_eq!(limit(parameters), Limit::MailParametersBytes(64 << 10));
    assert_eq!(limit("Subject: x\n\n".to_owned() + &"y".repeat(65 << 20)), Limit::FileBytes(64 << 20));
    // Deep nesting within the limit needs little stack.
    assert!(read_bytes("a.eml", format!("Subject: x\n{}", nested(500)).as_bytes()).is_ok());
}
