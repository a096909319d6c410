//! Resource limits for documents from untrusted sources.

use crate::model::Problem;
use std::cell::Cell;

/// The remaining memory for documents that were received together, such as the resources of one response. A short
/// text can compile to a regular expression of megabytes, and each of many resources can name the same large file.
#[derive(Debug)]
pub struct Allowance {
    programs: Cell<usize>,
    bodies: Cell<usize>,
    exhausted: Cell<bool>,
}

/// Maximum size of all compiled regular expressions, in bytes.
const PROGRAMS: usize = 128 << 20;
/// Maximum size of one; the `regex` crate refuses larger ones in any case.
const LARGEST_PROGRAM: usize = 10 << 20;
/// Minimum size that is counted for one.
const SMALLEST_PROGRAM: usize = 4096;
/// Maximum size of all response bodies, in bytes.
const BODIES: usize = 64 << 20;

/// Returns the full allowance.
impl Default for Allowance {
    fn default() -> Self {
        Self { programs: Cell::new(PROGRAMS), bodies: Cell::new(BODIES), exhausted: Cell::new(false) }
    }
}

impl Allowance {
    /// Calls `compile` with increasing size limits until it succeeds. The last limit is counted, even after a
    /// failure, which costs time too.
    ///
    /// # Errors
    /// The error of the last attempt, or an exhausted allowance.
    pub fn compile<T>(
        &self,
        compile: impl Fn(usize) -> Result<T, regex::Error>,
        problem: impl Fn(&regex::Error) -> Problem,
    ) -> Result<T, Problem> {
        let left = self.programs.get();
        let most = left.min(LARGEST_PROGRAM);
        let mut limit = most.min(SMALLEST_PROGRAM);
        let compiled = loop {
            match compile(limit) {
                Err(regex::Error::CompiledTooBig(_)) if limit < most => limit = most.min(limit * 2),
                other => break other,
            }
        };
        self.programs.set(left - limit);
        compiled.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) if most < LARGEST_PROGRAM => {
                self.exhausted.set(true);
                let message =
                    format!("the regular expressions received with it take more than {PROGRAMS} bytes");
                Problem::new(message, "send fewer at once, or smaller ones")
            }
            error => problem(&error),
        })
    }

    /// Returns whether something needed more than was left.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.get()
    }

    /// Counts the bytes of a body.
    ///
    /// # Errors
    /// If fewer bytes are left.
    pub fn take_body(&self, bytes: usize) -> Result<(), Problem> {
        let left = self.bodies.get().checked_sub(bytes).ok_or_else(|| {
            self.exhausted.set(true);
            let message = format!("the bodies received with it have more than {BODIES} bytes");
            Problem::new(message, "shorten the bodies, or serve them from an upstream")
        })?;
        self.bodies.set(left);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::whole_within;

    fn read(allowance: &Allowance, text: &str) -> Result<(), String> {
        let read = allowance.compile(|bytes| whole_within(text, bytes), |error| error.to_string().into());
        read.map(drop).map_err(|problem| problem.to_string())
    }

    #[test]
    fn ordinary_expressions_cost_little_and_large_ones_end_it() {
        let allowance = Allowance::default();
        for index in 0..200 {
            assert_eq!(read(&allowance, &format!("/users/[0-9]+/{index}/.*")), Ok(()));
        }
        assert!(allowance.programs.get() > PROGRAMS - 200 * 32 * 1024, "{}", allowance.programs.get());
        let before = allowance.programs.get();
        assert!(read(&allowance, "(").is_err() && read(&allowance, "x{10000}{10000}").is_err());
        assert!(allowance.programs.get() <= before - LARGEST_PROGRAM, "failures cost nothing");
        assert!(!allowance.is_exhausted());
        let allowance = Allowance { programs: Cell::new(100_000), ..Allowance::default() };
        let said = (0..10).find_map(|_| read(&allowance, "[a-z]{1000}").err()).expect("an end");
        assert!(said.contains("send fewer at once") && allowance.is_exhausted(), "{said}");
    }

    #[test]
    fn bodies_are_counted_together() {
        let allowance = Allowance::default();
        assert!(allowance.take_body(BODIES - 1).is_ok() && allowance.take_body(2).is_err());
        assert!(allowance.take_body(1).is_ok() && allowance.take_body(1).is_err());
    }
}
