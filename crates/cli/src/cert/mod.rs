//! `quadrille cert`.
//!
//! - `list`: all certificates of a configuration.

mod list;

use crate::{acme_flags::AcmeFlags, schema::print};
use clap::{Args, Subcommand, ValueEnum};
use quadrille_acme::{Issued, Plan, Reason, Wanted, unix_now};
use quadrille_config::{
    enums,
    model::{AcmeChallenge, Gateway},
};
use std::{fs::File, io::ErrorKind, path::PathBuf};

/// Certificates from a configuration file, or from the ACME flags of `quadrille serve`.
#[derive(Subcommand)]
pub(crate) enum Cert {
    /// List all certificates with names, issuer, key type and expiry: files, ACME, key servers and tokens.
    ///
    /// Reads the certificates, but neither private keys nor key servers. For ACME, the table is followed by the state of
    /// each order. `quadrille ctl certificates` shows those that a running gateway serves.
    List {
        /// Print a JSON list.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        which: Which,
    },
    /// Make the running gateway renew certificates, whether they are due or not. Without names, all.
    Renew {
        /// A name in the certificates.
        name: Vec<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Revoke certificates at the authority, and make the running gateway order new ones.
    Revoke {
        /// A name in the certificates.
        #[arg(required = true)]
        name: Vec<String>,
        /// The reason for the revocation (RFC 5280).
        #[arg(long, value_enum, default_value = "unspecified")]
        reason: Why,
        #[command(flatten)]
        which: Which,
    },
}

/// The source of the certificates' configuration.
#[derive(Args)]
pub(crate) struct Which {
    /// The configuration file.
    #[arg(long, value_name = "FILE", required_unless_present = "acme", conflicts_with = "acme")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: AcmeFlags,
}

/// Revocation reasons (RFC 5280, section 5.3.1).
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Why {
    Unspecified,
    KeyCompromise,
    Superseded,
    CessationOfOperation,
}

impl Cert {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        match self {
            Self::List { json, which } => which.list(json),
            Self::Renew { name, which } => {
                let plan = which.plan()?;
                for wanted in chosen(&plan, &name)? {
                    wanted.request_renewal(&plan.acme).map_err(|error| vec![error.to_string()])?;
                    println!("{}: the gateway orders a new one", wanted.title());
                }
                Ok(())
            }
            Self::Revoke { name, reason, which } => {
                let plan = which.plan()?;
                let chosen = chosen(&plan, &name)?;
                revoke(&plan, &chosen, reason)
            }
        }
    }
}

impl Which {
    fn list(&self, json: bool) -> Result<(), Vec<String>> {
        let (gateway, plan) = match &self.config {
            Some(file) => {
                let gateway = quadrille_config::load(file)?;
                let plan = Plan::of(&gateway);
                (gateway, plan)
            }
            None => (Gateway::default(), self.flags.plan()),
        };
        let plan = plan.map(Plan::with_granted);
        let listed = list::of_gateway(&gateway, plan.as_ref());
        if json {
            return print(&format!("{:#}\n", list::json(&listed)));
        }
        print(&list::table(&listed))?;
        for problem in list::problems(&listed) {
            eprintln!("warning: {problem}");
        }
        if let Some(plan) = &plan {
            println!();
            explain(plan);
        }
        Ok(())
    }

    fn plan(&self) -> Result<Plan, Vec<String>> {
        let plan = match &self.config {
            Some(file) => Plan::of(&quadrille_config::load(file)?),
            None => self.flags.plan(),
        };
        plan.map(Plan::with_granted)
            .ok_or_else(|| vec!["no certificate is ordered by ACME: `acme` is not set for any".to_owned()])
    }
}

/// Prints the state of each certificate in the plan, the challenges for its names, and its file.
pub(crate) fn explain(plan: &Plan) {
    for wanted in &plan.wanted {
        println!("{}: {}", wanted.title(), state(wanted));
        for name in &wanted.order.names {
            let ways: Vec<_> = plan.acme.challenges_for(name).map(enums::name::<AcmeChallenge>).collect();
            println!("  {name}: proved by {}", ways.join(" or "));
        }
        println!("  from {}, kept in {}", plan.acme.directory, wanted.file.display());
    }
}

fn state(wanted: &Wanted) -> String {
    const DAY: i64 = 24 * 3600;
    let Some(issued) = Issued::read(&wanted.file) else {
        return match File::open(&wanted.file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                "not issued yet; it is ordered at once".to_owned()
            }
            Err(error) => {
                format!("unknown: {}: {error}; run this as the gateway's user", wanted.file.display())
            }
            Ok(_) => format!("no certificate in {}; it is ordered at once", wanted.file.display()),
        };
    };
    let (validity, now) = (issued.validity, unix_now());
    match validity.not_after - now {
        ..=0 => "expired; it is ordered at once".to_owned(),
        left if validity.is_late(now) => format!("{} days left; renewal is overdue", left / DAY),
        left => {
            let until = left - validity.life() / 3;
            format!(
                "{} days left; renewed in {} days, unless the authority suggests a time",
                left / DAY,
                until / DAY
            )
        }
    }
}

/// Returns the certificates with any of these names; all of them if `names` is empty.
fn chosen<'a>(plan: &'a Plan, names: &[String]) -> Result<Vec<&'a Wanted>, Vec<String>> {
    let has =
        |wanted: &&Wanted| names.is_empty() || wanted.order.names.iter().any(|name| names.contains(name));
    let unknown =
        names.iter().filter(|name| !plan.wanted.iter().any(|wanted| wanted.order.names.contains(name)));
    let unknown: Vec<_> = unknown.map(|name| format!("no ACME certificate has the name {name}")).collect();
    if unknown.is_empty() { Ok(plan.wanted.iter().filter(has).collect()) } else { Err(unknown) }
}

fn revoke(plan: &Plan, chosen: &[&Wanted], why: Why) -> Result<(), Vec<String>> {
    let reason = match why {
        Why::Unspecified => Reason::Unspecified,
        Why::KeyCompromise => Reason::KeyCompromise,
        Why::Superseded => Reason::Superseded,
        Why::CessationOfOperation => Reason::CessationOfOperation,
    };
    let failed = |error: &dyn std::fmt::Display| vec![error.to_string()];
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
    for wanted in chosen {
        let revoked = runtime.block_on(quadrille_acme::revoke(&plan.acme, &wanted.file, reason));
        revoked.map_err(|error| failed(&error))?;
        wanted.request_renewal(&plan.acme).map_err(|error| failed(&error))?;
        println!("{}: revoked; the gateway orders a new one", wanted.title());
    }
    Ok(())
}
