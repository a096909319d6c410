//! Where the database is.

use crate::Error;
use std::{fmt, str::FromStr};

/// A database's URL: `mysql://user:password@localhost/app?socket=/run/mysqld/mysqld.sock`,
/// `postgresql://user:password@localhost:5432/app`, `postgresql:///app?host=/run/postgresql&user=app`.
///
/// Connections are not encrypted, so what is on them is visible to whoever is between: use sockets, loopback, or a
/// tunnel. Shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    /// MariaDB or MySQL.
    MariaDb(String),
    /// PostgreSQL.
    PostgreSql(String),
}

impl Address {
    /// Whether the address is on this machine: a socket, or a loopback address.
    pub fn is_local(&self) -> bool {
        let (Self::MariaDb(url) | Self::PostgreSql(url)) = self;
        if url.contains("socket=") || url.contains("host=/") || url.contains("host=%2F") {
            return true;
        }
        let authority = url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = authority.split(['/', '?']).next().unwrap_or("");
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = host.strip_prefix('[').map_or_else(
            || host.split(':').next().unwrap_or(""),
            |bracketed| bracketed.split(']').next().unwrap_or(""),
        );
        let loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        host.is_empty() || host.eq_ignore_ascii_case("localhost") || loopback
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("mysql" | "mariadb") => Ok(Self::MariaDb(url.replacen("mariadb://", "mysql://", 1))),
            Some("postgres" | "postgresql") => Ok(Self::PostgreSql(url.to_owned())),
            _ => Err(Error::Address(
                "begin it with mysql:// or postgresql://, for instance postgresql://user@localhost/app"
                    .to_owned(),
            )),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MariaDb(_) => "mysql://...",
            Self::PostgreSql(_) => "postgresql://...",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_told_from_others() {
        for (url, local) in [
            ("mysql://u:p@localhost/app", true),
            ("mariadb://u:p@127.0.0.1:3307/app", true),
            ("postgresql://u@[::1]:5432/app", true),
            ("postgresql:///app?host=/run/postgresql", true),
            ("mysql://u@db/app?socket=/run/s", true),
            ("mysql://u:p@db.example.com/app", false),
            ("postgres://localhost@10.0.0.1/app", false),
        ] {
            assert_eq!(url.parse::<Address>().expect("an address").is_local(), local, "{url}");
        }
        assert!("sqlite:file".parse::<Address>().is_err());
    }

    #[test]
    fn no_password_is_shown() {
        let address: Address = "mysql://u:secret@localhost/app".parse().expect("an address");
        assert!(!format!("{address:?}").contains("secret"));
    }
}
