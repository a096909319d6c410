//! PostgreSQL.

use crate::{
    Error,
    database::{Batch, ColumnType, Database, Dialect, Row, Update, Value, one_row},
};
use postgres::{
    Client, NoTls,
    error::SqlState,
    types::{ToSql, Type},
};
use std::collections::HashMap;
use zeroize::Zeroizing;

pub(crate) struct PostgreSql(Client);

impl PostgreSql {
    pub(crate) fn connect(url: &str) -> Result<Self, Error> {
        let options: postgres::Config =
            url.parse().map_err(|error: postgres::Error| Error::Address(said(&error)))?;
        options.connect(NoTls).map(Self).map_err(failed)
    }
}

impl Database for PostgreSql {
    fn dialect(&self) -> Dialect {
        Dialect::PostgreSql
    }

    fn columns(&mut self, table: &str) -> Result<HashMap<String, ColumnType>, Error> {
        let query = "SELECT attname::text, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute \
                     WHERE attrelid = to_regclass(quote_ident($1)) AND attnum > 0 AND NOT attisdropped";
        let rows = self.0.query(query, &[&table]).map_err(failed)?;
        let kind = |name: String, is_required: bool| ColumnType {
            is_binary: name == "bytea",
            is_nullable: !is_required,
            is_padded: false,
            name,
        };
        Ok(rows.iter().map(|row| (row.get(0), kind(row.get(1), row.get(2)))).collect())
    }

    fn can_replace_rows(&mut self, table: &str, id: &str) -> Result<(), Error> {
        let query = "SELECT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a \
                     ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] \
                     WHERE i.indrelid = to_regclass(quote_ident($1)) AND i.indisunique AND i.indisvalid \
                     AND i.indpred IS NULL AND i.indnkeyatts = 1 AND a.attname = $2 AND a.attnotnull)";
        let unique: bool = self.0.query_one(query, &[&table, &id]).map_err(failed)?.get(0);
        if unique { Ok(()) } else { Err(Error::not_unique(table, id)) }
    }

    fn count(&mut self, query: &str) -> Result<u64, Error> {
        let row = self.0.query_one(query, &[]).map_err(failed)?;
        Ok(row.get::<_, i64>(0).unsigned_abs())
    }

    fn transact(
        &mut self,
        select: &str,
        after: Option<&str>,
        update: &str,
        convert: &mut dyn FnMut(Vec<Row>) -> Result<Vec<Update>, Error>,
    ) -> Result<Batch, Error> {
        // READ COMMITTED, PostgreSQL's default; the selected rows are locked.
        let mut transaction = self.0.transaction().map_err(failed)?;
        let rows = match &after {
            Some(id) => transaction.query(select, &[id]),
            None => transaction.query(select, &[]),
        };
        let rows: Vec<Row> = rows.map_err(failed)?.iter().map(row).collect();
        let selected = rows.len();
        let last = rows.last().map(|row| row.id.clone());
        let updates = convert(rows)?;
        let updated = updates.len();
        if let Some(first) = updates.first() {
            let types: Vec<Type> = first.values.iter().map(kind).chain([Type::TEXT]).collect();
            let statement = transaction.prepare_typed(update, &types).map_err(failed)?;
            for Update { id, values } in &updates {
                let mut parameters: Vec<&(dyn ToSql + Sync)> = values.iter().map(parameter).collect();
                parameters.push(id);
                one_row(transaction.execute(&statement, &parameters).map_err(failed)?)?;
            }
        }
        transaction.commit().map_err(failed)?;
        Ok(Batch { selected, updated, last })
    }
}

fn row(row: &postgres::Row) -> Row {
    let values = 1..row.len();
    Row {
        id: row.get(0),
        values: values.map(|i| row.get::<_, Option<Vec<u8>>>(i).map(Zeroizing::new)).collect(),
    }
}

fn kind(value: &Value) -> Type {
    match value {
        Value::Bytes(_) => Type::BYTEA,
        Value::Text(_) => Type::TEXT,
        Value::Flag(_) => Type::BOOL,
    }
}

fn parameter(value: &Value) -> &(dyn ToSql + Sync) {
    match value {
        Value::Bytes(bytes) => bytes,
        Value::Text(text) => text,
        Value::Flag(flag) => flag,
    }
}

fn failed(error: postgres::Error) -> Error {
    match error.code() {
        Some(
            &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::LOCK_NOT_AVAILABLE,
        ) => Error::Conflict,
        _ => Error::Database(said(&error)),
    }
}

/// Returns the error with its cause: the text of postgres itself is only "db error".
fn said(error: &postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
