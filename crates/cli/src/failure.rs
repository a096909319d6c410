//! Failure of a command, with its exit status.

use std::process::ExitCode;

/// Problems of a command that has failed.
pub(crate) struct Failure {
    problems: Vec<String>,
    status: u8,
}

/// Exit status for errors that the user must fix: invalid flags, an invalid configuration, a port in use.
const BAD_INPUT: u8 = 2;
/// Exit status of `quadrille check` for an invalid configuration.
const MISTAKES: u8 = 1;

impl Failure {
    /// Returns the failure of a check that has found mistakes.
    pub(crate) fn mistakes(problems: Vec<String>) -> Self {
        Self { problems, status: MISTAKES }
    }

    /// Prints the problems, and returns the exit status.
    pub(crate) fn report(self) -> ExitCode {
        for problem in self.problems {
            eprintln!("quadrille: {problem}");
        }
        ExitCode::from(self.status)
    }
}

impl From<Vec<String>> for Failure {
    fn from(problems: Vec<String>) -> Self {
        Self { problems, status: BAD_INPUT }
    }
}
