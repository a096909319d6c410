//! Makes answers known to all who may be asked.

use crate::{AcmeError, Answers, answers::Answer};
use std::sync::Arc;

/// Where answers go.
pub(crate) struct Publisher {
    pub(crate) answers: Arc<Answers>,
}

impl Publisher {
    /// From now on these are given, and no others. Resolves once everybody who may be asked knows them.
    pub(crate) async fn publish(&self, answers: Vec<Answer>) -> Result<(), AcmeError> {
        self.answers.replace(&answers)?;
        Ok(())
    }
}
