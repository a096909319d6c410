//! Mistakes in a configuration, in one format for every front end and for errors found when the configuration is put
//! into service.

use crate::{
    model::{Origin, Place, Problem},
    yaml::SyntaxError,
};
use std::fmt;

/// One mistake: `quadrille.yaml:7: listeners[0].certificats: unknown key; did you mean ...`. Never contains key
/// material.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The source of the setting, with line and path of the field.
    pub place: Place,
    /// The problem and its remedy.
    pub problem: Problem,
    /// The other setting that it contradicts, if there is one; the message names it.
    pub contradicts: Option<Place>,
}

/// All mistakes found in one reading, ordered by line; at least one.
#[derive(Clone, Debug)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostic {
    /// Makes a diagnostic for this place.
    pub fn new(place: &Place, problem: impl Into<Problem>) -> Self {
        Self { place: place.clone(), problem: problem.into(), contradicts: None }
    }

    /// Makes a diagnostic for a document that is not valid YAML.
    pub fn syntax(origin: &Origin, error: SyntaxError) -> Self {
        Self::new(&Place::at(origin, error.position, ""), error.problem)
    }

    /// Adds the place of the setting that this one contradicts, which the message names.
    pub fn contradicting(self, other: &Place) -> Self {
        Self { contradicts: Some(other.clone()), ..self }
    }

    /// Returns whether a setting of this origin is involved.
    pub fn concerns(&self, origin: &Origin) -> bool {
        std::iter::once(&self.place).chain(&self.contradicts).any(|place| place.origin == *origin)
    }
}

impl Diagnostics {
    /// Makes diagnostics of this list, which must not be empty.
    pub fn new(mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.sort_by_key(|diagnostic| diagnostic.place.line);
        Self(diagnostics)
    }

    /// Makes a diagnostic for the origin as a whole.
    pub fn whole(origin: Origin, problem: impl Into<Problem>) -> Self {
        Diagnostic::new(&Place::whole(origin), problem).into()
    }

    /// Returns each diagnostic as a line of text.
    pub fn lines(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// Iterates over the diagnostics, ordered by line.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { origin, line, path, .. } = &self.place;
        origin.fmt(f)?;
        if let Some(line) = line {
            write!(f, ":{line}")?;
        }
        if !path.is_empty() {
            write!(f, ": {path}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// Writes one diagnostic for each line.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}
impl std::error::Error for Diagnostics {}

/// Converts a list that is not empty.
impl From<Vec<Diagnostic>> for Diagnostics {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self(diagnostics)
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl From<Diagnostics> for Vec<Diagnostic> {
    fn from(diagnostics: Diagnostics) -> Self {
        diagnostics.0
    }
}

/// Converts to lines for a terminal or a log.
impl From<Diagnostics> for Vec<String> {
    fn from(diagnostics: Diagnostics) -> Self {
        diagnostics.lines()
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
