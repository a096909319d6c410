//! Text in a table cell.

/// Replaces characters that would end the cell.
pub(super) fn in_cell(text: &str) -> String {
    text.replace('|', "/").replace('\n', " ")
}
