/// The position of a value: the file among those of a document, the line and the column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The number of the file: 0 is the document itself, the others are files that it includes.
    pub file: u16,
    /// The column, counted from one; 0 if the value does not come from text.
    pub column: u16,
    /// The line, counted from one; 0 if the value does not come from text.
    pub line: u32,
}

impl Position {
    /// Position of a value that does not come from text.
    pub const NONE: Self = Self { file: 0, column: 0, line: 0 };

    /// Returns a position in the document itself. Numbers that are too large are reduced.
    pub(crate) fn new(line: usize, column: usize) -> Self {
        let column = u16::try_from(column).unwrap_or(u16::MAX);
        Self { file: 0, column, line: u32::try_from(line).unwrap_or(u32::MAX) }
    }

    /// Returns whether the value comes from text.
    pub fn is_of_text(self) -> bool {
        self.line > 0
    }
}
