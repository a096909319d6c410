//! `quadrille convert`.

use crate::{failure::Failure, schema};
use quadrille_convert::{Conversion, Language, Source, convert};
use std::{
    io::Read,
    path::{Path, PathBuf},
};

/// Convert a configuration of nginx, HAProxy or Caddy to a configuration of Quadrille.
///
/// Writes YAML that `quadrille check` accepts, and lists on standard error the statements without an equivalent, each
/// with its line and a remedy. The same list is at the beginning of the output.
///
/// A statement that restricts access (allow and deny, passwords, limits, client certificates) and has no equivalent
/// closes what it protects: the route responds with 403 or 503, and a comment that begins with CLOSED gives the reason.
///
///   quadrille convert nginx /etc/nginx/nginx.conf --output quadrille.yaml
///   quadrille convert haproxy /etc/haproxy/haproxy.cfg --output quadrille.yaml
///   caddy adapt --config Caddyfile | quadrille convert caddy - --output quadrille.yaml
///   quadrille check quadrille.yaml
///
/// The exit status is 0 if all statements are converted, 1 if some are not, and 2 if the file cannot be read or
/// contains nothing that can be served.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Convert {
    /// The language of the file.
    language: SourceLanguage,
    /// The file; `-` is standard input.
    file: PathBuf,
    /// The file to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Directory at which relative paths begin [default: that of the file, or the current one].
    #[arg(long, value_name = "DIRECTORY")]
    base_directory: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum SourceLanguage {
    /// `nginx.conf`, with the files that it includes.
    Nginx,
    /// `haproxy.cfg`.
    Haproxy,
    /// The JSON of `caddy adapt --config Caddyfile`.
    Caddy,
}

impl Convert {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let source = self.source().map_err(|problem| vec![problem])?;
        let conversion = convert(self.language.into(), &source).map_err(|problem| vec![problem])?;
        match &self.output {
            None => schema::print(&conversion.yaml)?,
            Some(path) => std::fs::write(path, &conversion.yaml)
                .map_err(|error| vec![format!("cannot write {}: {error}", path.display())])?,
        }
        report(&conversion);
        if conversion.not_converted.is_empty() { Ok(()) } else { Err(Failure::mistakes(Vec::new())) }
    }

    fn source(&self) -> Result<Source, String> {
        let is_input = self.file == Path::new("-");
        let text = if is_input {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            std::fs::read_to_string(&self.file)
        };
        let name = if is_input { "standard input".to_owned() } else { self.file.display().to_string() };
        let text = text.map_err(|error| format!("cannot read {name}: {error}"))?;
        let directory = match &self.base_directory {
            Some(directory) => directory.as_path(),
            None if is_input => Path::new(""),
            None => self.file.parent().unwrap_or(Path::new("")),
        };
        // The output may be in another directory.
        let directory = match directory.as_os_str().is_empty() {
            true => std::env::current_dir(),
            false => std::path::absolute(directory),
        };
        let directory = directory.map_err(|error| format!("cannot read the current directory: {error}"))?;
        Ok(Source { name: name.into(), directory, text })
    }
}

impl From<SourceLanguage> for Language {
    fn from(language: SourceLanguage) -> Self {
        match language {
            SourceLanguage::Nginx => Self::Nginx,
            SourceLanguage::Haproxy => Self::Haproxy,
            SourceLanguage::Caddy => Self::Caddy,
        }
    }
}

/// Prints a summary.
fn report(conversion: &Conversion) {
    let Conversion { statements, not_converted, differing, .. } = conversion;
    for remark in not_converted {
        eprintln!("not converted: {remark}");
    }
    for remark in differing {
        eprintln!("differs: {remark}");
    }
    let converted = statements - not_converted.len();
    eprintln!("{converted} of {statements} statements converted, {} with a difference", differing.len());
}
