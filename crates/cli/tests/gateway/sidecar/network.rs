//! A pod and an external host: two network namespaces connected by a veth pair. The pod's traffic is redirected as by
//! Istio's `istio-iptables`.

use crate::support::succeed;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::{
    fs::File,
    io::Write,
    os::fd::AsFd,
    process::{Command, Stdio},
    thread,
};

/// Both namespaces; they are removed when this is dropped.
pub(crate) struct Network {
    pub(crate) pod: Namespace,
    pub(crate) outside: Namespace,
}

pub(crate) struct Namespace(File);

/// The gateway's group, whose connections are not redirected.
pub(crate) const GATEWAY: u32 = 1337;
pub(crate) const POD: &str = "10.0.0.2";
pub(crate) const POD_V6: &str = "fd00::2";
pub(crate) const OUTSIDE: &str = "10.0.0.1";
pub(crate) const OUTSIDE_V6: &str = "fd00::1";

impl Network {
    /// Creates the network; if that is not allowed, prints a note and returns `None`.
    pub(crate) fn start() -> Option<Self> {
        // Bypasses the output capture of tests, because a skipped test passes.
        let skipped = |why: &str| {
            let _ = writeln!(std::io::stderr(), "SKIPPED: no connections are redirected: {why}");
        };
        let (Some(pod), Some(outside)) = (Namespace::new(), Namespace::new()) else {
            skipped("network namespaces are not allowed here (they need root)");
            return None;
        };
        let has_iptables = Command::new("iptables").arg("--version").stdout(Stdio::null()).status();
        if !has_iptables.is_ok_and(|status| status.success()) {
            skipped("iptables is missing (apt-get install iptables)");
            return None;
        }
        outside.run(&["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "pod0"]);
        pod.adopt("pod0", &outside);
        for (namespace, device, v4, v6) in
            [(&outside, "eth0", OUTSIDE, OUTSIDE_V6), (&pod, "pod0", POD, POD_V6)]
        {
            namespace.run(&["ip", "link", "set", "lo", "up"]);
            namespace.run(&["ip", "address", "add", &format!("{v4}/24"), "dev", device]);
            namespace.run(&["ip", "address", "add", &format!("{v6}/64"), "dev", device, "nodad"]);
            namespace.run(&["ip", "link", "set", device, "up"]);
        }
        pod.run(&["ip", "route", "add", "default", "via", OUTSIDE]);
        pod.run(&["ip", "-6", "route", "add", "default", "via", OUTSIDE_V6]);
        // Source address of connections to the pod's own programs; IPv4's is always on loopback.
        pod.also_at("::6/128");
        pod.redirect("iptables-restore", "127.0.0.1/32", "127.0.0.6/32");
        pod.redirect("ip6tables-restore", "::1/128", "::6/128");
        Some(Self { pod, outside })
    }
}

impl Namespace {
    fn new() -> Option<Self> {
        let made = thread::spawn(|| {
            // SAFETY: only the thread's network namespace is unshared, which no other thread relies on.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.ok()?;
            File::open("/proc/thread-self/ns/net").ok()
        });
        made.join().expect("a thread").map(Self)
    }

    /// Runs this on a thread in the namespace; processes that it starts are in the namespace too.
    pub(crate) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("entering the namespace");
                act()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Adds an address.
    pub(crate) fn also_at(&self, address: &str) {
        self.run(&["ip", "address", "add", address, "dev", "lo"]);
    }

    fn run(&self, command: &[&str]) {
        self.inside(|| succeed(Command::new(command[0]).args(&command[1..])));
    }

    /// Moves a device here from another namespace.
    fn adopt(&self, device: &str, from: &Self) {
        // `ip` identifies namespaces by processes in them.
        let mut anchor = self.inside(|| Command::new("sleep").arg("60").spawn().expect("sleep"));
        from.run(&["ip", "link", "set", device, "netns", &anchor.id().to_string()]);
        anchor.kill().expect("ending sleep");
        let _ = anchor.wait();
    }

    /// Applies the rules of `istio-iptables`, except for the ports of probes and metrics. `local` is never
    /// redirected, and `inbound` is the source address of the gateway's connections to the pod's own programs.
    fn redirect(&self, restore: &str, local: &str, inbound: &str) {
        let rules = format!(
            "*nat
:ISTIO_INBOUND - [0:0]
:ISTIO_REDIRECT - [0:0]
:ISTIO_IN_REDIRECT - [0:0]
:ISTIO_OUTPUT - [0:0]
-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001
-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
-A PREROUTING -p tcp -j ISTIO_INBOUND
-A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT
-A OUTPUT -p tcp -j ISTIO_OUTPUT
-A ISTIO_OUTPUT -s {inbound} -o lo -j RETURN
-A ISTIO_OUTPUT ! -d {local} -o lo -p tcp -m owner --gid-owner {GATEWAY} -j ISTIO_IN_REDIRECT
-A ISTIO_OUTPUT -o lo -m owner ! --gid-owner {GATEWAY} -j RETURN
-A ISTIO_OUTPUT -m owner --gid-owner {GATEWAY} -j RETURN
-A ISTIO_OUTPUT -d {local} -j RETURN
-A ISTIO_OUTPUT -j ISTIO_REDIRECT
COMMIT
"
        );
        self.inside(|| {
            let mut child = Command::new(restore).stdin(Stdio::piped()).spawn().expect("iptables");
            child.stdin.take().expect("a pipe").write_all(rules.as_bytes()).expect("writing rules");
            assert!(child.wait().expect("iptables").success(), "{restore} rejects the rules");
        });
    }
}
