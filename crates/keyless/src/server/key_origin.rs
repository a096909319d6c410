//! Where a key comes from. One that was generated here is a file like all others, with two lines in front that say for
//! whom and for what: so whoever moves such a file moves what the policy needs to know of it.

/// For whom and for what a key was generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The client, as logs show it.
    pub client: String,
    /// What the client calls it, for policies and for people.
    pub reference: String,
}

const CLIENT: &str = "Generated-For: ";
const REFERENCE: &str = "Reference: ";

impl Generated {
    /// What stands before a key; `None` if it was put there by somebody else.
    pub(super) fn parse(pem: &[u8]) -> Option<Self> {
        let mut lines = pem.split(|byte| *byte == b'\n').map(|line| std::str::from_utf8(line).ok());
        let client = lines.next()??.strip_prefix(CLIENT)?.to_owned();
        let reference = lines.next()??.strip_prefix(REFERENCE)?.to_owned();
        Some(Self { client, reference })
    }

    /// In one line, whatever a certificate calls its client.
    pub(super) fn head(&self) -> String {
        let client = self.client.replace(|character: char| character.is_control(), "?");
        format!("{CLIENT}{client}\n{REFERENCE}{}\n", self.reference)
    }
}
