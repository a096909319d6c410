//! Errors of the fleet's Redis.

use std::sync::Arc;

/// Reason that an operation on the fleet's Redis failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FleetError {
    /// Redis cannot be reached.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// Redis returned an error, such as a wrong password.
    #[error("{0}")]
    Redis(Arc<redis::RedisError>),
    /// Redis has no ring of this fleet.
    #[error("holds no ticket keys of this fleet (fleet {0}); is a gateway with this fleet secret running?")]
    NoRing(String),
    /// Other members changed the ring during every attempt.
    #[error("other members keep changing the ticket keys; try again")]
    Busy,
}

impl From<redis::RedisError> for FleetError {
    fn from(error: redis::RedisError) -> Self {
        Self::Redis(Arc::new(error))
    }
}
