//! Languages in which the first rule whose conditions hold applies: HAProxy and Caddy.

mod conjunction;
mod path_test;
mod way;

pub(crate) use conjunction::Conjunction;
pub(crate) use path_test::{PathTest, both};
pub(crate) use way::{Change, Way, apply, routes};
