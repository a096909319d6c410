//! CPU time over load as a line chart: one panel for each kind, one line for each server.

use std::fmt::Write as _;

use super::Curve;

const WIDTH: f64 = 900.0;
const COLUMNS: usize = 2;
const PANEL: f64 = 430.0;
const HEIGHT: f64 = 270.0;
const HEAD: f64 = 58.0;
const LEFT: f64 = 44.0;
const PLOT: f64 = 290.0;
const TOP: f64 = 30.0;
const DEPTH: f64 = 190.0;
/// Colours of the servers, in the order of the rows; this project's gateway has its own.
const COLOURS: [&str; 5] = ["#7b8a99", "#4d7ea8", "#2f9e6e", "#9467bd", "#b8860b"];
const OURS: &str = "#c1440e";

/// Draws a self-contained SVG.
pub fn curves(curves: &[Curve]) -> String {
    let mut body = String::new();
    for (index, curve) in curves.iter().enumerate() {
        let (column, row) = (index % COLUMNS, index / COLUMNS);
        panel(&mut body, curve, 10.0 + column as f64 * (PANEL + 15.0), HEAD + row as f64 * HEIGHT);
    }
    let height = HEAD + curves.len().div_ceil(COLUMNS) as f64 * HEIGHT;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"24\" font-size=\"16\" font-weight=\"bold\">CPU microseconds of the server over load</text>\n\
         <text x=\"10\" y=\"44\" fill=\"#555\">open loop, at fractions of what the fastest server can do; lower is cheaper</text>\n{body}</svg>\n"
    )
}

fn panel(svg: &mut String, curve: &Curve, x: f64, y: f64) {
    let _ =
        writeln!(svg, "<text x=\"{x:.0}\" y=\"{:.0}\" font-weight=\"bold\">{}</text>", y + 16.0, curve.title);
    let most = curve.rows.iter().filter_map(|row| row.cpu_us).fold(1.0, f64::max) * 1.05;
    let place = |load: f64, cpu: f64| {
        let (least, span) = (0.02f64.ln(), (1.0f64 / 0.02).ln());
        (x + LEFT + (load.ln() - least) / span * PLOT, y + TOP + DEPTH - cpu / most * DEPTH)
    };
    for part in 0..=4 {
        let cpu = most * f64::from(part) / 4.0;
        let (_, height) = place(1.0, cpu);
        let _ = writeln!(
            svg,
            "<path d=\"M{:.1} {height:.1}h{PLOT}\" stroke=\"#e2e6ea\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{cpu:.0}</text>",
            x + LEFT,
            x + LEFT - 5.0,
            height + 4.0
        );
    }
    for load in [0.02, 0.05, 0.1, 0.2, 0.5, 0.9] {
        let (across, bottom) = place(load, 0.0);
        let _ = writeln!(
            svg,
            "<text x=\"{across:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{:.0} %</text>",
            bottom + 15.0,
            load * 100.0
        );
    }
    for (index, server) in curve.servers().into_iter().enumerate() {
        let points: Vec<(f64, f64)> = curve
            .rows
            .iter()
            .filter(|row| row.server == server)
            .filter_map(|row| Some(place(row.load, row.cpu_us?)))
            .collect();
        line(svg, server, index, &points, (x + LEFT + PLOT + 8.0, y + TOP + 10.0 + 16.0 * index as f64));
    }
}

/// Draws a server's line, and its name at `legend`.
fn line(svg: &mut String, server: &str, index: usize, points: &[(f64, f64)], legend: (f64, f64)) {
    if points.is_empty() {
        return;
    }
    let (colour, width) = match server {
        "quadrille" => (OURS, 2.5),
        _ => (COLOURS[index % COLOURS.len()], 1.5),
    };
    let places: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{server}</text>",
        places.join(" "),
        legend.0,
        legend.1
    );
}

#[cfg(test)]
mod tests {
    use super::{super::CurveRow, *};

    #[test]
    fn a_line_for_each_server_that_was_measured() {
        let row = |load, server: &str, cpu_us| CurveRow {
            load,
            server: server.into(),
            cpu_us,
            ..CurveRow::default()
        };
        let curve = Curve {
            title: "Handshakes".into(),
            unit: "handshake",
            baseline: None,
            rows: vec![
                row(0.1, "nginx", None),
                row(0.1, "quadrille", Some(300.0)),
                row(0.9, "nginx", None),
                row(0.9, "quadrille", Some(200.0)),
            ],
        };
        let svg = curves(&[curve]);
        assert_eq!((svg.matches("<polyline").count(), svg.matches(">quadrille<").count()), (1, 1), "{svg}");
        assert!(svg.contains(OURS) && !svg.contains(">nginx<"), "{svg}");
    }
}
