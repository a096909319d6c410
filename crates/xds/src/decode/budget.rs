//! Limits on the trees of one response.

use super::error::Fault;
use crate::Limits;

/// Remaining budget for the trees of one response.
#[derive(Debug)]
pub struct Budget {
    nodes: usize,
    pub(super) depth: usize,
}

impl Budget {
    /// Creates the full budget.
    pub fn new(limits: &Limits) -> Self {
        Self { nodes: limits.nodes, depth: limits.depth }
    }

    pub(super) fn spend(&mut self, nodes: usize) -> Result<(), Fault> {
        self.nodes = self.nodes.checked_sub(nodes).ok_or(Fault::TooLarge)?;
        Ok(())
    }
}
