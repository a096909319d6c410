//! `quadrille tickets`, and key files.

use super::Fleet;
use crate::support::{
    Certificates, Gateway, Returning, Way, eventually, output, quadrille, refused, serve, succeed,
};
use std::{fs, os::unix::fs::PermissionsExt};

#[test]
fn generate_makes_a_private_file_and_never_overwrites_one() {
    let certificates = Certificates::new();
    let file = certificates.path("ticket.key");
    let said = succeed(quadrille("tickets").arg("generate").arg(&file));
    assert_eq!(fs::metadata(&file).unwrap().len(), 80);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let name: String = fs::read(&file).unwrap()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(said.contains(&name), "{said}");
    let (ok, said) = output(quadrille("tickets").arg("generate").arg(&file));
    assert!(!ok && said.contains("exists"), "{said}");
}

#[test]
fn key_files_are_shared_rotated_and_noticed() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let files: Vec<_> = (0..3).map(|index| certificates.path(&format!("{index}.key"))).collect();
    for file in &files {
        succeed(quadrille("tickets").arg("generate").arg(file));
    }
    let names = || succeed(quadrille("tickets").arg("show").args(&files));
    let list = files.iter().map(|file| file.to_str().unwrap()).collect::<Vec<_>>().join(",");
    let flags = ["--respond", "ok", "--session-tickets", &list];
    let gateways = [Gateway::with_flags(&pair, &flags), Gateway::with_flags(&pair, &flags)];
    let (client, mut session) = (Returning::new(&certificates, Way::Tls13), None);
    client.visit(gateways[0].address(0), &mut session).expect("a first visit");
    for rotation in 0..4 {
        let before = names();
        assert!(before.lines().next().unwrap().contains("encrypts"), "{before}");
        succeed(quadrille("tickets").arg("rotate").args(&files));
        let after = names();
        assert_eq!(before.lines().next().unwrap()[..32], after.lines().nth(1).unwrap()[..32], "moved down");
        for gateway in &gateways {
            gateway.wait_for_metric("quadrille_reloads_total", &["ok"], |count| count > f64::from(rotation));
        }
        for gateway in gateways.iter().rev() {
            assert!(client.visit(gateway.address(0), &mut session).expect("a visit"), "rotation {rotation}");
        }
    }
}

#[test]
fn a_bad_key_file_is_named() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let short = certificates.path("short.key");
    fs::write(&short, [7; 79]).unwrap();
    let short = short.to_str().unwrap();
    for (flags, message) in [
        (vec!["--session-tickets", short], "holds 79 bytes; a ticket key has 80 (or 48)"),
        (vec!["--session-tickets", "/nowhere/ticket.key"], "cannot read /nowhere/ticket.key"),
        (vec!["--session-tickets", "fleet"], "--session-tickets fleet needs --session-cache redis://HOST"),
        (vec!["--session-cache", "redis://127.0.0.1"], "needs --fleet-secret FILE"),
        (vec!["--early-data", "--session-tickets", "off"], "--early-data: early data needs session tickets"),
        (
            vec!["--early-data", "--session-cache", "off"],
            "--early-data: early data needs a session cache, in memory or Redis",
        ),
        (vec!["--session-cache", "disk"], "use off, memory or an address like redis://"),
        (
            vec!["--session-cache", "redis://h", "--fleet-secret", "/dev/null"],
            "a fleet secret has at least 32",
        ),
    ] {
        let mut command = serve();
        command.args(["--listen", "127.0.0.1:0", "--admin", "off", "--respond", "ok", "--cert"]);
        command.arg(&pair.chain).arg("--key").arg(&pair.key).args(&flags);
        let said = refused(&mut command);
        assert!(said.contains(message), "{flags:?}: {said}");
    }
}

#[test]
fn a_fleet_is_shown_and_rotated_by_command() {
    let fleet = Fleet::new(2, &["--ticket-rotation", "8s"]);
    let (redis, secret) = (fleet.redis.address(), fleet.secret.to_str().unwrap());
    let tickets = |verb: &str| {
        let flags = [verb, "--redis", &redis, "--fleet-secret", secret];
        let rotation: &[&str] = if verb == "rotate" { &["--ticket-rotation", "8s"] } else { &[] };
        succeed(quadrille("tickets").args(flags).args(rotation))
    };
    let current = |shown: &str| shown.lines().find(|line| line.contains("current")).unwrap()[..32].to_owned();
    let before = current(&tickets("show"));
    let (client, mut session) = (fleet.client(Way::Tls13), None);
    client.visit(fleet.addresses()[0], &mut session).expect("a first visit");
    tickets("rotate");
    eventually("the new key takes over", || current(&tickets("show")) != before);
    assert!(client.visit(fleet.addresses()[1], &mut session).expect("a visit"), "{}", fleet.logs());

    let other = fleet.certificates.path("other.secret");
    succeed(quadrille("tickets").arg("generate").arg(&other));
    let other = other.to_str().unwrap();
    for (address, secret, message) in [
        (&redis[..], other, "holds no ticket keys of this fleet"),
        ("redis://127.0.0.1:1", secret, "cannot be reached"),
    ] {
        let (ok, said) =
            output(quadrille("tickets").args(["show", "--redis", address, "--fleet-secret", secret]));
        assert!(!ok && said.contains(message), "{said}");
    }
}
