//! `quadrille fmt`.

use crate::{failure::Failure, schema::print};
use quadrille_config::{Diagnostic, model::Origin, yaml};
use std::{
    fs, io,
    io::{Read, Write},
    os::unix::fs::{MetadataExt, chown},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// Format configuration files: indentation by two spaces, and blank lines.
///
/// Keys, values, comments and their order stay. Files that are not formatted are replaced atomically; a file that cannot be
/// read as YAML is left unchanged.
#[derive(clap::Args)]
pub(crate) struct Fmt {
    /// The files; `-` formats standard input to standard output.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing, and list the files that are not formatted, with exit status 1.
    #[arg(long)]
    check: bool,
}

impl Fmt {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let problems: Vec<_> = self.files.iter().filter_map(|file| self.format(file).err()).collect();
        if problems.is_empty() { Ok(()) } else { Err(Failure::mistakes(problems)) }
    }

    fn format(&self, file: &Path) -> Result<(), String> {
        let is_input = file == Path::new("-");
        let name = if is_input { "standard input".to_owned() } else { file.display().to_string() };
        let mut text = String::new();
        let read = if is_input {
            io::stdin().read_to_string(&mut text).map(drop)
        } else {
            fs::read_to_string(file).map(|read| text = read)
        };
        read.map_err(|error| format!("cannot read {name}: {error}"))?;
        let formatted = yaml::format(&text)
            .map_err(|error| Diagnostic::syntax(&Origin::file(&name), error).to_string())?;
        if self.check {
            let remedy = format!("{name} is not formatted; run `quadrille fmt {}`", file.display());
            return if formatted == text { Ok(()) } else { Err(remedy) };
        }
        if is_input {
            return print(&formatted).map_err(|problems| problems.join("; "));
        }
        if formatted == text {
            return Ok(());
        }
        replace(file, &formatted).map_err(|error| format!("cannot write {name}: {error}"))
    }
}

/// Replaces a file, or the one that a link names, atomically: a gateway may watch it. Its mode and owner stay.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let file = fs::canonicalize(file)?;
    let known = fs::metadata(&file)?;
    let directory = file.parent().unwrap_or_else(|| Path::new("/"));
    let mut new = NamedTempFile::new_in(directory)?;
    new.write_all(text.as_bytes())?;
    let created = new.as_file().metadata()?;
    if (created.uid(), created.gid()) != (known.uid(), known.gid()) {
        chown(new.path(), Some(known.uid()), Some(known.gid()))?;
    }
    fs::set_permissions(new.path(), known.permissions())?;
    new.as_file().sync_all()?;
    new.persist(&file).map(drop).map_err(|error| error.error)
}
