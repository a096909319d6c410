//! Text in a cell of a table.

/// Without what would end the cell.
pub(super) fn in_cell(text: &str) -> String {
    text.replace('|', "/").replace('\n', " ")
}
