//! Which responses a client wants first (RFC 9218).

use quiche::h3::{self, Header, NameValue};

/// What a client says of a response: the less urgent wait, and of those that are as urgent, incremental ones share the
/// way, while the others go one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Priority {
    /// 0 is the most urgent, 7 the least.
    urgency: u8,
    incremental: bool,
}

impl Default for Priority {
    /// Of which nothing was said (RFC 9218 section 4).
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// What a request's header says; `None` if it says nothing.
    pub(super) fn of_header(head: &[Header]) -> Option<Self> {
        let field = head.iter().rfind(|field| field.name() == b"priority")?;
        Some(Self::read(field.value()))
    }

    /// The value of such a field, or of a frame that says it later. What is not understood says nothing: it is the client
    /// alone who would have wanted it.
    pub(super) fn read(value: &[u8]) -> Self {
        let mut read = Self::default();
        for member in value.split(|&byte| byte == b',') {
            let member = member.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
            match member {
                [b'u', b'=', urgency @ b'0'..=b'7'] => read.urgency = urgency - b'0',
                b"i" | b"i=?1" => read.incremental = true,
                b"i=?0" => read.incremental = false,
                _ => {}
            }
        }
        read
    }

    /// Has it hold for a stream whose response has begun; before, it begins with it.
    pub(super) fn apply(self, quic: &mut quiche::Connection, stream: u64) {
        /// Where urgencies begin among what else a connection sends; as quiche has it for responses.
        const MOST_URGENT: u8 = 124;
        // A stream that is over needs none.
        let _ = quic.stream_priority(stream, MOST_URGENT + self.urgency, self.incremental);
    }

    /// As a response begins with it.
    pub(super) fn of_response(self) -> h3::Priority {
        h3::Priority::new(self.urgency, self.incremental)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_understood_holds_and_the_rest_says_nothing() {
        for (value, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            ("i=?1,u=5", 5, true),
            (" i ; a=1 ,\tu=2;b", 2, true),
            ("i, i=?0", 3, false),
            ("u=8, i=1", 3, false),
            ("u=-1, u, U=1, uu=1", 3, false),
            ("x=\"a, u=1\", y=(u=1)", 3, false),
            ("\u{e4}, u=1", 1, false),
        ] {
            assert_eq!(Priority::read(value.as_bytes()), Priority { urgency, incremental }, "{value}");
        }
    }

    #[test]
    fn the_last_field_of_a_header_counts() {
        let field = |name: &str, value: &str| Header::new(name.as_bytes(), value.as_bytes());
        let head = [field("priority", "u=1"), field("priority", "u=2"), field("x", "u=3")];
        assert_eq!(Priority::of_header(&head), Some(Priority { urgency: 2, incremental: false }));
        assert_eq!(Priority::of_header(&head[2..]), None);
    }
}
