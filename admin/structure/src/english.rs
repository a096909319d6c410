//! The rules of CONTRIBUTING's section on English that a program can check.
//!
//! Each check is pure: it takes a text and returns the places that break a rule. The list of words is in [`REFUSED`] and
//! [`TERMS`]; [`OPENERS`] are words that a documentation comment does not begin with, because a noun or a verb belongs there.

use crate::prose;
use regex::{Captures, Regex, RegexBuilder};
use std::{ops::Range, sync::LazyLock};

/// A place that breaks a rule.
#[derive(Debug, PartialEq)]
pub struct Place {
    /// Counted from 1.
    pub line: usize,
    /// The words found.
    pub words: String,
    /// The replacement to consider.
    pub remedy: &'static str,
}

/// Refused in every text, in names of Rust's items too. A space stands for any white space, an underscore, or the line break of a
/// comment.
const REFUSED: &[(&str, &str)] = &[
    (
        "who|whom|whoever|whomever|nobody|somebody|everybody|anybody|someone|everyone|anyone",
        "programs are not persons: name the client, the server, the process; for the rest use the passive voice",
    ),
    ("whatever", "name it, or write `any`"),
    ("(is|are|was|were|be|been|being)( \\w+)? told", "receives, is notified, is given"),
    ("(is|are|be) welcome", "is accepted"),
    ("in vain", "without success, or name the failure"),
    ("lets in|letting in|let in", "accepts, admits, allows"),
    ("come back|comes back|came back|coming back", "returns, reconnects, recovers"),
    ("gives way|give way", "yields, is evicted"),
    ("hears of|hear of|heard of", "receives, is notified"),
    ("likes", "prefers"),
    ("(is|are|was|were|be) none", "does not exist, is invalid, is not one"),
    ("as the RFC has it", "per RFC 9110"),
    ("is well", "is healthy"),
];

/// Refused in comments, in string literals and in pages. Names of items and quoted code may hold them.
const TERMS: &[(&str, &str)] = &[(
    "ask|asks|asked|asking|answer|answers|answered|answering|unanswered",
    "request and response: requests, queries, responds, returns",
)];

/// After these `is no` is a comparison.
const COMPARED: &[&str] = &[
    "longer", "more", "less", "fewer", "later", "earlier", "larger", "smaller", "greater", "better", "worse",
    "cheaper", "slower", "faster", "further",
];

/// Words that a documentation comment does not begin with.
pub const OPENERS: &[&str] = &[
    "What", "Who", "Whose", "Where", "Which", "That", "Of", "How", "The same", "By", "As", "For", "With",
    "Without", "From", "So", "Behind", "Beside", "And", "Or", "But", "Not", "Nor", "Than", "To", "In", "On",
    "At", "It", "Its", "They", "Their", "He", "Until", "Then", "Once", "Because",
];

/// Prepositions open these sentences well.
const GOOD_OPENINGS: &[&str] = &["By default"];

/// Text between two words of one phrase: white space, `_` of names, or the end of a comment's or a string's line.
const BETWEEN: &str = r#"(?:[ \t_]+|\s*\n\s*(?://[/!]?|\#|\*|>)?[ \t]*|\s*"?\s*\\\s*\n\s*)"#;

type Pattern = (Regex, &'static str);

static REFUSED_PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| patterns(REFUSED));
static TERM_PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| patterns(TERMS));
/// `X is no Y`; `there is no Y` is English.
static IS_NO: LazyLock<Regex> = LazyLock::new(|| {
    compile(&format!(
        "(?:^|[^A-Za-z])(?P<there>there{BETWEEN})?(?P<found>(?:is|are|was|were|be){BETWEEN}no){BETWEEN}(?P<next>[a-z]+)"
    ))
});

fn patterns(list: &[(&str, &'static str)]) -> Vec<Pattern> {
    let pattern = |(words, remedy): &(&str, &'static str)| {
        let words = words.replace(' ', BETWEEN);
        (compile(&format!("(?:^|[^A-Za-z])(?P<found>{words})(?:$|[^A-Za-z])")), *remedy)
    };
    list.iter().map(pattern).collect()
}

fn compile(pattern: &str) -> Regex {
    RegexBuilder::new(pattern).case_insensitive(true).multi_line(true).build().expect("the pattern is valid")
}

/// Places of `text` with a refused word, wherever it stands.
pub fn refused_words(text: &str) -> Vec<Place> {
    // `let in_place = ...` and `is_none()` are code.
    let is_code = |at: Range<usize>| match &text[at.clone()] {
        "is_none" => true,
        words => words.starts_with("let") && text[at.end..].starts_with('_'),
    };
    let mut places = found(text, &REFUSED_PATTERNS, is_code);
    let is_no = IS_NO.captures_iter(text).filter(|captures| {
        captures.name("there").is_none() && !COMPARED.contains(&captures["next"].to_lowercase().as_str())
    });
    places.extend(is_no.map(|captures| place(text, &captures, "is not a ..., has no ...")));
    places
}

/// Places of a page with a word that has a standard term.
pub fn terms_of_page(text: &str) -> Vec<Place> {
    terms(text)
}

/// Places in the comments and the string literals of a Rust source with a word that has a standard term.
pub fn terms_of_source(source: &str) -> Vec<Place> {
    terms(&prose::of_rust(source))
}

fn terms(prose: &str) -> Vec<Place> {
    found(prose, &TERM_PATTERNS, |at| is_name(prose, at))
}

fn found(text: &str, patterns: &[Pattern], is_exempt: impl Fn(Range<usize>) -> bool) -> Vec<Place> {
    let mut places = Vec::new();
    for (pattern, remedy) in patterns {
        let mut from = 0;
        while let Some(captures) = pattern.captures_at(text, from) {
            let at = captures.name("found").expect("every pattern has this group").range();
            // The character behind the word may begin the next match.
            from = at.end;
            if !is_exempt(at) {
                places.push(place(text, &captures, remedy));
            }
        }
    }
    places
}

fn place(text: &str, captures: &Captures<'_>, remedy: &'static str) -> Place {
    let found = captures.name("found").expect("every pattern has this group");
    let words = found.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
    Place { line: text[..found.start()].matches('\n').count() + 1, words, remedy }
}

/// Whether the word at `at` is part of a name, of a path or of quoted code: `answer`, `response::answer`, "asked".
fn is_name(text: &str, at: Range<usize>) -> bool {
    let before = text[..at.start].chars().next_back().unwrap_or(' ');
    let after = &text[at.end..];
    "_`./-{'$".contains(before)
        || text[..at.start].ends_with("::")
        || after.starts_with(['_', '`', '/', '(', '}', '=', '-'])
        || after.starts_with("::")
        || before == '"' && after.starts_with('"')
}

/// Documentation comments of a Rust source whose first word is not a noun or a verb.
pub fn openers(source: &str) -> Vec<Place> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut places = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(text) = documentation(line) else { continue };
        if index > 0 && documentation(lines[index - 1]).is_some() {
            continue;
        }
        let refused = OPENERS.iter().find(|opener| begins_with(text, opener));
        if let Some(opener) = refused.filter(|_| !GOOD_OPENINGS.iter().any(|good| begins_with(text, good))) {
            let remedy = "name the thing by its term, or say what it does with a verb in the third person";
            places.push(Place { line: index + 1, words: (*opener).to_owned(), remedy });
        }
        if begins_with(text, "Whether") && is_function(&lines[index..]) {
            let remedy = "`Returns whether ...`";
            places.push(Place { line: index + 1, words: "Whether".to_owned(), remedy });
        }
    }
    places
}

fn documentation(line: &str) -> Option<&str> {
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
}

fn begins_with(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-'))
}

/// Whether the item behind the comment and the attributes at the beginning of `lines` is a function.
fn is_function(lines: &[&str]) -> bool {
    let item = lines.iter().find(|line| documentation(line).is_none() && !line.starts_with("#["));
    item.is_some_and(|item| item.split(['(', '<']).next().unwrap_or("").split(' ').any(|word| word == "fn"))
}

/// Rules of a commit's subject that it breaks.
pub fn subject(subject: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let length = subject.chars().count();
    if length > MAX_SUBJECT {
        broken.push(format!("{length} characters, at most {MAX_SUBJECT}"));
    }
    if !subject.starts_with(char::is_uppercase) || subject.ends_with('.') {
        broken.push("begins with a capital letter and ends without a period".to_owned());
    }
    if subject.split(' ').next().is_some_and(|first| first.ends_with(':')) {
        broken.push("begins with a verb in the imperative, not with an area".to_owned());
    }
    broken.extend(
        refused_words(subject).into_iter().map(|place| format!("{:?}: {}", place.words, place.remedy)),
    );
    broken
}

/// Characters of a commit's subject.
const MAX_SUBJECT: usize = 72;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(places: &[Place]) -> Vec<(usize, &str)> {
        places.iter().map(|place| (place.line, place.words.as_str())).collect()
    }

    #[test]
    fn refused_words_are_found_in_prose_and_in_names() {
        let text = "A client\nwho waits in\n// vain.\nfn nobody_else() {}\nlet in_place = x.is_none();";
        assert_eq!(words(&refused_words(text)), [(2, "who"), (4, "nobody"), (2, "in // vain")]);
    }

    #[test]
    fn is_no_is_refused_and_comparisons_are_not() {
        let text =
            "The path is no path. There is no path. It is no longer one. is_no_port() are no\n    /// ports";
        assert_eq!(words(&refused_words(text)), [(1, "is no"), (1, "is_no"), (1, "are no")]);
    }

    #[test]
    fn a_phrase_may_span_lines_of_a_string() {
        assert_eq!(words(&refused_words("\"the header is \\\n      none of it\"")).len(), 1);
    }

    #[test]
    fn terms_are_found_in_prose_only() {
        let source = "fn answer(asked: u8) { reply(\"asked\"); } // The server answers `ask`, http::answer and answer().\n";
        assert_eq!(words(&terms_of_source(source)), [(1, "answers")]);
        assert_eq!(words(&terms_of_page("Ask for it.\nIt answers.")), [(1, "Ask"), (2, "answers")]);
    }

    #[test]
    fn the_first_word_of_documentation_is_a_noun_or_a_verb() {
        let source = "/// Of a chain.\n/// What follows.\nstruct A;\n/// By default, closed.\n/// The sameness.\n\n/// Whether it is open.\n\
                      #[must_use]\npub fn is_open() {}\n/// Whether it was open.\nwas_open: bool,\n/// Tools.\n";
        assert_eq!(words(&openers(source)), [(1, "Of"), (7, "Whether")]);
    }

    #[test]
    fn subjects_are_short_imperatives() {
        assert!(subject("Drop slow clients at the timeout").is_empty());
        assert_eq!(subject("Admission: whoever is refused comes back.").len(), 4);
        assert_eq!(subject(&format!("Add {}", "x".repeat(80))).len(), 1);
    }
}
