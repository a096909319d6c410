//! What is wrong with a configuration: one form for every front end, and for what is found out when it is put into
//! service.

use crate::{
    model::{Origin, Place, Problem},
    yaml::SyntaxError,
};
use std::fmt;

/// One thing that is wrong: `quadrille.yaml:7: listeners[0].certificats: unknown key; did you mean ...`. Never holds
/// key material.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// What it was read from, with line and path of the field.
    pub place: Place,
    /// What is wrong, and what to do about it.
    pub problem: Problem,
    /// The other setting that it contradicts, where there is one; the message shows it.
    pub contradicts: Option<Place>,
}

/// Everything that could be found wrong in one reading, by line; at least one.
#[derive(Clone, Debug)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostic {
    /// Something wrong here.
    pub fn new(place: &Place, problem: impl Into<Problem>) -> Self {
        Self { place: place.clone(), problem: problem.into(), contradicts: None }
    }

    /// A document that is no YAML.
    pub fn syntax(origin: &Origin, error: SyntaxError) -> Self {
        Self::new(&Place::field(origin, error.line, ""), error.problem)
    }

    /// The same, where the message shows that it contradicts what is written there.
    pub fn contradicting(self, other: &Place) -> Self {
        Self { contradicts: Some(other.clone()), ..self }
    }

    /// Whether what was read from there has a part in it.
    pub fn concerns(&self, origin: &Origin) -> bool {
        std::iter::once(&self.place).chain(&self.contradicts).any(|place| place.origin == *origin)
    }
}

impl Diagnostics {
    /// These, of which there must be one.
    pub fn new(mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.sort_by_key(|diagnostic| diagnostic.place.line);
        Self(diagnostics)
    }

    /// A mistake of the origin as a whole.
    pub fn whole(origin: Origin, problem: impl Into<Problem>) -> Self {
        Diagnostic::new(&Place::whole(origin), problem).into()
    }

    /// Each as a line of text.
    pub fn lines(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// Each of them, by line.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { origin, line, path } = &self.place;
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

/// One a line.
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

/// Of a list that is not empty.
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

/// Lines for a terminal or a log.
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
