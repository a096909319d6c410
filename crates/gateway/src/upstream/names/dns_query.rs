//! DNS queries for the addresses of one name. A server that drops queries for one family, as some routers do with AAAA,
//! does not keep the gateway from the addresses of the other (RFC 8305 section 3).

use super::{family::Families, service::Service};
use hickory_resolver::{
    TokioResolver,
    net::NetError,
    proto::rr::{Name, RData, RecordType, rdata::SRV},
};
use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

/// Resolved addresses with their expiry.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) addresses: Vec<IpAddr>,
    /// The servers of SRV records; empty for the name of a host.
    pub(crate) services: Vec<Service>,
    pub(crate) valid_until: Instant,
    /// Whether all queried families had a response.
    pub(crate) is_complete: bool,
}

/// Reason for a lookup's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The name does not exist (NXDOMAIN), for any family.
    NoSuchName,
    /// The name has no address of the queried families.
    NoAddress,
    /// The server's error, or the reason why it could not be reached.
    Other(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoSuchName => "the name does not exist",
            Self::NoAddress => "the name has no address",
            Self::Other(reason) => reason,
        })
    }
}

/// Maximum number of SRV records of a name.
const MOST_SERVICES: usize = 64;

/// Time that one family waits for the other (RFC 8305 section 3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// Looks up the first of the names that has addresses of these families.
pub(super) async fn query(
    dns: &TokioResolver,
    names: Vec<Name>,
    families: Families,
) -> Result<Answer, Failure> {
    let mut failure = Failure::NoAddress;
    for name in names {
        let answer = match families {
            Families { v4: true, v6: true } => both(dns, &name).await,
            Families { v6: true, .. } => one(dns, name, RecordType::AAAA).await,
            Families { .. } => one(dns, name, RecordType::A).await,
        };
        match answer {
            Ok(answer) => return Ok(answer),
            Err(reason) => failure = reason,
        }
    }
    Err(failure)
}

async fn both(dns: &TokioResolver, name: &Name) -> Result<Answer, Failure> {
    let mut v4 = Box::pin(one(dns, name.clone(), RecordType::A));
    let mut v6 = Box::pin(one(dns, name.clone(), RecordType::AAAA));
    let (first, v4_is_first) = tokio::select! {
        answer = &mut v4 => (answer, true),
        answer = &mut v6 => (answer, false),
    };
    let other = if v4_is_first { v6 } else { v4 };
    match first {
        Ok(first) => {
            let other = tokio::time::timeout(RESOLUTION_DELAY, other).await;
            Ok(first.joined(other.unwrap_or_else(|_| Err(Failure::Other(String::new())))))
        }
        Err(Failure::NoSuchName) => Err(Failure::NoSuchName),
        Err(reason) => match other.await {
            Ok(other) => Ok(other.joined(Err(reason))),
            Err(Failure::NoAddress) => Err(reason),
            Err(other) => Err(other),
        },
    }
}

async fn one(dns: &TokioResolver, name: Name, kind: RecordType) -> Result<Answer, Failure> {
    match dns.lookup(name, kind).await {
        Ok(found) => {
            let addresses: Vec<_> =
                found.answers().iter().filter_map(|record| record.data.ip_addr()).collect();
            match addresses.is_empty() {
                true => Err(Failure::NoAddress),
                false => Ok(Answer {
                    addresses,
                    services: Vec::new(),
                    valid_until: found.valid_until(),
                    is_complete: true,
                }),
            }
        }
        Err(error) => Err(failure(&error)),
    }
}

fn failure(error: &NetError) -> Failure {
    match error {
        error if error.is_nx_domain() => Failure::NoSuchName,
        error if error.is_no_records_found() => Failure::NoAddress,
        error => Failure::Other(error.to_string()),
    }
}

/// Looks up the SRV records of the first of the names that has some. Returns them with the end of their validity.
///
/// # Errors
/// Returns the reason if no name has records, or if the target `.` denies the service (RFC 2782).
pub(super) async fn services(dns: &TokioResolver, names: Vec<Name>) -> Result<(Vec<SRV>, Instant), Failure> {
    let mut last = Failure::NoAddress;
    for name in names {
        match dns.lookup(name, RecordType::SRV).await {
            Ok(found) => {
                let records = found.answers().iter().filter_map(|record| match &record.data {
                    RData::SRV(service) if !service.target.is_root() => Some(service.clone()),
                    _ => None,
                });
                let records: Vec<_> = records.take(MOST_SERVICES).collect();
                return match records.is_empty() {
                    true => Err(Failure::NoAddress),
                    false => Ok((records, found.valid_until())),
                };
            }
            Err(error) => last = failure(&error),
        }
    }
    Err(last)
}

impl Answer {
    /// Adds the addresses of the other family.
    fn joined(mut self, other: Result<Self, Failure>) -> Self {
        match other {
            Ok(other) => {
                self.addresses.extend(other.addresses);
                self.valid_until = self.valid_until.min(other.valid_until);
            }
            Err(Failure::NoAddress) => {}
            Err(Failure::NoSuchName | Failure::Other(_)) => self.is_complete = false,
        }
        self
    }
}
