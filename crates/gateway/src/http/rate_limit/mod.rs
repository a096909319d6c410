//! How many requests are served in a time: of all together, or of each that is told apart.

mod limiter;
mod table;

pub(crate) use limiter::Limiter;
pub(super) use {limiter::network, table::Table};

use quadrille_config::model::RateLimit;
use std::{collections::HashMap, sync::Arc};

/// The limits of a configuration, with what of them is left.
#[derive(Clone, Default)]
pub(crate) struct Limiters(HashMap<RateLimit, Arc<Limiter>>);

impl Limiters {
    /// Adds the limiter of this limit. One that there was before goes on.
    pub(crate) fn take(&mut self, limit: &RateLimit, before: &Self) {
        if !self.0.contains_key(limit) {
            let limiter = before.0.get(limit).cloned();
            self.0.insert(limit.clone(), limiter.unwrap_or_else(|| Arc::new(Limiter::new(limit))));
        }
    }

    /// Those of these limits that were taken.
    pub(super) fn of(&self, limits: &[RateLimit]) -> Box<[Arc<Limiter>]> {
        limits.iter().filter_map(|limit| self.0.get(limit).cloned()).collect()
    }
}
