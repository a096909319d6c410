//! Re-encrypts the fields of a database table while a site uses it: from the older form or from plain text, and from
//! older keys to the active one.
//!
//! ```text
//!            ┌── select a batch of rows that need it, locked ── convert (pure) ── update ── commit ──┐
//! Job ── run ┤                                                                                        ├── Report
//!            └──────────────────────── after the last id, until none is left ─────────────────────────┘
//! ```
//!
//! The progress is visible in the envelopes themselves, which begin with the key's id. So there is no state to keep
//! or to lose. After an interruption, the next run continues at the same point, and a row is never between two
//! formats, because each batch is one transaction.
//!
//! - [`Job`]: the work to do; [`Report`]: the work done.
//! - [`convert`]: conversion of one value.
//! - [`Database`]: MariaDB or PostgreSQL, by unencrypted connections (see [`Address`]).

mod address;
pub mod convert;
mod database;
mod error;
mod job;
mod mariadb;
mod postgresql;
mod run;
mod sql;

pub use address::Address;
pub use database::{Batch, Bytes, ColumnType, Database, Dialect, Row, Update, Value};
pub use error::Error;
pub use job::{Column, Index, Job, Source};
pub use run::{Progress, Report, run};

/// Connects to the database at an address.
pub fn connect(address: &Address) -> Result<Box<dyn Database>, Error> {
    match address {
        Address::MariaDb(url) => Ok(Box::new(mariadb::MariaDb::connect(url)?)),
        Address::PostgreSql(url) => Ok(Box::new(postgresql::PostgreSql::connect(url)?)),
    }
}
