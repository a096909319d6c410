//! Which servers there are.

use std::fmt;

use clap::ValueEnum;

/// A server that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rival {
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
    /// HAProxy of a later release with AWS-LC, built by `bench/haproxy-awslc.sh`.
    #[value(name = "haproxy-awslc")]
    HaproxyAwsLc,
    /// Envoy.
    Envoy,
    /// This project's gateway.
    Quadrille,
    /// The same without the key, which a key server on the client's core holds: not counted.
    Keyless,
    /// hitch, which ends TLS and passes bytes on.
    Hitch,
    /// HAProxy doing the same: `mode tcp`.
    HaproxyTcp,
    /// This project's gateway doing the same: `--mode tcp`.
    QuadrilleTcp,
}

/// What a server does with the request; only servers with the same job are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Understands HTTP, and answers by itself where it may.
    Answer,
    /// Ends TLS and passes bytes on to an upstream.
    PassOn,
}

impl Job {
    /// In the order of the report.
    pub const ALL: [Self; 2] = [Self::Answer, Self::PassOn];

    /// The servers that ratios are taken to.
    pub fn baselines(self) -> &'static [Rival] {
        match self {
            Self::Answer => &[Rival::Nginx, Rival::Envoy, Rival::HaproxyAwsLc],
            Self::PassOn => &[Rival::Hitch, Rival::HaproxyTcp],
        }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "HTTP, answered by the server itself",
            Self::PassOn => "TLS ended, bytes passed on to one plain upstream",
        })
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::HaproxyAwsLc => "haproxy-awslc",
            Self::Envoy => "envoy",
            Self::Quadrille => "quadrille",
            Self::Keyless => "keyless",
            Self::Hitch => "hitch",
            Self::HaproxyTcp => "haproxy-tcp",
            Self::QuadrilleTcp => "quadrille-tcp",
        })
    }
}

impl Rival {
    /// Whether it speaks HTTP/3, as it is built here.
    pub fn has_http3(self) -> bool {
        matches!(self, Self::Envoy | Self::Quadrille)
    }

    /// What it does with the request.
    pub fn job(self) -> Job {
        match self {
            Self::Nginx
            | Self::Haproxy
            | Self::HaproxyAwsLc
            | Self::Envoy
            | Self::Quadrille
            | Self::Keyless => Job::Answer,
            Self::Hitch | Self::HaproxyTcp | Self::QuadrilleTcp => Job::PassOn,
        }
    }
}
