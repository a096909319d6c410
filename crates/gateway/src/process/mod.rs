//! What every serving process has: the engine, signals, and threads that yield to the event loops.

pub(crate) mod background;
pub(crate) mod digest;
pub(crate) mod engine;
pub(crate) mod signals;

use quadrille_config::{
    Diagnostic,
    model::{Origin, Place},
};

/// What keeps a process from starting, though nothing is wrong with its configuration.
pub(crate) fn start_failure(error: std::io::Error) -> Vec<Diagnostic> {
    vec![Diagnostic::new(&Place::whole(Origin::Process), format!("cannot start: {error}"))]
}
