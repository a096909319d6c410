//! The level of the log, which can be changed while the process runs.

/// Changes the level of the log. The front end implements it, which writes the log.
pub trait LogLevel: Send + Sync {
    /// Returns the level in force: a word such as `info`, or a filter in tracing's syntax.
    fn current(&self) -> String;

    /// Returns the configured level.
    fn configured(&self) -> String;

    /// Changes the level; `None` sets the configured one.
    ///
    /// # Errors
    /// If the text is not a level or filter; the level stays as before.
    fn set(&self, level: Option<&str>) -> Result<(), String>;
}
