//! `quadrille convert`: nginx and the gateway with the conversion of nginx's configuration respond alike.

use crate::support::{
    Configuration, Gateway, Nginx,
    comparison::{Request, USERS, gets, outcome},
    echo_server, ports, quadrille,
};
use std::path::Path;

/// Sends the requests to nginx and to the gateway with the conversion, and compares the outcomes. `http` is the content of
/// nginx's block `http`: `A` and `B` in `<A>` and `<B>` stand for the addresses of servers.
fn compare(http: &str, requests: &[Request<'_>]) {
    let (a, b) = (echo_server(), echo_server());
    let source = Configuration::new("");
    let directory = source.path().parent().expect("a directory").to_owned();
    std::fs::write(directory.join("users"), USERS).expect("the users");
    let http = http.replace("DIRECTORY", &directory.display().to_string());
    let http = http.replace("<A>", &a.to_string()).replace("<B>", &b.to_string());
    let nginx = Nginx::of_http(&http);
    let text = http.replace("PORT", &ports::free().to_string());
    let conversion = converted(&directory, &format!("events {{}} http {{ {text} }}"));
    let file = Configuration::new(&format!("{conversion}admin: \"127.0.0.1:0\"\n"));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut differences = Vec::new();
    for request in requests {
        let (expected, found) = (outcome(nginx.address(), request), outcome(gateway.address(0), request));
        if expected != found {
            differences.push(format!("{request:?}\n  nginx:   {expected:?}\n  gateway: {found:?}"));
        }
    }
    assert!(differences.is_empty(), "{}\n\n{conversion}\n{}", differences.join("\n"), gateway.log());
}

fn converted(directory: &Path, text: &str) -> String {
    let (from, to) = (directory.join("nginx.conf"), directory.join("converted.yaml"));
    std::fs::write(&from, text).expect("nginx.conf");
    let output =
        quadrille("convert").arg("nginx").arg(&from).arg("--output").arg(&to).output().expect("quadrille");
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(to).expect("the conversion")
}

#[test]
fn proxied_paths() {
    let paths = [
        "/",
        "/a",
        "/a/",
        "/a/x",
        "/a/x/y?q=1",
        "/b",
        "/b/",
        "/b/x",
        "/bx",
        "/c/",
        "/c/x?q=1",
        "/c/x/y",
        "/d",
        "/d/x",
        "/dx",
        "/e",
        "/e/",
        "/e/x",
        "/f/",
        "/f/1/2",
        "/g/x",
        "/other?x=y&z",
    ];
    compare(
        "server { listen 127.0.0.1:PORT;
            location /a/ { proxy_pass http://<A>/; }
            location /b/ { proxy_pass http://<A>/x/; }
            location /c/ { proxy_pass http://<A>/x; }
            location /d { proxy_pass http://<A>/y; }
            location = /e { proxy_pass http://<B>/exact; }
            location ~ ^/f/(.*)$ { proxy_pass http://<B>; }
            location /g/ { rewrite ^/g/(.*)$ /h/$1 break; proxy_pass http://<B>; }
            location / { proxy_pass http://<B>; } }",
        &gets("a.example", &paths),
    );
}

#[test]
fn selection_of_locations() {
    let paths = [
        "/",
        "/index",
        "/assets/a.png",
        "/assets",
        "/assetsx",
        "/docs",
        "/docs/",
        "/docs/x",
        "/docsx",
        "/docs/api",
        "/docs/api/",
        "/docs/api/v1",
        "/docs/apix",
        "/img/a.png",
        "/img/A.PNG",
        "/img/a.pngx",
        "/user/12",
        "/user/12/",
        "/user/x",
        "/docs/a.jpg",
    ];
    compare(
        "server { listen 127.0.0.1:PORT;
            location = / { return 204; }
            location ^~ /assets/ { proxy_pass http://<A>; proxy_set_header X-At assets; }
            location ~* \\.(png|jpg)$ { proxy_pass http://<A>; proxy_set_header X-At image; }
            location ~ ^/user/(\\d+)$ { return 302 /profile/$1; }
            location /docs { proxy_pass http://<B>; proxy_set_header X-At docs; }
            location /docs/api/ { proxy_pass http://<B>; proxy_set_header X-At api; }
            location / { return 404; } }",
        &gets("a.example", &paths),
    );
}

#[test]
fn headers_for_servers() {
    let extra = "X-Debug: 1\r\nX-Own: client\r\n";
    let requests: Vec<Request<'_>> = ["/", "/own", "/fixed/", "/fixed/x", "/default", "/empty/x"]
        .iter()
        .flat_map(|path| {
            [
                ("GET", "a.example", *path, extra),
                ("GET", "b.example", *path, ""),
                ("POST", "a.example", *path, "Content-Length: 0\r\n"),
            ]
        })
        .collect();
    compare(
        "proxy_set_header Host $http_host;
        proxy_set_header X-Real-IP $remote_addr;
        server { listen 127.0.0.1:PORT; server_name a.example b.example;
            location / { proxy_pass http://<A>; }
            location /own { proxy_set_header Host $host; proxy_set_header X-Own set; proxy_set_header X-Scheme $scheme; proxy_pass http://<A>; }
            location /fixed/ { proxy_set_header Host fixed.internal; proxy_set_header X-Uri $uri; proxy_pass http://<A>; }
            location /empty/ { proxy_set_header Host $host; proxy_set_header X-Debug ''; proxy_pass http://<B>; }
            location /default { proxy_set_header X-A a; proxy_pass http://<B>; } }",
        &requests,
    );
}

#[test]
fn servers_by_name() {
    let hosts = [
        "a.example",
        "A.EXAMPLE",
        "www.a.example",
        "x.wild.example",
        "wild.example",
        "unknown.example",
        "b.example",
    ];
    let requests: Vec<Request<'_>> = hosts
        .iter()
        .flat_map(|host| ["/", "/only", "/none/x"].map(|path| ("GET", *host, path, "")))
        .collect();
    compare(
        "server { listen 127.0.0.1:PORT default_server; server_name _; location / { return 404; } location /only { return 403; } }
        server { listen 127.0.0.1:PORT; server_name a.example; location / { proxy_pass http://<A>; proxy_set_header Host $http_host; } }
        server { listen 127.0.0.1:PORT; server_name www.a.example; return 301 http://a.example$request_uri; }
        server { listen 127.0.0.1:PORT; server_name .wild.example; location / { proxy_pass http://<B>; proxy_set_header Host $http_host; } }
        server { listen 127.0.0.1:PORT; server_name b.example; location = / { return 200 b; } location /only { return 410; }
            location / { return 406; } }",
        &requests,
    );
}

#[test]
fn redirects() {
    let paths = [
        "/",
        "/?q=1",
        "/old",
        "/old?q=1",
        "/keep",
        "/keep?q=1",
        "/host/x?q=1",
        "/uri/x?q=1",
        "/group/7/x",
        "/prefix/x?q=1",
        "/permanent/x?q=1",
        "/temporary/12",
        "/temporary/x",
        "/see",
        "/three",
        "/login",
        "/blog/a/b?q=2",
        "/status",
        "/found",
        "/gone",
    ];
    compare(
        "server { listen 127.0.0.1:PORT; server_name a.example;
            rewrite ^/permanent/(.*)$ https://new.example/$1 permanent;
            rewrite ^/temporary/(\\d+)$ /t/$1? redirect;
            location = / { return 301 https://$host$request_uri; }
            location = /old { return 301 /new; }
            location = /keep { return 302 /kept$is_args$args; }
            location /host/ { return 307 $scheme://www.$host$request_uri; }
            location /uri/ { return 308 https://other.example$uri; }
            location ~ ^/group/(\\d+)/ { return 302 /g/$1; }
            location /prefix/ { return 301 https://other.example/sub$request_uri; }
            location = /see { return 303 /seen; }
            location = /three { return 301 https://other.example:8443/three; }
            location = /login { return 302 https://id.example/?from=$host; }
            location /blog/ { return 301 http://blog.example$request_uri; }
            location = /status { return 418; }
            location = /found { return http://found.example/; }
            location = /gone { return 410 gone; }
            location / { return 404; } }",
        &gets("a.example", &paths),
    );
}

#[test]
fn clients_and_passwords() {
    const GOOD: &str = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
    const BAD: &str = "Authorization: Basic YWxpY2U6d3Jvbmc=\r\n";
    let paths = [
        "/",
        "/allowed/x",
        "/denied/x",
        "/other/x",
        "/closed",
        "/staff/x",
        "/staff/open/x",
        "/both/x",
        "/returned",
    ];
    let requests: Vec<Request<'_>> = paths
        .iter()
        .flat_map(|path| ["", GOOD, BAD].map(|headers| ("GET", "a.example", *path, headers)))
        .collect();
    compare(
        "server { listen 127.0.0.1:PORT; proxy_set_header Host $host;
            location /allowed/ { allow 127.0.0.0/8; deny all; proxy_pass http://<A>; }
            location /denied/ { deny 127.0.0.1; proxy_pass http://<A>; }
            location /other/ { allow 10.0.0.0/8; deny all; proxy_pass http://<A>; }
            location /closed { deny all; proxy_pass http://<A>; }
            location /staff/ { auth_basic Staff; auth_basic_user_file DIRECTORY/users; proxy_pass http://<A>; }
            location /staff/open/ { auth_basic off; proxy_pass http://<A>; }
            location /both/ { allow 10.0.0.0/8; deny all; auth_basic Staff; auth_basic_user_file DIRECTORY/users; proxy_pass http://<A>; }
            location = /returned { deny all; return 200 yes; }
            location / { proxy_pass http://<B>; } }",
        &requests,
    );
}

#[test]
fn conditions() {
    let agents = [
        "",
        "User-Agent: Mozilla\r\n",
        "User-Agent: ScrapyBot/1\r\n",
        "Referer: http://spam.example/\r\n",
        "Cookie: beta=1\r\n",
    ];
    let mut requests: Vec<Request<'_>> =
        agents.iter().map(|headers| ("GET", "a.example", "/", *headers)).collect();
    for method in ["HEAD", "POST", "PUT", "DELETE"] {
        requests.push((method, "a.example", "/", "User-Agent: x\r\nContent-Length: 0\r\n"));
    }
    for path in ["/?debug=1", "/?debug=2", "/x/y", "/beta", "/secret.bak"] {
        requests.push(("GET", "a.example", path, "User-Agent: x\r\nCookie: beta=1\r\n"));
    }
    requests.push(("GET", "www.a.example", "/x?y=1", "User-Agent: x\r\n"));
    requests.push(("GET", "other.example", "/x", "User-Agent: ScrapyBot\r\n"));
    compare(
        "map $http_user_agent $bad { default 0; ~*scrapy 1; }
        server { listen 127.0.0.1:PORT; server_name a.example www.a.example; proxy_set_header Host $host;
            if ($host = www.a.example) { return 301 http://a.example$request_uri; }
            if ($bad) { return 403; }
            if ($http_referer ~* spam) { return 403; }
            if ($request_method !~ ^(GET|HEAD|POST)$) { return 405; }
            if ($arg_debug = 1) { return 404; }
            location / { proxy_pass http://<A>; }
            location /beta { if ($cookie_beta = 1) { return 302 /new; } proxy_pass http://<A>; }
            location ~ \\.bak$ { return 403; } }",
        &requests,
    );
}

#[test]
fn methods_and_sizes() {
    let long = "Content-Length: 2097152\r\n";
    let mut requests: Vec<Request<'_>> = Vec::new();
    for path in ["/", "/read/x", "/large/x"] {
        requests.push(("POST", "a.example", path, long));
        for method in ["GET", "HEAD", "POST", "DELETE"] {
            requests.push((method, "a.example", path, "Content-Length: 0\r\n"));
        }
    }
    // The body would have to follow where it is accepted.
    requests.retain(|(_, _, path, headers)| !(*headers == long && *path == "/large/x"));
    compare(
        "server { listen 127.0.0.1:PORT; proxy_set_header Host $host;
            location / { proxy_pass http://<A>; }
            location /read/ { limit_except GET { deny all; } proxy_pass http://<A>; }
            location /large/ { client_max_body_size 0; proxy_pass http://<B>; } }",
        &requests,
    );
}

#[test]
fn nested_and_inherited() {
    let paths = [
        "/app/",
        "/app/x",
        "/app/data.json",
        "/app/deep/x",
        "/app/deep/a.json",
        "/apps",
        "/static/x",
        "/static/img/x",
        "/",
        "/api",
        "/api/",
        "/api/v2/x",
        "/api/v2",
        "/api-docs",
        "/x.json",
        "/static",
        "/app",
        "/app/closed/x",
    ];
    compare(
        "proxy_set_header Host $host; proxy_set_header X-Level http;
        server { listen 127.0.0.1:PORT;
            location /app/ { proxy_pass http://<A>;
                location ~ \\.json$ { proxy_set_header X-Level json; proxy_set_header Host $host; proxy_pass http://<B>; }
                location /app/closed/ { deny all; proxy_pass http://<A>; } }
            location /static/ { proxy_set_header X-Level static; proxy_set_header Host $host; proxy_pass http://<A>; }
            location /static/img/ { proxy_pass http://<B>/; }
            location /api { proxy_pass http://<A>; }
            location /api/v2/ { proxy_pass http://<B>/v2/; } }",
        &gets("a.example", &paths),
    );
}

#[test]
fn groups_of_servers() {
    let requests: Vec<Request<'_>> =
        ["/", "/one/x", "/named/x", "/auth/x", "/closed/x", "/internal", "/hash/x"]
            .iter()
            .flat_map(|path| {
                [
                    ("GET", "a.example", *path, ""),
                    ("GET", "a.example", *path, "X-User: u\r\n"),
                    ("POST", "a.example", *path, "Content-Length: 0\r\n"),
                ]
            })
            .collect();
    compare(
        "upstream app { server <A> weight=2; server <B>; keepalive 8; }
        upstream one { least_conn; server <B> max_fails=3 fail_timeout=5s; server 127.0.0.1:1 backup; server 127.0.0.1:2 down; }
        upstream by_user { hash $http_x_user consistent; server <A>; }
        server { listen 127.0.0.1:PORT; proxy_set_header Host $host;
            location / { proxy_pass http://app; }
            location /one/ { proxy_pass http://one/; }
            location /named/ { proxy_set_header X-A a; proxy_pass http://one; }
            location /hash/ { proxy_pass http://by_user; }
            location /auth/ { auth_request /internal; proxy_pass http://app; }
            location /closed/ { deny all; proxy_pass http://app; }
            location = /internal { internal; proxy_pass http://<A>; } }",
        &requests,
    );
}

#[test]
fn the_command_reports_what_is_left() {
    let directory = Configuration::new("");
    let file = directory.path();
    std::fs::write(&file, "server { listen 8080; location / { fastcgi_pass app:9000; } location /a { proxy_pass http://app:80; } }").expect("a file");
    let output = quadrille("convert").arg("nginx").arg(&file).output().expect("quadrille");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(":1: fastcgi_pass app:9000: FastCGI"), "{stderr}");
    assert!(stderr.contains("5 of 6 statements converted"), "{stderr}");
    assert!(stdout.contains("NOT SERVED"), "{stdout}");
    std::fs::write(&file, "server { listen 8080; location / { proxy_pass http://app:80; } }")
        .expect("a file");
    let output = quadrille("convert").arg("nginx").arg(&file).output().expect("quadrille");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(&file, "server {").expect("a file");
    let output = quadrille("convert").arg("nginx").arg(&file).output().expect("quadrille");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the block does not end"), "{output:?}");
    let output = quadrille("convert").args(["caddy", "no-such-file"]).output().expect("quadrille");
    assert_eq!(output.status.code(), Some(2));
}
