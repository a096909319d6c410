//! HTTP/3 of gateways with the same secret.

use super::Fleet;
use crate::support::{Gateway, Http3Client, eventually, ports, quadrille, throughout};
use std::time::Duration;

/// Starts a gateway of this fleet at its own address, with these further flags.
fn gateway(fleet: &Fleet, port: u16, secret: bool) -> Gateway {
    let mut command = quadrille("serve");
    command.args(["--listen", &format!("127.0.0.1:{port}"), "--admin", "127.0.0.1:0", "--threads", "1"]);
    command.arg("--cert").arg(&fleet.pair.chain).arg("--key").arg(&fleet.pair.key);
    command.args(["--respond", "hi", "--http3"]);
    if secret {
        command.args(["--session-cache", &fleet.address, "--session-tickets", "fleet"]);
        command.arg("--fleet-secret").arg(&fleet.secret);
    }
    Gateway::start(command, 1)
}

/// Returns whether a client of a gateway that is killed and restarted receives a stateless reset before the
/// connection's idle timeout.
fn receives_a_reset_after_a_restart(secret: bool) -> bool {
    let (fleet, port) = (Fleet::new(0, &[]), ports::free());
    let before = gateway(&fleet, port, secret);
    let mut client = Http3Client::new(&fleet.certificates).connect(before.address(0));
    assert_eq!(client.get("/").text(), "hi");
    // SIGKILL, without closing connections.
    drop(before);
    let after = gateway(&fleet, port, secret);
    client.start("GET", "/", &[], true);
    eventually("no reset is counted", || {
        client.turn();
        after.metric("quadrille_quic_stateless_resets_total", &[]) > 0.0
    });
    if secret {
        eventually("it stays open", || {
            client.turn();
            client.quic().is_closed()
        });
    } else {
        throughout(Duration::from_secs(3), "it ends", || {
            client.turn();
            !client.quic().is_closed() || client.quic().is_timed_out()
        });
    }
    client.quic().is_closed() && !client.quic().is_timed_out()
}

#[test]
fn clients_of_a_killed_gateway_receive_a_reset() {
    assert!(receives_a_reset_after_a_restart(true));
}

/// A reset token that the client does not know does not end the connection.
#[test]
fn without_a_fleet_secret_a_reset_means_nothing() {
    assert!(!receives_a_reset_after_a_restart(false));
}
