//! The time zone in which an appointment was made (MS-OXOCAL, 2.2.1.41): its name, its two offsets from UTC and the rule by
//! which they change.

use encoding_rs::UTF_16LE;

use crate::dates::{self, DAY_SECONDS};

/// A time zone with the rule that is in effect.
pub(crate) struct Zone {
    /// `W. Europe Standard Time`.
    pub name: String,
    standard: Period,
    daylight: Period,
}

/// Standard or daylight saving time.
struct Period {
    /// Seconds to add to UTC.
    offset: i64,
    /// When it begins in each year; `None` if the zone has no daylight saving time.
    start: Option<Change>,
}

/// A day of each year and a time on it, in the local time before the change.
#[derive(Clone, Copy)]
struct Change {
    month: i64,
    day: Day,
    /// Seconds after midnight.
    time: i64,
}

#[derive(Clone, Copy)]
enum Day {
    OfMonth(i64),
    /// A day of the week, 0 for Sunday, and which one of the month, 5 for the last.
    OfWeek(i64, i64),
}

impl Zone {
    /// Reads a definition; `None` if it is damaged or has no name.
    pub fn read(definition: &[u8]) -> Option<Zone> {
        const RULE_BYTES: usize = 66;
        const IS_IN_EFFECT: i64 = 2;
        let name_bytes = 2 * usize::try_from(word(definition, 6)?).ok()?;
        let name = UTF_16LE.decode_without_bom_handling(definition.get(8..8 + name_bytes)?).0;
        let name = name.trim_end_matches('\0').trim().to_owned();
        let count = usize::try_from(word(definition, 8 + name_bytes)?).ok()?;
        let mut rules = definition.get(10 + name_bytes..)?.chunks_exact(RULE_BYTES).take(count);
        let is_in_effect = |rule: &&[u8]| word(rule, 4).is_some_and(|flags| flags & IS_IN_EFFECT != 0);
        let rule = rules.clone().find(is_in_effect).or_else(|| rules.next_back())?;
        let bias = minutes(rule, 22)?;
        let period = |bias_at, start_at: usize| {
            let offset = -60 * (bias + minutes(rule, bias_at)?);
            let start = Change::read(rule.get(start_at..start_at + 16)?);
            (offset.abs() <= DAY_SECONDS).then_some(Period { offset, start })
        };
        let (standard, daylight) = (period(26, 34)?, period(30, 50)?);
        (!name.is_empty()).then_some(Zone { name, standard, daylight })
    }

    /// A time of seconds since 1970 in UTC as seconds of local time.
    pub fn local(&self, seconds: i64) -> i64 {
        let offset = if self.is_daylight(seconds) { self.daylight.offset } else { self.standard.offset };
        seconds + offset
    }

    fn is_daylight(&self, seconds: i64) -> bool {
        let (Some(standard), Some(daylight)) = (self.standard.start, self.daylight.start) else { return false };
        let (year, ..) = dates::civil((seconds + self.standard.offset).div_euclid(DAY_SECONDS));
        let standard = standard.in_year(year) - self.daylight.offset;
        let daylight = daylight.in_year(year) - self.standard.offset;
        // In the south a year begins and ends with daylight saving time.
        if daylight < standard {
            (daylight..standard).contains(&seconds)
        } else {
            !(standard..daylight).contains(&seconds)
        }
    }
}

impl Change {
    /// Reads eight words: year, month, day of the week, day, hour, minute, second, millisecond. `None` for no change, whose
    /// month is 0.
    fn read(date: &[u8]) -> Option<Change> {
        let part = |number: usize, most: i64| word(date, 2 * number).filter(|value| *value <= most);
        let month = part(1, 12).filter(|month| *month > 0)?;
        // With a year it is a date, which is taken for that of each year.
        let day = match word(date, 0)? {
            0 => Day::OfWeek(part(2, 6)?, part(3, 5).filter(|number| *number > 0)?),
            _ => Day::OfMonth(part(3, 31).filter(|day| *day > 0)?),
        };
        Some(Change { month, day, time: 3600 * part(4, 23)? + 60 * part(5, 59)? + part(6, 59)? })
    }

    /// The change in a year, in seconds of local time since 1970.
    fn in_year(self, year: i64) -> i64 {
        let first = dates::days(year, self.month, 1);
        let day = match self.day {
            Day::OfMonth(day) => first + day - 1,
            Day::OfWeek(weekday, number) => {
                // 1970-01-01 was a Thursday.
                let day = first + (weekday - (first + 4)).rem_euclid(7) + 7 * (number - 1);
                let next_month = dates::days(year + self.month / 12, self.month % 12 + 1, 1);
                if day < next_month { day } else { day - 7 }
            }
        };
        DAY_SECONDS * day + self.time
    }
}

fn word(bytes: &[u8], at: usize) -> Option<i64> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_le_bytes(bytes).into())
}

fn minutes(bytes: &[u8], at: usize) -> Option<i64> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(i32::from_le_bytes(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags, the three biases in minutes, and the month, weekday, number and hour of the two changes, to standard time and to
    /// daylight saving time.
    type Rule = (u16, [i32; 3], [[u16; 4]; 2]);

    fn definition(name: &str, rules: &[Rule]) -> Vec<u8> {
        let name: Vec<u16> = name.encode_utf16().collect();
        let words = |words: &[u16]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let head = [0x0102, 6 + 2 * name.len() as u16, 2, name.len() as u16];
        let mut bytes = [words(&head), words(&name), words(&[rules.len() as u16])].concat();
        for (flags, biases, changes) in rules {
            bytes.extend(words(&[0x0102, 0x3E, *flags, 2024, 0, 0, 0, 0, 0, 0, 0]));
            bytes.extend(biases.iter().flat_map(|bias| bias.to_le_bytes()));
            for [month, weekday, number, hour] in changes {
                bytes.extend(words(&[0, *month, *weekday, *number, *hour, 0, 0, 0]));
            }
        }
        bytes
    }

    const EUROPE: Rule = (2, [-60, 0, -60], [[10, 0, 5, 3], [3, 0, 5, 2]]);

    #[test]
    fn times_are_local_by_the_rule_in_effect() {
        let check = |rules: &[_], utc: i64, expect: &str| {
            let zone = Zone::read(&definition("Zone", rules)).expect("it is valid");
            assert_eq!((zone.name.as_str(), dates::clock(zone.local(utc)).as_str()), ("Zone", expect), "{utc}");
        };
        let old = (0, [0, 0, 0], [[0; 4]; 2]);
        check(&[old, EUROPE], 1_714_557_720, "2024-05-01 12:02");
        check(&[EUROPE, old], 1_704_103_320, "2024-01-01 11:02");
        // 31 March 2024, 01:00 UTC, and 27 October 2024, 01:00 UTC.
        check(&[EUROPE], 1_711_846_799, "2024-03-31 01:59");
        check(&[EUROPE], 1_711_846_800, "2024-03-31 03:00");
        check(&[EUROPE], 1_729_990_799, "2024-10-27 02:59");
        check(&[EUROPE], 1_729_990_800, "2024-10-27 02:00");
        // Without a rule in effect the last one counts.
        check(&[(0, [300, 0, -60], [[11, 0, 1, 2], [3, 0, 2, 2]])], 1_714_557_720, "2024-05-01 06:02");
        check(&[old], 1_714_557_720, "2024-05-01 10:02");
        // New Zealand.
        let south = (2, [-720, 0, -60], [[4, 0, 1, 3], [9, 0, 5, 2]]);
        check(&[south], 1_704_103_320, "2024-01-01 23:02");
        check(&[south], 1_719_828_120, "2024-07-01 22:02");
    }

    #[test]
    fn damaged_definitions_are_no_time_zone() {
        let whole = definition("Zone", &[EUROPE]);
        assert!(Zone::read(&whole).is_some());
        assert!((0..whole.len()).all(|length| Zone::read(&whole[..length]).is_none()));
        assert!(Zone::read(&definition("", &[EUROPE])).is_none());
        assert!(Zone::read(&definition("Zone", &[])).is_none());
        assert!(Zone::read(&definition("Zone", &[(2, [i32::MIN, i32::MIN, 0], [[0; 4]; 2])])).is_none());
    }
}
