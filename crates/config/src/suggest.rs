//! Quoted user input and suggestions in messages.

/// Returns the text in backticks. A long text or one of several lines is not shown, since it may be a misplaced
/// private key.
pub fn quote(text: &str) -> String {
    if text.chars().count() > LONGEST_QUOTE || text.contains(['\n', '\r']) || text.contains("-----BEGIN") {
        return format!("(text of {} bytes)", text.len());
    }
    format!("`{}`", text.escape_debug())
}

/// Maximum length of a quoted text: shorter than a line of PEM.
const LONGEST_QUOTE: usize = 48;

/// Returns the candidate that `name` probably stands for: one that it abbreviates, or that differs in a few letters.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let name = plain(name);
    let distance = |candidate: &str| strsim::damerau_levenshtein(&name, &plain(candidate));
    // Two changes make most words of four letters of any other.
    let most = if name.len() <= 4 { 1 } else { 1 + name.len() / 4 };
    let close = |candidate: &&str| distance(candidate) <= most;
    candidates.clone().filter(close).min_by_key(|candidate| distance(candidate)).or_else(|| {
        let mut abbreviated = candidates.filter(|candidate| name.len() >= 3 && candidate.starts_with(&name));
        abbreviated.next()
    })
}
