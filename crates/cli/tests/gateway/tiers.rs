//! CPU tiers: each one serves, `QUADRILLE_CPU` selects it, and the log and metrics name it.

use crate::support::{Certificates, Gateway, Load, curl, output, serve};
use std::{io::Write, process::Command};

fn command(certificates: &Certificates, tier: &str) -> Command {
    let pair = certificates.rsa(2048, &["localhost"]);
    let mut command = serve();
    command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--respond", "ok"]);
    command.args(["--session-tickets", "off", "--session-cache", "off", "--cert"]).arg(&pair.chain);
    command.arg("--key").arg(&pair.key).env("QUADRILLE_CPU", tier);
    command
}

/// Returns the tiers of this CPU, with their backends; prints the missing ones.
fn tiers() -> Vec<(&'static str, &'static str)> {
    let mut tiers = vec![("portable", "scalar")];
    for (tier, has) in [("avx2", has_avx2()), ("ifma", has_ifma())] {
        if has {
            tiers.push((tier, tier));
        } else {
            // Bypasses the output capture of tests, because the test passes.
            let _ = writeln!(std::io::stderr(), "tier {tier}: SKIPPED, this CPU lacks it");
        }
    }
    tiers.push(("", tiers[tiers.len() - 1].1));
    tiers
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
fn has_ifma() -> bool {
    std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512ifma")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_ifma() -> bool {
    false
}

#[test]
fn every_tier_serves_and_says_so() {
    let certificates = Certificates::new();
    for (tier, backend) in tiers() {
        let gateway = Gateway::start(command(&certificates, tier), 1);
        assert!(gateway.log().contains(&format!("backend=\"{backend}\"")), "{}", gateway.log());
        assert_eq!(curl(&gateway, &certificates, &["--tls-max", "1.2"], "/"), "ok", "{tier:?}");
        assert_eq!(curl(&gateway, &certificates, &["--tlsv1.3"], "/"), "ok", "{tier:?}");

        let load = Load::start(&certificates, gateway.address(0), "/", |text| text.starts_with("ok"));
        let by_backend = ["rsa2048", backend, "\"ok\""];
        gateway.wait_for_metric("quadrille_key_operations_total", &by_backend, |count| count > 10.0);
        load.finish();
        let wrong = ["\"failed\"", "\"recomputed\""]
            .map(|result| gateway.metric("quadrille_key_operations_total", &[result]));
        assert_eq!(wrong, [0.0; 2], "{tier:?}: {}", gateway.metrics());
        let width = gateway.metric("quadrille_key_batch_width", &["rsa2048"]);
        let crossover = gateway.metric("quadrille_key_batch_crossover", &["rsa2048"]);
        let expected = match backend {
            "ifma" => 8.0,
            "avx2" => 4.0,
            _ => 0.0,
        };
        assert_eq!(width, expected, "{tier:?}: {}", gateway.metrics());
        assert!(crossover <= width, "{tier:?}: {}", gateway.metrics());
    }
}

#[test]
fn an_unknown_tier_is_rejected() {
    let certificates = Certificates::new();
    let (served, text) = output(&mut command(&certificates, "avx3"));
    assert!(!served, "{text}");
    assert!(text.contains("QUADRILLE_CPU is \"avx3\"; expected one of portable, avx2, ifma"), "{text}");
}
