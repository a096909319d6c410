//! Database interface of a run.

use crate::Error;
use std::collections::HashMap;
use zeroize::Zeroizing;

/// A connection to one kind of database.
pub trait Database {
    /// Returns the SQL dialect: the syntax of names, bytes and types.
    fn dialect(&self) -> Dialect;

    /// Returns the columns of a table by name; empty if the table does not exist.
    fn columns(&mut self, table: &str) -> Result<HashMap<String, ColumnType>, Error>;

    /// Checks that rows stay locked until their transaction ends, and that `id` identifies each row.
    ///
    /// # Errors
    /// If one of these is missing.
    fn can_replace_rows(&mut self, table: &str, id: &str) -> Result<(), Error>;

    /// Returns the single number of a query's result.
    fn count(&mut self, query: &str) -> Result<u64, Error>;

    /// Runs one transaction: selects rows, passes them to `convert`, and makes the updates that it returns. The
    /// result has the number of rows and the last row's id. `select` has a parameter for the id to begin after, if
    /// `after` is given.
    fn transact(
        &mut self,
        select: &str,
        after: Option<&str>,
        update: &str,
        convert: &mut dyn FnMut(Vec<Row>) -> Result<Vec<Update>, Error>,
    ) -> Result<Batch, Error>;
}

/// An SQL dialect.
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
    /// The name in the database's syntax: `varbinary(255)`, `bigint`.
    pub name: String,
    /// Whether it stores raw bytes.
    pub is_binary: bool,
    /// Whether it may be NULL.
    pub is_nullable: bool,
    /// Whether it pads values with zeros.
    pub is_padded: bool,
}

/// A row that was selected.
pub struct Row {
    /// The id, as text.
    pub id: String,
    /// The values in the order of the selected columns.
    pub values: Vec<Option<Bytes>>,
}

/// Bytes that are zeroized when dropped: they may be plain text.
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
    /// Bytes; `None` writes nothing.
    Bytes(Option<Vec<u8>>),
    /// Text; `None` writes nothing.
    Text(Option<String>),
    /// Whether the source is cleared.
    Flag(bool),
}

/// The result of one transaction.
pub struct Batch {
    /// Rows that were selected.
    pub selected: usize,
    /// Rows that were updated.
    pub updated: usize,
    /// The last row's id.
    pub last: Option<String>,
}

/// Checks that an update has changed one row.
///
/// # Errors
/// If it has changed more rows, or none: the transaction must not be committed.
pub(crate) fn one_row(changed: u64) -> Result<(), Error> {
    if changed == 1 { Ok(()) } else { Err(Error::Rows(changed)) }
}
