//! Messages that the demo prints.

use quadrille_gateway::{Bound, KeyWork, key_work};
use std::net::SocketAddr;

/// The name and the ACME directory of the demo's certificate.
pub(super) struct Announced {
    pub(super) name: String,
    /// The ACME directory, if the certificate is ordered.
    pub(super) directory: Option<String>,
}

impl Announced {
    pub(super) fn print(&self, bound: &Bound) {
        let Some(port) = bound.listeners.first().map(SocketAddr::port) else { return };
        let (name, directory) = (&self.name, self.directory.as_deref());
        let trust = match directory {
            None => {
                println!(
                    "Quadrille serves https://{name}:{port}/ with two self-signed certificates, one with an ECDSA key"
                );
                println!("and one with an RSA key for clients that do not support ECDSA. Try:");
                "-k"
            }
            Some(directory) => {
                println!("Quadrille serves https://{name}:{port}/ with a certificate from {directory}");
                println!(
                    "once it is issued, usually within seconds. The log reports this or the error. Try:"
                );
                "--cacert ROOT"
            }
        };
        println!();
        println!("    curl {trust} https://{name}:{port}/hello");
        if directory.is_none() {
            println!(
                "    curl {trust} --tls-max 1.2 --ciphers ECDHE-RSA-AES128-GCM-SHA256 -v https://{name}:{port}/hello"
            );
        } else {
            println!("    curl {trust} --http2 --tls-max 1.2 -v https://{name}:{port}/hello");
        }
        if let Some(admin) = bound.admin {
            println!("    curl http://{admin}/metrics");
            println!();
            println!("The dashboard: http://{admin}/");
        }
        println!();
        println!("Stop it with Ctrl-C.");
    }
}

/// Prints the CPU time of this process's private-key operations.
pub(super) fn print_what_was_saved() {
    if let Some(text) = what_was_saved(key_work()) {
        println!("{text}");
    }
}

/// Returns the text, or `None` if there were no operations.
fn what_was_saved(KeyWork { operations, cpu, saved }: KeyWork) -> Option<String> {
    let apart = (cpu + saved).as_secs_f64();
    if operations == 0 || apart == 0.0 {
        return None;
    }
    let share = 100.0 * saved.as_secs_f64() / apart;
    let what = match operations {
        1 => "1 private-key operation took".to_owned(),
        _ => format!("{operations} private-key operations took"),
    };
    Some(match saved.is_zero() {
        true => {
            format!("{what} {apart:.3} s of CPU. No operations were batched, which saves CPU: try --load.")
        }
        false => format!(
            "{what} {:.3} s of CPU. One at a time they would have taken {apart:.3} s: {share:.0} % saved.",
            cpu.as_secs_f64()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::{KeyWork, what_was_saved};
    use std::time::Duration;

    #[test]
    fn what_was_saved_is_a_part_of_what_it_would_have_cost() {
        let (cpu, saved) = (Duration::from_millis(250), Duration::from_millis(750));
        assert_eq!(
            what_was_saved(KeyWork { operations: 1000, cpu, saved }).as_deref(),
            Some(
                "1000 private-key operations took 0.250 s of CPU. One at a time they would have taken 1.000 s: 75 % saved."
            )
        );
        let alone = what_was_saved(KeyWork { operations: 1, cpu, saved: Duration::ZERO });
        assert!(alone.is_some_and(|text| text.contains("--load")));
        assert_eq!(what_was_saved(KeyWork::default()), None);
    }
}
