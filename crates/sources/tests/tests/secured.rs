//! Signed and encrypted messages (S/MIME): e-mails, and Outlook's messages.

use sources::{Cause, Limit};

use crate::outlook_file::OutlookFile;
use crate::{complaint, read_bytes, read_one};

const REFUSAL: &str =
    "the message is encrypted (S/MIME); open it in the mail program that has its key, and save it as text";
const DAMAGED: &str =
    "damaged e-mail: its signed or encrypted content (S/MIME) is missing or damaged; get another copy";

/// A signed text with an attachment.
const ENTITY: &str = "Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Content-Transfer-Encoding: quoted-printable\r\n\r\nThe caf=C3=A9 closed.\r\n--m\r\n\
    Content-Type: application/pdf; name=cost.pdf\r\n\r\nx\r\n--m--\r\n";
/// It as text.
const SHOWN: &str = "The café closed.\n\n[attachment: cost.pdf]";

/// An element of BER.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    assert!(length < 1 << 16);
    [&[tag, 0x82, (length >> 8) as u8, length as u8][..], content].concat()
}

/// A type of content: 1 for data, 2 for signed, 3 for encrypted.
fn kind(last: u8) -> Vec<u8> {
    element(0x06, &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, last])
}

/// A signed message with an element that has the content, or without one.
fn signed_with(content: &[u8]) -> Vec<u8> {
    let inner = element(0x30, &[&kind(1)[..], content].concat());
    let data = [element(0x02, &[1]), element(0x31, b""), inner, element(0x31, b"")].concat();
    element(0x30, &[kind(2), element(0xA0, &element(0x30, &data))].concat())
}

/// A signed message.
fn signed(content: &[u8]) -> Vec<u8> {
    signed_with(&element(0xA0, &element(0x04, content)))
}

/// An encrypted message.
fn encrypted() -> Vec<u8> {
    element(0x30, &[kind(3), element(0xA0, b"any bytes")].concat())
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| (bits << 8) | usize::from(chunk.get(at).copied().unwrap_or(0)));
        let letter = |at: usize| if at <= chunk.len() { LETTERS[(bits >> (18 - 6 * at)) & 63] as char } else { '=' };
        text.extend((0..4).map(letter));
    }
    text
}

/// The headers and the content of an entity of S/MIME.
fn entity(kind: &str, message: &[u8]) -> String {
    format!("Content-Type: {kind}; name=smime.p7m\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n", base64(message))
}

fn mail(entity: &str) -> String {
    format!("From: Ann <ann@example.org>\r\nSubject: x\r\nMIME-Version: 1.0\r\n{entity}")
}

const SIGNED: &str = "application/pkcs7-mime; smime-type=signed-data";

/// A mail whose text is within its signature.
pub fn signed_mail() -> String {
    mail(&entity(SIGNED, &signed(ENTITY.as_bytes())))
}

#[test]
fn the_text_within_a_signature_is_read() {
    let head = "# x\nFrom: Ann <ann@example.org>";
    for kind in [SIGNED, "application/x-pkcs7-mime", "application/octet-stream"] {
        let source = read_one("a.eml", mail(&entity(kind, &signed(ENTITY.as_bytes()))).as_bytes());
        assert_eq!(source.text, format!("{head}\n\n{SHOWN}"), "{kind}");
    }
    let plain = mail(&entity(SIGNED, &signed(b"\r\nWords.\r\n")));
    assert_eq!(read_one("a.eml", plain.as_bytes()).text, format!("{head}\n\nWords."));
}

#[test]
fn signatures_around_one_another_are_read_to_a_limit() {
    let nested = |levels: usize| {
        let inner = (1..levels).fold(ENTITY.to_owned(), |inner, _| entity(SIGNED, &signed(inner.as_bytes())));
        mail(&entity(SIGNED, &signed(inner.as_bytes())))
    };
    assert!(read_one("a.eml", nested(2).as_bytes()).text.ends_with(SHOWN));
    let cause = read_bytes("a.eml", nested(3).as_bytes()).unwrap_err();
    assert!(matches!(cause, Cause::LimitExceeded(Limit::Nesting(2))), "{cause}");
}

#[test]
fn encrypted_and_damaged_messages_are_refused() {
    let check = |message: &[u8], expect: &str| {
        assert_eq!(complaint("a.eml", mail(&entity("application/pkcs7-mime", message)).as_bytes()), expect);
    };
    check(&encrypted(), REFUSAL);
    check(&signed(entity("application/pkcs7-mime", &encrypted()).as_bytes()), REFUSAL);
    check(b"words", DAMAGED);
    let whole = signed(ENTITY.as_bytes());
    check(&whole[..whole.len() / 2], DAMAGED);
    let mailbox = format!("From a\nSubject: One\n\nYes.\n\nFrom b\n{}", mail(&entity(SIGNED, &encrypted())));
    let left_out =
        format!("[message 2 is left out: {REFUSAL}]\n\n[1 of 2 messages are left out: their places say why]");
    assert_eq!(read_one("a.mbox", mailbox.as_bytes()).text, format!("# One\n\nYes.\n\n{left_out}"));
}

#[test]
fn attachments_that_are_encrypted_or_no_messages_are_named() {
    let parts = [
        "Content-Type: text/plain\r\n\r\nWords.\r\n".to_owned(),
        entity("application/pkcs7-mime", &encrypted()),
        format!("Content-Type: message/rfc822\r\n\r\n{}", mail(&entity(SIGNED, &encrypted()))),
        entity(SIGNED, b"words"),
        entity(SIGNED, &signed(b"%PDF-1.7 and so on")),
        entity("application/pkcs7-mime; smime-type=certs-only", &signed_with(b"")),
        entity(SIGNED, &signed(ENTITY.as_bytes())),
    ];
    let parts = format!("--b\r\n{}\r\n", parts.join("\r\n--b\r\n"));
    let mail = format!("Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{parts}--b--\r\n");
    let name = |what: &str| format!("[attachment: smime.p7m, a{what} (S/MIME), which is not read]");
    let [encrypted, damaged] = ["n encrypted message", " damaged message"].map(name);
    let file = name(" signed file or certificates");
    let attached = format!("[attached message]\n# x\nFrom: Ann <ann@example.org>\n\n{encrypted}");
    let expect = ["# x\n\nWords.", &encrypted, &attached, &damaged, &file, &file, SHOWN].join("\n\n");
    assert_eq!(read_one("a.eml", mail.as_bytes()).text, expect);
}

/// A message of a class with one attachment of a type, `smime.p7m`.
fn secured(class: &str, kind: &str, data: &[u8], body: &str) -> Vec<u8> {
    let mut file = OutlookFile::new(&[]);
    file.text("", 0x0037, "x");
    file.text("", 0x001A, class);
    file.text("", 0x1000, body);
    let attachment = file.part("", "attach", 0, &[]);
    file.text(&attachment, 0x3707, "smime.p7m");
    file.text(&attachment, 0x370E, kind);
    file.bytes(&attachment, 0x3701_0102, data);
    file.finish()
}

#[test]
fn the_text_of_a_signed_message_is_read_from_what_was_signed() {
    let beside = "Content-Type: multipart/signed; protocol=\"application/pkcs7-signature\"; micalg=sha-256;\r\n\
        \tboundary=\"s\"\r\n\r\n--s\r\nContent-Type: multipart/mixed; boundary=\"m\"\r\n\r\n--m\r\n\
        Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
        The caf=C3=A9 closed.\r\n--m\r\nContent-Type: application/pdf; name=cost.pdf\r\n\r\nx\r\n--m--\r\n\r\n\
        --s\r\nContent-Type: application/pkcs7-signature; name=smime.p7s\r\n\r\nAAAA\r\n--s--\r\n";
    let expect = "# x\n\nThe café closed.\n\n[attachment: cost.pdf]\n\n[attachment: smime.p7s]";
    for class in ["IPM.Note.SMIME.MultipartSigned", "IPM.Note.SMIME"] {
        // The message may have the text a second time.
        for body in ["", "The café closed."] {
            assert_eq!(
                read_one("a.msg", &secured(class, "multipart/signed", beside.as_bytes(), body)).text,
                expect,
                "{class}"
            );
        }
    }
}

#[test]
fn the_text_of_a_signed_message_is_read_from_its_signature() {
    for kind in ["application/pkcs7-mime", "application/octet-stream"] {
        // The message may have another text.
        for body in ["", "The text."] {
            let message = secured("IPM.Note.SMIME", kind, &signed(ENTITY.as_bytes()), body);
            assert_eq!(read_one("a.msg", &message).text, format!("# x\n\n{SHOWN}"), "{kind}");
        }
    }
}

#[test]
fn a_message_that_is_encrypted_is_refused_unless_it_has_another_text() {
    let message_with = |body| secured("IPM.Note.SMIME", "application/pkcs7-mime", &encrypted(), body);
    assert_eq!(complaint("a.msg", &message_with("")), REFUSAL);
    let unread = "[attachment: smime.p7m, an encrypted message (S/MIME), which is not read]";
    assert_eq!(read_one("a.msg", &message_with("Words.")).text, format!("# x\n\nWords.\n\n{unread}"));
    for (class, kind) in
        [("IPM.Note.SMIME", "application/pkcs7-mime"), ("IPM.Note.SMIME.MultipartSigned", "multipart/signed")]
    {
        assert_eq!(complaint("a.msg", &secured(class, kind, b"words", "")), DAMAGED);
    }
    // One within another message is named.
    let mut outer = OutlookFile::new(&[]);
    outer.text("", 0x0037, "x");
    let attachment = outer.part("", "attach", 0, &[]);
    let inner = outer.attached_message(&attachment, &[]);
    outer.text(&inner, 0x001A, "IPM.Note.SMIME");
    let data = outer.part(&inner, "attach", 0, &[]);
    outer.text(&data, 0x370E, "application/x-pkcs7-mime");
    outer.text(&data, 0x3707, "smime.p7m");
    outer.bytes(&data, 0x3701_0102, &encrypted());
    assert_eq!(read_one("a.msg", &outer.finish()).text, format!("# x\n\n[attached message]\n\n{unread}"));
}
