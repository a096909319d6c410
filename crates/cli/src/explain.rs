//! `quadrille explain`.

/// Print the reference of a key of the configuration file.
///
/// For example:
///   quadrille explain listeners.routes.retry
///   quadrille explain weight
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Explain {
    /// Path of the key, or its last part; the top level if it is omitted.
    #[arg(default_value = "", hide_default_value = true)]
    key: String,
}

impl Explain {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let text = quadrille_config::explain(&self.key).map_err(|problem| vec![problem.to_string()])?;
        crate::schema::print(text.trim_start_matches('\n'))
    }
}
