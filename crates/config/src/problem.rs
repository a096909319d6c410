//! What keeps a configuration that reads well from being served: a key that does not match, a port that is taken.

use crate::model::Place;
use std::fmt;

/// One thing that is wrong, where it was written, and what to do about it. Never holds key material.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where the setting was written.
    pub place: Place,
    /// What is wrong, and the remedy.
    pub message: String,
}

impl Problem {
    /// Something wrong here.
    pub fn new(place: &Place, message: impl Into<String>) -> Self {
        Self { place: place.clone(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for Problem {}
