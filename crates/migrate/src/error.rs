//! What ends a run.

/// Why a table could not be migrated. No message holds a value, a key or a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the database cannot be used.
    #[error("the database's address: {0}")]
    Address(String),
    /// The table is not as the job wants it.
    #[error("{0}")]
    Table(String),
    /// The database said no.
    #[error("the database: {0}")]
    Database(String),
    /// The database gave another transaction precedence; the batch can be tried again.
    #[error(
        "the database ended the transaction in favour of another, again and again: try a smaller --batch"
    )]
    Conflict,
    /// An id does not name one row.
    #[error("an update would have changed {0} rows instead of one; nothing of its batch was written")]
    Rows(u64),
    /// A field could not be encrypted.
    #[error("row {row}, column {column}: {source}")]
    Field {
        /// The row's id.
        row: String,
        /// The column.
        column: String,
        /// Why.
        source: quadrille_field::Error,
    },
}

impl Error {
    pub(crate) fn not_unique(table: &str, id: &str) -> Self {
        Self::Table(format!(
            "{table}.{id} does not name one row each: it has no unique index of its own, or may be NULL; name \
             the primary key by --id, or add such an index (of a view, migrate the table behind it)"
        ))
    }

    pub(crate) fn without_transactions(table: &str, engine: &str) -> Self {
        Self::Table(format!(
            "{table} is kept by {engine}, which has no transactions: what the site writes meanwhile would be \
             lost; change it first: ALTER TABLE {table} ENGINE = InnoDB"
        ))
    }
}
