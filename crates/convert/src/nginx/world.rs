//! Definitions of the whole configuration, which its servers refer to.

use super::{condition::Definitions, statement::Statement, tables};
use crate::{draft::Draft, ledger::Ledger};
use std::{cell::RefCell, collections::BTreeMap, path::Path};

/// Definitions of a block `http` or `stream`, and the configuration that is made.
pub(super) struct World<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) draft: &'a RefCell<Draft>,
    /// Directory of relative paths.
    pub(super) directory: &'a Path,
    /// `upstream` blocks by name.
    pub(super) upstreams: BTreeMap<&'a str, &'a Statement>,
    /// `map` and `geo` blocks by the name of their variable.
    pub(super) definitions: Definitions<'a>,
    /// `limit_req_zone` by name.
    pub(super) zones: BTreeMap<&'a str, &'a Statement>,
}

impl<'a> World<'a> {
    /// Collects the definitions of a block.
    pub(super) fn new(
        block: &'a [Statement],
        ledger: &'a Ledger,
        draft: &'a RefCell<Draft>,
        directory: &'a Path,
    ) -> Self {
        let named = |name: &str| block.iter().filter(move |one| one.name == name).collect::<Vec<_>>();
        let mut definitions = Definitions::new();
        for statement in named("map") {
            definitions.insert(statement.arg(1).trim_start_matches('$'), statement);
        }
        for statement in named("geo") {
            let variable = statement.args.last().map_or("", String::as_str);
            definitions.insert(variable.trim_start_matches('$'), statement);
        }
        let upstreams = named("upstream").into_iter().map(|one| (one.arg(0), one)).collect();
        let zones = named("limit_req_zone").into_iter();
        let zones = zones.filter_map(|one| Some((one.option("zone")?.split(':').next()?, one))).collect();
        Self { ledger, draft, directory, upstreams, definitions, zones }
    }

    /// Returns the path of a file, relative to the directory of the source.
    pub(super) fn file(&self, path: &str) -> String {
        self.directory.join(path).display().to_string()
    }

    /// Notes that all statements of a block are converted, or need no conversion.
    pub(super) fn convert_all(&self, statement: &Statement) {
        self.ledger.converted(statement.id);
        statement.statements().iter().for_each(|inner| self.convert_all(inner));
    }

    /// Notes that a statement and those inside are not converted.
    pub(super) fn refuse_all(&self, statement: &Statement, remedy: &str) {
        self.ledger.refused(statement.id, remedy);
        statement.statements().iter().for_each(|inner| self.refuse_all(inner, remedy));
    }

    /// Notes directives without a conversion of their own, and returns the first guard among them: its statement and
    /// remedy.
    pub(super) fn sort_out<'s>(
        &self,
        statements: impl Iterator<Item = &'s Statement>,
    ) -> Option<(&'s Statement, &'static str)> {
        let mut guard = None;
        for statement in statements {
            if statement.name == "include" && tables::is_unneeded_include(statement.arg(0)) {
                self.ledger.converted(statement.id);
                continue;
            }
            match tables::treatment(&statement.name) {
                Some(tables::Treatment::Unneeded) => self.convert_all(statement),
                Some(tables::Treatment::Refused(remedy)) => self.refuse_all(statement, remedy),
                Some(tables::Treatment::Guard(_)) if statement.arg(0) == "off" => {
                    self.ledger.converted(statement.id);
                }
                Some(tables::Treatment::Guard(remedy)) => {
                    self.refuse_all(statement, remedy);
                    guard = guard.or(Some((statement, remedy)));
                }
                None => {}
            }
        }
        guard
    }
}
