//! The loop over a table.

use crate::{
    Error,
    convert::{Held, Outcome, convert},
    database::{Batch, ColumnType, Database, Row, Update, Value},
    job::{Column, Job, Source},
    sql::Statements,
};
use quadrille_field::{Field, envelope};
use std::collections::{BTreeSet, HashMap};

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows that needed conversion when the run began.
    pub total: u64,
    /// Rows converted.
    pub done: u64,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows that were updated, or would be in a dry run.
    pub updated: u64,
    /// Ids of rows with an unreadable value, which is left unchanged.
    pub unreadable: BTreeSet<String>,
}

/// Maximum number of attempts of a batch when the database aborts its transaction in favor of another.
const ATTEMPTS: u32 = 20;

/// Runs a job, and calls `progress` after each batch. It passes over the table until a pass finds nothing to convert,
/// so that rows that the site writes meanwhile are converted too.
pub fn run(
    database: &mut dyn Database,
    job: &Job,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, Error> {
    let types = checked(database, job)?;
    let fields = fields(job)?;
    let prefix = [&[envelope::VERSION][..], &fields[0].active_id().bytes()].concat();
    let statements = Statements::new(job, database.dialect(), &types, &prefix);
    let mut report = Report::default();
    let mut seen = Progress { total: database.count(&statements.count)?, done: 0 };
    progress(seen);
    loop {
        let before = report.updated;
        let mut last: Option<String> = None;
        loop {
            let batch = batch(database, job, &fields, &statements, last.as_deref(), &mut report)?;
            seen.done = report.updated;
            progress(seen);
            match batch.last {
                Some(id) if batch.selected > 0 => last = Some(id),
                _ => break,
            }
        }
        if job.dry_run || report.updated == before {
            return Ok(report);
        }
    }
}

fn batch(
    database: &mut dyn Database,
    job: &Job,
    fields: &[Field],
    statements: &Statements,
    after: Option<&str>,
    report: &mut Report,
) -> Result<Batch, Error> {
    let select = if after.is_some() { &statements.next } else { &statements.first };
    for _ in 0..ATTEMPTS {
        let (mut unreadable, mut found) = (BTreeSet::new(), 0);
        let mut convert = |rows: Vec<Row>| {
            let updates = rows.into_iter().map(|row| converted(job, fields, row, &mut unreadable));
            let updates: Vec<_> = updates.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect();
            found = updates.len() as u64;
            Ok(if job.dry_run { Vec::new() } else { updates })
        };
        match database.transact(select, after, &statements.update, &mut convert) {
            Err(Error::Conflict) => continue,
            Err(error) => return Err(error),
            Ok(batch) => {
                report.unreadable.append(&mut unreadable);
                report.updated += if job.dry_run { found } else { batch.updated as u64 };
                return Ok(batch);
            }
        }
    }
    Err(Error::Conflict)
}

/// Returns the update of a row, if there is something to write.
fn converted(
    job: &Job,
    fields: &[Field],
    row: Row,
    unreadable: &mut BTreeSet<String>,
) -> Result<Option<Update>, Error> {
    let mut values = Vec::new();
    let mut is_changed = false;
    for ((column, field), pair) in job.columns.iter().zip(fields).zip(row.values.chunks_exact(2)) {
        let [stored, source] = [&pair[0], &pair[1]].map(|value| value.as_deref().map(Vec::as_slice));
        let held = match column.from == column.to {
            true => Held::InPlace(stored),
            false => Held::Apart { envelope: stored, source },
        };
        let bits = column.index.as_ref().map(|index| index.bits);
        let outcome = convert(field, &job.source, held, bits, &row.id).map_err(|error| Error::Field {
            row: row.id.clone(),
            column: column.to.clone(),
            source: error,
        })?;
        let (envelope, index) = match outcome {
            Outcome::Replaced { envelope, index } => (Some(envelope), index),
            Outcome::Done => (None, None),
            Outcome::Unreadable => {
                unreadable.insert(row.id.clone());
                (None, None)
            }
        };
        is_changed |= envelope.is_some();
        let cleared = envelope.is_some();
        values.push(Value::Bytes(envelope));
        if column.index.is_some() {
            values.push(Value::Text(index));
        }
        if job.clear && column.from != column.to {
            values.push(Value::Flag(cleared));
        }
    }
    Ok(is_changed.then_some(Update { id: row.id, values }))
}

fn fields(job: &Job) -> Result<Vec<Field>, Error> {
    let field = |column: &Column| {
        job.ring.field(&job.table, &column.to).map_err(|error| Error::Table(error.to_string()))
    };
    job.columns.iter().map(field).collect()
}

/// Returns the table's columns, if they fit the job.
fn checked(database: &mut dyn Database, job: &Job) -> Result<HashMap<String, ColumnType>, Error> {
    let table = &job.table;
    if job.columns.is_empty() || job.batch == 0 {
        return Err(Error::Table("there is nothing to do: name a column, and rows for a batch".to_owned()));
    }
    let types = database.columns(table)?;
    if types.is_empty() {
        return Err(Error::Table(format!("there is no table {table}")));
    }
    let find = |name: &String| {
        let known =
            || types.keys().cloned().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
        types
            .get(name)
            .ok_or_else(|| Error::Table(format!("{table} has no column {name}; it has {}", known())))
    };
    find(&job.id)?;
    database.can_replace_rows(table, &job.id)?;
    for column in &job.columns {
        let from = find(&column.from)?;
        let to = find(&column.to)?;
        if !to.is_binary || to.is_padded {
            return Err(Error::Table(format!(
                "{table}.{} has the type {}, and envelopes are binary, of any length: write them to a column \
                 of type bytea (PostgreSQL) or varbinary, blob (MariaDB)",
                column.to, to.name
            )));
        }
        if let Some(index) = &column.index {
            find(&index.column)?;
            if !quadrille_field::BLIND_INDEX_BITS.contains(&index.bits) || !index.bits.is_multiple_of(8) {
                return Err(Error::Table(quadrille_field::Error::Bits.to_string()));
            }
        }
        if job.clear && column.from != column.to && !from.is_nullable {
            let column = &column.from;
            return Err(Error::Table(format!(
                "{table}.{column} may not be NULL, and cannot be cleared: alter it first, or omit --clear"
            )));
        }
        if job.clear && column.from != column.to && matches!(job.source, Source::Envelopes) {
            return Err(Error::Table("there is no source to clear when only keys are rotated".to_owned()));
        }
    }
    Ok(types)
}
