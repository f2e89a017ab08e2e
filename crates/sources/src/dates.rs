//! Dates that files give as numbers, as text: `2024-05-01 10:02`.

pub(crate) const DAY_SECONDS: i64 = 86_400;

/// The date of a day, counted from 1970-01-01: `2024-05-01`.
pub(crate) fn date(days: i64) -> String {
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The year, the month from 1 and the day from 1 of a day, counted from 1970-01-01.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    // Howard Hinnant's days_from_civil, inverted: eras of 400 years that start on 1 March.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// The number of days from 1970-01-01 to a day, the inverse of [`civil`].
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, month) = (year.div_euclid(400), if month > 2 { month - 3 } else { month + 9 });
    let year = year.rem_euclid(400);
    let day = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + 365 * year + year / 4 - year / 100 + day - 719_468
}

/// A time of seconds since 1970 without its seconds: `2024-05-01 10:02`.
pub(crate) fn clock(seconds: i64) -> String {
    let second = seconds.rem_euclid(DAY_SECONDS);
    format!("{} {:02}:{:02}", date(seconds.div_euclid(DAY_SECONDS)), second / 3600, second / 60 % 60)
}

/// The same in UTC: `2024-05-01 10:02 UTC`.
pub(crate) fn minute(seconds: i64) -> String {
    format!("{} UTC", clock(seconds))
}

/// [`minute`] of a number in decimal digits, with or without a fraction; anything else is given back as it is.
pub(crate) fn minute_of(number: &str) -> String {
    const MOST: f64 = 253_402_300_799.0;
    match number.parse::<f64>() {
        Ok(seconds) if seconds.abs() <= MOST => minute(seconds.floor() as i64),
        _ => number.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_seconds_become_dates() {
        let check = |number, expect| {
            assert_eq!(date(number), expect);
            let (year, month, day) = civil(number);
            assert_eq!(days(year, month, day), number);
        };
        check(0, "1970-01-01");
        check(-1, "1969-12-31");
        check(11_016, "2000-02-29");
        check(19_844, "2024-05-01");
        check(-25_567, "1900-01-01");
        check(2_932_896, "9999-12-31");
        assert_eq!(minute(1_714_557_753), "2024-05-01 10:02 UTC");
        assert_eq!(minute_of("1714557753.123"), "2024-05-01 10:02 UTC");
        assert_eq!(minute_of("yesterday"), "yesterday");
        assert_eq!(minute_of("1e300"), "1e300");
    }
}
