//! Unix time: the system clock since 1970, in whole seconds, and in the format of RFC 3339.

use std::time::{Duration, SystemTime};

/// A point in time, in seconds since 1970.
pub type UnixTime = i64;

/// Seconds of a day.
pub const DAY: UnixTime = 24 * 3600;

/// Returns the system time in whole seconds.
pub fn unix_now() -> UnixTime {
    UnixTime::try_from(since_epoch().as_secs()).unwrap_or(UnixTime::MAX)
}

/// Returns the time since 1970, which machines agree on except for clock skew. A clock before 1970 counts as 1970.
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Formats a Unix time per RFC 3339. Years are counted from March, so that the leap day is the last of its year.
pub fn rfc3339(time: UnixTime) -> String {
    const ERA: i64 = 146_097;
    let (days, second) = (time.div_euclid(DAY) + 719_468, time.rem_euclid(DAY));
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + next;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn days_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), text);
        }
    }
}
