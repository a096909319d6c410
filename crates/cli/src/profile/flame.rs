//! Flame graphs of samples: a box for each function, as wide as its time including callees, above its caller, in the
//! colour of its class.

use crate::svg::escaped;
use quadrille_profile::system::{Class, Frame, Stack, Tree, classify};
use std::fmt::Write;

const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 58.0;
/// Minimum width of a box. Narrower ones are not drawn: they would not be visible, and there are thousands.
const NARROWEST: f64 = 0.6;
/// Approximate width of a letter.
const LETTER: f64 = 6.6;

/// Returns a self-contained SVG. In a browser, a click on a box zooms it to the full width, and a click on the title
/// resets the zoom.
pub(super) fn graph(tree: &Tree, title: &str) -> String {
    let height = HEAD + ROW * (tree.depth() + 1) as f64 + 10.0;
    let mut boxes = String::new();
    let all = tree.samples.max(1) as f64;
    let mut path = Vec::new();
    Drawing { svg: &mut boxes, all, bottom: height - 10.0 - ROW }.children(tree, 0.0, 0, &mut path);
    let mut legend = String::new();
    for (index, class) in Class::ALL.into_iter().enumerate() {
        let x = 10 + index % 6 * 195;
        let y = 28 + index / 6 * 15;
        let _ = write!(
            legend,
            "<rect x=\"{x}\" y=\"{y}\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{class}</text>",
            colour(class),
            x + 14,
            y + 9
        );
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"monospace\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text id=\"title\" x=\"10\" y=\"18\" font-size=\"14\">{}</text>\n{legend}\n<g id=\"flames\">\n{boxes}</g>\n\
         <script><![CDATA[{ZOOM}]]></script>\n</svg>\n",
        escaped(title)
    )
}

/// Script that zooms to the clicked box, its callers and its callees, and hides the rest.
const ZOOM: &str = r#"
const boxes = [...document.querySelectorAll('#flames g')].map(g => {
  const rect = g.querySelector('rect'), text = g.querySelector('text');
  return { g, rect, text, name: text.dataset.name, x: +rect.getAttribute('x'), w: +rect.getAttribute('width'), y: +rect.getAttribute('y') };
});
function zoom(x, w) {
  for (const b of boxes) {
    const left = Math.max(0, (b.x - x) / w * 1200), right = Math.min(1200, (b.x + b.w - x) / w * 1200), width = right - left;
    b.g.style.display = width > 0.5 ? '' : 'none';
    b.rect.setAttribute('x', left); b.rect.setAttribute('width', Math.max(width, 0)); b.text.setAttribute('x', left + 3);
    const room = Math.floor((width - 6) / 6.6);
    b.text.textContent = room < 3 ? '' : b.name.length <= room ? b.name : b.name.slice(0, room - 1) + '…';
  }
}
for (const b of boxes) b.g.addEventListener('click', () => zoom(b.x, b.w));
document.getElementById('title').addEventListener('click', () => zoom(0, 1200));
"#;

struct Drawing<'a> {
    svg: &'a mut String,
    all: f64,
    bottom: f64,
}

impl Drawing<'_> {
    /// Draws the callees of `tree` side by side from `x` on; `path` leads from the thread to `tree`.
    fn children<'t>(&mut self, tree: &'t Tree, mut x: f64, level: usize, path: &mut Vec<&'t str>) {
        for (name, child) in &tree.called {
            let width = child.samples as f64 / self.all * WIDTH;
            if width >= NARROWEST {
                path.push(name);
                self.one(name, child, x, width, level, path);
                self.children(child, x, level + 1, path);
                path.pop();
            }
            x += width;
        }
    }

    fn one(&mut self, name: &str, tree: &Tree, x: f64, width: f64, level: usize, path: &[&str]) {
        let y = self.bottom - ROW * level as f64;
        let class = match level {
            0 => None,
            _ if tree.in_kernel => Some(Class::Kernel),
            _ => Some(class_of(path)),
        };
        let name = escaped(name);
        let _ = writeln!(
            self.svg,
            "<g><title>{name}: {} samples, {:.1} %</title><rect x=\"{x:.2}\" y=\"{y:.0}\" width=\"{width:.2}\" height=\"{}\" \
             fill=\"{}\" stroke=\"white\" stroke-width=\"0.5\"/><text x=\"{:.2}\" y=\"{:.0}\" data-name=\"{name}\">{}</text></g>",
            tree.samples,
            100.0 * tree.samples as f64 / self.all,
            ROW - 1.0,
            class.map_or("#dddddd", colour),
            x + 3.0,
            y + 12.0,
            escaped(&shortened(path.last().copied().unwrap_or_default(), width))
        );
    }
}

/// Returns the class of a sample taken in the last function of `path`, which starts with the thread.
fn class_of(path: &[&str]) -> Class {
    let frame = |label: &&str| Frame {
        name: (!label.starts_with(['/', '['])).then(|| (*label).to_owned()),
        object: String::new(),
    };
    let frames = path.iter().skip(1).rev().map(frame).collect();
    classify(&Stack { thread: String::new(), frames })
}

fn shortened(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / LETTER).max(0.0) as usize;
    match room {
        0..3 => String::new(),
        _ if name.chars().count() <= room => name.to_owned(),
        _ => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

fn colour(class: Class) -> &'static str {
    match class {
        Class::Rsa => "#e4572e",
        Class::EllipticCurve => "#f3a712",
        Class::FiniteField => "#c98bb9",
        Class::MlKem => "#d4b483",
        Class::Symmetric => "#a8c686",
        Class::Hash => "#669bbc",
        Class::Tls => "#9a8fbf",
        Class::Http => "#5fb49c",
        Class::Engine => "#e9a6b5",
        Class::EventLoop => "#c9d6df",
        Class::Kernel => "#b0a99f",
        Class::Other => "#e6e6e6",
        Class::Unknown => "#f5f5f5",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str]) -> Stack {
        let frame = |name: &&str| Frame { name: Some((*name).into()), object: "quadrille".into() };
        Stack { thread: "worker-0".into(), frames: names.iter().map(frame).collect() }
    }

    #[test]
    fn boxes_are_as_wide_as_their_share_and_escaped() {
        let stacks = [
            stack(&["rsaz_mul", "main"]),
            stack(&["rsaz_mul", "main"]),
            stack(&["rsaz_mul", "main"]),
            stack(&["<Vec<T> as Drop>::drop", "main"]),
        ];
        let svg = graph(&Tree::from_stacks(&stacks), "what & where");
        assert!(svg.contains("what &amp; where"), "{svg}");
        assert!(svg.contains("<title>rsaz_mul: 3 samples, 75.0 %</title>"), "{svg}");
        assert!(svg.contains("width=\"900.00\"") && svg.contains("width=\"300.00\""), "{svg}");
        assert!(svg.contains("&lt;Vec&lt;T&gt; as Drop&gt;::drop") && !svg.contains("<Vec"), "{svg}");
        assert!(svg.contains(colour(Class::Rsa)), "{svg}");
        assert_eq!(svg.matches("<g><title>").count(), 4, "thread, main and two functions");
    }

    #[test]
    fn long_names_end_where_the_box_ends() {
        assert_eq!(shortened("short", 1000.0), "short");
        assert_eq!(shortened("a name that is too long", 60.0), "a name …");
        assert_eq!(shortened("main", 10.0), "");
    }
}
