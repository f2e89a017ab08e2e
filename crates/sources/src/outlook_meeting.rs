//! The time and the place of a meeting in Outlook's messages (MS-OXOCAL), in the lines that an entry of a calendar has: of
//! appointments, and of requests for meetings, their answers, with the times that these propose, and cancellations.

use crate::Cause;
use crate::compound::Compound;
use crate::dates::{self, DAY_SECONDS};
use crate::outlook_names::{Names, Set};
use crate::outlook_object::Object;
use crate::outlook_zone::Zone;

/// PSETID_Appointment, and PSETID_Meeting.
const APPOINTMENT: Set = [0x02, 0x20, 0x06, 0, 0, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0x46];
const MEETING: Set = [0x90, 0xDA, 0xD8, 0x6E, 0x0B, 0x45, 0x1B, 0x10, 0x98, 0xDA, 0, 0xAA, 0, 0x3F, 0x13, 0x05];

/// Start and end as properties without names, which repeat those with names.
const START: u16 = 0x0060;
const END: u16 = 0x0061;

/// Outlook writes the year 4501 where there is no date.
const NO_DATE_SECONDS: i64 = 79_870_665_600;

/// The numbers of the properties of meetings in a file.
pub(crate) struct Meetings {
    start: Option<u16>,
    end: Option<u16>,
    /// The start and the end that an answer proposes.
    proposed: [Option<u16>; 2],
    lasts_days: Option<u16>,
    repetition: Option<u16>,
    places: [Option<u16>; 2],
    zone: Option<u16>,
}

impl Meetings {
    pub fn of(names: &Names) -> Self {
        let number = |name| names.number(APPOINTMENT, name);
        Meetings {
            start: number(0x820D),
            end: number(0x820E),
            proposed: [number(0x8250), number(0x8251)],
            lasts_days: number(0x8215),
            repetition: number(0x8232),
            places: [number(0x8208), names.number(MEETING, 2)],
            zone: number(0x825E),
        }
    }

    /// Writes the lines of a message of a class, unless it is no meeting; returns its start.
    ///
    /// # Errors
    /// [`Cause::Damaged`], [`crate::Limit::Time`], [`crate::Limit::TextBytes`].
    pub fn write(
        &self,
        class: &str,
        message: &Object,
        file: &mut Compound<'_>,
        text: &mut String,
    ) -> Result<Option<String>, Cause> {
        if !["ipm.appointment", "ipm.schedule.meeting"].iter().any(|meeting| class.starts_with(meeting)) {
            return Ok(None);
        }
        let zone = match self.zone {
            Some(number) => message.bytes(file, number)?.and_then(|definition| Zone::read(&definition)),
            None => None,
        };
        // Without the time zone the days are not known.
        let lasts_days = zone.is_some() && self.lasts_days.is_some_and(|number| message.is_set(number));
        let seconds = |number: u16| message.seconds(number).filter(|seconds| *seconds < NO_DATE_SECONDS);
        let clock = |seconds: i64| match &zone {
            Some(zone) => format!("{} ({})", dates::clock(zone.local(seconds)), zone.name),
            None => dates::minute(seconds),
        };
        let time = |named: Option<u16>, number: u16| {
            let seconds = seconds(named.filter(|named| message.seconds(*named).is_some()).unwrap_or(number))?;
            Some(match &zone {
                Some(zone) if lasts_days => dates::date(zone.local(seconds).div_euclid(DAY_SECONDS)),
                _ => clock(seconds),
            })
        };
        // An answer may propose hours for a meeting of whole days.
        let is_answer = class.starts_with("ipm.schedule.meeting.resp");
        let [proposed_start, proposed_end] =
            self.proposed.map(|named| named.filter(|_| is_answer).and_then(seconds).map(clock));
        let start = time(self.start, START);
        // The day on which an entry ends is not part of it.
        let end_mark = if lasts_days { "End: before " } else { "End: " };
        let repetition = match self.repetition {
            Some(number) => message.line(file, number)?,
            None => None,
        };
        let mut place = None;
        for number in self.places.into_iter().flatten() {
            place = if place.is_none() { message.line(file, number)? } else { place };
        }
        let lines = [
            ("Start: ", start.clone()),
            (end_mark, time(self.end, END)),
            ("Proposed start: ", proposed_start),
            ("Proposed end: ", proposed_end),
            ("Repeats: ", repetition),
            ("Place: ", place),
        ];
        for (mark, value) in lines {
            if let Some(value) = value {
                text.extend([mark, &value, "\n"]);
            }
        }
        Ok(start)
    }
}
