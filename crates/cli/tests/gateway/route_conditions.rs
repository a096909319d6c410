//! Conditions of routes on methods, query parameters, cookies and hosts, and placeholders in what routes send.

use crate::support::{
    Certificates, Configuration, Gateway, Http3Client, curl, document, echo_server, http3::Sending, listener,
    output, quadrille, succeed,
};

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    file: Configuration,
}

impl Site {
    /// Starts a gateway with these keys of its listener, and an upstream `web` that echoes requests.
    fn new(keys: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
        let file = Configuration::new(&document(&[listener(&pair, &format!("http3: on, {keys}"))], &web));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, file }
    }

    /// Returns the bodies of a request over HTTP/1.1, HTTP/2 and HTTP/3; 404 for one without a route.
    fn bodies(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> [String; 3] {
        let mut client = Http3Client::new(&self.certificates).connect(self.gateway.address(0));
        let third = client.exchange(&Sending { method, path, headers, body: b"" });
        [
            self.curl("--http1.1", method, path, headers),
            self.curl("--http2", method, path, headers),
            third.text(),
        ]
    }

    fn curl(&self, version: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let lines: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let lines = lines.iter().flat_map(|line| ["-H", line.as_str()]);
        let arguments: Vec<_> = ["--no-fail", version, "-X", method].into_iter().chain(lines).collect();
        curl(&self.gateway, &self.certificates, &arguments, path)
    }

    /// Returns the body and the status of a request for another host, over HTTP/1.1 and HTTP/2.
    fn of_host(&self, host: &str, path: &str) -> [String; 2] {
        ["--http1.1", "--http2"].map(|version| self.curl(version, "GET", path, &[("host", host)]))
    }

    fn redirect(&self, path: &str) -> String {
        let arguments = ["--output", "/dev/null", "--write-out", "%{http_code} %{redirect_url}"];
        curl(&self.gateway, &self.certificates, &arguments, path)
    }
}

#[test]
fn methods_queries_and_cookies_choose() {
    let site = Site::new(
        "routes: [{methods: [PUT, DELETE], respond: method}, {path: /a, respond: path},
          {queries: [{name: 'q x', exact: 'a b'}], respond: query}, {queries: [{name: p, prefix: v1}], respond: prefix},
          {queries: [{name: r, regex: '[0-9]+'}, {name: s, present: off}], respond: regex},
          {queries: [{name: i, exact: x, invert: on}], respond: inverted},
          {cookies: [{name: beta, exact: 'YES', ignore_case: on}], respond: cookie},
          {cookies: [{name: t, contains: -x-}, {name: u, suffix: z}, {name: none, present: off}], respond: cookies},
          {respond: other}]",
    );
    for (method, path, cookie, expected) in [
        ("PUT", "/", "a=b", "method"),
        ("DELETE", "/x", "a=b", "method"),
        ("POST", "/", "a=b", "other"),
        ("PUT", "/a", "a=b", "path"),
        ("GET", "/?q%20x=a+b", "a=b", "query"),
        ("GET", "/?y&q+x=%61%20b", "a=b", "query"),
        ("GET", "/?q%20x=a", "a=b", "other"),
        ("GET", "/?p=v12", "a=b", "prefix"),
        ("GET", "/?p=w&p=v1", "a=b", "other"),
        ("GET", "/?r=12", "a=b", "regex"),
        ("GET", "/?r=12&s", "a=b", "other"),
        ("GET", "/?i=y", "a=b", "inverted"),
        ("GET", "/?i=x", "a=b", "other"),
        ("GET", "/", "a=b; beta=yes", "cookie"),
        ("GET", "/", "beta=\"yes\"", "cookie"),
        ("GET", "/", "xbeta=yes", "other"),
        ("GET", "/", "t=a-x-b; u=xyz", "cookies"),
        ("GET", "/", "t=a-x-b; u=xyz; none=", "other"),
    ] {
        let bodies = site.bodies(method, path, &[("cookie", cookie)]);
        assert_eq!(bodies, [expected; 3], "{method} {path} {cookie}");
    }
}

#[test]
fn a_route_has_several_hosts() {
    let site = Site::new(
        "routes: [{host: [a.example, '*.b.example'], path: /x, respond: several},
          {host: c.example, respond: one}, {respond: any}]",
    );
    for (host, path, expected) in [
        ("a.example", "/x", "several"),
        ("A.EXAMPLE", "/x/y", "several"),
        ("www.b.example", "/x", "several"),
        ("b.example", "/x", "any"),
        ("a.example", "/", "any"),
        ("c.example", "/x", "one"),
    ] {
        assert_eq!(site.of_host(host, path), [expected; 2], "{host}{path}");
    }
}

#[test]
fn a_prefix_may_precede_expressions() {
    let site = Site::new(
        "routes: [{path_regex: '/.*[.]png', respond: expression}, {path: /static, before_regex: on, respond: first},
          {path: /static/deep/longer, respond: longer}, {path: /static/deep, before_regex: on, respond: deep},
          {path_exact: /static/x, respond: exact}, {path: /images, respond: images}]",
    );
    for (path, expected) in [
        ("/static/a.png", "first"),
        ("/static/deep/longer", "deep"),
        ("/static/x", "exact"),
        ("/images/a.png", "expression"),
        ("/images/a", "images"),
    ] {
        assert_eq!(site.bodies("GET", path, &[]), [expected; 3], "{path}");
    }
}

#[test]
fn groups_and_parts_of_the_request_are_sent() {
    let site = Site::new(
        "routes: [{path_regex: '/v([0-9]+)/(?P<rest>.*)', upstream: web, rewrite: '/{rest}/{1}',
           request_headers: [{set: X-Seen, value: '{host} {path} {query} {2}'}],
           response_headers: [{set: X-Group, value: 'v{1}'}]},
          {path_exact: /exact, upstream: web, rewrite: '/of/{host}{path}'},
          {path: /kept, upstream: web, upstream_host: received},
          {path: /host, upstream: web, upstream_host: 'app.example:81'}, {path: /server, upstream: web, upstream_host: server}]",
    );
    for echo in site.bodies("GET", "/v12/a/b?q=1", &[]) {
        assert!(echo.starts_with("GET /a/b/12?q=1 HTTP/1.1\r\n"), "{echo}");
        let seen =
            echo.lines().find(|line| line.to_ascii_lowercase().starts_with("x-seen: ")).expect("a header");
        assert_eq!(&seen["x-seen: ".len()..], "localhost /v12/a/b q=1 a/b", "{echo}");
    }
    let head = curl(&site.gateway, &site.certificates, &["--include"], "/v7/x");
    assert!(head.to_ascii_lowercase().contains("x-group: v7\r\n"), "{head}");
    for echo in site.bodies("GET", "/exact?q", &[]) {
        assert!(echo.starts_with("GET /of/localhost/exact?q HTTP/1.1\r\n"), "{echo}");
    }
    let host = |echo: &str| {
        let line = echo.lines().find(|line| line.to_ascii_lowercase().starts_with("host: "));
        line.map(|line| line["host: ".len()..].to_owned()).expect("a host")
    };
    for echo in site.bodies("GET", "/host", &[]) {
        assert_eq!(host(&echo), "app.example:81");
        assert!(echo.to_ascii_lowercase().contains("x-forwarded-host: localhost"), "{echo}");
    }
    for echo in site.bodies("GET", "/server", &[]) {
        assert!(host(&echo).starts_with("127.0.0.1"), "{echo}");
    }
    for echo in site.bodies("GET", "/kept", &[]) {
        assert!(host(&echo).starts_with("localhost"), "{echo}");
    }
}

#[test]
fn redirects_have_placeholders() {
    let site = Site::new(
        "routes: [{path: /p, redirect: {host: 'www.{host}', port: 1, path: '/new{path}'}},
          {path: /q, redirect: {port: 1, path: '/s?from={path}&{query}', status: 302}},
          {path_regex: '/old/([a-z]+)/?', redirect: {port: 1, path: '/{1}.html'}}]",
    );
    for (path, expected) in [
        ("/p/x?q=1", "301 https://www.localhost:1/new/p/x?q=1"),
        ("/q?a=b", "302 https://localhost:1/s?from=/q&a=b"),
        ("/old/page/?x", "301 https://localhost:1/page.html?x"),
    ] {
        assert_eq!(site.redirect(path), expected, "{path}");
    }
}

/// `routes explain` names the route that the running gateway takes.
#[test]
fn the_route_of_a_url_is_explained() {
    let site = Site::new(
        "rules: [{when: {path: /private}, deny: 403}],
         routes: [{path: /api, methods: [POST], respond: posted}, {path: /api, headers: [{name: x-a}], respond: with},
          {host: o.example, path: /api, respond: other}, {path: /api, respond: api},
          {path_regex: '/r/(.*)', upstream: web, rewrite: '/{1}'}, {respond: root}]",
    );
    let file = site.file.path();
    let explain = |url: &str, more: &[&str]| {
        succeed(quadrille("routes").args(["explain", url, "--config"]).arg(&file).args(more))
    };
    let said = explain("https://localhost/x/../api?q", &[]);
    assert!(said.contains("path /api\n"), "{said}");
    for part in [
        "listeners[0].routes[3]): responds with 200",
        "its methods are POST",
        "its condition on header `x-a` does not hold: it is absent",
        "its host is o.example",
        "an earlier route applies",
        "its conditions do not hold",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(said.matches("\napplies ").count(), 1, "{said}");
    for (url, more, taken) in [
        ("https://localhost/api", &["--method", "POST"][..], "listeners[0].routes[0]): responds"),
        ("https://localhost/api", &["--header", "X-A: 1"], "listeners[0].routes[1]): responds"),
        ("https://o.example/api", &[], "listeners[0].routes[2]): responds"),
        ("https://localhost/r/x", &[], "listeners[0].routes[4]): forwards /x to upstream web"),
        ("https://localhost/private/x", &[], "listeners[0].rules[0]): denies with 403"),
        ("https://localhost/a%2fb", &[], "400: "),
    ] {
        let said = explain(url, more);
        assert!(said.contains(taken), "{url}: {said}");
    }
    let (ok, said) =
        output(quadrille("routes").args(["explain", "http://localhost/", "--config"]).arg(&file));
    assert!(!ok && said.contains("no listener receives this URL; name one with --listener"), "{said}");
    assert_eq!(site.bodies("GET", "/x/../api?q", &[])[0], "api");
}
