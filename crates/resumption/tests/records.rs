//! Records in a real Redis, written by one member of a fleet at a time.

use quadrille_resumption::{FleetSecret, Record, Records, Redis, RedisOptions, Version};
use std::{
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const TERM: Duration = Duration::from_secs(600);
/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(180);
const NAMES: [&str; 2] = ["one", "two"];

/// A redis-server process; terminated with the test.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start() -> Self {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--dir", "/tmp"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.expect("redis-server, of the Debian package of this name");
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "redis-server does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Self { child, port }
    }

    fn member(&self, secret: u8) -> Records {
        let address = format!("redis://127.0.0.1:{}", self.port).parse().expect("an address");
        let secret = FleetSecret::new(&[secret; 32]).expect("a secret");
        Records::new(Redis::new(address, RedisOptions::default()), secret, "test").expect("a name")
    }

    fn cli(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        let output =
            command.args(["-p", &self.port.to_string()]).args(arguments).output().expect("redis-cli");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test);
}

/// Reads each record.
async fn read(member: &Records) -> [Option<(Version, Vec<u8>)>; 2] {
    let records = member.read(&NAMES.map(str::to_owned)).await.expect("a response");
    let mut records = records.into_iter().map(|record| match record {
        Record::Sealed(version, content) => Some((version, content.to_vec())),
        Record::Absent => None,
        Record::Damaged => Some((Version::default(), b"damaged".to_vec())),
    });
    [(); 2].map(|()| records.next().expect("a record for each name"))
}

#[test]
fn a_former_lease_holder_cannot_write() {
    let server = Server::start();
    run(async {
        let [first, second] = [server.member(1), server.member(1)];
        let lease = first.acquire(Version::default(), TERM).await.unwrap().unwrap();
        assert!(second.acquire(Version::default(), TERM).await.unwrap().is_none(), "one at a time");
        let early = first.write(&lease, "one", b"early").await.unwrap().unwrap();
        // The lease expires by itself.
        assert!(first.renew(&lease, Duration::from_millis(50)).await.unwrap());
        let end = Instant::now() + PATIENCE;
        let after = loop {
            if let Some(lease) = second.acquire(Version::default(), TERM).await.unwrap() {
                break lease;
            }
            assert!(Instant::now() < end, "the lease does not end");
        };
        // The first member was suspended, and has not noticed.
        assert!(first.write(&lease, "one", b"too late").await.unwrap().is_none());
        assert!(!first.renew(&lease, TERM).await.unwrap());
        first.release(lease).await.unwrap();
        let late = second.write(&after, "one", b"late").await.unwrap().unwrap();
        assert!(late > early);
        assert_eq!(read(&first).await, [Some((late, b"late".to_vec())), None]);
        assert!(second.renew(&after, TERM).await.unwrap(), "no other member has ended it");
    });
}

#[test]
fn tokens_grow_even_if_redis_loses_data() {
    let server = Server::start();
    run(async {
        let member = server.member(1);
        let mut known = Version::default();
        for _ in 0..3 {
            let lease = member.acquire(known, TERM).await.unwrap().unwrap();
            let version = member.write(&lease, "one", b"content").await.unwrap().unwrap();
            assert!(version > known);
            known = version;
            assert_eq!(server.cli(&["FLUSHALL"]), "OK");
            assert!(
                member.write(&lease, "one", b"content").await.unwrap().is_none(),
                "it is lost with the rest"
            );
        }
        // A lease without an expiry is invalid: it was not written by a member.
        server.cli(&[
            "EVAL",
            "for _, name in ipairs({'lease', 'token'}) do redis.call('SET', ARGV[1] .. name, 'x') end",
            "0",
            &format!("quadrille:{}:{{test}}:", member.namespace()),
        ]);
        assert!(member.acquire(known, TERM).await.unwrap().is_some());
    });
}

#[test]
fn a_record_is_good_under_its_name_in_its_version_and_for_its_fleet_only() {
    let server = Server::start();
    run(async {
        let member = server.member(1);
        let lease = member.acquire(Version::default(), TERM).await.unwrap().unwrap();
        let one = member.write(&lease, "one", b"1").await.unwrap().unwrap();
        let key = |name: &str| format!("quadrille:{}:{{test}}:record:{name}", member.namespace());
        let damaged = Some((Version::default(), b"damaged".to_vec()));
        server.cli(&["COPY", &key("one"), &key("two")]);
        assert_eq!(read(&member).await, [Some((one, b"1".to_vec())), damaged.clone()], "another name");
        server.cli(&["SETRANGE", &key("one"), "1", "1"]);
        assert_eq!(read(&member).await[0], damaged, "another version");
        for bytes in ["", "x", "00000000000000070000", "00000000000000070000not sealed"] {
            server.cli(&["SET", &key("one"), bytes]);
            assert_eq!(read(&member).await[0].is_some(), !bytes.is_empty(), "{bytes}");
        }
        let huge = "return redis.call('SET', KEYS[1], string.rep('0', 20000000))";
        server.cli(&["EVAL", huge, "1", &key("one")]);
        assert_eq!(read(&member).await[0], damaged);
        assert_eq!(read(&server.member(2)).await, [None, None], "another fleet");
    });
}

#[test]
fn members_that_are_alive_are_waited_for() {
    let server = Server::start();
    run(async {
        let [first, second] = [server.member(1), server.member(1)];
        assert_eq!(first.attend(Version::default()).await.unwrap(), None);
        let lease = first.acquire(Version::default(), TERM).await.unwrap().unwrap();
        let version = first.write(&lease, "one", b"1").await.unwrap().unwrap();
        assert_eq!(second.attend(Version::default()).await.unwrap(), Some(version));
        assert_eq!(first.behind(version).await.unwrap(), 2);
        first.attend(version).await.unwrap();
        assert_eq!(first.behind(version).await.unwrap(), 1);
        second.attend(version).await.unwrap();
        assert_eq!(first.behind(version).await.unwrap(), 0);
        let next = first.write(&lease, "two", b"2").await.unwrap().unwrap();
        assert_eq!(first.behind(next).await.unwrap(), 2);
    });
}
