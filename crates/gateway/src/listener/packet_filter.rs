//! Packet filter by which the kernel drops the first packet of connections from some networks. A dropped connection
//! costs no socket, no descriptor and no turn of the event loop.

use socket2::SockFilter;
use std::net::IpAddr;

/// One in this number of connections passes, which shows that the flood continues.
const PASSES_ONE_IN: u32 = 16;

/// Offsets of classic BPF (linux/filter.h). Plain offsets count from the TCP header; these count from the IP header,
/// or name metadata that is not part of the packet.
const NETWORK_HEADER: u32 = 0u32.wrapping_sub(0x10_0000);
const PROTOCOL: u32 = 0u32.wrapping_sub(0x1000);
const RANDOM: u32 = PROTOCOL + 56;

const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

const PASS: u32 = u32::MAX;
const DROP: u32 = 0;

const TCP_FLAGS: u32 = 13;
const SYN: u32 = 0x02;
const SYN_AND_ACK: u32 = 0x12;
/// `ETH_P_IP`.
const IPV4: u32 = 0x0800;
const IPV4_SOURCE: u32 = NETWORK_HEADER + 12;
const IPV6_SOURCE: u32 = NETWORK_HEADER + 8;

/// Builds a filter that drops the SYN of connections from these networks, /24 or /56, of which there may be at most
/// 48. Accepted connections inherit the filter without effect, as their SYN has passed.
pub(super) fn program(networks: &[IpAddr]) -> Vec<SockFilter> {
    let ipv4 = networks.iter().filter_map(|network| match network {
        IpAddr::V4(network) => Some(network.to_bits()),
        IpAddr::V6(_) => None,
    });
    let ipv6 = networks.iter().filter_map(|network| match network {
        IpAddr::V6(network) => Some((network.to_bits() >> 64) as u64),
        IpAddr::V4(_) => None,
    });
    let (ipv4, ipv6): (Vec<u32>, Vec<u64>) = (ipv4.collect(), ipv6.collect());
    let mut program = vec![
        step(LOAD_BYTE, TCP_FLAGS),
        step(AND, SYN_AND_ACK),
        jump(SYN, 1, 0),
        step(RETURN, PASS),
        step(LOAD_WORD, RANDOM),
        step(AND, PASSES_ONE_IN - 1),
        jump(0, 0, 1),
        step(RETURN, PASS),
        step(LOAD_WORD, PROTOCOL),
        jump(IPV4, 0, steps(ipv4.len() + 4)),
        step(LOAD_WORD, IPV4_SOURCE),
        step(AND, 0xffff_ff00),
    ];
    let from = |index: usize, network: &u32| jump(*network, steps(ipv4.len() - index), 0);
    program.extend(ipv4.iter().enumerate().map(|(index, network)| from(index, network)));
    program.extend([step(RETURN, PASS), step(RETURN, DROP)]);
    for (index, network) in ipv6.iter().enumerate() {
        let left = (ipv6.len() - index) * IPV6_STEPS - (IPV6_STEPS - 1);
        let [high, low] = [(network >> 32) as u32, *network as u32];
        program.extend([
            step(LOAD_WORD, IPV6_SOURCE),
            jump(high, 0, 3),
            step(LOAD_WORD, IPV6_SOURCE + 4),
            step(AND, 0xffff_ff00),
            jump(low, steps(left), 0),
        ]);
    }
    program.extend([step(RETURN, PASS), step(RETURN, DROP)]);
    program
}

/// Instructions per IPv6 network.
const IPV6_STEPS: usize = 5;

fn step(code: u16, operand: u32) -> SockFilter {
    SockFilter::new(code, 0, 0, operand)
}

fn steps(count: usize) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}

/// Skips instructions, depending on whether the loaded value equals `value`.
fn jump(value: u32, if_equal: u8, otherwise: u8) -> SockFilter {
    SockFilter::new(JUMP_IF_EQUAL, if_equal, otherwise, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, SockRef, Socket, Type};
    use std::{
        io::Write,
        net::{SocketAddr, TcpListener},
        time::Duration,
    };

    /// Returns the number of connection attempts from this address that arrive.
    fn arriving(listener: &TcpListener, from: IpAddr, attempts: usize) -> usize {
        let to = listener.local_addr().expect("an address");
        let arrives = |_: &usize| {
            let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).expect("a socket");
            socket.bind(&SocketAddr::from((from, 0)).into()).expect("an address");
            let connected = socket.connect_timeout(&to.into(), Duration::from_millis(5)).is_ok();
            connected && listener.accept().is_ok()
        };
        (0..attempts).filter(arrives).count()
    }

    fn filter(listener: &TcpListener, networks: &[IpAddr]) {
        SockRef::from(listener).attach_filter(&program(networks)).expect("a filter that the kernel takes");
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn the_kernel_drops_what_comes_from_these_networks() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let many = (0..31).map(|third| IpAddr::from([10, 0, third, 0])).chain([address("127.0.7.0")]);
        let ipv6 = (0..16).map(|part| IpAddr::from([0x2001, 0xdb8, part, 0, 0, 0, 0, 0]));
        for networks in [vec![address("127.0.7.0")], many.clone().collect(), many.chain(ipv6).collect()] {
            filter(&listener, &networks);
            assert_eq!(arriving(&listener, address("127.0.8.1"), 50), 50);
            let arrived = arriving(&listener, address("127.0.7.99"), 200);
            assert!((1..50).contains(&arrived), "{arrived} of 200 arrived instead of one in sixteen");
        }
        SockRef::from(&listener).detach_filter().expect("no filter");
        assert_eq!(arriving(&listener, address("127.0.7.99"), 50), 50);
    }

    #[test]
    fn ipv6_too() {
        let Ok(listener) = TcpListener::bind("[::1]:0") else {
            let _ = writeln!(std::io::stderr(), "SKIPPED: IPv6 packet filter (no IPv6 here)");
            return;
        };
        let others: Vec<_> =
            (0..31).map(|part| IpAddr::from([0x2001, 0xdb8, 0, part << 8, 0, 0, 0, 0])).collect();
        filter(&listener, &others);
        assert_eq!(arriving(&listener, address("::1"), 50), 50);
        filter(&listener, &[&others[..], &[address("::")]].concat());
        let arrived = arriving(&listener, address("::1"), 200);
        assert!((1..50).contains(&arrived), "{arrived} of 200 arrived instead of one in sixteen");
    }
}
