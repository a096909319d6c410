//! The statements of a job.

use crate::{
    database::{ColumnType, Dialect},
    job::{Column, Job, Source},
};
use std::{collections::HashMap, fmt::Write};

/// The statements of a job, for one database.
pub(crate) struct Statements {
    /// Counts the rows that need conversion.
    pub(crate) count: String,
    /// Selects and locks the first rows that need conversion.
    pub(crate) first: String,
    /// Selects and locks the rows after an id.
    pub(crate) next: String,
    /// Updates one row.
    pub(crate) update: String,
}

impl Statements {
    /// `types` has every column that the job names.
    pub(crate) fn new(
        job: &Job,
        dialect: Dialect,
        types: &HashMap<String, ColumnType>,
        prefix: &[u8],
    ) -> Self {
        let write = Writer { job, dialect, types };
        let table = write.name(&job.table);
        let id = write.name(&job.id);
        let needs: Vec<_> = job.columns.iter().map(|column| write.needs(column, prefix)).collect();
        let needs = needs.join(" OR ");
        let selected: Vec<_> = job.columns.iter().flat_map(|column| write.selected(column)).collect();
        let select =
            format!("SELECT {}, {} FROM {table} WHERE ({needs})", write.id_as_text(), selected.join(", "));
        let rest = format!("ORDER BY {id} LIMIT {} FOR UPDATE", job.batch);
        let after = write.id_parameter(1);
        let mut parameter = 0;
        let set: Vec<_> = job.columns.iter().flat_map(|column| write.set(column, &mut parameter)).collect();
        Self {
            count: format!("SELECT COUNT(*) FROM {table} WHERE ({needs})"),
            first: format!("{select} {rest}"),
            next: format!("{select} AND {id} > {after} {rest}"),
            update: format!(
                "UPDATE {table} SET {} WHERE {id} = {}",
                set.join(", "),
                write.id_parameter(parameter + 1)
            ),
        }
    }
}

struct Writer<'a> {
    job: &'a Job,
    dialect: Dialect,
    types: &'a HashMap<String, ColumnType>,
}

impl Writer<'_> {
    fn name(&self, name: &str) -> String {
        match self.dialect {
            Dialect::MariaDb => format!("`{}`", name.replace('`', "``")),
            Dialect::PostgreSql => format!("\"{}\"", name.replace('"', "\"\"")),
        }
    }

    fn bytes(&self, bytes: &[u8]) -> String {
        let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        match self.dialect {
            Dialect::MariaDb => format!("X'{hex}'"),
            Dialect::PostgreSql => format!("'\\x{hex}'::bytea"),
        }
    }

    /// Returns the condition that a column needs conversion: its envelope is missing or does not begin with the
    /// active key's `prefix`.
    fn needs(&self, column: &Column, prefix: &[u8]) -> String {
        let to = self.name(&column.to);
        let other = match self.dialect {
            Dialect::MariaDb => format!("LEFT({to}, {}) <> {}", prefix.len(), self.bytes(prefix)),
            Dialect::PostgreSql => {
                format!("substring({to} from 1 for {}) <> {}", prefix.len(), self.bytes(prefix))
            }
        };
        if column.from == column.to || matches!(self.job.source, Source::Envelopes) {
            other
        } else {
            let from = self.name(&column.from);
            format!(
                "({to} IS NULL OR length({to}) = 0) AND {from} IS NOT NULL OR length({to}) > 0 AND {other}"
            )
        }
    }

    /// Returns the envelope and its source, both as bytes.
    fn selected(&self, column: &Column) -> [String; 2] {
        [&column.to, &column.from].map(|name| {
            let is_binary = self.types.get(name).is_some_and(|kind| kind.is_binary);
            let name = self.name(name);
            match self.dialect {
                _ if is_binary => name,
                // Applications read text in the character set of their connection, and ciphertext as it is.
                Dialect::MariaDb if matches!(self.job.source, Source::Plain) => {
                    format!("CAST(CONVERT({name} USING utf8mb4) AS BINARY)")
                }
                Dialect::MariaDb => format!("CAST({name} AS BINARY)"),
                Dialect::PostgreSql => format!("convert_to({name}::text, 'UTF8')"),
            }
        })
    }

    fn id_as_text(&self) -> String {
        let id = self.name(&self.job.id);
        match self.dialect {
            Dialect::MariaDb => format!("CAST({id} AS CHAR)"),
            Dialect::PostgreSql => format!("{id}::text"),
        }
    }

    /// Returns an id parameter that is given as text, cast to the column's own type, so that an index is used.
    fn id_parameter(&self, number: usize) -> String {
        let name = self.types.get(&self.job.id).map_or("", |kind| &kind.name);
        match self.dialect {
            Dialect::MariaDb if !name.contains("int") => "?".to_owned(),
            Dialect::MariaDb if name.contains("unsigned") => "CAST(? AS UNSIGNED)".to_owned(),
            Dialect::MariaDb => "CAST(? AS SIGNED)".to_owned(),
            Dialect::PostgreSql => format!("CAST(${number}::text AS {name})"),
        }
    }

    /// Returns assignments with their parameters: envelope, index, whether the source is cleared. NULL leaves a
    /// column unchanged.
    fn set(&self, column: &Column, parameter: &mut usize) -> Vec<String> {
        let mut next = |kind: &str| {
            *parameter += 1;
            match self.dialect {
                Dialect::MariaDb => "?".to_owned(),
                Dialect::PostgreSql => format!("${parameter}::{kind}"),
            }
        };
        let to = self.name(&column.to);
        let mut set = vec![format!("{to} = COALESCE({}, {to})", next("bytea"))];
        if let Some(index) = &column.index {
            let index = self.name(&index.column);
            set.push(format!("{index} = COALESCE({}, {index})", next("text")));
        }
        if self.clears(column) {
            let from = self.name(&column.from);
            set.push(format!("{from} = CASE WHEN {} THEN NULL ELSE {from} END", next("boolean")));
        }
        set
    }

    fn clears(&self, column: &Column) -> bool {
        self.job.clear && column.from != column.to
    }
}
