//! Inheritance of nginx's directives: a block inherits those of the block around it, unless it has its own.

use super::statement::Statement;

/// Blocks around a place, from the outermost to the innermost.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope<'a>(Vec<&'a [Statement]>);

impl<'a> Scope<'a> {
    /// Returns the scope inside a block.
    pub(super) fn within(&self, block: &'a [Statement]) -> Self {
        let mut blocks = self.0.clone();
        blocks.push(block);
        Self(blocks)
    }

    /// Returns the statements with this name of the innermost block that has one.
    pub(super) fn all(&self, name: &str) -> Vec<&'a Statement> {
        let found = |block: &&'a [Statement]| {
            let named: Vec<_> = block.iter().filter(|statement| statement.name == name).collect();
            (!named.is_empty()).then_some(named)
        };
        self.0.iter().rev().find_map(found).unwrap_or_default()
    }

    /// Returns the last statement of [`all`](Self::all).
    pub(super) fn one(&self, name: &str) -> Option<&'a Statement> {
        self.all(name).pop()
    }

    /// Returns the statements with one of these names in the innermost block that has one of them, in their order.
    pub(super) fn any(&self, names: &[&str]) -> Vec<&'a Statement> {
        let found = |block: &&'a [Statement]| {
            let named: Vec<_> = block.iter().filter(|one| names.contains(&one.name.as_str())).collect();
            (!named.is_empty()).then_some(named)
        };
        self.0.iter().rev().find_map(found).unwrap_or_default()
    }

    /// Returns the statements of the innermost block.
    pub(super) fn own(&self) -> &'a [Statement] {
        self.0.last().copied().unwrap_or_default()
    }

    /// Returns the statements of all blocks, the outermost first.
    pub(super) fn everything(&self) -> impl Iterator<Item = &'a Statement> + '_ {
        self.0.iter().copied().flatten()
    }
}
