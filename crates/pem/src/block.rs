//! Blocks of a PEM text (RFC 7468), with the headers of RFC 1421.

use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

/// A block of a PEM text.
pub struct Block<'a> {
    /// The label, such as `CERTIFICATE`.
    pub label: &'a str,
    /// The whole block, from `-----BEGIN` to the end of `-----END`.
    pub text: &'a [u8],
    /// The decoded contents; without meaning if `encrypted`.
    pub contents: Zeroizing<Vec<u8>>,
    /// Whether the contents are encrypted (`Proc-Type: 4,ENCRYPTED`).
    pub encrypted: bool,
    /// Line of `-----BEGIN`, counted from 1.
    pub line: usize,
}

/// A damaged block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Damage {
    /// Line in the file, counted from 1.
    pub line: usize,
    /// Description of the damage.
    pub reason: String,
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";
/// UTF-8 byte order mark, which some editors write at the start of a file, and `cat` then moves into another.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Damage {
    /// Creates the description of damage at this line.
    pub fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

/// Returns the blocks of a text, in its order. Text between blocks is ignored.
///
/// # Errors
/// If a block is not complete, or its contents are not base64.
pub fn blocks(text: &[u8]) -> Result<Vec<Block<'_>>, Damage> {
    let mut blocks = Vec::new();
    let mut open: Option<Open<'_>> = None;
    let mut end = 0;
    for (line, bytes) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
        end += bytes.len();
        let Ok(content) = std::str::from_utf8(without_mark(bytes)) else {
            // Text between blocks may have any encoding.
            match open {
                Some(_) => return Err(Damage::new(line, "the PEM block contains a byte that is not text")),
                None => continue,
            }
        };
        let content = content.trim();
        if let Some(label) = marker(content, BEGIN, line)? {
            if let Some(Open { label, .. }) = open {
                return Err(Damage::new(line, format!("BEGIN before END {label}")));
            }
            let (start, text) = (end - without_mark(bytes).len(), Zeroizing::default());
            open = Some(Open { label, line, start, headers: None, encrypted: false, text });
        } else if let Some(label) = marker(content, END, line)? {
            match open.take() {
                Some(block) if block.label == label => blocks.push(block.close(text, end)?),
                Some(Open { label: begun, .. }) => {
                    return Err(Damage::new(line, format!("END {label} where END {begun} is due")));
                }
                None => return Err(Damage::new(line, format!("END {label} without BEGIN"))),
            }
        } else if let Some(block) = &mut open {
            block.add(content);
        }
    }
    match open {
        Some(Open { label, line, .. }) => Err(Damage::new(line, format!("BEGIN {label} without END"))),
        None => Ok(blocks),
    }
}

/// A block whose end has not been read.
struct Open<'a> {
    label: &'a str,
    line: usize,
    /// Offset of the first line.
    start: usize,
    /// Whether headers are being read; `None` before the first line.
    headers: Option<bool>,
    encrypted: bool,
    text: Zeroizing<String>,
}

impl<'a> Open<'a> {
    fn add(&mut self, content: &str) {
        let in_headers = *self.headers.get_or_insert(content.contains(':'));
        if !in_headers {
            self.text.push_str(content);
        } else if content.is_empty() {
            self.headers = Some(false);
        } else if content.starts_with("Proc-Type:") && content.contains("ENCRYPTED") {
            self.encrypted = true;
        }
    }

    fn close(self, whole: &'a [u8], end: usize) -> Result<Block<'a>, Damage> {
        let Self { label, line, start, encrypted, text, .. } = self;
        let compact: Zeroizing<String> = Zeroizing::new(text.split_ascii_whitespace().collect());
        let contents = Base64::decode_vec(&compact).map(Zeroizing::new);
        let contents = contents.map_err(|_| Damage::new(line, format!("{label} is not base64")))?;
        if contents.is_empty() {
            return Err(Damage::new(line, format!("{label} is empty")));
        }
        Ok(Block { label, text: whole.get(start..end).unwrap_or_default(), contents, encrypted, line })
    }
}

/// Returns the label of a line that begins or ends a block.
fn marker<'a>(content: &'a str, start: &str, line: usize) -> Result<Option<&'a str>, Damage> {
    match content.find(start) {
        None => Ok(None),
        Some(0) => {
            let label = content.get(start.len()..).and_then(|rest| rest.strip_suffix(DASHES));
            let label = label.filter(|label| !label.contains(DASHES));
            label.map(Some).ok_or_else(|| Damage::new(line, format!("`{DASHES}` is due at the end")))
        }
        Some(_) => Err(Damage::new(line, format!("`{}` within a line", start.trim_end()))),
    }
}

fn without_mark(mut line: &[u8]) -> &[u8] {
    while let Some(rest) = line.strip_prefix(BYTE_ORDER_MARK) {
        line = rest;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{Damage, blocks};

    const ONE: &str = "-----BEGIN A-----\nAQID\nBAUG\n-----END A-----\n";

    fn damage(text: impl AsRef<[u8]>) -> Damage {
        blocks(text.as_ref())
            .err()
            .unwrap_or_else(|| panic!("{:?}", text.as_ref().escape_ascii().to_string()))
    }

    #[test]
    fn blocks_are_read_with_the_text_around_them() {
        let text = format!("subject: \u{e4}\r\n{ONE}\n{}\n", ONE.replace(['A', '\n'], "").len());
        assert_eq!(blocks(text.as_bytes()).unwrap().len(), 1);
        let windows = ONE.replace('\n', "\r\n");
        let both = [ONE.as_bytes(), b"\xff\xfe text\n", windows.as_bytes()].concat();
        let both = blocks(&both).unwrap();
        assert_eq!(both.len(), 2);
        assert!(both.iter().all(|block| *block.contents == [1, 2, 3, 4, 5, 6] && block.label == "A"));
        assert_eq!([both[0].line, both[1].line], [1, 6]);
        assert_eq!([both[0].text, both[1].text], [ONE.as_bytes(), windows.as_bytes()]);
        assert!(blocks(b"").unwrap().is_empty() && blocks(b"no block").unwrap().is_empty());
    }

    #[test]
    fn byte_order_marks_are_skipped() {
        let marked = format!("\u{feff}{ONE}\u{feff}{ONE}\u{feff}\u{feff}{ONE}\u{feff}");
        assert_eq!(blocks(marked.as_bytes()).unwrap().len(), 3);
    }

    #[test]
    fn headers_do_not_belong_to_the_contents() {
        let text =
            "-----BEGIN A-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAQID\n-----END A-----";
        let read = blocks(text.as_bytes()).unwrap();
        assert!(read[0].encrypted && *read[0].contents == [1, 2, 3]);
    }

    #[test]
    fn damage_is_found_with_its_line_wherever_it_is() {
        for (bad, line) in [
            ("-----BEGIN B-----\n", 5),
            ("-----BEGIN B-----\nAQID\n", 5),
            ("-----BEGIN B-----\nAQ=D\n-----END B-----\n", 5),
            ("-----BEGIN B-----\nAQI\n-----END B-----\n", 5),
            ("-----BEGIN B-----\nAQ%D\n-----END B-----\n", 5),
            ("-----BEGIN B-----\n-----END B-----\n", 5),
            ("-----BEGIN B-----\nAQID\n-----END A-----\n", 7),
            ("-----BEGIN B-----\nAQID\n-----BEGIN A-----\nAQID\n-----END A-----\n", 7),
            ("-----BEGIN B----\nAQID\n-----END B-----\n", 5),
            ("-----END B-----\n", 5),
            ("text -----BEGIN B-----\nAQID\n-----END B-----\n", 5),
            ("-----BEGIN B-----AQID-----END B-----\n", 5),
        ] {
            assert_eq!(damage(format!("{ONE}{bad}")).line, line, "{bad:?}");
        }
        assert_eq!(damage(ONE.replace('\n', "")).line, 1);
        assert_eq!(damage(b"-----BEGIN A-----\n\xff\n-----END A-----").line, 2);
    }
}
