//! A real browser loads a page with its resources.

use crate::support::{Browser, Certificates, Gateway, Nginx};

/// Page whose script records the results once everything is loaded.
const PAGE: &str = r#"<!doctype html><html><head><link rel="stylesheet" href="/style.css">
<script src="/script.js" defer></script></head>
<body><p id="styled">text</p><img id="image" src="/image.png"><p id="result">nothing</p></body></html>"#;

const SCRIPT: &str = r#"addEventListener("load", async () => {
    const color = getComputedStyle(document.getElementById("styled")).color;
    const width = document.getElementById("image").naturalWidth;
    const parts = await Promise.all([...Array(20).keys()].map(async n => (await fetch(`/part${n}.txt`)).text()));
    const posted = await (await fetch("/echo", {method: "POST", body: "x".repeat(100000)})).text();
    const protocol = performance.getEntriesByType("navigation")[0].nextHopProtocol;
    document.getElementById("result").textContent =
        [color, width, parts.join(""), posted, protocol, location.protocol].join("|");
});"#;

/// One red pixel.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8,
    2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 12, b'I', b'D', b'A', b'T', 0x08, 0xd7, 0x63, 0xf8, 0xcf,
    0xc0, 0, 0, 3, 1, 1, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60,
    0x82,
];

#[test]
fn a_browser_loads_a_page_with_styles_scripts_and_images() {
    let nginx = Nginx::new("location = /echo { return 200 $request_method$http_content_length; }");
    let files: [(&str, &[u8]); 4] = [
        ("page.html", PAGE.as_bytes()),
        ("script.js", SCRIPT.as_bytes()),
        ("style.css", b"#styled { color: rgb(1, 2, 3); }"),
        ("image.png", PIXEL),
    ];
    for (name, contents) in files {
        std::fs::write(nginx.file(name), contents).expect("a file");
    }
    for part in 0..20 {
        std::fs::write(nginx.file(&format!("part{part}.txt")), format!("{part},")).expect("a part");
    }
    let certificates = Certificates::new();
    let gateway = Gateway::with_flags(
        &certificates.ecdsa("P-256", &["localhost"]),
        &["--upstream", &nginx.address().to_string()],
    );
    let url = format!("https://localhost:{}/page.html", gateway.port());
    let mut browser = Browser::open_with(&["--ignore-certificate-errors", "--disable-quic"], &url);
    let result = "document.getElementById('result')?.textContent";
    browser.wait_until(&format!("({result} ?? 'nothing') !== 'nothing'"));
    let parts: String = (0..20).map(|part| format!("{part},")).collect();
    let expected = format!("rgb(1, 2, 3)|1|{parts}|POST100000|h2|https:");
    assert_eq!(browser.evaluate(result), expected, "{}", gateway.log());
}
