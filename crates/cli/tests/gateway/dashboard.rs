//! The dashboard in a real browser: it renders, follows the load, and stays correct when the gateway restarts.

use crate::support::{
    Browser, Certificates, Configuration, Gateway, KeyServer, Nginx, PATIENCE, Pair, Site, ports, quadrille,
    succeed,
};
use serde_json::{Value, json};
use std::{
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A name that would be markup if it were not escaped.
const HOSTILE: &str = "<b id=injected>x.example";

struct Scene {
    certificates: Certificates,
    configuration: Configuration,
    port: u16,
    _nginx: Nginx,
}

impl Scene {
    /// Two certificates, one upstream with a healthy and an unhealthy endpoint, every handshake measured.
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
  site: {{servers: ['{}', '127.0.0.1:{dead}'], health: {{interval: 100ms, timeout: 300s, unhealthy: 1}}}}
",
            nginx.address()
        );
        Self { certificates, configuration: Configuration::new(&text), port, _nginx: nginx }
    }

    fn start(&self) -> Gateway {
        Gateway::with_config(&self.configuration.path(), 1)
    }

    /// Performs handshakes until it is stopped, half of them with a session.
    fn load(&self) -> Load {
        let mut bench = quadrille("bench");
        bench.arg(format!("https://localhost:{}/", self.port));
        bench.args(["--connect", &format!("127.0.0.1:{}", self.port), "--ca"]).arg(self.certificates.ca());
        bench.args(["--resumed", "0.5", "--connections", "24", "--json"]);
        bench.args(["--sni", "localhost,shop.example.com"]);
        bench.args(["--duration", "3600"]);
        let began = Instant::now();
        Load { bench: bench.stdout(Stdio::null()).spawn().expect("quadrille bench"), began }
    }
}

/// Clients in the background; killed when dropped.
struct Load {
    bench: Child,
    began: Instant,
}

impl Load {
    /// Stops the load after at least this time. Returns its duration.
    fn stop_after(mut self, least: Duration) -> Duration {
        thread::sleep(least.saturating_sub(self.began.elapsed()));
        succeed(Command::new("kill").args(["-INT", &self.bench.id().to_string()]));
        assert!(self.bench.wait().expect("an end").success());
        self.began.elapsed()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.bench.kill();
        let _ = self.bench.wait();
    }
}

const LIVE: &str = "document.body?.dataset.state === 'live'";

/// Returns a tile's number; null while there is a dash.
fn tile(id: &str) -> String {
    let text = format!("document.querySelector('#tile-{id} .value').textContent");
    format!("(text => text === '–' ? null : Number.parseFloat(text.replace(',', '')))({text})")
}

/// Checks that every number on the page is valid and not negative, and that every chart is within its frame.
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

    // The page shows that there has been no traffic.
    browser.wait_until(LIVE);
    browser.wait_until(&format!("{} === 0", tile("rate")));
    browser.wait_until("!document.getElementById('quiet').hidden");
    assert_eq!(browser.evaluate(SOUND), "sound");
    browser.picture("quiet");

    // Under load.
    let load = scene.load();
    browser.wait_until(&format!("{} > 0", tile("rate")));
    browser.wait_until("document.getElementById('quiet').hidden");
    browser.wait_until(&format!("{0} > 30 && {0} < 70", tile("share")));
    for figure in ["operations", "time", "cpu", "batch", "connections", "requests", "upstream"] {
        browser.wait_until(&format!("{} > 0", tile(figure)));
    }
    for picture in [
        "#handshakes polygon.series-1",
        "#requests polygon.series-0",
        "#upstream polyline",
        "#resumption polyline",
        "#fill polyline",
        "#key-times polyline",
    ] {
        browser.wait_until(&format!(
            "document.querySelector('{picture}')?.getAttribute('points').split(' ').length > 3"
        ));
    }
    browser.wait_until("document.querySelectorAll('.bar .stage-PrivateKey').length >= 1");
    browser.wait_until("document.querySelectorAll('#sizes li').length > 0");
    // The savings of lanes are shown if there are any; a backend without lanes saves nothing.
    let batches = browser.evaluate("document.querySelector('#tile-batch .note').textContent");
    let least = if batches == "this backend has no batches" { 0 } else { 1 };
    browser.wait_until(&format!("{} >= {least}", tile("saved")));
    let top = browser
        .evaluate("[...document.querySelectorAll('#resumption .tick')].map(tick => tick.textContent)[2]");
    assert_eq!(top, "100 %", "a share ends there");
    // Problems are shown first.
    browser.wait_until(
        "document.getElementById('alerts').innerText.includes('Upstream site: 1 of 2 endpoints is unhealthy')",
    );
    browser.wait_until(
        "[...document.querySelectorAll('#backends .state')].map(state => state.textContent).filter(text => text === 'unhealthy').length === 1",
    );
    // Names are the configured ones, as text. There is a bar even for a single one.
    browser.wait_until(
        "[...document.querySelectorAll('#name option')].map(option => option.textContent).join() === 'all names,*.example.com,localhost'",
    );
    browser.evaluate("{ const name = document.getElementById('name'); name.value = 'localhost'; name.dispatchEvent(new Event('change')); }");
    browser.wait_until("document.querySelectorAll('.bar .stage-PrivateKey').length >= 1");
    let certificates = browser.evaluate("document.getElementById('certificates').innerText");
    let certificates = certificates.as_str().expect("a text");
    assert!(certificates.contains(HOSTILE) && certificates.contains("29 days left"), "{certificates}");
    assert_eq!(browser.evaluate("document.getElementById('injected')"), Value::Null);
    assert_eq!(browser.evaluate(SOUND), "sound");
    pictures(&mut browser);
    let lasted = load.stop_after(Duration::from_secs(20));
    let before = gateway.metric("quadrille_handshakes_total", &[]);
    // At least one of the load's ten seconds, or of those around it, had this rate.
    opened_later(&gateway, before / (lasted.as_secs_f64() + 20.0));

    // The gateway stops, and restarts with counters at zero.
    gateway.signal("KILL");
    gateway.wait(PATIENCE).expect("an end");
    browser.wait_until("document.getElementById('state').textContent.startsWith('gateway not reachable')");
    browser.picture("lost");
    let gateway = scene.start();
    browser.wait_until(LIVE);
    browser.wait_until(&format!("{} === 0", tile("rate")));
    browser.wait_until("document.querySelectorAll('#handshakes polygon.series-0').length === 2");
    assert_eq!(browser.evaluate(SOUND), "sound");

    // It continues to count without a jump, although the new process soon exceeds the old one's counters.
    let load = scene.load();
    browser.wait_until(&format!("{} > 0", tile("rate")));
    load.stop_after(Duration::from_secs(15));
    browser.wait_until(&format!("{} === 0", tile("rate")));
    let again = gateway.metric("quadrille_handshakes_total", &[]);
    let top = browser.evaluate(
        "Math.max(...[...document.querySelectorAll('#handshakes .tick')].map(tick => Number.parseFloat(tick.textContent.replace(',', ''))).filter(Number.isFinite))",
    );
    let fastest = before.max(again) / 5.0;
    assert!(
        top.as_f64().is_some_and(|top| top <= fastest),
        "{top}/s in the chart; {before} and {again} in total"
    );
    assert_eq!(browser.evaluate(SOUND), "sound");
    assert_eq!(browser.complaints_across_a_restart(), Vec::<String>::new());
}

/// A page that is opened after the load shows its history, which the gateway records every ten seconds.
fn opened_later(gateway: &Gateway, least: f64) {
    let mut browser = Browser::open(&gateway.admin("/"));
    browser.wait_until(LIVE);
    browser.evaluate("document.getElementById('hour').click()");
    let points =
        "document.querySelector('#handshakes polygon.series-0')?.getAttribute('points').split(' ').length";
    browser.wait_until(&format!("{points} >= 6"));
    let highest = "Math.max(...[...document.querySelectorAll('#handshakes .tick')].map(tick => Number.parseFloat(tick.textContent.replace(',', ''))).filter(Number.isFinite))";
    browser.wait_until(&format!("{highest} >= {least}"));
    assert_eq!(browser.evaluate(SOUND), "sound");
    browser.picture("later");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Script that returns the elements wider than their parent or outside the window: none are expected.
const CLIPPED: &str = r"[...document.querySelectorAll('html, body, body *')]
    .filter(element => !(element instanceof SVGElement) && element.clientWidth > 0)
    .filter(element => element.scrollWidth > element.clientWidth || element.getBoundingClientRect().right > innerWidth + 0.5)
    .map(element => `${element.outerHTML.slice(0, 120)}: ${element.scrollWidth} in ${element.clientWidth}`)";

/// Checks the layout once the charts are redrawn for the size of the window.
fn clipped(browser: &mut Browser) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = browser.evaluate(CLIPPED);
        if found == json!([]) || Instant::now() > end {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Alerts are above everything except the title, and are visible without scrolling.
const ALERTS_FIRST: &str = r"(() => {
    const [alerts, main] = ['alerts', 'tiles'].map(id => document.getElementById(id).getBoundingClientRect());
    return alerts.height > 0 && alerts.bottom <= main.top && alerts.top < 200;
})()";

/// Screenshots for the guide and for development: set `QUADRILLE_PICTURES` to a directory.
fn pictures(browser: &mut Browser) {
    for (name, width, dark) in [
        ("light", 1400, false),
        ("dark", 1400, true),
        ("small", 1100, false),
        ("tablet", 768, false),
        ("phone", 390, false),
    ] {
        browser.show(width, 1000, dark);
        assert_eq!(clipped(browser), json!([]), "{name}");
        assert_eq!(browser.evaluate(ALERTS_FIRST), true, "{name}");
        browser.picture(name);
    }
    browser.show(1280, 1000, false);
}

#[test]
fn a_rejected_reload_is_shown_until_it_is_fixed() {
    let scene = Scene::new();
    let gateway = scene.start();
    let mut browser = Browser::open(&gateway.admin("/"));
    browser.wait_until(LIVE);
    let good = std::fs::read_to_string(scene.configuration.path()).expect("the configuration");
    scene.configuration.replace(&format!("{good}nonsense: 7\n"));
    let told = "document.querySelector('#alerts li.bad')?.innerText";
    browser.wait_until(&format!("{told}?.startsWith('The last reload failed')"));
    let alert = browser.evaluate(told);
    assert!(alert.as_str().is_some_and(|text| text.contains("nonsense")), "{alert}");
    browser.show(390, 800, false);
    assert_eq!(clipped(&mut browser), json!([]));
    browser.picture("refused");
    scene.configuration.replace(&good);
    browser.wait_until("document.querySelector('#alerts li.bad') === null");
    assert_eq!(browser.complaints(), Vec::<String>::new());
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
