//! An SVG chart of the latency distribution. The x axis shows percentiles, with equal width for each nine, and the y
//! axis microseconds; both are logarithmic, so that the slowest in a thousand is visible.

use crate::svg::escaped;
use hdrhistogram::Histogram;
use quadrille_profile::load::Outcome;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 50.0;
/// Length of the x axis, in nines: it ends at 99.99 %.
const NINES: f64 = 4.0;

/// Returns a self-contained SVG.
pub(super) fn latencies(title: &str, outcome: &Outcome) -> String {
    let times = &outcome.handshake_us;
    let (least, most) = (decade(times.min().max(1), f64::floor), decade(times.max().max(1), f64::ceil));
    let scale = Scale { least, most: most.max(least + 1.0) };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"15\">TLS handshakes with {}</text>\n\
         <text x=\"{LEFT}\" y=\"38\" fill=\"#555\">{:.0}/s, {} full, {} resumed, {} failed</text>\n",
        escaped(title),
        outcome.per_second(),
        outcome.full(),
        outcome.resumed,
        outcome.failed()
    );
    scale.draw_grid(&mut svg);
    draw_curve(&mut svg, &scale, times);
    svg.push_str("</svg>\n");
    svg
}

/// Draws the curve up to the slowest handshake measured: a hundred samples have no 99.9th percentile.
fn draw_curve(svg: &mut String, scale: &Scale, times: &Histogram<u64>) {
    if times.is_empty() {
        return;
    }
    let last = (times.len() as f64).log10().min(NINES);
    let place = |nines: f64| {
        let value = times.value_at_percentile(100.0 * (1.0 - 10f64.powf(-nines)));
        (x(nines), scale.y(value.max(1) as f64))
    };
    let points: Vec<String> = (0..=400)
        .map(|step| {
            let (x, y) = place(last * f64::from(step) / 400.0);
            format!("{x:.1},{y:.1}")
        })
        .collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#0b62a4\" stroke-width=\"2\"/>",
        points.join(" ")
    );
    if last < NINES {
        let (x, y) = place(last);
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"#0b62a4\"/>\n\
             <text x=\"{:.1}\" y=\"{TOP}\" text-anchor=\"end\" fill=\"#555\">the slowest of {}</text>",
            WIDTH - RIGHT,
            times.len()
        );
    }
}

struct Scale {
    /// log10 of the microseconds at the bottom of the chart.
    least: f64,
    /// log10 of the microseconds at the top of the chart.
    most: f64,
}

impl Scale {
    fn y(&self, microseconds: f64) -> f64 {
        let share = (microseconds.log10() - self.least) / (self.most - self.least);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    fn draw_grid(&self, svg: &mut String) {
        let line = |svg: &mut String, x1: f64, y1: f64, x2: f64, y2: f64| {
            let _ = writeln!(
                svg,
                "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#ddd\"/>"
            );
        };
        let mut exponent = self.least;
        while exponent <= self.most {
            let y = self.y(10f64.powf(exponent));
            line(svg, LEFT, y, WIDTH - RIGHT, y);
            let label = time(10f64.powf(exponent));
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                y + 4.0
            );
            exponent += 1.0;
        }
        for (label, share) in
            [("0", 0.0), ("50 %", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("99.9 %", 0.999), ("99.99 %", 0.9999)]
        {
            let at = x(-(1.0f64 - share).log10());
            line(svg, at, TOP, at, HEIGHT - BOTTOM);
            let _ = writeln!(
                svg,
                "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                HEIGHT - BOTTOM + 18.0
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">share of handshakes that took at most this long</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 12.0
        );
    }
}

fn x(nines: f64) -> f64 {
    LEFT + nines / NINES * (WIDTH - LEFT - RIGHT)
}

fn decade(microseconds: u64, round: fn(f64) -> f64) -> f64 {
    round((microseconds as f64).log10())
}

fn time(microseconds: f64) -> String {
    match microseconds {
        us if us >= 1e6 => format!("{} s", us / 1e6),
        us if us >= 1e3 => format!("{} ms", us / 1e3),
        us => format!("{us} us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a chart of this many handshakes, each slower than the one before, and the points of its curve.
    fn drawn(title: &str, handshakes: u64) -> (String, Vec<(f64, f64)>) {
        let mut outcome = Outcome::default();
        for us in 1..=handshakes {
            outcome.handshake_us.record(us * 7).unwrap();
        }
        let svg = latencies(title, &outcome);
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let places = points.split(' ').map(|point| point.split_once(',').unwrap());
        let places = places.map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).collect();
        (svg, places)
    }

    #[test]
    fn points_rise_to_the_right_and_stay_inside() {
        let (svg, points) = drawn("https://<a>&b/", 10_000);
        assert!(svg.contains("https://&lt;a&gt;&amp;b/") && !svg.contains("the slowest of"), "{svg}");
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1));
        assert!(
            points
                .iter()
                .all(|(x, y)| (LEFT..=WIDTH - RIGHT).contains(x) && (TOP..=HEIGHT - BOTTOM).contains(y))
        );
    }

    #[test]
    fn the_curve_ends_where_the_samples_do() {
        let (svg, points) = drawn("x", 100);
        assert!((points.last().unwrap().0 - x(2.0)).abs() < 0.1, "{points:?}");
        assert!(svg.contains("the slowest of 100"), "{svg}");
    }

    #[test]
    fn nothing_measured_is_a_picture_too() {
        let svg = latencies("x", &Outcome::default());
        assert!(svg.ends_with("</svg>\n") && !svg.contains("<polyline"), "{svg}");
    }
}
