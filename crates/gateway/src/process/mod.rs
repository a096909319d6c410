//! Parts of every serving process: engine, signals, and background threads.
//!
//! - `engine`: the engine of the process.
//! - `certificates`, `staples`: the threads for ACME and OCSP; `background`: work that yields to the event loops.
//! - `signals`, `file_limits`, `digest`: signals, file descriptors, digests for comparison; `unix_socket`: Unix sockets.

pub(crate) mod background;
pub(crate) mod certificates;
pub(crate) mod digest;
pub(crate) mod engine;
pub(crate) mod file_limits;
pub(crate) mod signals;
pub(crate) mod staples;
pub(crate) mod unix_socket;

use quadrille_config::{
    Diagnostic,
    model::{Origin, Place, Problem},
};

/// Returns the diagnostic of an error that prevents the start, though the configuration is valid.
pub(crate) fn start_failure(error: std::io::Error) -> Vec<Diagnostic> {
    start_problem(error.to_string().into())
}

/// Returns the diagnostic of such an error with its remedy, if known.
pub(crate) fn start_problem(Problem { message, remedy }: Problem) -> Vec<Diagnostic> {
    let problem = Problem { message: format!("cannot start: {message}"), remedy };
    vec![Diagnostic::new(&Place::whole(Origin::Process), problem)]
}
