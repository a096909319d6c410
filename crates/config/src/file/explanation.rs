//! The reference of one key, for a terminal.

use super::{
    reference::path_of,
    schema::{Described, KeyDescription, Preset},
    sections::SECTIONS,
};
use crate::{
    Problem,
    suggest::{nearest, quote},
};

/// Width of the text.
const WIDTH: usize = 100;

/// Returns the reference of a key or a section, such as `listeners.routes.retry`. Its last part suffices.
///
/// # Errors
/// If the key does not exist.
pub fn explain(path: &str) -> Result<String, Problem> {
    let wanted = plain(path);
    let mut found: Vec<_> = entries().filter(|entry| entry.path == wanted).collect();
    if found.is_empty() {
        let ending = format!(".{wanted}");
        found = entries().filter(|entry| entry.path.ends_with(&ending)).collect();
    }
    let mut explained: Vec<_> = found.iter().map(Explained::text).collect();
    if wanted.is_empty() || (explained.is_empty() && sections_at(&wanted).next().is_some()) {
        explained.push(sections_text(&wanted));
    }
    match explained.is_empty() {
        false => Ok(explained.join("\n")),
        true => Err(unknown(path, &wanted)),
    }
}

/// A key with its path.
struct Explained {
    path: String,
    key: KeyDescription,
}

fn entries() -> impl Iterator<Item = Explained> {
    SECTIONS.iter().flat_map(|section| {
        let keys = section.keys().into_iter();
        keys.map(move |key| Explained { path: plain(&path_of(*section, &key)), key })
    })
}

impl Explained {
    fn text(&self) -> String {
        let Self { path, key } = self;
        let preset = match key.preset {
            Preset::Required => "required".to_owned(),
            Preset::Is(value) => format!("default: {value}"),
            Preset::Means(meaning) => format!("default: {meaning}"),
        };
        let restart = if key.needs_restart { " Takes effect at the next start." } else { "" };
        let about = wrapped(&format!("{}{restart}", key.about), "  ");
        let head = format!("{path}: {}\n{}", key.value, wrapped(&preset, "  "));
        format!("{head}\n{about}{}", sections_text(path))
    }
}

fn sections_at(path: &str) -> impl Iterator<Item = &'static &'static dyn Described> {
    SECTIONS.iter().filter(move |section| plain(section.path()) == path)
}

/// Returns the keys of the sections at this path.
fn sections_text(path: &str) -> String {
    let mut text = String::new();
    for section in sections_at(path) {
        text += &format!("\n{}\n", wrapped(section.about(), "").trim_end());
        for key in section.keys() {
            let summary = format!("{}: {}", key.name, key.value);
            text += &wrapped(&summary, "  ");
        }
    }
    text
}

fn unknown(path: &str, wanted: &str) -> Problem {
    let paths: Vec<_> = entries().map(|entry| entry.path).collect();
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let names: Vec<_> = paths.iter().map(|path| last(path)).collect();
    let near = nearest(wanted, paths.iter().map(String::as_str));
    let near = near.or_else(|| nearest(&last(wanted), names.iter().map(String::as_str)));
    let remedy = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write the path of a key, such as `listeners.routes.retry`".to_owned(),
    };
    Problem::new(format!("the key {} does not exist", quote(path)), remedy)
}

/// Returns a path without the marks of lists and names.
fn plain(path: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for c in path.replace(".<name>", "").chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            c if !inside => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// Returns the text in lines, each with this indentation.
fn wrapped(text: &str, indentation: &str) -> String {
    let (mut lines, mut line) = (String::new(), indentation.to_owned());
    for word in text.split_whitespace() {
        if line.len() > indentation.len() && line.chars().count() + word.chars().count() >= WIDTH {
            lines += line.trim_end();
            lines += "\n";
            line = indentation.to_owned();
        }
        line += word;
        line += " ";
    }
    lines + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use super::explain;

    #[test]
    fn a_key_has_its_reference() {
        let text = explain("listeners.routes.retry").expect("a key");
        assert!(
            text.starts_with("listeners.routes.retry: mapping\n  default: the upstream's `retries`\n"),
            "{text}"
        );
        assert!(
            text.contains("The failures that are retried.") && text.contains("\n  on: list of "),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert_eq!(explain("listeners[0].routes[].retry").as_deref(), Ok(&*text));
        for path in ["upstreams.servers.weight", "upstreams.<name>.servers[].weight", "weight"] {
            assert!(explain(path).expect(path).contains("servers.weight: count"), "{path}");
        }
        assert!(explain("").expect("the file").contains("\n  listeners: list of listeners\n"));
    }

    #[test]
    fn an_unknown_key_has_a_suggestion() {
        let said = |path| explain(path).expect_err("no key").to_string();
        assert_eq!(
            said("listeners.routes.retri"),
            "the key `listeners.routes.retri` does not exist; did you mean `listeners.routes.retry`?"
        );
        assert!(said("quantum").contains("such as `listeners.routes.retry`"));
    }
}
