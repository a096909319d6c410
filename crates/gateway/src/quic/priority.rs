//! Response priorities (RFC 9218).

use quiche::h3::{self, Header, NameValue};

/// Priority of a response: less urgent responses wait. Of equally urgent ones, incremental responses share the
/// bandwidth, while others are sent one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Priority {
    /// Urgency: 0 is the highest, 7 the lowest.
    urgency: u8,
    incremental: bool,
}

impl Default for Priority {
    /// Returns the default priority (RFC 9218 section 4).
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Returns the priority in a request's header; `None` if it has no priority.
    pub(super) fn of_header(head: &[Header]) -> Option<Self> {
        let field = head.iter().rfind(|field| field.name() == b"priority")?;
        Some(Self::read(field.value()))
    }

    /// Parses the value of a priority field or PRIORITY_UPDATE frame. Unknown or invalid parameters are ignored: they
    /// affect only this client.
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

    /// Applies it to a stream whose response has begun; otherwise the response begins with it.
    pub(super) fn apply(self, quic: &mut quiche::Connection, stream: u64) {
        /// First urgency value of responses among a connection's streams, as in quiche.
        const MOST_URGENT: u8 = 124;
        // Fails for a closed stream, which does not need a priority.
        let _ = quic.stream_priority(stream, MOST_URGENT + self.urgency, self.incremental);
    }

    /// Returns the priority for the start of a response.
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
