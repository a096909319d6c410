//! What is to be done.

use quadrille_field::{KeyRing, Legacy, Mcrypt};

/// One table's work.
pub struct Job {
    /// The keys.
    pub ring: KeyRing,
    /// The table, and what fields' keys and envelopes name as their table.
    pub table: String,
    /// The column whose value, as text, names a row: its primary key.
    pub id: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// What values that are no envelopes are.
    pub source: Source,
    /// Rows in one transaction.
    pub batch: u32,
    /// Sets a source column to NULL in the transaction that writes its envelope, if it is another column.
    pub clear: bool,
    /// Reads and counts, and writes nothing.
    pub dry_run: bool,
}

/// Where a field comes from and goes to.
#[derive(Clone, Debug)]
pub struct Column {
    /// The column that is read.
    pub from: String,
    /// The column that holds envelopes, and what fields' keys and envelopes name as their column. May be the same.
    pub to: String,
    /// A blind index to fill.
    pub index: Option<Index>,
}

/// A column for blind indexes.
#[derive(Clone, Debug)]
pub struct Index {
    /// Its name.
    pub column: String,
    /// Bits of each index, 8 to 256, a multiple of 8.
    pub bits: u32,
}

/// What values that are no envelopes are.
pub enum Source {
    /// Nothing that can be read: only envelopes are re-encrypted.
    Envelopes,
    /// The older AES-256-CBC form.
    Legacy(Box<Legacy>),
    /// What PHP's mcrypt extension has encrypted.
    Mcrypt(Box<Mcrypt>),
    /// Plain text.
    Plain,
}
