//! Requests to the routes shared by Envoy and this gateway: every host with every path, every method with every kind
//! of response, and boundary values of conditions.

/// The path and further arguments of curl.
pub(super) type Request = (String, Vec<String>);

const HOSTS: &[&str] = &[
    "exact.example",
    "Exact.Example:8080",
    "a.example",
    "A.EXAMPLE",
    "a.long.example",
    "a.b.long.example:1",
    "long.example",
    "prefix.test",
    "prefix.other.test",
    "prefixes.test",
    "tls.test",
    "none.test",
];
const PATHS_OF_HOSTS: &[&str] = &["/", "/only", "/exact", "/a//b/../c", "/a?b=c", "/case", "/gone/a"];

const METHODS: &[&str] = &["POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
const PATHS_OF_METHODS: &[&str] = &[
    "/exact",
    "/segment/a",
    "/header",
    "/query?q=1",
    "/redirect/host/a",
    "/redirect/regex/a",
    "/gone",
    "/up/prefix/a",
    "/up/host",
    "/nothing",
];

const HEADERS: &[&[&str]] = &[
    &["x-a: a"],
    &["x-a: A"],
    &["x-a: aa"],
    &["x-a: b"],
    &["x-a: B"],
    &["x-a: bB"],
    &["X-A: a"],
    &["x-a:  a "],
    &["x-a: a", "x-a: b"],
    &["x-a: b", "x-a: a"],
    &["x-a: a,b"],
    &["x-n: 0"],
    &["x-n: 1"],
    &["x-n: 5"],
    &["x-n: 9"],
    &["x-n: 10"],
    &["x-n: -1"],
    &["x-n: 1.5"],
    &["x-n: one"],
    &["x-n: 1 1"],
    &["x-n: 99", "x-n: 1"],
    &["x-n: 007"],
    &["x-p: 0"],
    &["x-p;"],
    &["x-other: a"],
];

const QUERIES: &[&str] =
    &["q=1", "q=", "q", "q=2", "Q=1", "q=1&q=2", "q=2&q=1", "a&q=1", "q=11", "aq=1", "&q=1", "q=1&"];

const REDIRECTS: &[&str] =
    &["/redirect/https", "/redirect/host", "/redirect/path", "/redirect/prefix", "/redirect/regex"];
const ENDS: &[&str] = &["", "/", "/a", "?x=1", "/a/b?c=d&e", "/%41"];

const PATHS: &[&str] = &[
    "/./exact",
    "/a/./../exact",
    "/exact/.",
    "/exact/..",
    "//exact",
    "/exact//",
    "/EXACT",
    "/Case",
    "/case?x",
    "/v1/x",
    "/v1/x/",
    "/segment/../exact",
    "/segment/./a",
    "/up/host/a/b",
    "/up/prefix//a",
    "/redirected",
    "/v/x",
    "/v123/x?y",
    "/segment/",
    "/segment?x",
    "/segment/a/b",
    "/up/prefix/",
    "/up/prefix/a?b=c&d",
    "/up/prefix/%20",
    "/up/prefix/a%3Fb",
    "/up/regex/a/1",
    "/up/regex/A/1",
    "/up/regex/a/b",
    "/up/host?x",
    "/up/headers/x",
    "/up/weighted/a",
];

const ORIGINS: &[&str] = &[
    "https://a.example",
    "https://A.example",
    "http://a.example",
    ".b.example",
    "https://b.example",
    "null",
];

/// Returns all requests.
pub(super) fn all() -> impl Iterator<Item = Request> {
    let hosts = each(HOSTS, PATHS_OF_HOSTS).map(|(host, path)| request(path, &[&format!("Host: {host}")]));
    let methods = each(METHODS, PATHS_OF_METHODS).map(|(method, path)| {
        let method = ["-X", method].map(str::to_owned).to_vec();
        (path.to_owned(), method)
    });
    let heads = PATHS_OF_METHODS.iter().map(|path| ((*path).to_owned(), vec!["-I".to_owned()]));
    // The last route matches requests without such a header.
    let headers = HEADERS.iter().map(|headers| {
        let all: Vec<&str> = headers.iter().copied().chain(["x-z: z"]).collect();
        request("/header", &all)
    });
    let queries = QUERIES.iter().map(|query| request(&format!("/query?{query}"), &[]));
    let redirects = each(REDIRECTS, ENDS).map(|(path, end)| request(&format!("{path}{end}"), &[]));
    let paths = PATHS.iter().map(|path| request(path, &[]));
    let origins = ORIGINS.iter().map(|origin| request("/cors", &[&format!("Origin: {origin}")]));
    hosts
        .chain(methods)
        .chain(heads)
        .chain(headers)
        .chain(queries)
        .chain(redirects)
        .chain(paths)
        .chain(origins)
}

fn each<'a>(
    first: &'a [&'static str],
    second: &'a [&'static str],
) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
    first.iter().flat_map(|&first| second.iter().map(move |&second| (first, second)))
}

fn request(path: &str, headers: &[&str]) -> Request {
    let headers = headers.iter().flat_map(|header| ["-H".to_owned(), (*header).to_owned()]);
    (path.to_owned(), headers.collect())
}
