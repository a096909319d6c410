//! MariaDB and MySQL.

use crate::{
    Error,
    database::{Batch, Bytes, ColumnType, Database, Dialect, Row, Update, Value},
};
use mysql::{
    AccessMode, Conn, IsolationLevel, Opts, Params, TxOpts, Value as Sql, from_value, prelude::Queryable,
};
use std::collections::HashMap;
use zeroize::Zeroizing;

pub(crate) struct MariaDb(Conn);

impl MariaDb {
    pub(crate) fn connect(url: &str) -> Result<Self, Error> {
        let options = Opts::from_url(url).map_err(|error| Error::Address(error.to_string()))?;
        Conn::new(options).map(Self).map_err(failed)
    }
}

impl Database for MariaDb {
    fn dialect(&self) -> Dialect {
        Dialect::MariaDb
    }

    fn columns(&mut self, table: &str) -> Result<HashMap<String, ColumnType>, Error> {
        let query = "SELECT column_name, column_type FROM information_schema.columns \
                     WHERE table_schema = DATABASE() AND table_name = ?";
        let rows: Vec<(String, String)> = self.0.exec(query, (table,)).map_err(failed)?;
        let kind = |name: String| {
            let name = name.to_lowercase();
            ColumnType { is_binary: name.contains("binary") || name.contains("blob"), name }
        };
        Ok(rows.into_iter().map(|(column, name)| (column, kind(name))).collect())
    }

    fn count(&mut self, query: &str) -> Result<u64, Error> {
        self.0.query_first(query).map_err(failed).map(Option::unwrap_or_default)
    }

    fn transact(
        &mut self,
        select: &str,
        after: Option<&str>,
        update: &str,
        convert: &mut dyn FnMut(Vec<Row>) -> Result<Vec<Update>, Error>,
    ) -> Result<Batch, Error> {
        // With what it reads locked, and no gaps between: the site goes on inserting.
        let options = TxOpts::default()
            .set_isolation_level(Some(IsolationLevel::ReadCommitted))
            .set_access_mode(Some(AccessMode::ReadWrite));
        let mut transaction = self.0.start_transaction(options).map_err(failed)?;
        let parameters = after.map_or(Params::Empty, |id| Params::Positional(vec![id.into()]));
        let rows: Vec<mysql::Row> = transaction.exec(select, parameters).map_err(failed)?;
        let rows: Vec<Row> = rows.into_iter().map(row).collect();
        let selected = rows.len();
        let last = rows.last().map(|row| row.id.clone());
        let updates = convert(rows)?;
        let updated = updates.len();
        if updated > 0 {
            let statement = transaction.prep(update).map_err(failed)?;
            for Update { id, values } in updates {
                let mut parameters: Vec<Sql> = values.into_iter().map(parameter).collect();
                parameters.push(id.into());
                transaction.exec_drop(&statement, Params::Positional(parameters)).map_err(failed)?;
            }
        }
        transaction.commit().map_err(failed)?;
        Ok(Batch { selected, updated, last })
    }
}

fn row(row: mysql::Row) -> Row {
    let mut values = row.unwrap().into_iter();
    let id = values.next().map(from_value::<String>).unwrap_or_default();
    let bytes = |value| from_value::<Option<Vec<u8>>>(value).map(Zeroizing::new);
    Row { id, values: values.map(bytes).collect::<Vec<Option<Bytes>>>() }
}

fn parameter(value: Value) -> Sql {
    match value {
        Value::Bytes(bytes) => bytes.into(),
        Value::Text(text) => text.into(),
        Value::Flag(flag) => flag.into(),
    }
}

/// ER_LOCK_WAIT_TIMEOUT and ER_LOCK_DEADLOCK.
const CONFLICTS: [u16; 2] = [1205, 1213];

fn failed(error: mysql::Error) -> Error {
    match &error {
        mysql::Error::MySqlError(said) if CONFLICTS.contains(&said.code) => Error::Conflict,
        _ => Error::Database(error.to_string()),
    }
}
