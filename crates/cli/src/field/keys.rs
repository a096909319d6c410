//! `quadrille field keys`.

use quadrille_field::KeyRing;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Keys {
    /// The key ring file.
    file: PathBuf,
}

impl Keys {
    pub(crate) fn run(self) -> Result<(), String> {
        let ring = KeyRing::load(&self.file).map_err(|error| error.to_string())?;
        for (id, state) in ring.keys() {
            println!("{id} {state}");
        }
        Ok(())
    }
}
