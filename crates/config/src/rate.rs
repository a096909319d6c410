//! Text format of request rates.

use crate::{
    model::{Problem, Rate},
    suggest::quote,
    values::{duration, show_duration, weight},
};

/// Parses a number of requests in a period: `10/s`, `600/m`, `5/10s`.
pub(crate) fn rate(text: &str) -> Result<Rate, Problem> {
    let read = |text: &str| {
        let (requests, time) = text.split_once('/')?;
        let time = if time.starts_with(char::is_alphabetic) { format!("1{time}") } else { time.to_owned() };
        let rate = Rate { requests: weight(requests).ok()?, per: duration(&time).ok()? };
        (!rate.per.is_zero()).then_some(rate)
    };
    read(text).ok_or_else(|| {
        let remedy = "write a number of requests and a time, such as 10/s, 600/m or 5/10s";
        Problem::new(format!("{} is not a rate", quote(text)), remedy)
    })
}

/// Returns the shortest text that [`rate`] reads as this value.
pub(crate) fn show_rate(rate: Rate) -> String {
    let time = show_duration(rate.per);
    let unit = time.strip_prefix('1').filter(|unit| unit.starts_with(char::is_alphabetic));
    format!("{}/{}", rate.requests, unit.unwrap_or(&time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{num::NonZeroU32, time::Duration};

    #[test]
    fn rates() {
        for (text, requests, seconds, shown) in [
            ("10/s", 10, 1, "10/s"),
            ("600/m", 600, 60, "600/m"),
            ("5/10s", 5, 10, "5/10s"),
            ("1/1h", 1, 3600, "1/h"),
            ("7/60s", 7, 60, "7/m"),
        ] {
            let read = rate(text).map_err(|problem| problem.to_string());
            let requests = NonZeroU32::new(requests).expect("a number");
            let expected = Rate { requests, per: Duration::from_secs(seconds) };
            assert_eq!(read, Ok(expected), "{text}");
            assert_eq!(show_rate(expected), shown);
        }
        for text in ["", "10", "10/", "/s", "0/s", "10/0s", "10/x", "-1/s", "1.5/s", "10 / s", "10/s/s"] {
            let said = rate(text).expect_err(text).to_string();
            assert!(said.contains("is not a rate; write a number of requests"), "{said}");
        }
    }
}
