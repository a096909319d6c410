//! CPU per handshake as a bar chart: one panel for each key type, full and resumed, one bar for each server.

use std::fmt::Write as _;

use super::HandshakeRow;
use crate::{
    rival::Job,
    scenario::{Resumption, Scenario},
};

const WIDTH: f64 = 900.0;
const PANEL: f64 = 290.0;
const NAMES: f64 = 92.0;
const BAR: f64 = 15.0;
const ROW: f64 = 20.0;
const HEAD: f64 = 66.0;
const PANEL_HEAD: f64 = 26.0;

/// Draws a self-contained SVG of the scenarios with `clients` in flight and the newest version among them.
pub fn bars(tables: &[(Scenario, Vec<HandshakeRow>)]) -> String {
    let clients = tables.iter().map(|(scenario, _)| scenario.clients).max().unwrap_or_default();
    let newest = tables.iter().map(|(scenario, _)| scenario.version).max();
    let chosen: Vec<_> = tables
        .iter()
        .filter(|(scenario, _)| scenario.clients == clients && Some(scenario.version) == newest)
        .filter(|(scenario, _)| !scenario.is_post_quantum())
        .collect();
    let mut body = String::new();
    let mut y = HEAD;
    for resumption in [Resumption::Off, Resumption::On] {
        let panels: Vec<_> =
            chosen.iter().filter(|(scenario, _)| scenario.resumption == resumption).collect();
        let ends = panels.iter().enumerate().map(|(column, (scenario, rows))| {
            panel(&mut body, column as f64 * (PANEL + 15.0), y, scenario, rows)
        });
        y = ends.fold(y, f64::max) + 14.0;
    }
    let version = newest.map_or("?", quadrille_profile::load::TlsVersion::number);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"24\" font-size=\"16\" font-weight=\"bold\">CPU microseconds of the server per TLS {version} handshake with one request</text>\n\
         <text x=\"10\" y=\"44\" fill=\"#555\">X25519, AES-128-GCM, one core, {clients} clients; shorter is cheaper</text>\n{body}</svg>\n"
    )
}

/// Draws one panel and returns its lower edge.
fn panel(svg: &mut String, x: f64, y: f64, scenario: &Scenario, rows: &[HandshakeRow]) -> f64 {
    let kind = if scenario.resumption == Resumption::On { "resumed" } else { "full" };
    let _ = writeln!(
        svg,
        "<text x=\"{:.0}\" y=\"{:.0}\" font-weight=\"bold\">{}, {kind}</text>",
        x + 10.0,
        y + 12.0,
        scenario.key
    );
    let measured: Vec<_> = rows.iter().filter_map(|row| Some((row, row.cpu_us_per_handshake?))).collect();
    let longest = measured.iter().map(|(_, cpu)| *cpu).fold(1.0, f64::max);
    let room = PANEL - NAMES - 60.0;
    let mut top = y + PANEL_HEAD;
    for (row, cpu) in measured {
        let ours = ["quadrille", "keyless", "quadrille-tcp"].contains(&row.server.as_str());
        let colour = match (ours, row.job) {
            (true, Some(Job::PassOn)) => "#e0896a",
            (true, _) => "#c1440e",
            (false, Some(Job::PassOn)) => "#b9c4cf",
            (false, _) => "#7b8a99",
        };
        let length = (cpu / longest * room).max(1.0);
        let middle = top + BAR - 4.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{middle:.0}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{:.0}\" y=\"{top:.0}\" width=\"{length:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{middle:.0}\">{cpu:.0}</text>",
            x + NAMES + 4.0,
            row.server,
            x + NAMES + 10.0,
            x + NAMES + 14.0 + length
        );
        top += ROW;
    }
    top
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::KeyKind;
    use quadrille_profile::load::TlsVersion;

    #[test]
    fn a_bar_for_each_server_that_was_measured() {
        let scenario = |version, clients| Scenario {
            version,
            key: KeyKind::P256,
            resumption: Resumption::Off,
            groups: "X25519".into(),
            clients,
            requests: 1,
            per_second: None,
        };
        let row = |server: &str, cpu| HandshakeRow {
            server: server.into(),
            job: Some(Job::Answer),
            cpu_us_per_handshake: cpu,
            ..HandshakeRow::default()
        };
        let rows = vec![row("nginx", Some(400.0)), row("quadrille", Some(200.0)), row("envoy", None)];
        let svg = bars(&[
            (scenario(TlsVersion::V1_3, 32), rows.clone()),
            (scenario(TlsVersion::V1_3, 1), rows.clone()),
            (scenario(TlsVersion::V1_2, 32), rows),
        ]);
        assert_eq!(svg.matches("height=\"15\"").count(), 2, "{svg}");
        assert!(svg.contains(">nginx<") && svg.contains(">quadrille<") && svg.contains("TLS 1.3"), "{svg}");
    }
}
