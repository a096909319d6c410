//! A configuration file, or standard input, which is read at start and again on reloads.

use super::{
    checks,
    composition::Composer,
    envoys_form,
    sections::{self, EMPTY},
    text::read_text,
};
use crate::{
    Diagnostic, Diagnostics,
    model::{Gateway, Origin, Place},
    reader::{Dialect, Reader},
};
use std::{
    cell::RefCell,
    io::Read,
    path::{Path, PathBuf},
};
use zeroize::Zeroizing;

/// A configuration that was read.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub gateway: Gateway,
    /// Warnings about it, ordered by file and line.
    pub warnings: Vec<Diagnostic>,
    /// The place of `access_log`, if it is set.
    pub access_log: Option<Place>,
}

/// A configuration file, or standard input.
pub struct ConfigurationFile {
    path: PathBuf,
    origin: Origin,
    /// The text of standard input, which can be read once.
    input: Option<Zeroizing<String>>,
    /// The files and directories that the last reading used, besides the file itself.
    files: RefCell<Vec<PathBuf>>,
}

impl ConfigurationFile {
    /// Opens a file, or standard input if the path is `-`. Relative paths in standard input begin at
    /// `base_directory`, or at the current directory.
    ///
    /// # Errors
    /// If standard input cannot be read, or is not UTF-8 text.
    pub fn open(path: &Path, base_directory: Option<&Path>) -> Result<Self, Diagnostics> {
        let is_input = path == Path::new("-");
        let origin = match is_input {
            true => Origin::Input(base_directory.unwrap_or(Path::new("")).into()),
            false => Origin::file(&path.display().to_string()),
        };
        let input = is_input.then(|| read_input(&origin)).transpose()?;
        Ok(Self { path: path.to_owned(), origin, input, files: RefCell::default() })
    }

    /// Reads the configuration, with the files that it includes.
    ///
    /// # Errors
    /// If a file cannot be read, or has mistakes; the error then has all that could be found.
    pub fn read(&self) -> Result<Loaded, Diagnostics> {
        let text = match &self.input {
            Some(text) => text.clone(),
            None => read_text(&self.path)?,
        };
        let mut composer = Composer::new(self.origin.clone());
        let read = gateway(&text, &mut composer);
        *self.files.borrow_mut() = composer.files;
        read
    }

    /// Returns the files that the last reading used, besides the file itself, and the directories of patterns.
    pub fn files(&self) -> Vec<PathBuf> {
        self.files.borrow().clone()
    }

    /// Returns the path of the file; `None` for standard input.
    pub fn path(&self) -> Option<&Path> {
        self.input.is_none().then_some(&*self.path)
    }
}

impl Loaded {
    /// Refuses a configuration with warnings, which are then its mistakes.
    ///
    /// # Errors
    /// If there is a warning.
    pub fn without_warnings(self) -> Result<Self, Diagnostics> {
        if self.warnings.is_empty() { Ok(self) } else { Err(self.warnings.into()) }
    }
}

/// Reads a configuration from text, and the files that it includes.
pub(super) fn gateway(text: &str, composer: &mut Composer) -> Result<Loaded, Diagnostics> {
    let root = composer.compose(text);
    let mut mistakes = std::mem::take(&mut composer.mistakes);
    let Some(root) = root else {
        if mistakes.is_empty() {
            mistakes.push(Diagnostic::new(&Place::field(&composer.origins[0], 1, ""), EMPTY));
        }
        return Err(mistakes.into());
    };
    if composer.is_incomplete {
        return Err(mistakes.into());
    }
    let mut origins = composer.origins.iter().cloned();
    let origin = origins.next().unwrap_or(Origin::Default);
    let reader = Reader::new(origin, Dialect::Strict).with_homes(sections::home_of).with_included(origins);
    let field = reader.root(&root, "");
    if let Some(problem) = envoys_form::problem(&root, field.origin()) {
        return Err(Diagnostic::new(&problem.0, problem.1).into());
    }
    let before: Vec<_> = mistakes.iter().map(|mistake| mistake.place.path.to_string()).collect();
    mistakes.into_iter().for_each(|mistake| field.report(mistake));
    let gateway = sections::gateway(&field);
    if let Some(gateway) = gateway.as_ref().filter(|_| !field.has_mistakes()) {
        checks::check(&field, gateway);
    }
    let access_log = field.entry("access_log").map(|field| field.place());
    let (gateway, warnings) = reader.finish(gateway).map_err(|found| without_consequences(found, &before))?;
    let mut warnings = warnings.into_diagnostics();
    warnings.append(&mut composer.warnings);
    let number =
        |origin: &Origin| composer.origins.iter().position(|known| known == origin).unwrap_or_default();
    warnings.sort_by_key(|warning| (number(&warning.place.origin), warning.place.line, warning.place.column));
    Ok(Loaded { gateway, warnings, access_log })
}

/// Leaves out mistakes in values that could not be composed, after the reason for that.
fn without_consequences(found: Diagnostics, paths: &[String]) -> Diagnostics {
    let mut seen = Vec::new();
    let mut found: Vec<Diagnostic> = found.into();
    found.retain(|mistake| {
        let path = mistake.place.path.to_string();
        let follows = seen.contains(&path) && paths.contains(&path);
        seen.push(path);
        !follows
    });
    found.into()
}

fn read_input(origin: &Origin) -> Result<Zeroizing<String>, Diagnostics> {
    let mut text = Zeroizing::new(String::new());
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| Diagnostics::whole(origin.clone(), format!("cannot be read: {error}")))?;
    Ok(text)
}
