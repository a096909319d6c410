//! Text of another server's configuration.

use std::{path::PathBuf, sync::Arc};

/// Text to convert.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the file, for messages.
    pub name: Arc<str>,
    /// Directory at which relative paths begin.
    pub directory: PathBuf,
    /// Content of the file.
    pub text: String,
}
