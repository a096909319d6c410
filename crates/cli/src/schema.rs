//! `quadrille schema`.

use std::io::{self, Write};

/// Print a JSON Schema of the configuration file.
///
/// Editors complete and check a file whose first line names it:
///   quadrille schema > quadrille.schema.json
///   # yaml-language-server: $schema=quadrille.schema.json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Schema {}

/// Prints a text; its reader may need only the beginning.
pub(crate) fn print(text: &str) -> Result<(), Vec<String>> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(vec![format!("cannot write: {error}")])
        }
        _ => Ok(()),
    }
}

impl Schema {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        print(&format!("{:#}\n", quadrille_config::json_schema()))
    }
}
