//! The cookbook: each recipe is served, its commands print what the page shows, and it has the effect that it promises.

mod access;
mod applications;
mod files;
mod recipe;
mod servers;
mod sign_in;
mod urls;

use crate::support::accept_blocking;
use recipe::Recipe;
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
};

const INDEX: &str = include_str!("../../../../../docs/guide/cookbook.md");

/// The pages, by their names without the ending.
const PAGES: [(&str, &str); 6] = [
    ("access", include_str!("../../../../../docs/guide/cookbook/access.md")),
    ("applications", include_str!("../../../../../docs/guide/cookbook/applications.md")),
    ("files", include_str!("../../../../../docs/guide/cookbook/files.md")),
    ("servers", include_str!("../../../../../docs/guide/cookbook/servers.md")),
    ("sign-in", include_str!("../../../../../docs/guide/cookbook/sign-in.md")),
    ("urls", include_str!("../../../../../docs/guide/cookbook/urls.md")),
];

/// Returns the titles of a page's recipes.
fn titles(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix("## "))
}

#[test]
fn every_recipe_has_a_test_and_a_place_in_the_index() {
    let folder = Path::new("tests/gateway/cookbook");
    let mut tests = String::new();
    for entry in std::fs::read_dir(folder).expect("the folder") {
        tests += &std::fs::read_to_string(entry.expect("an entry").path()).expect("a source");
    }
    for (name, page) in PAGES {
        for title in titles(page) {
            assert!(
                tests.contains(&format!("Recipe::new(\n        \"{name}\",\n        \"{title}\""))
                    || tests.contains(&format!("Recipe::new(\"{name}\", \"{title}\"")),
                "no test serves the recipe {title:?} of {name}.md"
            );
            let text = title.to_lowercase().replace(' ', "-");
            let anchor: String =
                text.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect();
            assert!(
                INDEX.contains(&format!("(cookbook/{name}.md#{anchor})")),
                "{title:?} is not in the index"
            );
            let recipe = recipe::section(page, title);
            assert!(
                recipe.contains("\n$ curl ") || recipe.contains("quadrille "),
                "{title:?} has no command"
            );
        }
    }
    let pages = std::fs::read_dir("../../docs/guide/cookbook").expect("the pages").count();
    assert_eq!(pages, PAGES.len(), "a page is not in the list");
}

/// Starts a server that passes the head of each request to `respond`, and closes the connection after its response.
fn server(respond: impl Fn(&str) -> String + Clone + Send + 'static) -> SocketAddr {
    accept_blocking(move |tcp| respond_once(tcp, &respond))
}

fn respond_once(mut tcp: TcpStream, respond: &impl Fn(&str) -> String) -> Option<()> {
    let mut reader = BufReader::new(tcp.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).ok().filter(|read| *read > 0)?;
    }
    tcp.write_all(respond(&head).as_bytes()).ok()
}

/// Returns a response for [`server`]: a status with its reason, header lines, and a body.
fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}
