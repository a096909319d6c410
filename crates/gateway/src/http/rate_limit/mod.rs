//! Local rate limits: requests per time, in total or per key.
//!
//! - `limiter`: one limit with its remaining allowance.
//! - `table`: usage by key, in memory of fixed size.

mod limiter;
mod table;

pub(crate) use limiter::Limiter;
pub(super) use {limiter::network, table::Table};

use quadrille_config::model::RateLimit;
use std::{collections::HashMap, sync::Arc};

/// The rate limiters of a configuration.
#[derive(Clone, Default)]
pub(crate) struct Limiters(HashMap<RateLimit, Arc<Limiter>>);

impl Limiters {
    /// Adds the limiter of this limit. An existing limiter keeps its state.
    pub(crate) fn take(&mut self, limit: &RateLimit, before: &Self) {
        if !self.0.contains_key(limit) {
            let limiter = before.0.get(limit).cloned();
            self.0.insert(limit.clone(), limiter.unwrap_or_else(|| Arc::new(Limiter::new(limit))));
        }
    }

    /// Returns the limiters of these limits.
    pub(super) fn of(&self, limits: &[RateLimit]) -> Box<[Arc<Limiter>]> {
        limits.iter().filter_map(|limit| self.0.get(limit).cloned()).collect()
    }
}
