//! A conversion from its source to the text of a configuration.

use crate::{
    caddy,
    draft::Draft,
    haproxy,
    ledger::{Ledger, Remark},
    nginx,
    source::Source,
    yaml,
};
use std::fmt::Write as _;

/// Language of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `nginx.conf`, with the files that it includes.
    Nginx,
    /// `haproxy.cfg`.
    Haproxy,
    /// The JSON of `caddy adapt`.
    Caddy,
}

/// A converted configuration.
#[derive(Debug)]
pub struct Conversion {
    /// The configuration, with comments.
    pub yaml: String,
    /// Number of statements in the source.
    pub statements: usize,
    /// Statements without an equivalent, with a remedy.
    pub not_converted: Vec<Remark>,
    /// Statements whose equivalent differs.
    pub differing: Vec<Remark>,
}

/// Converts a configuration.
///
/// # Errors
/// If the source cannot be read in its language, or contains nothing that can be served.
pub fn convert(language: Language, source: &Source) -> Result<Conversion, String> {
    let ledger = Ledger::default();
    let draft = match language {
        Language::Nginx => nginx::draft(source, &ledger)?,
        Language::Haproxy => haproxy::draft(source, &ledger)?,
        Language::Caddy => caddy::draft(source, &ledger)?,
    };
    if draft.listeners.is_empty() {
        let problems: Vec<_> = ledger.not_converted().iter().map(|remark| format!("\n  {remark}")).collect();
        return Err(format!("{}: no server that can be converted{}", source.name, problems.concat()));
    }
    let conversion = Conversion {
        yaml: text(&draft, &ledger, source),
        statements: ledger.len(),
        not_converted: ledger.not_converted(),
        differing: ledger.differing(),
    };
    match quadrille_config::parse(&conversion.yaml, "conversion") {
        Ok(_) => Ok(conversion),
        Err(mistakes) => Err(format!(
            "{}: the conversion is not a valid configuration, which is a defect of the converter:\n{mistakes}\n{}",
            source.name, conversion.yaml
        )),
    }
}

/// Writes the configuration after a list of remarks.
fn text(draft: &Draft, ledger: &Ledger, source: &Source) -> String {
    let (refused, differing) = (ledger.not_converted(), ledger.differing());
    let mut text = String::new();
    let total = ledger.len();
    let _ = writeln!(
        text,
        "# Converted from {} by `quadrille convert`: {} of {total} statements.\n# Read the comments, then run: \
         quadrille check FILE",
        one_line(&source.name),
        total - refused.len(),
    );
    list(&mut text, "Not converted", &refused);
    list(&mut text, "Converted with a difference", &differing);
    text.push('\n');
    text.push_str(&yaml::document(&draft.to_map()));
    text
}

fn list(text: &mut String, title: &str, remarks: &[Remark]) {
    if remarks.is_empty() {
        return;
    }
    let _ = writeln!(text, "#\n# {title}:");
    for remark in remarks {
        for (index, line) in yaml::wrapped(&remark.to_string(), 112).iter().enumerate() {
            let _ = writeln!(text, "#   {}{}", if index > 0 { "  " } else { "" }, one_line(line));
        }
    }
}

/// Replaces characters that would end a comment.
fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control() || c == '\u{85}' || c == '\u{2028}' || c == '\u{2029}', " ")
}
