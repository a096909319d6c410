//! Addresses of databases.

use crate::Error;
use postgres::config::Host;
use std::{fmt, net::IpAddr, str::FromStr};

/// A database's URL: `mysql://user:password@localhost/app?socket=/run/mysqld/mysqld.sock`,
/// `postgresql://user:password@localhost:5432/app`, `postgresql:///app?host=/run/postgresql&user=app`.
///
/// Connections are not encrypted, so any party on the network path can read them: use sockets, loopback, or a tunnel.
/// Shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    /// MariaDB or MySQL.
    MariaDb(String),
    /// PostgreSQL.
    PostgreSql(String),
}

impl Address {
    /// Returns whether the address is on this machine: a socket, or a loopback address, as the database clients parse
    /// it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::MariaDb(url) => mysql::Opts::from_url(url).is_ok_and(|options| {
                options.get_socket().is_some() || is_this_machine(&options.get_ip_or_hostname())
            }),
            Self::PostgreSql(url) => url.parse::<postgres::Config>().is_ok_and(|options| {
                // If addresses are given, the hosts are only names for them.
                let addresses = options.get_hostaddrs();
                let local = |host: &Host| match host {
                    Host::Tcp(name) => is_this_machine(name),
                    Host::Unix(_) => true,
                };
                match addresses.is_empty() {
                    true => options.get_hosts().iter().all(local),
                    false => addresses.iter().all(IpAddr::is_loopback),
                }
            }),
        }
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("mysql" | "mariadb") => Ok(Self::MariaDb(url.replacen("mariadb://", "mysql://", 1))),
            Some("postgres" | "postgresql") => Ok(Self::PostgreSql(url.to_owned())),
            _ => Err(Error::Address(
                "it must begin with mysql:// or postgresql://, for instance postgresql://user@localhost/app"
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
    fn local_addresses_are_distinguished() {
        for (url, local) in [
            ("mysql://u:p@localhost/app", true),
            ("mariadb://u:p@127.0.0.1:3307/app", true),
            ("postgresql://u@[::1]:5432/app", true),
            ("postgresql:///app?host=/run/postgresql", true),
            ("mysql://u@db/app?socket=/run/s", true),
            ("mysql://u:p@db.example.com/app", false),
            ("postgres://localhost@10.0.0.1/app", false),
            ("postgres://u:socket=1@db.example.com/app", false),
            ("mysql://u:socket=1@db.example.com/app", false),
            ("mysql://u@db.example.com/socket=", false),
            ("postgresql://u@db.example.com/host=/run", false),
            ("postgresql://u@localhost/app?host=10.0.0.1", false),
            ("postgresql://u@localhost,db.example.com/app", false),
            ("postgresql://u@localhost/app?hostaddr=10.0.0.1", false),
            ("postgresql://u@%2Frun%2Fpostgresql/app", true),
            ("mysql://u@localhost.example.com/app", false),
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
