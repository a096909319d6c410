//! Permission bits and user ids.

use crate::{model::Problem, suggest::quote};

/// Parses permission bits for user, group and others: `660`, `0600`.
pub fn file_mode(text: &str) -> Result<u32, Problem> {
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| digits && *mode <= 0o777);
    mode.ok_or_else(|| Problem::new(format!("{} is not a mode", quote(text)), "write 0660, or 0600"))
}

/// Parses the id of a user.
pub fn user_id(text: &str) -> Result<u32, Problem> {
    text.parse().map_err(|_| {
        Problem::new(format!("{} is not a user id", quote(text)), "write the number that `id -u NAME` prints")
    })
}

#[cfg(test)]
mod tests {
    use super::{file_mode, user_id};

    #[test]
    fn modes_and_ids() {
        assert_eq!([file_mode("660"), file_mode("0600")], [Ok(0o660), Ok(0o600)]);
        assert!(["", "rw", "0o660", "888", "1777", "-1"].iter().all(|text| file_mode(text).is_err()));
        assert_eq!(user_id("1000"), Ok(1000));
        assert!(["", "www-data", "-1"].iter().all(|text| user_id(text).is_err()));
    }
}
