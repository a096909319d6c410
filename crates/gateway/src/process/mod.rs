//! What every serving process has: the engine, signals, and threads that yield to the event loops.

pub(crate) mod background;
pub(crate) mod certificates;
pub(crate) mod descriptors;
pub(crate) mod digest;
pub(crate) mod engine;
pub(crate) mod signals;
pub(crate) mod staples;

use quadrille_config::{
    Diagnostic,
    model::{Origin, Place, Problem},
};

/// What keeps a process from starting, though nothing is wrong with its configuration.
pub(crate) fn start_failure(error: std::io::Error) -> Vec<Diagnostic> {
    start_problem(error.to_string().into())
}

/// The same, where it may be known what to do about it.
pub(crate) fn start_problem(Problem { message, remedy }: Problem) -> Vec<Diagnostic> {
    let problem = Problem { message: format!("cannot start: {message}"), remedy };
    vec![Diagnostic::new(&Place::whole(Origin::Process), problem)]
}
