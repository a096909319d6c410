//! Links, heading anchors and tables of a Markdown text.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;

/// Returns the targets of links, pictures and HTML attributes (`src`, `srcset`, `href`) in `text`.
pub fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for event in parse(text) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push(dest_url.into_string());
            }
            Event::Html(html) | Event::InlineHtml(html) => links.extend(attributes(&html)),
            _ => {}
        }
    }
    links
}

/// Returns the anchors that a forge creates for `text`'s headings: `## Quick start` is `quick-start`.
pub fn anchors(text: &str) -> Vec<String> {
    let mut times = BTreeMap::<String, usize>::new();
    let mut anchors = Vec::new();
    let mut heading: Option<String> = None;
    for event in parse(text) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(words) | Event::Code(words), Some(heading)) => heading.push_str(&words),
            (Event::End(TagEnd::Heading(_)), _) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let time = times.entry(slug.clone()).or_default();
                anchors.push(if *time == 0 { slug } else { format!("{slug}-{time}") });
                *time += 1;
            }
            _ => {}
        }
    }
    anchors
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The text, code included.
    pub text: String,
    /// The code spans.
    pub code: Vec<String>,
}

/// Returns the rows, the head first, of the first table between the heading `heading` and the next heading; empty
/// without such a table.
pub fn table(text: &str, heading: &str) -> Vec<Vec<Cell>> {
    let mut events = parse(text);
    while let Some(event) = events.next() {
        if matches!(event, Event::Start(Tag::Heading { .. })) && heading_text(&mut events) == heading {
            let is_table = |event: &Event<'_>| matches!(event, Event::Start(Tag::Table(_)));
            let is_heading = |event: &Event<'_>| matches!(event, Event::Start(Tag::Heading { .. }));
            let next = events.by_ref().find(|event| is_table(event) || is_heading(event));
            return if next.as_ref().is_some_and(is_table) { rows(events) } else { Vec::new() };
        }
    }
    Vec::new()
}

fn heading_text(events: &mut Parser<'_>) -> String {
    let inside = events.take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let words = inside.filter_map(|event| match event {
        Event::Text(words) | Event::Code(words) => Some(words.into_string()),
        _ => None,
    });
    words.collect()
}

/// Returns the rows up to the end of the table.
fn rows(events: Parser<'_>) -> Vec<Vec<Cell>> {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for event in events.take_while(|event| !matches!(event, Event::End(TagEnd::Table))) {
        let cell = rows.last_mut().and_then(|row| row.last_mut());
        match (event, cell) {
            (Event::Start(Tag::TableHead | Tag::TableRow), _) => rows.push(Vec::new()),
            (Event::Start(Tag::TableCell), _) => {
                if let Some(row) = rows.last_mut() {
                    row.push(Cell::default());
                }
            }
            (Event::Text(words), Some(cell)) => cell.text.push_str(&words),
            (Event::Code(words), Some(cell)) => {
                cell.text.push_str(&words);
                cell.code.push(words.into_string());
            }
            _ => {}
        }
    }
    rows
}

fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES)
}

fn attributes(html: &str) -> Vec<String> {
    let values = ["src=\"", "srcset=\"", "href=\""].into_iter().flat_map(|name| html.split(name).skip(1));
    values.filter_map(|rest| rest.split_once('"')).map(|(value, _)| value.to_owned()).collect()
}

fn slug(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|&c| c.is_alphanumeric() || c == '-' || c == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_links_but_not_in_code() {
        let text = "[a](one.md) ![b](two.svg)\n\n```\n[c](three.md)\n```\n\n<img src=\"four.svg\">\n\n[d][e]\n\n[e]: five.md";
        assert_eq!(links(text), ["one.md", "two.svg", "four.svg", "five.md"]);
    }

    #[test]
    fn reads_the_table_of_a_heading() {
        let page = "## A\n\n| x |\n|---|\n| 1 |\n\n## B `c`\n\nText.\n\n| k | v |\n|---|---|\n| `p`, `q` | [r](s.md) t |\n\n\
            ## D\n\n## E\n\n| x |\n|---|\n| 1 |\n";
        let text = |row: &Vec<Cell>| row.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>();
        let table_of_b = table(page, "B c");
        assert_eq!(table_of_b.iter().map(text).collect::<Vec<_>>(), [["k", "v"], ["p, q", "r t"]]);
        assert_eq!(table_of_b[1][0].code, ["p", "q"]);
        assert!(table(page, "D").is_empty(), "the table belongs to another heading");
        assert!(table(page, "F").is_empty());
    }

    #[test]
    fn names_headings() {
        assert_eq!(
            anchors("# Quick start\n## `serve`: flags\n## Quick start"),
            ["quick-start", "serve-flags", "quick-start-1"]
        );
    }
}
