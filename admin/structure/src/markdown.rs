//! Links and heading anchors of a Markdown text.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;

/// Where the links, pictures and HTML attributes (`src`, `srcset`, `href`) of `text` point.
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

/// The anchors that a forge makes of `text`'s headings: `## Quick start` is `quick-start`.
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
    fn names_headings() {
        assert_eq!(
            anchors("# Quick start\n## `serve`: flags\n## Quick start"),
            ["quick-start", "serve-flags", "quick-start-1"]
        );
    }
}
