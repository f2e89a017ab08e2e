//! E-mails and mailboxes.

use sources::{Cause, Kind, Limit};

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
fn damaged_mail_says_why() {
    let check = |name, bytes: &str, expect: &str| assert_eq!(complaint(name, bytes.as_bytes()), expect);
    check("a.eml", "just words\n", "damaged e-mail: a message has none of the headers of an e-mail");
    check("a.mbox", "Subject: x\n\ny\n", "damaged mailbox: it does not start with a line `From `");
    check(
        "a.mbox",
        "From a\nSubject: x\n\ny\nFrom b\n\nz\n",
        "damaged mailbox: message 2: a message has none of the headers of an e-mail",
    );
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
