//! What can go wrong with Redis.

use std::sync::Arc;

/// Why the fleet's Redis is of no help.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FleetError {
    /// No connection.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// It answered with an error, such as a wrong password.
    #[error("{0}")]
    Redis(Arc<redis::RedisError>),
    /// There is no ring.
    #[error("holds no ticket keys of this fleet (fleet {0}); is a gateway with this fleet secret running?")]
    NoRing(String),
    /// Others changed the ring again and again meanwhile.
    #[error("others keep changing the ticket keys; try again")]
    Busy,
}

impl From<redis::RedisError> for FleetError {
    fn from(error: redis::RedisError) -> Self {
        Self::Redis(Arc::new(error))
    }
}
