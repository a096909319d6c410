//! The dashboard in a real browser: it renders, follows the load, and stays right when the gateway restarts.

use crate::support::{
    Browser, Certificates, Configuration, Gateway, KeyServer, Nginx, Pair, Site, ports, quadrille,
};
use serde_json::{Value, json};
use std::{
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// A name that would be markup if anybody took it for such.
const HOSTILE: &str = "<b id=injected>x.example";

struct Scene {
    certificates: Certificates,
    configuration: Configuration,
    port: u16,
    _nginx: Nginx,
}

impl Scene {
    /// Two certificates, one upstream with a server that is healthy and one that is not, every handshake measured.
    fn new() -> Self {
        let certificates = Certificates::new();
        let nginx = Nginx::new("location / { return 200 ok; }");
        let (port, admin, dead) = (ports::free(), ports::free(), ports::free());
        let certificate =
            |pair: Pair| format!("{{chain: {}, key: {}}}", pair.chain.display(), pair.key.display());
        let rsa = certificate(certificates.rsa(2048, &["localhost", "*.example.com"]));
        let hostile = certificate(certificates.ecdsa("P-256", &[HOSTILE]));
        let text = format!(
            "admin: 127.0.0.1:{admin}
threads: 1
sampling: {{one_in: 1}}
listeners: [{{address: '127.0.0.1:{port}', certificates: [{rsa}, {hostile}], upstream: site}}]
upstreams:
  site: {{servers: ['{}', '127.0.0.1:{dead}'], health: {{interval: 100ms, unhealthy: 1}}}}
",
            nginx.address()
        );
        Self { certificates, configuration: Configuration::new(&text), port, _nginx: nginx }
    }

    fn start(&self) -> Gateway {
        Gateway::with_config(&self.configuration.path(), 1)
    }

    /// Handshakes for this many seconds, half of them with a session.
    fn load(&self, seconds: u32) -> Command {
        let mut bench = quadrille("bench");
        bench.arg(format!("https://localhost:{}/", self.port));
        bench.args(["--connect", &format!("127.0.0.1:{}", self.port), "--ca"]).arg(self.certificates.ca());
        bench.args(["--resumed", "0.5", "--connections", "24", "--json"]);
        bench.args(["--sni", "localhost,shop.example.com"]);
        bench.args(["--duration", &seconds.to_string()]);
        bench.stdout(Stdio::null());
        bench
    }
}

const LIVE: &str = "document.body?.dataset.state === 'live'";

/// A tile's number; null while there is a dash.
fn tile(id: &str) -> String {
    let text = format!("document.querySelector('#tile-{id} .value').textContent");
    format!("(text => text === '–' ? null : Number.parseFloat(text.replace(',', '')))({text})")
}

/// Every number on the page is one and not negative, and every picture lies within its frame.
const SOUND: &str = r"(() => {
    const text = document.body.innerText;
    const wrong = /NaN|Infinity|undefined|\[object|(^|[\s(])[-\u2212]\d/.exec(text);
    if (wrong) return text.slice(Math.max(0, wrong.index - 80), wrong.index + 80);
    for (const shape of document.querySelectorAll('polyline, polygon')) {
        const places = shape.getAttribute('points').split(/[ ,]/).map(Number);
        const high = places.filter((_, index) => index % 2 === 1);
        if (!places.every(Number.isFinite) || Math.min(...high) < 7 || Math.max(...high) > 149) return shape.outerHTML;
    }
    return 'sound';
})()";

#[test]
fn it_follows_the_load_and_stays_right_across_a_restart() {
    let scene = Scene::new();
    let mut gateway = scene.start();
    let mut browser = Browser::open(&gateway.admin("/"));

    // Nothing has happened, and the page says so.
    browser.wait_until(LIVE);
    browser.wait_until(&format!("{} === 0", tile("rate")));
    browser.wait_until("!document.getElementById('quiet').hidden");
    assert_eq!(browser.evaluate(SOUND), "sound");
    browser.picture("quiet");

    // Under load.
    let mut load = scene.load(20).spawn().expect("quadrille bench");
    browser.wait_until(&format!("{} > 20", tile("rate")));
    browser.wait_until("document.getElementById('quiet').hidden");
    browser.wait_until(&format!("{0} > 30 && {0} < 70", tile("share")));
    for figure in ["operations", "time", "cpu", "batch", "connections"] {
        browser.wait_until(&format!("{} > 0", tile(figure)));
    }
    for picture in
        ["#handshakes polygon.series-1", "#resumption polyline", "#fill polyline", "#key-times polyline"]
    {
        browser.wait_until(&format!(
            "document.querySelector('{picture}')?.getAttribute('points').split(' ').length > 3"
        ));
    }
    browser.wait_until("document.querySelectorAll('.bar .stage-PrivateKey').length >= 1");
    browser.wait_until("document.querySelectorAll('#sizes li').length > 0");
    browser.wait_until(
        "[...document.querySelectorAll('#backends .state')].map(state => state.textContent).filter(text => text === 'down').length === 1",
    );
    // Names: what is configured, as text. A bar for one of them as well as for all.
    let names =
        browser.evaluate("[...document.querySelectorAll('#name option')].map(option => option.textContent)");
    assert_eq!(names, json!(["all names", "*.example.com", "localhost"]));
    browser.evaluate("{ const name = document.getElementById('name'); name.value = 'localhost'; name.dispatchEvent(new Event('change')); }");
    browser.wait_until("document.querySelectorAll('.bar .stage-PrivateKey').length >= 1");
    let certificates = browser.evaluate("document.getElementById('certificates').innerText");
    let certificates = certificates.as_str().expect("a text");
    assert!(certificates.contains(HOSTILE) && certificates.contains("29 days left"), "{certificates}");
    assert_eq!(browser.evaluate("document.getElementById('injected')"), Value::Null);
    assert_eq!(browser.evaluate(SOUND), "sound");
    pictures(&mut browser);
    load.wait().expect("the load");
    let before = gateway.metric("quadrille_handshakes_total", &[]);

    // The gateway is gone, and comes back with counters at zero.
    gateway.signal("KILL");
    gateway.wait(Duration::from_secs(10)).expect("an end");
    browser.wait_until("document.getElementById('state').textContent.startsWith('gateway not reachable')");
    browser.picture("lost");
    let gateway = scene.start();
    browser.wait_until(LIVE);
    browser.wait_until(&format!("{} === 0", tile("rate")));
    browser.wait_until("document.querySelectorAll('#handshakes polygon.series-0').length === 2");
    assert_eq!(browser.evaluate(SOUND), "sound");

    // And it counts on: no leap, though the new process soon has more than the old one had.
    let mut load = scene.load(15).spawn().expect("quadrille bench");
    browser.wait_until(&format!("{} > 20", tile("rate")));
    load.wait().expect("the load");
    browser.wait_until(&format!("{} === 0", tile("rate")));
    let again = gateway.metric("quadrille_handshakes_total", &[]);
    let top = browser.evaluate(
        "Math.max(...[...document.querySelectorAll('#handshakes .tick')].map(tick => Number.parseFloat(tick.textContent.replace(',', ''))).filter(Number.isFinite))",
    );
    let fastest = before.max(again) / 5.0;
    assert!(
        top.as_f64().is_some_and(|top| top <= fastest),
        "{top}/s in the picture; {before} and {again} in all"
    );
    assert_eq!(browser.evaluate(SOUND), "sound");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// For the guide, and for who changes the page: set `QUADRILLE_PICTURES` to a directory.
fn pictures(browser: &mut Browser) {
    for (name, width, dark) in [("light", 1280, false), ("dark", 1280, true), ("phone", 390, false)] {
        browser.show(width, 1000, dark);
        let overflow =
            browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(overflow, 0, "{name}: the page is wider than the window");
        thread::sleep(Duration::from_millis(300));
        browser.picture(name);
    }
    browser.show(1280, 1000, false);
}

#[test]
fn a_key_servers_page_shows_what_a_key_server_has() {
    let site = Site::new();
    site.give_away(&site.certificates.rsa(2048, &["localhost"]), "site");
    let keys = KeyServer::start(&site, &[]);
    let mut browser = Browser::open(&keys.process.admin("/"));
    browser.wait_until(LIVE);
    let shown = browser.evaluate("document.getElementById('about').textContent");
    assert!(shown.as_str().is_some_and(|text| text.starts_with("Key server")), "{shown}");
    let visible = "getComputedStyle(document.getElementById('tile-rate')).display";
    assert_eq!(browser.evaluate(visible), "none", "no handshakes of its own");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
