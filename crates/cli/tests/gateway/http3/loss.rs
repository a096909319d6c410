//! Networks with packet loss and reordering.

use super::Served;
use crate::support::{echo_server, http3::Sending, ports};
use std::{
    net::{SocketAddr, UdpSocket},
    thread,
    time::Duration,
};

/// Percentages of datagrams that are lost and reordered.
#[derive(Clone, Copy, Debug)]
struct Faults {
    lost: u64,
    late: u64,
}

/// A simulated network between one client and a server.
fn network(server: SocketAddr, faults: Faults) -> SocketAddr {
    let outside = UdpSocket::bind(("127.0.0.1", ports::free())).expect("a port");
    let inside = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = outside.local_addr().expect("an address");
    for socket in [&outside, &inside] {
        socket.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
    }
    thread::spawn(move || {
        let (mut client, mut chance) = (None, Chance(7));
        loop {
            for (datagram, from) in carried(&outside, faults, &mut chance) {
                client = Some(from);
                let _ = inside.send_to(&datagram, server);
            }
            for (datagram, _) in carried(&inside, faults, &mut chance) {
                client.map(|client| outside.send_to(&datagram, client));
            }
        }
    });
    address
}

/// Returns the datagrams received on this side that are not lost, in the order of delivery.
fn carried(socket: &UdpSocket, faults: Faults, chance: &mut Chance) -> Vec<(Vec<u8>, SocketAddr)> {
    let mut datagram = [0; 65_535];
    let (mut carried, mut late) = (Vec::new(), Vec::new());
    while let Ok((length, from)) = socket.recv_from(&mut datagram) {
        let copy = (datagram[..length].to_vec(), from);
        match chance.of_hundred() {
            one if one < faults.lost => {}
            one if one < faults.lost + faults.late => late.push(copy),
            _ => carried.push(copy),
        }
    }
    carried.extend(late);
    carried
}

/// Returns a random number, deterministic in each run.
struct Chance(u64);

impl Chance {
    fn of_hundred(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % 100
    }
}

#[test]
fn bodies_pass_whole_over_networks_with_faults() {
    let echo = echo_server();
    let mut served = Served::new(
        "upstream: echo, timeouts: {handshake_deadline: off}",
        &format!("echo: {{servers: [\"{echo}\"]}}"),
    );
    let body: Vec<u8> = (0..400_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for faults in [Faults { lost: 0, late: 30 }, Faults { lost: 5, late: 0 }, Faults { lost: 8, late: 20 }] {
        let mut client = served.client.connect(network(served.gateway.address(0), faults));
        let answer = client.exchange(&Sending {
            method: "PUT",
            path: "/",
            headers: &[("content-length", "400000")],
            body: &body,
        });
        assert_eq!(answer.status, 200, "{faults:?}");
        let at = answer.body.windows(4).position(|window| window == b"\r\n\r\n").expect("a header") + 4;
        assert!(answer.body[at..] == body[..], "{faults:?}: {} bytes returned", answer.body.len() - at);
    }
}
