//! Chromium, driven through its DevTools protocol.

use super::PATIENCE;
use base64ct::{Base64, Encoding};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket, client::IntoClientRequest};

/// A headless browser with one page; ended when dropped.
pub struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    session: String,
    calls: u64,
    complaints: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser, and opens this page.
    pub fn open(url: &str) -> Self {
        Self::open_with(&[], url)
    }

    /// Starts a browser with these flags.
    pub fn open_with(flags: &[&str], url: &str) -> Self {
        let profile = tempfile::tempdir().expect("a directory for the profile");
        let mut child = Command::new(program())
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(flags)
            .arg("about:blank")
            .stderr(Stdio::piped())
            .spawn()
            .expect("starting the browser");
        let socket = connect(&mut child);
        let (session, calls, complaints) = (String::new(), 0, Vec::new());
        let mut browser = Self { child, socket, session, calls, complaints, _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attached)["sessionId"].clone();
        browser.session = session.as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.show(1280, 1000, false);
        browser.call("Page.navigate", json!({ "url": url }));
        browser
    }

    /// Sets the size of the window, and light or dark mode.
    pub fn show(&mut self, width: u32, height: u32, dark: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({ "name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" } });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [scheme] }));
    }

    /// Evaluates an expression in the page.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page; prints the page's text on failure.
    #[track_caller]
    pub fn wait_until(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        while self.evaluate(expression) != json!(true) {
            assert!(
                Instant::now() < end,
                "never true: {expression}\n{}\n{:?}",
                self.evaluate("document.body.innerText"),
                self.complaints
            );
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns the page's errors: exceptions, violations of its Content-Security-Policy, and failed requests.
    pub fn complaints(&mut self) -> Vec<String> {
        self.evaluate("null");
        self.complaints.clone()
    }

    /// Returns the page's errors without the connections that fail while a gateway is killed and restarted.
    pub fn complaints_across_a_restart(&mut self) -> Vec<String> {
        const FAILED: [&str; 4] =
            ["ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_CONNECTION_CLOSED", "ERR_EMPTY_RESPONSE"];
        let mut complaints = self.complaints();
        complaints.retain(|complaint| !FAILED.iter().any(|failed| complaint.contains(failed)));
        complaints
    }

    /// Writes a PNG screenshot of the whole page to the directory given by the environment variable, if it is set.
    pub fn picture(&mut self, name: &str) {
        let Some(directory) = std::env::var_os("QUADRILLE_PICTURES") else { return };
        let whole = json!({ "captureBeyondViewport": true, "format": "png" });
        let picture = self.call("Page.captureScreenshot", whole);
        let bytes = Base64::decode_vec(picture["data"].as_str().expect("a picture")).expect("base64");
        std::fs::write(Path::new(&directory).join(format!("{name}.png")), bytes).expect("writing a picture");
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.socket.send(Message::text(message.to_string())).expect("a request to the browser");
        loop {
            let message = self.socket.read().unwrap_or_else(|error| panic!("{method}: {error}"));
            let Ok(text) = message.to_text() else { continue };
            let Ok(mut answer) = serde_json::from_str::<Value>(text) else { continue };
            if answer["id"] == id {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.listen(&answer);
        }
    }

    fn listen(&mut self, event: &Value) {
        let complaint = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
            _ => false,
        };
        if complaint {
            self.complaints.push(event["params"].to_string());
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the installed browser.
pub fn program() -> &'static Path {
    let known = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].map(Path::new);
    let found = known.into_iter().find(|path| path.exists());
    found.expect("a browser is missing; install the package chromium")
}

/// Connects to the address that the browser prints on its standard error.
fn connect(child: &mut Child) -> WebSocket<TcpStream> {
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let url = lines.find_map(|line| Some(line.split_once("DevTools listening on ")?.1.trim().to_owned()));
    // The browser would block if its further output were not read.
    thread::spawn(move || lines.for_each(drop));
    let request = url.expect("the browser ended").into_client_request().expect("a URL");
    let address = request.uri().authority().expect("an address").to_string();
    let tcp = TcpStream::connect(address).expect("connecting to the browser");
    tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    tungstenite::client(request, tcp).expect("a WebSocket handshake").0
}
