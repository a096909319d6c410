//! Text in columns, and times in words.

use quadrille_unix_time::{DAY, unix_now};

/// Aligns the cells of rows, two spaces apart. Every row ends with a line break.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Returns a duration in its two largest units.
pub(crate) fn duration(seconds: u64) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let mut rest = seconds;
    let mut parts = units.map(|(length, unit)| {
        let count = rest / length;
        rest %= length;
        (count, unit)
    });
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(3);
    let shown: Vec<_> =
        parts[first..].iter_mut().take(2).map(|(count, unit)| format!("{count}{unit}")).collect();
    shown.join(" ")
}

/// Returns the days until an expiry time.
pub(crate) fn days_left(expiry: i64) -> String {
    match expiry - unix_now() {
        ..=0 => "expired".to_owned(),
        left if left < DAY => "less than a day".to_owned(),
        left if left < 2 * DAY => "1 day".to_owned(),
        left => format!("{} days", left / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::{aligned, duration};

    #[test]
    fn cells_are_aligned_without_trailing_spaces() {
        let rows = [vec!["a".to_owned(), "b".to_owned()], vec!["ccc".to_owned(), String::new()]];
        assert_eq!(aligned(&rows), "a    b\nccc\n");
        assert_eq!(aligned(&[]), "");
    }

    #[test]
    fn durations_have_two_units() {
        let shown = [0, 59, 60, 3_725, 90_000, 864_000].map(duration);
        assert_eq!(shown, ["0s", "59s", "1m 0s", "1h 2m", "1d 1h", "10d 0h"]);
    }
}
