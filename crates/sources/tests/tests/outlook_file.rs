//! Builds messages of Outlook's: compound files with properties.

use std::io::{Cursor, Write};

use cfb::{CompoundFile, Version};

/// A message that is being built. Its own path is empty; its parts have the paths that the functions return.
pub struct OutlookFile(CompoundFile<Cursor<Vec<u8>>>);

impl OutlookFile {
    /// A message with properties of a fixed size, given by their tags.
    pub fn new(fixed: &[(u32, u64)]) -> Self {
        let mut file = OutlookFile(CompoundFile::create_with_version(Version::V3, Cursor::new(Vec::new())).unwrap());
        file.fixed("", 32, fixed);
        file
    }

    /// A recipient (`recip`) or an attachment (`attach`) of a message.
    pub fn part(&mut self, message: &str, kind: &str, number: u32, fixed: &[(u32, u64)]) -> String {
        let path = format!("{message}/__{kind}_version1.0_#{number:08X}");
        self.storage(&path);
        self.fixed(&path, 8, fixed);
        path
    }

    /// The message that an attachment is.
    pub fn attached_message(&mut self, attachment: &str, fixed: &[(u32, u64)]) -> String {
        let path = format!("{attachment}/__substg1.0_3701000D");
        self.storage(&path);
        self.fixed(&path, 24, fixed);
        path
    }

    pub fn storage(&mut self, path: &str) {
        self.0.create_storage(path).unwrap();
    }

    /// A text in UTF-16.
    pub fn text(&mut self, path: &str, number: u16, text: &str) {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        self.bytes(path, (u32::from(number) << 16) | 0x1F, &units);
    }

    /// A property of any type that has a stream.
    pub fn bytes(&mut self, path: &str, tag: u32, bytes: &[u8]) {
        self.stream(&format!("{path}/__substg1.0_{tag:08X}"), bytes);
    }

    fn fixed(&mut self, path: &str, header_bytes: usize, properties: &[(u32, u64)]) {
        let mut bytes = vec![0; header_bytes];
        for (tag, value) in properties {
            bytes.extend(tag.to_le_bytes());
            bytes.extend([6, 0, 0, 0]);
            bytes.extend(value.to_le_bytes());
        }
        self.stream(&format!("{path}/__properties_version1.0"), &bytes);
    }

    fn stream(&mut self, path: &str, bytes: &[u8]) {
        self.0.create_stream(path).unwrap().write_all(bytes).unwrap();
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.0.flush().unwrap();
        self.0.into_inner().into_inner()
    }
}

/// When the letter was sent: 2024-05-01 10:02:00 UTC, in units of 100 ns since 1601.
pub const SENT: u64 = (1_714_557_720 + 11_644_473_600) * 10_000_000;

/// A message with recipients, a file and a message attached.
pub fn letter() -> Vec<u8> {
    let mut file = OutlookFile::new(&[(0x0039_0040, SENT)]);
    file.text("", 0x0037, "Lamp 😡 report");
    file.text("", 0x0042, "Jörg Orsini");
    file.text("", 0x0065, "/O=PELL/CN=ORSINI");
    file.text("", 0x5D02, "orsini@example.org");
    file.text("", 0x1000, "The lamp was out,\r\ncafé closed.\r\n\0");
    let people = [(1, "Ann", "ann@example.org"), (1, "'bo@example.org'", "bo@example.org"), (2, "Cy", "/O=PELL/CN=CY")];
    for (number, (kind, name, address)) in people.into_iter().enumerate() {
        let recipient = file.part("", "recip", number as u32, &[(0x0C15_0003, kind)]);
        file.text(&recipient, 0x3001, name);
        file.text(&recipient, 0x3003, address);
    }
    let cost = file.part("", "attach", 0, &[]);
    file.text(&cost, 0x3704, "COST~1.PDF");
    file.text(&cost, 0x3707, "cost.pdf");
    file.bytes(&cost, 0x3701_0102, b"%PDF");
    let attachment = file.part("", "attach", 1, &[]);
    let earlier = file.attached_message(&attachment, &[(0x3FDE_0003, 1252)]);
    file.text(&earlier, 0x0037, "Earlier");
    file.text(&earlier, 0x0C1A, "Bo");
    file.text(&earlier, 0x0C1F, "bo@example.org");
    file.bytes(&earlier, 0x1013_0102, b"<p>A new <i>wick</i> at the caf\xe9.<script>x</script>");
    let plan = file.part("", "attach", 2, &[]);
    file.text(&plan, 0x3001, "Plan");
    file.finish()
}
