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
