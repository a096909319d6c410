//! A file of limited size: when it is full, it gets the suffix `.1`, the one that had it `.2`, and so on.

use super::append_file::open_file;
use quadrille_config::model::RotatedFile;
use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

/// Writes lines to a file, and begins a new one when it is full. One call of `write` has whole lines.
pub(super) struct RotatingWriter {
    settings: RotatedFile,
    file: File,
    size: u64,
    /// Whether the last rotation failed; the reason is printed once.
    failing: bool,
}

impl RotatingWriter {
    /// Opens the file, and continues it.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(super) fn open(settings: &RotatedFile) -> io::Result<Self> {
        let file = open_file(&settings.path)?;
        let size = file.metadata()?.len();
        Ok(Self { settings: settings.clone(), file, size, failing: false })
    }

    /// Begins a new file. If that fails, the current one continues.
    fn rotate(&mut self) {
        let result =
            shift(&self.settings.path, self.settings.keep).and_then(|()| open_file(&self.settings.path));
        match result {
            Ok(file) => (self.file, self.size, self.failing) = (file, 0, false),
            Err(error) if !self.failing => {
                self.failing = true;
                tracing::error!(file = %self.settings.path.display(), %error, "cannot rotate the access log");
            }
            Err(_) => {}
        }
    }
}

impl Write for RotatingWriter {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let length = lines.len() as u64;
        if self.size > 0 && self.size + length > self.settings.max_size {
            self.rotate();
        }
        self.file.write_all(lines)?;
        self.size += length;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Renames a full file and the former ones. The last of `keep` files is replaced.
fn shift(path: &Path, keep: u32) -> io::Result<()> {
    for number in (0..keep).rev() {
        match fs::rename(numbered(path, number), numbered(path, number + 1)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the path of a former file; of the current one for zero.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_renamed_and_the_oldest_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.log");
        let settings = RotatedFile { path: path.clone(), max_size: 10, keep: 2 };
        let mut writer = RotatingWriter::open(&settings).expect("a file");
        for line in ["one 1\n", "two 2\n", "three\n", "four4\n", "a line longer than the limit\n", "six 6\n"]
        {
            writer.write_all(line.as_bytes()).expect("writing");
        }
        let text = |number| fs::read_to_string(numbered(&path, number)).expect("a file");
        assert_eq!([text(0), text(1), text(2)], ["six 6\n", "a line longer than the limit\n", "four4\n"]);
        assert!(!numbered(&path, 3).exists());
        // The size of an existing file counts.
        let mut writer = RotatingWriter::open(&settings).expect("a file");
        writer.write_all(b"seven\n").expect("writing");
        assert_eq!([text(0), text(1)], ["seven\n", "six 6\n"]);
    }
}
