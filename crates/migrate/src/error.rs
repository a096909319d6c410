//! Errors that end a run.

/// The reason why a table could not be migrated. Messages never contain a value, a key or a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the database cannot be used.
    #[error("the database's address: {0}")]
    Address(String),
    /// The table does not fit the job.
    #[error("{0}")]
    Table(String),
    /// The database returned an error.
    #[error("the database: {0}")]
    Database(String),
    /// The database gave another transaction precedence; the batch can be tried again.
    #[error("the database repeatedly aborted the transaction in favor of another: try a smaller --batch")]
    Conflict,
    /// An id does not identify one row.
    #[error("an update would have changed {0} rows instead of one; nothing of its batch was written")]
    Rows(u64),
    /// A field could not be encrypted.
    #[error("row {row}, column {column}: {source}")]
    Field {
        /// The row's id.
        row: String,
        /// The column.
        column: String,
        /// The error.
        source: quadrille_field::Error,
    },
}

impl Error {
    pub(crate) fn not_unique(table: &str, id: &str) -> Self {
        Self::Table(format!(
            "{table}.{id} does not identify each row: it has no unique index of its own, or may be NULL; give \
             the primary key by --id, or add such an index (for a view, migrate its table)"
        ))
    }

    pub(crate) fn without_transactions(table: &str, engine: &str) -> Self {
        Self::Table(format!(
            "{table} uses {engine}, which has no transactions: concurrent writes of the site would be lost; \
             change it first: ALTER TABLE {table} ENGINE = InnoDB"
        ))
    }
}
