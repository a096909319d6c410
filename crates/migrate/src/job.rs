//! Description of the work.

use quadrille_field::{KeyRing, Legacy, Mcrypt};

/// One table's work.
pub struct Job {
    /// The keys.
    pub ring: KeyRing,
    /// The table, also as the table name in the fields' keys and envelopes.
    pub table: String,
    /// The column whose value, as text, identifies a row: its primary key.
    pub id: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The format of values that are not envelopes.
    pub source: Source,
    /// Rows in one transaction.
    pub batch: u32,
    /// Whether a source column is set to NULL in the transaction that writes its envelope, if it is a different
    /// column.
    pub clear: bool,
    /// Whether rows are only read and counted, and nothing is written.
    pub dry_run: bool,
}

/// The source and the destination of a field.
#[derive(Clone, Debug)]
pub struct Column {
    /// The column that is read.
    pub from: String,
    /// The column that holds envelopes, also as the column name in the fields' keys and envelopes. May be the same.
    pub to: String,
    /// A blind index to fill.
    pub index: Option<Index>,
}

/// A column for blind indexes.
#[derive(Clone, Debug)]
pub struct Index {
    /// The name of the column.
    pub column: String,
    /// Bits of each index, 8 to 256, a multiple of 8.
    pub bits: u32,
}

/// The format of values that are not envelopes.
pub enum Source {
    /// Unreadable: only envelopes are re-encrypted.
    Envelopes,
    /// The older AES-256-CBC form.
    Legacy(Box<Legacy>),
    /// Ciphertext of PHP's mcrypt extension.
    Mcrypt(Box<Mcrypt>),
    /// Plain text.
    Plain,
}
