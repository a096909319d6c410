//! What every serving process has: the engine, and threads that yield to the event loops.

pub(crate) mod background;
pub(crate) mod digest;
pub(crate) mod engine;
