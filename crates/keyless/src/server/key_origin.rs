//! Origin of a key. The file of a generated key begins with two extra lines that name its client and its purpose, so
//! that moving the file keeps the data that the policy needs.

/// Client and purpose of a generated key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Client name in logs.
    pub client: String,
    /// Name given by the client, for policies and display.
    pub reference: String,
}

const CLIENT: &str = "Generated-For: ";
const REFERENCE: &str = "Reference: ";

impl Generated {
    /// Parses the lines before a key; `None` if the key was not generated here.
    pub(super) fn parse(pem: &[u8]) -> Option<Self> {
        let mut lines = pem.split(|byte| *byte == b'\n').map(|line| std::str::from_utf8(line).ok());
        let client = lines.next()??.strip_prefix(CLIENT)?.to_owned();
        let reference = lines.next()??.strip_prefix(REFERENCE)?.to_owned();
        Some(Self { client, reference })
    }

    /// Formats the lines; control characters in a client's name are replaced.
    pub(super) fn head(&self) -> String {
        let client = self.client.replace(|character: char| character.is_control(), "?");
        format!("{CLIENT}{client}\n{REFERENCE}{}\n", self.reference)
    }
}
