//! Paths, redirects and names of hosts.

use super::{Cluster, ingress, ingress_with, location, map, server};
use crate::support::comparison::{Request, gets};

#[test]
fn path_types() {
    let paths = [
        "/",
        "/foo",
        "/foo/",
        "/foo/x",
        "/foobar",
        "/exact",
        "/exact/",
        "/exact/x",
        "/bytes",
        "/bytesx",
        "/bytes/x",
        "/bytes/deep/x",
        "/bytes/deeper",
        "/slash",
        "/slash/",
        "/slash/x",
        "/slashx",
        "/seg",
        "/seg/",
        "/seg/x",
        "/foo/bar",
        "/foo/bar/x",
        "/foo/barx",
        "/FOO",
        "/other?x=1",
    ];
    let objects = ingress(
        "web",
        "",
        "a.example",
        &[
            ("/foo", "Prefix", "a"),
            ("/foo/bar", "Prefix", "b"),
            ("/exact", "Exact", "a"),
            ("/bytes", "ImplementationSpecific", "a"),
            ("/bytes/deep", "Prefix", "b"),
            ("/slash/", "ImplementationSpecific", "b"),
            ("/seg/", "Prefix", "a"),
        ],
    );
    let at = |path: &str, to: &str| location(path, &format!("proxy_pass http://{to};"));
    let locations = [
        at("= /foo", "<a>"),
        at("/foo/", "<a>"),
        at("= /foo/bar", "<b>"),
        at("/foo/bar/", "<b>"),
        at("= /exact", "<a>"),
        at("/bytes", "<a>"),
        at("= /bytes/deep", "<b>"),
        at("/bytes/deep/", "<b>"),
        at("/slash/", "<b>"),
        at("= /seg/", "<a>"),
        at("/seg/", "<a>"),
        "location / { return 404; }".to_owned(),
    ];
    Cluster::new().compare(
        &objects,
        &server("a.example", &locations.concat()),
        &gets("a.example", &paths),
        &[],
    );
}

#[test]
fn paths_as_expressions() {
    let paths = [
        "/",
        "/item/12",
        "/ITEM/12",
        "/item/x",
        "/item/12/y",
        "/plain",
        "/plain/",
        "/plainx",
        "/PLAIN/x",
        "/x/item/12",
    ];
    // One Ingress with an expression makes all paths of its host expressions.
    let objects = [
        ingress(
            "regex",
            "use-regex: \"true\"",
            "a.example",
            &[("/item/[0-9]+", "ImplementationSpecific", "a")],
        ),
        ingress("plain", "", "a.example", &[("/plain", "Prefix", "b")]),
    ];
    let at = |path: &str, to: &str| location(&format!("~* \"^{path}\""), &format!("proxy_pass http://{to};"));
    let locations = [
        at("/item/[0-9]+", "<a>"),
        at("/plain/", "<b>"),
        at("/plain", "<b>"),
        "location / { return 404; }".to_owned(),
    ];
    Cluster::new().compare(
        &objects.concat(),
        &server("a.example", &locations.concat()),
        &gets("a.example", &paths),
        &[],
    );
}

#[test]
fn rewritten_paths() {
    let paths = [
        "/app",
        "/app/",
        "/app/x",
        "/app/x/y?q=1",
        "/APP/x",
        "/fixed",
        "/fixed/x",
        "/fixed/x?q=1",
        "/api/v1/users/7",
        "/application",
        "/",
        "/same/x",
    ];
    let objects = [
        ingress(
            "groups",
            "rewrite-target: /$2\nx-forwarded-prefix: /app",
            "a.example",
            &[("/app(/|$)(.*)", "ImplementationSpecific", "a")],
        ),
        ingress("fixed", "rewrite-target: /", "a.example", &[("/fixed", "Prefix", "b")]),
        ingress(
            "order",
            "rewrite-target: /v2/$2/$1",
            "a.example",
            &[("/api/v1/([a-z]+)/([0-9]+)", "ImplementationSpecific", "a")],
        ),
        ingress("same", "rewrite-target: /same", "a.example", &[("/same", "Prefix", "b")]),
    ];
    let at = |path: &str, directives: &str, to: &str| {
        location(&format!("~* \"^{path}\""), &format!("{directives} proxy_pass http://{to};"))
    };
    let locations = [
        at("/api/v1/([a-z]+)/([0-9]+)", "rewrite \"(?i)/api/v1/([a-z]+)/([0-9]+)\" /v2/$2/$1 break;", "<a>"),
        at(
            "/app(/|$)(.*)",
            "rewrite \"(?i)/app(/|$)(.*)\" /$2 break; proxy_set_header X-Forwarded-Prefix /app;",
            "<a>",
        ),
        at("/fixed", "rewrite \"(?i)/fixed\" / break;", "<b>"),
        at("/same", "", "<b>"),
        "location / { return 404; }".to_owned(),
    ];
    Cluster::new().compare(
        &objects.concat(),
        &server("a.example", &locations.concat()),
        &gets("a.example", &paths),
        &[],
    );
}

#[test]
fn redirects() {
    let paths =
        ["/", "/?q=1", "/old", "/old/x?q=1", "/moved/x?q=1", "/moment/x", "/later", "/home", "/kept/x?q=1"];
    let objects = [
        ingress("root", "app-root: /home", "a.example", &[("/", "Prefix", "a")]),
        ingress(
            "old",
            "permanent-redirect: https://new.example/there",
            "a.example",
            &[("/old", "Prefix", "a")],
        ),
        ingress(
            "moved",
            "permanent-redirect: https://new.example$request_uri\npermanent-redirect-code: \"308\"",
            "a.example",
            &[("/moved", "Prefix", "a")],
        ),
        ingress(
            "moment",
            "temporal-redirect: https://new.example/soon",
            "a.example",
            &[("/moment", "Prefix", "a")],
        ),
        ingress(
            "later",
            "temporal-redirect: https://new.example/\ntemporal-redirect-code: \"307\"",
            "a.example",
            &[("/later", "Exact", "a")],
        ),
        ingress(
            "kept",
            "permanent-redirect: https://$host/x$request_uri",
            "a.example",
            &[("/kept", "Prefix", "a")],
        ),
    ];
    let at = |path: &str, to: &str| {
        let both = [location(&format!("= {path}"), to), location(&format!("{path}/"), to)];
        both.concat()
    };
    let locations = [
        location("/", "if ($uri = /) { return 302 $scheme://$http_host/home; } proxy_pass http://<a>;"),
        at("/old", "return 301 https://new.example/there;"),
        at("/moved", "return 308 https://new.example$request_uri;"),
        at("/moment", "return 302 https://new.example/soon;"),
        location("= /later", "return 307 https://new.example/;"),
        at("/kept", "return 301 https://$host/x$request_uri;"),
    ];
    Cluster::new().compare(
        &objects.concat(),
        &server("a.example", &locations.concat()),
        &gets("a.example", &paths),
        &[],
    );
}

#[test]
fn redirects_to_https() {
    let mut requests: Vec<Request<'_>> = gets("forced.example", &["/x?q=1", "/x", "/old"]);
    requests.extend(gets("free.example", &["/x"]));
    requests.extend(gets("tls.example", &["/x/?q=1"]));
    requests.extend(gets("off.example", &["/x"]));
    let tls = |host: &str| format!("  tls: [{{ hosts: [{host}], secretName: missing }}]\n");
    let objects = [
        ingress("forced", "force-ssl-redirect: \"true\"", "forced.example", &[("/", "Prefix", "a")]),
        ingress(
            "old",
            "permanent-redirect: http://new.example/",
            "forced.example",
            &[("/old", "Exact", "a")],
        ),
        ingress("free", "", "free.example", &[("/", "Prefix", "a")]),
        ingress_with(
            "tls",
            "preserve-trailing-slash: \"true\"",
            "tls.example",
            &[("/", "Prefix", "a")],
            &tls("tls.example"),
        ),
        ingress_with(
            "off",
            "ssl-redirect: \"false\"",
            "off.example",
            &[("/", "Prefix", "b")],
            &tls("off.example"),
        ),
    ];
    let to_https = "return 308 https://$host$request_uri;";
    let nginx = [
        server(
            "forced.example",
            &[location("/", to_https), location("= /old", "return 301 http://new.example/;")].concat(),
        ),
        format!("server {{ listen 127.0.0.1:PORT; server_name tls.example; {} }}", location("/", to_https)),
        format!(
            "server {{ listen 127.0.0.1:PORT; server_name free.example; {} }}",
            location("/", "proxy_pass http://<a>;")
        ),
        format!(
            "server {{ listen 127.0.0.1:PORT; server_name off.example; {} }}",
            location("/", "proxy_pass http://<b>;")
        ),
    ];
    Cluster::new().compare(&objects.concat(), &nginx.concat(), &requests, &[]);
}

#[test]
fn aliases_and_www() {
    let mut requests: Vec<Request<'_>> = Vec::new();
    for host in [
        "a.example",
        "other.example",
        "www.a.example",
        "sub.wild.example",
        "x.sub.wild.example",
        "unknown.example",
        "www.b.example",
    ] {
        requests.push(("GET", host, "/x?q=1", ""));
    }
    let objects = [
        ingress(
            "web",
            "server-alias: \"other.example\"\nfrom-to-www-redirect: \"true\"",
            "a.example",
            &[("/", "Prefix", "a")],
        ),
        ingress("wild", "", "*.wild.example", &[("/", "Prefix", "b")]),
    ];
    let nginx = [
        server("a.example other.example", &location("/", "proxy_pass http://<a>;")),
        "server { listen 127.0.0.1:PORT; server_name www.a.example; return 308 $scheme://a.example$request_uri; }".to_owned(),
        format!(
            "server {{ listen 127.0.0.1:PORT; server_name \"~^(?<subdomain>[\\w-]+)\\.wild\\.example$\"; {} }}",
            location("/", "proxy_pass http://<b>;")
        ),
    ];
    Cluster::new().compare(&objects.concat(), &nginx.concat(), &requests, &[]);
}

#[test]
fn headers_for_servers() {
    let requests: Vec<Request<'_>> = vec![
        ("GET", "a.example", "/x", ""),
        ("GET", "a.example", "/vhost", "Proxy: evil\r\nX-Scheme: mine\r\n"),
        ("GET", "a.example", "/own", "X-Added: client\r\n"),
    ];
    let objects = [
        ingress("web", "", "a.example", &[("/", "Prefix", "a")]),
        ingress("vhost", "upstream-vhost: internal.example", "a.example", &[("/vhost", "Exact", "a")]),
        map("ConfigMap", "ingress-nginx-controller", &[("proxy-set-headers", "shop/added")]),
        map("ConfigMap", "added", &[("X-Added", "from $host")]),
    ];
    let added = "proxy_set_header X-Added 'from $host'; proxy_pass http://<a>;";
    let locations = [
        location("/", added),
        location("= /vhost", added).replace(
            "Host $http_host; proxy_set_header X-Request",
            "Host internal.example; proxy_set_header X-Request",
        ),
        location("= /own", added),
    ];
    Cluster::new().compare(&objects.concat(), &server("a.example", &locations.concat()), &requests, &[]);
}
