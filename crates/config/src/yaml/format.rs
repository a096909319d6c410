//! Layout of YAML texts: indentation by two spaces, blank lines and line ends. Keys, values, comments and their order stay.
//!
//! The lines of a text are indented anew by the levels that their first words begin. Lines within a value of several
//! lines are moved with its first line. The result is read again, and refused unless it has the same meaning.

use super::{Limits, Node, Position, SyntaxError, Value, next, read};
use crate::model::Problem;
use saphyr_parser::{Event, Parser, ScalarStyle};
use std::collections::HashSet;

/// Formats a document; a formatted one stays as it is.
///
/// # Errors
/// If it cannot be read, or its layout cannot be changed without a change of its meaning.
pub fn format(text: &str) -> Result<String, SyntaxError> {
    let mut text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let before = read(&text, Limits::BY_HAND)?;
    let formatted = Formatter::new(&structure(&text)?).run(&text);
    let after = read(&formatted, Limits::BY_HAND).ok();
    let is_same = match (&before, &after) {
        (Some(before), Some(Some(after))) => same(before, after),
        (None, Some(None)) => true,
        _ => false,
    };
    if is_same {
        return Ok(formatted);
    }
    let problem = Problem::new(
        "the layout cannot be changed without a change of the meaning",
        "write lists and mappings of several lines in block style",
    );
    Err(SyntaxError { position: Position::NONE, problem })
}

/// Returns whether two nodes have the same meaning, wherever they are written.
fn same(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::Null, Value::Null) => true,
        (Value::Scalar(one_text), Value::Scalar(other_text)) => {
            one_text == other_text && one.plain == other.plain
        }
        (Value::Sequence(one), Value::Sequence(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Mapping(one), Value::Mapping(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|(one, other)| one.key == other.key && same(&one.value, &other.value))
        }
        _ => false,
    }
}

/// The positions that determine the layout; lines and columns are counted from zero.
#[derive(Default)]
struct Structure {
    /// Line and column of each key.
    keys: HashSet<(usize, usize)>,
    /// The line on which a value begins, for lines that the value contains besides that one.
    held: Vec<Option<usize>>,
}

impl Structure {
    fn hold(&mut self, first: usize, last: usize) {
        for line in first + 1..=last {
            if let Some(held) = self.held.get_mut(line) {
                held.get_or_insert(first);
            }
        }
    }
}

fn structure(text: &str) -> Result<Structure, SyntaxError> {
    let (letters, lines): (Vec<char>, Vec<&str>) = (text.chars().collect(), text.lines().collect());
    let mut found = Structure { held: vec![None; lines.len()], ..Structure::default() };
    // For each open collection: its first line, and for mappings whether a key is next.
    let mut open: Vec<(usize, Option<bool>)> = Vec::new();
    let mut parser = Parser::new_from_str(text);
    while let Some((event, span)) = next(&mut parser, text)? {
        let (first, column) = (span.start.line() - 1, span.start.col());
        let begins = matches!(event, Event::Scalar(..) | Event::Alias(_));
        let opens = matches!(event, Event::SequenceStart(..) | Event::MappingStart(..));
        if (begins || opens)
            && let Some((_, Some(is_key))) = open.last_mut()
        {
            if *is_key {
                found.keys.insert((first, column));
            }
            *is_key = !*is_key;
        }
        match event {
            // A block of text ends within the next line, before its first word.
            Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..) => {
                found.hold(header_of(&lines, first, column), span.end.line().saturating_sub(2));
            }
            Event::Scalar(..) => found.hold(first, span.end.line() - 1),
            Event::SequenceStart(..) => open.push((first, None)),
            Event::MappingStart(..) => open.push((first, Some(true))),
            Event::SequenceEnd | Event::MappingEnd => {
                let begun = open.pop().map_or(first, |(begun, _)| begun);
                // In block style, a collection ends before the next word, which cannot begin with a bracket.
                if letters.get(span.start.index()).is_some_and(|letter| matches!(letter, ']' | '}')) {
                    found.hold(begun, first);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Returns the line of the `|` or `>` of a block of text, whose position may be that of its first words.
fn header_of(lines: &[&str], first: usize, column: usize) -> usize {
    let is_blank = |line: usize| lines.get(line).is_none_or(|line| line.trim().is_empty());
    let before = lines.get(first).map_or("", |line| line.get(..column).unwrap_or_default());
    if !before.trim().is_empty() {
        return first;
    }
    (0..first).rev().find(|line| !is_blank(*line)).unwrap_or(first)
}

/// A list or mapping in block style that is open at the current line.
#[derive(Clone, Copy)]
struct Level {
    /// The columns before and after formatting.
    old: usize,
    new: usize,
    is_list: bool,
}

struct Formatter<'a> {
    structure: &'a Structure,
    levels: Vec<Level>,
    /// Columns by which each line has been moved to the right.
    moved: Vec<isize>,
    /// Comments before the next line, with their columns; `None` is a blank line.
    waiting: Vec<Option<(usize, &'a str)>>,
    out: String,
}

impl<'a> Formatter<'a> {
    fn new(structure: &'a Structure) -> Self {
        Self { structure, levels: Vec::new(), moved: Vec::new(), waiting: Vec::new(), out: String::new() }
    }

    fn run(mut self, text: &'a str) -> String {
        for (number, line) in text.lines().enumerate() {
            let words = line.trim();
            let column = line.len() - line.trim_start().len();
            let moved = match self.structure.held[number] {
                Some(first) => {
                    let moved = self.moved[first];
                    self.push(&shifted(line, moved));
                    moved
                }
                None if words.is_empty() => {
                    self.waiting.push(None);
                    0
                }
                None if words.starts_with('#') => {
                    self.waiting.push(Some((column, words)));
                    0
                }
                None if ["---", "...", "%"].iter().any(|mark| line.starts_with(mark)) => {
                    self.levels.clear();
                    self.write_comments(0, 0);
                    self.push(words);
                    0
                }
                None => self.line(number, column, line.trim_end()),
            };
            self.moved.push(moved);
        }
        let column = self.waiting.iter().flatten().next().map_or(0, |(column, _)| *column);
        self.write_comments(column, column);
        self.out.truncate(self.out.trim_end_matches('\n').len());
        self.out.push('\n');
        self.out
    }

    /// Writes a line with a new key, item or value. Returns the columns by which values of several lines move with it.
    fn line(&mut self, number: usize, column: usize, line: &str) -> isize {
        let levels = self.levels.clone();
        let (mut at, mut rest, mut written) = (column, &line[column..], None::<String>);
        let moved = loop {
            if let Some(after) =
                rest.strip_prefix('-').filter(|after| after.is_empty() || after.starts_with(' '))
            {
                let new = self.enter(at, true);
                let written = written.get_or_insert_with(|| " ".repeat(new));
                written.push('-');
                let words = after.trim_start_matches(' ');
                if words.is_empty() || words.starts_with('#') {
                    written.push_str(after);
                    break signed(new, at);
                }
                written.push(' ');
                at += rest.len() - words.len();
                rest = words;
                continue;
            }
            let is_key = self.structure.keys.contains(&(number, at));
            let new = if is_key {
                self.enter(at, false)
            } else {
                if written.is_none() {
                    self.leave(|level| level.old >= at);
                }
                2 * self.levels.len()
            };
            let of_level = self.levels.last().map_or(0, |level| signed(level.new, level.old));
            let moved = if is_key || written.is_some() { of_level } else { signed(new, at) };
            written.get_or_insert_with(|| " ".repeat(new)).push_str(rest);
            break moved;
        };
        let written = written.unwrap_or_default();
        let to = written.len() - written.trim_start().len();
        let after = std::mem::replace(&mut self.levels, levels);
        self.write_comments(column, to);
        self.levels = after;
        self.push(&written);
        moved
    }

    /// Enters the list or mapping in this column, which may be open already. Returns its new column.
    fn enter(&mut self, at: usize, is_list: bool) -> usize {
        self.leave(|level| level.old > at || level.old == at && level.is_list && !is_list);
        let open = self.levels.last().filter(|level| level.old == at && level.is_list == is_list);
        if let Some(level) = open {
            return level.new;
        }
        let new = 2 * self.levels.len();
        self.levels.push(Level { old: at, new, is_list });
        new
    }

    fn leave(&mut self, is_left: impl Fn(&Level) -> bool) {
        while self.levels.last().is_some_and(&is_left) {
            self.levels.pop();
        }
    }

    /// Writes the comments and one of several blank lines before a line that moves between these columns.
    fn write_comments(&mut self, from: usize, to: usize) {
        for waiting in std::mem::take(&mut self.waiting) {
            let Some((column, words)) = waiting else {
                if !self.out.is_empty() && !self.out.ends_with("\n\n") {
                    self.out.push('\n');
                }
                continue;
            };
            let of_level = self.levels.iter().rev().find(|level| level.old == column).map(|level| level.new);
            let new = match of_level {
                _ if column == from => to,
                Some(new) => new,
                None => column.saturating_add(to).saturating_sub(from),
            };
            self.push(&format!("{}{words}", " ".repeat(new)));
        }
    }

    fn push(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }
}

fn signed(new: usize, old: usize) -> isize {
    new.cast_signed() - old.cast_signed()
}

/// Moves a line to the right, or to the left as far as it has spaces.
fn shifted(line: &str, by: isize) -> String {
    if line.trim().is_empty() && by >= 0 {
        return line.to_owned();
    }
    match usize::try_from(by) {
        Ok(by) => format!("{}{line}", " ".repeat(by)),
        Err(_) => {
            let spaces = line.len() - line.trim_start_matches(' ').len();
            line[by.unsigned_abs().min(spaces)..].to_owned()
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use super::*;

    fn assert_formats(text: &str, expected: &str) {
        let formatted = format(text).unwrap();
        assert_eq!(formatted, expected, "of\n{text}");
        assert_eq!(format(&formatted).unwrap(), expected, "a second time");
    }

    #[test]
    fn lists_and_mappings_are_indented_by_two() {
        assert_formats(
            "a:\n- b: 1\n  c:\n      d: 2\n-   e: 3\n    f: [x,\n         y]\ng: {h: i}   \n",
            "a:\n  - b: 1\n    c:\n      d: 2\n  - e: 3\n    f: [x,\n         y]\ng: {h: i}\n",
        );
        assert_formats("-  -   1\n   -   2\n- 3\n", "- - 1\n  - 2\n- 3\n");
        assert_formats("a:\n    - 1\n    -\n        b: 2\n", "a:\n  - 1\n  -\n    b: 2\n");
    }

    #[test]
    fn comments_stay_with_their_lines() {
        assert_formats(
            "# Top.\n\n\n\na:\n    # Of b.\n    b: 1   # One.\n    # End of a.\n# Of c.\nc: 2\n    # Last.\n\n\n",
            "# Top.\n\na:\n  # Of b.\n  b: 1   # One.\n  # End of a.\n# Of c.\nc: 2\n    # Last.\n",
        );
        assert_formats("a:\n# Of the item.\n- 1\n", "a:\n  # Of the item.\n  - 1\n");
    }

    #[test]
    fn texts_of_several_lines_keep_their_content() {
        assert_formats(
            "a:\n    b: |\n        one\n\n          two\n    c: >-\n        folded\n        text\n    d: \"quoted\n        text\"\n",
            "a:\n  b: |\n      one\n\n        two\n  c: >-\n      folded\n      text\n  d: \"quoted\n      text\"\n",
        );
        assert_formats(
            "a:\n- |\n  - not an item\n- plain\n  - text\n",
            "a:\n  - |\n    - not an item\n  - plain\n    - text\n",
        );
    }

    #[test]
    fn anchors_merge_keys_and_line_ends_are_kept_or_normalised() {
        assert_formats(
            "x: &x\n    a: 1\r\nb:\n    <<: *x\n    c: 2",
            "x: &x\n  a: 1\nb:\n  <<: *x\n  c: 2\n",
        );
        assert_formats("", "\n");
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for text in ["a: [1\n", "a: *b\n", "a: 1\n b: 2\n"] {
            assert!(format(text).is_err(), "{text}");
        }
    }

    /// The meaning of the example stays, however its lines are indented, and a formatted text stays as it is.
    #[test]
    fn the_example_is_formatted_and_stays() {
        let text = include_str!("../../../../examples/quadrille.yaml");
        assert_eq!(format(text).unwrap(), text);
        // Twice the indentation, also of what follows the dash of an item.
        let widen = |line: &str| {
            let words = line.trim_start();
            let item = words.strip_prefix("- ").map(|item| format!("-   {item}"));
            format!("{}{}\n", " ".repeat(2 * (line.len() - words.len())), item.unwrap_or(words.to_owned()))
        };
        let wide: String = text.lines().map(widen).collect();
        let formatted = format(&wide).unwrap();
        assert_eq!(formatted.lines().count(), text.lines().count());
        assert_eq!(format(&formatted).unwrap(), formatted);
    }
}
