//! Results as numbers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    contestants::Contestant,
    report::median,
    requests::{
        proxied::Proxied,
        rounds::Served,
        workload::{Protocol, Workload},
    },
    rival::Rival,
    rounds::Measured,
    statistics::Spread,
};

/// All results of requests on open connections.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RequestFindings {
    /// Name and version of the client.
    pub generator: String,
    /// One row for each workload and server.
    pub requests: Vec<RequestRow>,
    /// Full handshakes with one request, one row for each server.
    pub handshakes: Vec<ProxiedRow>,
}

/// Ratios to each server's values in the same round, by server.
pub type Ratios = BTreeMap<String, Spread>;

/// One server and one workload. Values that could not be measured are absent, and `note` gives the reason.
#[derive(Clone, Debug, Serialize)]
pub struct RequestRow {
    /// The workload.
    #[serde(serialize_with = "as_id", rename = "scenario")]
    pub workload: Workload,
    /// Fixed rate in requests per second; `None`: the server's maximum.
    pub asked_per_second: Option<f64>,
    /// Name of the server.
    pub server: String,
    /// Version of the server and of its TLS library.
    pub version: Option<String>,
    /// CPU time of the server per request, microseconds; this value and those below are medians of the rounds.
    pub cpu_us_per_request: Option<f64>,
    /// CPU seconds of the server per gigabyte (10^9 bytes) of bodies.
    pub cpu_seconds_per_gb: Option<f64>,
    /// Requests per second.
    pub requests_per_second: Option<f64>,
    /// Gigabytes of bodies per second.
    pub gb_per_second: Option<f64>,
    /// Fraction of its core that the server used.
    pub server_busy: Option<f64>,
    /// Median time from the start of a request to the end of its response, microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile of that time.
    pub p99_us: Option<f64>,
    /// Ratios of CPU time per request.
    pub cpu_ratios: Ratios,
    /// Ratios of median latency.
    pub p50_ratios: Ratios,
    /// Ratios of the 99th percentile of latency.
    pub p99_ratios: Ratios,
    /// Reason that a value is missing.
    pub note: Option<String>,
}

/// One server's full handshakes with one request. Values that could not be measured are absent, and `note` gives the
/// reason.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProxiedRow {
    /// Name of the server.
    pub server: String,
    /// Version of the server and of its TLS library.
    pub version: Option<String>,
    /// CPU time of the server per handshake, microseconds, median of the rounds: with a fixed response.
    pub fixed_cpu_us: Option<f64>,
    /// CPU time with a response from the upstream.
    pub proxied_cpu_us: Option<f64>,
    /// Ratios of CPU time with a fixed response.
    pub fixed_ratios: Ratios,
    /// Ratios of CPU time with a response from the upstream.
    pub proxied_ratios: Ratios,
    /// Reason that a value is missing.
    pub note: Option<String>,
}

/// Builds the rows of one workload; `served` has a result, or the reason that it is missing, for each of
/// `contestants`.
pub fn request_rows(
    workload: Workload,
    contestants: &[Contestant],
    served: &[Result<Served, String>],
) -> Vec<RequestRow> {
    let baselines = workload.protocol.baselines();
    let ratios = |values: fn(&Served) -> &[Option<f64>], one: &Served| {
        ratios(baselines, contestants, values(one), |index| Some(values(served[index].as_ref().ok()?)))
    };
    let row = |(contestant, served): (&Contestant, &Result<Served, String>)| {
        let nothing = Served::default();
        let one = served.as_ref().unwrap_or(&nothing);
        let cpu = median(&one.cpu_us_per_request);
        let rate = median(&one.requests_per_second);
        let bytes = workload.body.bytes as f64;
        RequestRow {
            workload,
            asked_per_second: workload.per_second,
            server: contestant.rival.to_string(),
            version: contestant.version.clone().ok(),
            cpu_us_per_request: cpu,
            cpu_seconds_per_gb: cpu.map(|us| us * 1e3 / bytes),
            requests_per_second: rate,
            gb_per_second: rate.map(|rate| rate * bytes / 1e9),
            server_busy: median(&one.server_busy),
            p50_us: median(&one.p50_us),
            p99_us: median(&one.p99_us),
            cpu_ratios: ratios(|served| &served.cpu_us_per_request, one),
            p50_ratios: ratios(|served| &served.p50_us, one),
            p99_ratios: ratios(|served| &served.p99_us, one),
            note: served.as_ref().map_or_else(|reason| Some(reason.clone()), |one| one.gave_up.clone()),
        }
    };
    contestants.iter().zip(served).map(row).collect()
}

/// Builds the rows of handshakes with one request.
pub fn proxied_rows(contestants: &[Contestant], measured: &Proxied) -> Vec<ProxiedRow> {
    let row = |(index, contestant): (usize, &Contestant)| {
        let side = |side: &[Result<Measured, String>]| {
            let cpu = |index: usize| Some(side[index].as_ref().ok()?.cpu_us_per_handshake.as_slice());
            let ours = cpu(index).unwrap_or_default();
            (median(ours), ratios(Protocol::Http1.baselines(), contestants, ours, cpu))
        };
        let (fixed_cpu_us, fixed_ratios) = side(&measured.fixed);
        let (proxied_cpu_us, proxied_ratios) = side(&measured.proxied);
        ProxiedRow {
            server: contestant.rival.to_string(),
            version: contestant.version.clone().ok(),
            fixed_cpu_us,
            proxied_cpu_us,
            fixed_ratios,
            proxied_ratios,
            note: [&measured.proxied[index], &measured.fixed[index]].into_iter().find_map(reason),
        }
    };
    contestants.iter().enumerate().map(row).collect()
}

/// Returns the reason that a server was not measured completely, or the failures.
fn reason(measured: &Result<Measured, String>) -> Option<String> {
    match measured {
        Ok(measured) => measured.gave_up.clone().or_else(|| measured.seen.failure()),
        Err(reason) => Some(reason.clone()),
    }
}

/// Returns the ratios of `ours` to each of `baselines` in the same rounds; `theirs` finds a baseline by its index in
/// `contestants`.
fn ratios<'a>(
    baselines: &[Rival],
    contestants: &[Contestant],
    ours: &[Option<f64>],
    theirs: impl Fn(usize) -> Option<&'a [Option<f64>]>,
) -> Ratios {
    let against = |baseline: &Rival| {
        let index = contestants.iter().position(|contestant| contestant.rival == *baseline)?;
        Some((baseline.to_string(), Spread::of_ratios(ours, theirs(index)?)?))
    };
    baselines.iter().filter_map(against).collect()
}

fn as_id<S: serde::Serializer>(workload: &Workload, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&workload.id())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn contestants() -> [Contestant; 3] {
        [Rival::Nginx, Rival::Envoy, Rival::Quadrille].map(|rival| Contestant {
            rival,
            program: PathBuf::new(),
            version: Ok("1".into()),
        })
    }

    #[test]
    fn ratios_are_those_of_one_round_and_a_missing_server_says_why() {
        let served = |cpu: [f64; 2]| Served {
            cpu_us_per_request: cpu.map(Some).to_vec(),
            requests_per_second: vec![Some(20_000.0)],
            ..Served::default()
        };
        let results = [Ok(served([20.0, 40.0])), Err("it is not there".into()), Ok(served([30.0, 60.0]))];
        let rows = request_rows(Workload::REQUESTS[0], &contestants(), &results);
        assert_eq!(rows[2].cpu_ratios["nginx"], Spread { median: 1.5, min: 1.5, max: 1.5 });
        assert!(!rows[2].cpu_ratios.contains_key("envoy"));
        assert_eq!((rows[1].cpu_us_per_request, rows[1].note.as_deref()), (None, Some("it is not there")));
        let json = serde_json::to_value(&rows).unwrap();
        assert_eq!(json[2]["scenario"], "http11-1400B");
        assert_eq!(json[2]["gb_per_second"], 0.028);
    }

    #[test]
    fn handshakes_with_and_without_the_upstream() {
        let measured = |us: f64| Ok(Measured { cpu_us_per_handshake: vec![Some(us)], ..Measured::default() });
        let found = Proxied {
            fixed: vec![measured(100.0), measured(200.0), measured(50.0)],
            proxied: vec![measured(150.0), Err("no port".into()), measured(120.0)],
        };
        let rows = proxied_rows(&contestants(), &found);
        assert_eq!((rows[2].fixed_cpu_us, rows[2].proxied_cpu_us), (Some(50.0), Some(120.0)));
        assert_eq!(
            (rows[2].fixed_ratios["nginx"].median, rows[2].proxied_ratios["nginx"].median),
            (0.5, 0.8)
        );
        assert_eq!(rows[1].note.as_deref(), Some("no port"));
    }
}
