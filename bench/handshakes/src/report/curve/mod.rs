//! CPU time at part load: rows, their page, and a picture with a line for each server.

mod page;
mod picture;

pub use self::{
    page::{curve_page, curve_table},
    picture::curves,
};

use serde::Serialize;

use super::median;
use crate::{
    contestants::{Contestant, Started},
    curve::{Agreement, Point},
    requests::{rounds::Served, workload::Workload},
    rival::Rival,
    rounds::Measured,
    scenario::Scenario,
    statistics::Spread,
};

/// Servers that ratios are relative to: the first of them that was measured.
const BASELINES: [Rival; 3] = [Rival::HaproxyAwsLc, Rival::Haproxy, Rival::Nginx];

/// One kind of handshake or request at all loads.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// Description of the handshakes or requests.
    pub title: String,
    /// `handshake` or `request`.
    pub unit: &'static str,
    /// Server that ratios are relative to.
    pub baseline: Option<String>,
    /// One row for each load and server.
    pub rows: Vec<CurveRow>,
}

/// One server at one load. Values are medians of the rounds; those that could not be measured are absent, and `note`
/// gives the reason.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CurveRow {
    /// Fraction of the throughput of the fastest server.
    pub load: f64,
    /// Handshakes or requests that were due per second.
    pub due_per_second: f64,
    /// Name of the server.
    pub server: String,
    /// Handshakes or requests that ended per second.
    pub per_second: Option<f64>,
    /// CPU time of the server, microseconds.
    pub cpu_us: Option<f64>,
    /// CPU time relative to the baseline in the same round.
    pub ratio: Option<Spread>,
    /// Median latency, microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile of the latency, microseconds.
    pub p99_us: Option<f64>,
    /// Reason that a value is missing.
    pub note: Option<String>,
}

/// CPU time per handshake under two generators.
#[derive(Clone, Debug, Serialize)]
pub struct AgreementRow {
    /// Name of the server.
    pub server: String,
    /// Microseconds under our generator, median of the rounds.
    pub ours_us: Option<f64>,
    /// Microseconds under h2load.
    pub theirs_us: Option<f64>,
    /// Ours relative to theirs in the same round.
    pub ratio: Option<Spread>,
}

/// Values of one server, one per round.
struct Rounds<'a> {
    per_second: &'a [Option<f64>],
    cpu_us: &'a [Option<f64>],
    p50_us: &'a [Option<f64>],
    p99_us: &'a [Option<f64>],
    gave_up: Option<&'a String>,
}

impl Curve {
    /// Builds the rows of handshakes.
    pub fn of_handshakes(
        scenario: &Scenario,
        contestants: &[Contestant],
        started: &Started,
        points: Vec<Point<Measured>>,
    ) -> Self {
        Self::of(scenario.to_string(), "handshake", contestants, started, points, |measured| Rounds {
            per_second: &measured.handshakes_per_second,
            cpu_us: &measured.cpu_us_per_handshake,
            p50_us: &measured.p50_us,
            p99_us: &measured.p99_us,
            gave_up: measured.gave_up.as_ref(),
        })
    }

    /// Builds the rows of requests.
    pub fn of_requests(
        workload: Workload,
        contestants: &[Contestant],
        started: &Started,
        points: Vec<Point<Served>>,
    ) -> Self {
        Self::of(workload.to_string(), "request", contestants, started, points, |served| Rounds {
            per_second: &served.requests_per_second,
            cpu_us: &served.cpu_us_per_request,
            p50_us: &served.p50_us,
            p99_us: &served.p99_us,
            gave_up: served.gave_up.as_ref(),
        })
    }

    fn of<T>(
        title: String,
        unit: &'static str,
        contestants: &[Contestant],
        started: &Started,
        points: Vec<Point<T>>,
        rounds: impl for<'a> Fn(&'a T) -> Rounds<'a>,
    ) -> Self {
        let runs = |rival: &Rival| started.servers.iter().any(|(running, _)| running == rival);
        let baseline = BASELINES.into_iter().find(runs);
        let rows = points.into_iter().flat_map(|Point { load, per_second, results }| {
            let results = started.with_the_missing(results);
            let of = |rival| contestants.iter().zip(&results).find(|(one, _)| Some(one.rival) == rival);
            let theirs = of(baseline).and_then(|(_, result)| result.as_ref().ok());
            let row = |(contestant, result): (&Contestant, &Result<T, String>)| {
                let row = CurveRow {
                    load,
                    due_per_second: per_second,
                    server: contestant.rival.to_string(),
                    ..CurveRow::default()
                };
                match result {
                    Ok(result) => row.with(&rounds(result), theirs.map(&rounds).as_ref()),
                    Err(reason) => CurveRow { note: Some(reason.clone()), ..row },
                }
            };
            contestants.iter().zip(&results).map(row).collect::<Vec<_>>()
        });
        let rows = rows.collect();
        Self { title, unit, baseline: baseline.map(|rival| rival.to_string()), rows }
    }

    /// Returns the names of the servers, in the order of the rows.
    fn servers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.server.as_str()) {
                names.push(&row.server);
            }
        }
        names
    }
}

impl CurveRow {
    fn with(self, ours: &Rounds<'_>, baseline: Option<&Rounds<'_>>) -> Self {
        Self {
            per_second: median(ours.per_second),
            cpu_us: median(ours.cpu_us),
            ratio: baseline.and_then(|theirs| Spread::of_ratios(ours.cpu_us, theirs.cpu_us)),
            p50_us: median(ours.p50_us),
            p99_us: median(ours.p99_us),
            note: ours.gave_up.cloned(),
            ..self
        }
    }

    /// Returns whether the server kept up with the rate.
    fn kept_up(&self) -> bool {
        const ENOUGH: f64 = 0.95;
        self.per_second.is_some_and(|per_second| per_second >= ENOUGH * self.due_per_second)
    }
}

impl AgreementRow {
    /// Builds a server's row.
    pub fn new(rival: Rival, agreement: &Agreement) -> Self {
        let values = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        let [ours, theirs] = [values(&agreement.ours), values(&agreement.theirs)];
        Self {
            server: rival.to_string(),
            ours_us: median(&ours),
            theirs_us: median(&theirs),
            ratio: Spread::of_ratios(&ours, &theirs),
        }
    }
}
