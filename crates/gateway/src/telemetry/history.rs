//! Metrics of the last hour, so that the dashboard's charts start before the page was opened.
//!
//! A scrape in Prometheus's text format is added every ten seconds. Only changes of a series are stored: most
//! counters of an idle process have none.

use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Time between two frames.
pub(crate) const PERIOD: Duration = Duration::from_secs(10);
/// Number of frames that are kept: one hour.
const FRAMES: usize = 360;
/// Maximum number of series. With changes in every frame they take twelve megabytes.
const SERIES: usize = 2000;

/// Metric families that are kept, the more important first. None has labels with names of single clients.
const FAMILIES: [&str; 19] = [
    "process_start_time_seconds",
    "quadrille_connections",
    "quadrille_handshakes_total",
    "quadrille_handshake_failures_total",
    "quadrille_handshakes_refused_total",
    "quadrille_requests_total",
    "quadrille_key_operations_total",
    "quadrille_key_cpu_nanoseconds_total",
    "quadrille_key_cpu_saved_nanoseconds_total",
    "quadrille_key_shed_total",
    "quadrille_resumption_offered_total",
    "quadrille_resumption_hits_total",
    "quadrille_key_queue_depth",
    "quadrille_key_batch_width",
    "quadrille_handshake_seconds",
    "quadrille_key_operation_seconds",
    "quadrille_key_wait_seconds",
    "quadrille_key_batch_size",
    "quadrille_upstream_seconds",
];

/// The frames of the last hour.
#[derive(Default)]
pub(crate) struct History(Mutex<Frames>);

#[derive(Default)]
struct Frames {
    /// Time of each frame.
    taken: VecDeque<Instant>,
    /// Number of the first frame, counted from the start of the process.
    first: u64,
    series: BTreeMap<String, Changes>,
    /// Number of series omitted from the newest frame because of the limit.
    left_out: usize,
}

/// Values of one series, each with the number of the first frame in which it holds; `None` where the series was
/// absent. The oldest may date from before the first frame.
type Changes = VecDeque<(u64, Option<f64>)>;

impl History {
    /// Adds a frame.
    pub(crate) fn add(&self, scrape: &str, now: Instant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(scrape, now);
    }

    /// Returns the ages of the frames in seconds, and the changes of each series: index of the frame, and value.
    pub(crate) fn page(&self, now: Instant) -> Value {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).page(now)
    }
}

impl Frames {
    fn add(&mut self, scrape: &str, now: Instant) {
        if self.taken.len() == FRAMES {
            self.taken.pop_front();
            self.first += 1;
        }
        let frame = self.first + self.taken.len() as u64;
        self.taken.push_back(now);
        let mut seen: BTreeMap<&str, f64> = scrape.lines().filter_map(sample).collect();
        for (series, changes) in &mut self.series {
            change(changes, frame, seen.remove(series.as_str()));
            forget(changes, self.first);
        }
        self.series.retain(|_, changes| changes.iter().any(|(_, value)| value.is_some()));
        let mut new: Vec<(&str, f64)> = seen.into_iter().collect();
        new.sort_by_key(|(series, _)| family(series));
        let places = SERIES.saturating_sub(self.series.len());
        self.left_out = new.len().saturating_sub(places);
        let new = new.into_iter().take(places);
        self.series.extend(new.map(|(series, value)| (series.to_owned(), [(frame, Some(value))].into())));
    }

    fn page(&self, now: Instant) -> Value {
        let ages = self.taken.iter().map(|taken| now.saturating_duration_since(*taken).as_secs_f64());
        let index = |frame: &u64| frame.saturating_sub(self.first);
        let series = self.series.iter().map(|(series, changes)| {
            let changes: Vec<_> = changes.iter().map(|(frame, value)| json!([index(frame), value])).collect();
            (series.clone(), Value::from(changes))
        });
        json!({
            "ages": ages.collect::<Vec<_>>(),
            "series": series.collect::<serde_json::Map<_, _>>(),
            "left_out": self.left_out,
            "families": FAMILIES,
        })
    }
}

/// Records a value if it differs from the previous one.
fn change(changes: &mut Changes, frame: u64, value: Option<f64>) {
    if changes.back().is_none_or(|(_, last)| *last != value) {
        changes.push_back((frame, value));
    }
}

/// Drops values that were replaced before this frame.
fn forget(changes: &mut Changes, first: u64) {
    while changes.get(1).is_some_and(|(frame, _)| *frame <= first) {
        changes.pop_front();
    }
}

/// Parses the series and value of a line, if they are kept. JSON cannot represent NaN.
fn sample(line: &str) -> Option<(&str, f64)> {
    let (series, value) = line.rsplit_once(' ')?;
    let value: f64 = value.parse().ok()?;
    (family(series).is_some() && value.is_finite()).then_some((series, value))
}

/// Returns the index of a series' family in the table.
fn family(series: &str) -> Option<usize> {
    let name = series.split('{').next()?;
    let part = ["_bucket", "_sum", "_count"].into_iter().find_map(|part| name.strip_suffix(part));
    FAMILIES.iter().position(|family| *family == name || Some(*family) == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(scrapes: &[&str]) -> Value {
        let (history, began) = (History::default(), Instant::now());
        let mut now = began;
        for scrape in scrapes {
            history.add(scrape, now);
            now += PERIOD;
        }
        history.page(now)
    }

    #[test]
    fn a_series_is_its_changes() {
        let page = page_of(&[
            "# TYPE quadrille_connections gauge\nquadrille_connections 3\nquadrille_other_total 9",
            "quadrille_connections 3\nquadrille_requests_total{status=\"2xx\"} 7",
            "quadrille_connections NaN\nquadrille_requests_total{status=\"2xx\"} 8.5",
        ]);
        let expected = json!({
            "ages": [30.0, 20.0, 10.0],
            "series": {
                "quadrille_connections": [[0, 3.0], [2, null]],
                "quadrille_requests_total{status=\"2xx\"}": [[1, 7.0], [2, 8.5]],
            },
            "left_out": 0,
            "families": FAMILIES,
        });
        assert_eq!(page, expected);
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let scrapes: Vec<String> = (0..1000)
            .map(|count| format!("quadrille_connections 1\nquadrille_key_shed_total {count}"))
            .collect();
        let page = page_of(&scrapes.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(page["ages"].as_array().map(Vec::len), Some(FRAMES));
        assert_eq!(page["ages"][0], 3600.0);
        assert_eq!(page["series"]["quadrille_connections"], json!([[0, 1.0]]));
        let counts = page["series"]["quadrille_key_shed_total"].as_array().expect("changes");
        assert_eq!(counts.len(), FRAMES);
        assert_eq!((&counts[0], &counts[FRAMES - 1]), (&json!([0, 640.0]), &json!([FRAMES - 1, 999.0])));
    }

    #[test]
    fn a_series_that_is_gone_for_an_hour_leaves_its_place() {
        let mut scrapes = vec!["quadrille_connections 1"];
        scrapes.extend([""; FRAMES]);
        assert_eq!(
            page_of(&scrapes[..FRAMES])["series"],
            json!({ "quadrille_connections": [[0, 1.0], [1, null]] })
        );
        assert_eq!(page_of(&scrapes)["series"], json!({}));
    }

    #[test]
    fn series_are_bounded_and_the_more_important_ones_stay() {
        let many: Vec<String> = (0..SERIES)
            .map(|upstream| format!("quadrille_upstream_seconds_count{{upstream=\"{upstream}\"}} 1"))
            .collect();
        let page = page_of(&[&format!("{}\nquadrille_connections 1", many.join("\n"))]);
        assert_eq!(page["left_out"], 1);
        assert_eq!(page["series"].as_object().map(serde_json::Map::len), Some(SERIES));
        assert_eq!(page["series"]["quadrille_connections"], json!([[0, 1.0]]));
    }
}
