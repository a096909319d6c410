//! What a run needs of a database.

use crate::Error;
use std::collections::HashMap;
use zeroize::Zeroizing;

/// A connection to one kind of database.
pub trait Database {
    /// How this database writes names, bytes and types.
    fn dialect(&self) -> Dialect;

    /// The columns of a table by their names; empty if there is no such table.
    fn columns(&mut self, table: &str) -> Result<HashMap<String, ColumnType>, Error>;

    /// Whether rows stay locked until their transaction ends, and `id` names one each.
    ///
    /// # Errors
    /// Says which is missing.
    fn can_replace_rows(&mut self, table: &str, id: &str) -> Result<(), Error>;

    /// The one number that a query gives.
    fn count(&mut self, query: &str) -> Result<u64, Error>;

    /// One transaction: selects rows, hands them to `convert`, and makes the updates that it wants. Tells how many rows
    /// there were and the last row's id. `select` takes the id to begin after, if `after` is given.
    fn transact(
        &mut self,
        select: &str,
        after: Option<&str>,
        update: &str,
        convert: &mut dyn FnMut(Vec<Row>) -> Result<Vec<Update>, Error>,
    ) -> Result<Batch, Error>;
}

/// What SQL looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MariaDB, MySQL.
    MariaDb,
    /// PostgreSQL.
    PostgreSql,
}

/// A column's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// As the database writes it: `varbinary(255)`, `bigint`.
    pub name: String,
    /// Whether it holds bytes as they are.
    pub is_binary: bool,
    /// Whether it may be NULL.
    pub is_nullable: bool,
    /// Whether it adds zeros up to its length.
    pub is_padded: bool,
}

/// A row that was selected.
pub struct Row {
    /// The id, as text.
    pub id: String,
    /// The values in the order of the selected columns.
    pub values: Vec<Option<Bytes>>,
}

/// Erased when dropped: it may be plain text.
pub type Bytes = Zeroizing<Vec<u8>>;

/// One row's update.
pub struct Update {
    /// The id, as text.
    pub id: String,
    /// The parameters in front of the id.
    pub values: Vec<Value>,
}

/// A parameter.
pub enum Value {
    /// Bytes, or nothing to write.
    Bytes(Option<Vec<u8>>),
    /// Text, or nothing to write.
    Text(Option<String>),
    /// Whether the source is cleared.
    Flag(bool),
}

/// What one transaction did.
pub struct Batch {
    /// Rows that were selected.
    pub selected: usize,
    /// Rows that were updated.
    pub updated: usize,
    /// The last row's id.
    pub last: Option<String>,
}

/// What an update has to change.
///
/// # Errors
/// If it was more, or nothing: the transaction must not be committed.
pub(crate) fn one_row(changed: u64) -> Result<(), Error> {
    if changed == 1 { Ok(()) } else { Err(Error::Rows(changed)) }
}
