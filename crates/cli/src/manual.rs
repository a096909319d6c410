//! Manual pages of section 5, generated from the references in Markdown: `quadrille.yaml(5)` from the configuration reference.
//!
//! A heading becomes a section, and a row of a table a tagged paragraph: its first cell is the tag, its last one the
//! text, and the cells between follow the text with the titles of their columns.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use roff::{Inline, Roff, bold, italic, line_break, roman};

/// Text of the page before and after the reference.
pub(crate) struct Frame<'a> {
    /// The page's name, such as `quadrille.yaml`.
    pub(crate) name: &'a str,
    /// The rest of the line that `apropos` lists.
    pub(crate) about: &'a str,
    /// Files, each with a description.
    pub(crate) files: &'a [(&'a str, &'a str)],
    /// Names of related pages, with their sections.
    pub(crate) see_also: &'a [&'a str],
}

/// Returns a manual page of section 5 with the text of `reference`, in Markdown.
pub(crate) fn page(frame: &Frame<'_>, reference: &str) -> String {
    let mut page = Page::default();
    let source = format!("quadrille {}", env!("CARGO_PKG_VERSION"));
    page.roff.control("TH", [frame.name, "5", "", source.as_str(), "File Formats"]);
    page.roff.control("SH", ["NAME"]).text([roman(format!("{} - {}", frame.name, frame.about))]);
    page.roff.control("SH", ["DESCRIPTION"]);
    Parser::new_ext(reference, Options::ENABLE_TABLES).for_each(|event| page.event(event));
    page.roff.control("SH", ["FILES"]);
    for (file, about) in frame.files {
        page.roff.control("TP", []).text([italic(*file)]).text([roman(*about)]);
    }
    page.roff.control("SH", ["SEE ALSO"]);
    page.roff.text([roman(frame.see_also.join(", "))]);
    page.roff.render()
}

#[derive(Default)]
struct Page {
    roff: Roff,
    /// The text of the open paragraph, heading or cell.
    text: Vec<Inline>,
    emphasis: bool,
    code_block: bool,
    html: bool,
    /// Whether the open heading is the title, which the page's first lines replace.
    title: bool,
    /// Titles of the open table's columns.
    columns: Vec<String>,
    /// Cells of the open row.
    cells: Vec<Vec<Inline>>,
}

impl Page {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.code_block => self.literal(&text),
            Event::Text(_) if self.html => {}
            Event::Text(text) if self.emphasis => self.text.push(italic(text.into_string())),
            Event::Text(text) => self.text.push(roman(text.into_string())),
            Event::Code(text) => self.text.push(bold(text.into_string())),
            Event::SoftBreak => self.text.push(roman(" ")),
            Event::HardBreak => self.text.push(line_break()),
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => self.title = *level == HeadingLevel::H1,
            Tag::Emphasis | Tag::Strong => self.emphasis = true,
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                self.code_block = true;
                self.roff.control("PP", []).control("RS", ["4"]).control("nf", []);
            }
            Tag::HtmlBlock => self.html = true,
            Tag::Item => {
                self.roff.control("IP", ["-", "2"]);
            }
            Tag::Table(_) => self.columns.clear(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                let text = self.taken();
                if !self.title {
                    self.roff.control("SH", [heading(&text).as_str()]);
                }
            }
            TagEnd::Paragraph => {
                let text = self.taken();
                self.roff.control("PP", []).text(text);
            }
            TagEnd::Item => {
                let text = self.taken();
                if !text.is_empty() {
                    self.roff.text(text);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong => self.emphasis = false,
            TagEnd::CodeBlock => {
                self.code_block = false;
                self.roff.control("fi", []).control("RE", []);
            }
            TagEnd::HtmlBlock => self.html = false,
            TagEnd::TableCell => {
                let text = self.taken();
                self.cells.push(text);
            }
            TagEnd::TableHead => self.columns = self.cells.drain(..).map(|cell| plain(&cell)).collect(),
            TagEnd::TableRow => self.row(),
            _ => {}
        }
    }

    /// Writes the lines of a code block unchanged.
    fn literal(&mut self, text: &str) {
        for line in text.lines() {
            self.roff.text([roman(line)]);
        }
    }

    fn row(&mut self) {
        let mut cells = std::mem::take(&mut self.cells);
        let (Some(text), false) = (cells.pop(), cells.is_empty()) else { return };
        let mut between = cells.split_off(1);
        let tag = cells.into_iter().flatten().map(|inline| match inline {
            Inline::Roman(text) => bold(text),
            other => other,
        });
        self.roff.control("TP", []).text(tag.collect::<Vec<_>>()).text(text);
        for (title, cell) in self.columns.iter().skip(1).zip(&mut between) {
            self.roff.control("br", []);
            let mut line = vec![roman(format!("{title}: "))];
            line.append(cell);
            line.push(roman("."));
            self.roff.text(line);
        }
    }

    fn taken(&mut self) -> Vec<Inline> {
        std::mem::take(&mut self.text)
    }
}

/// Returns the title of a section: words in capitals, the path of a key unchanged.
fn heading(text: &[Inline]) -> String {
    let words = plain(text);
    if text.iter().any(|inline| matches!(inline, Inline::Bold(_))) { words } else { words.to_uppercase() }
}

fn plain(text: &[Inline]) -> String {
    let word = |inline: &Inline| match inline {
        Inline::Roman(text) | Inline::Italic(text) | Inline::Bold(text) => text.clone(),
        Inline::LineBreak => " ".to_owned(),
    };
    text.iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame<'_> = Frame {
        name: "a.yaml",
        about: "a file",
        files: &[("/etc/a.yaml", "The file.")],
        see_also: &["a(1)"],
    };

    /// Returns the page between the headings `DESCRIPTION` and `FILES`.
    fn description(markdown: &str) -> String {
        let page = page(&FRAME, markdown);
        let (_, rest) = page.split_once(".SH DESCRIPTION\n").unwrap();
        rest.split_once(".SH FILES\n").unwrap().0.to_owned()
    }

    #[test]
    fn a_row_is_a_tagged_paragraph() {
        let table = "| Key | Value | Default | About |\n|---|---|---|---|\n\
                     | `mode` | `a` or [b](#b) | `a` | The mode. *At the next start.* |\n";
        let expected = ".TP\n\\fBmode\\fR\nThe mode. \\fIAt the next start.\\fR\n.br\nValue: \\fBa\\fR or b.\n\
                        .br\nDefault: \\fBa\\fR.\n";
        assert_eq!(description(table), expected);
    }

    #[test]
    fn paragraphs_headings_and_code_blocks_keep_their_text() {
        let text = "# Title\n\n<!-- a comment -->\n\nOne\ntwo `-c`.\n\n## The file\n\n## `a.b[]`\n\n```yaml\na:\n  .b: 'c'\n```\n";
        let expected = ".PP\nOne two \\fB\\-c\\fR.\n.SH \"THE FILE\"\n.SH a.b[]\n.PP\n.RS 4\n.nf\na:\n  .b: \\*(Aqc\\*(Aq\n\
                        .fi\n.RE\n";
        assert_eq!(description(text), expected);
    }

    #[test]
    fn a_line_never_begins_with_a_request_by_chance() {
        assert_eq!(
            description(".br is text\n\n'and so is this\n"),
            ".PP\n\\&.br is text\n.PP\n\\*(Aqand so is this\n"
        );
    }

    /// Every key of the reference is a tag, below the heading of its section.
    #[test]
    fn the_configurations_page_has_every_key() {
        for reference in [quadrille_config::reference(), quadrille_config::key_policy_reference()] {
            let page = page(&FRAME, &reference).replace("\\-", "-");
            let mut rest = page.as_str();
            let mut keys = 0;
            for line in reference.lines() {
                let wanted = if let Some(path) = line.strip_prefix("## `") {
                    format!("\n.SH {}\n", path.trim_end_matches('`'))
                } else if let Some((key, _)) = line.strip_prefix("| `").and_then(|row| row.split_once('`')) {
                    keys += 1;
                    format!("\n.TP\n\\fB{key}\\fR\n")
                } else {
                    continue;
                };
                let found = rest.find(&wanted).unwrap_or_else(|| panic!("{wanted:?} is missing"));
                rest = &rest[found + 1..];
            }
            assert!(keys > 5, "only {keys} keys");
            assert!(!page.contains("<!--") && !page.contains("]("));
        }
    }
}
