//! MariaDB and MySQL.

use crate::{
    Error,
    database::{Batch, Bytes, ColumnType, Database, Dialect, Row, Update, Value, one_row},
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
        let mut connection = Conn::new(options).map_err(failed)?;
        // Without strict mode, the server truncates an envelope that is longer than its column, and only warns.
        let strict = "SET SESSION sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES')";
        connection.query_drop(strict).map_err(failed)?;
        Ok(Self(connection))
    }
}

impl Database for MariaDb {
    fn dialect(&self) -> Dialect {
        Dialect::MariaDb
    }

    fn columns(&mut self, table: &str) -> Result<HashMap<String, ColumnType>, Error> {
        let query = "SELECT column_name, column_type, is_nullable FROM information_schema.columns \
                     WHERE table_schema = DATABASE() AND table_name = ?";
        let rows: Vec<(String, String, String)> = self.0.exec(query, (table,)).map_err(failed)?;
        let kind = |name: String, nullable: &str| {
            let name = name.to_lowercase();
            ColumnType {
                is_binary: name.contains("binary") || name.contains("blob"),
                is_nullable: nullable == "YES",
                is_padded: name.starts_with("binary"),
                name,
            }
        };
        Ok(rows.into_iter().map(|(column, name, nullable)| (column, kind(name, &nullable))).collect())
    }

    fn can_replace_rows(&mut self, table: &str, id: &str) -> Result<(), Error> {
        let query = "SELECT t.engine FROM information_schema.tables t \
                     JOIN information_schema.engines e ON e.engine = t.engine \
                     WHERE t.table_schema = DATABASE() AND t.table_name = ? AND e.transactions <> 'YES'";
        let engine: Option<String> = self.0.exec_first(query, (table,)).map_err(failed)?;
        if let Some(engine) = engine {
            return Err(Error::without_transactions(table, &engine));
        }
        let query = "SELECT index_name FROM information_schema.statistics \
                     WHERE table_schema = DATABASE() AND table_name = ? AND non_unique = 0 \
                     GROUP BY index_name \
                     HAVING COUNT(*) = 1 AND MAX(column_name) = ? AND MAX(nullable) <> 'YES'";
        let unique: Option<String> = self.0.exec_first(query, (table, id)).map_err(failed)?;
        unique.map(drop).ok_or_else(|| Error::not_unique(table, id))
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
        // Locks the rows that it reads, but not the gaps between: the site can continue to insert.
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
                one_row(transaction.affected_rows())?;
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
