//! Recipes of configuration files and tools.

use super::Recipe;
use crate::support::echo_server;
use std::fs;

#[test]
fn each_site_has_a_file() {
    let (shop, blog) = (echo_server().to_string(), echo_server().to_string());
    let replaced = [("127.0.0.1:8080", &*shop), ("127.0.0.1:8081", &*blog)];
    let recipe = Recipe::new("files", "One file for each site", &replaced);
    let _gateway = recipe.serve();
    recipe.run(..);
}

#[test]
fn values_come_from_the_environment() {
    let app = echo_server().to_string();
    let recipe = Recipe::new("files", "Values from the environment", &[]);
    let _gateway = recipe.serve_with(|command| {
        command.arg("quadrille.yaml").env("APP_SERVER", &app).env("STAGE", "production")
    });
    recipe.run(..);
    assert_eq!(recipe.status(&["-H", "Authorization: Bearer guessed", "https://example.com/metrics"]), "401");
}

#[test]
fn a_configuration_comes_from_standard_input() {
    let app = echo_server().to_string();
    let recipe = Recipe::new("files", "A configuration from standard input", &[]);
    recipe.run(..);
    let text = fs::read_to_string(recipe.path("quadrille.yaml")).expect("the configuration");
    fs::write(recipe.path("rendered"), text.replace("SERVER", &app)).expect("writing");
    let rendered = fs::File::open(recipe.path("rendered")).expect("the configuration");
    let _gateway = recipe.serve_with(|command| command.args(["-", "--base-directory", "."]).stdin(rendered));
    assert_eq!(recipe.status(&["https://example.com/"]), "200");
}

#[test]
fn an_editor_has_the_schema() {
    let recipe = Recipe::new("files", "Complete keys in an editor", &[]);
    recipe.run(..);
    let schema = fs::read_to_string(recipe.path("quadrille.schema.json")).expect("the schema");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    assert!(schema["properties"]["listeners"].is_object(), "{schema:#}");
}

#[test]
fn the_terminal_has_the_reference() {
    let recipe = Recipe::new(
        "files",
        "Read the reference on the terminal",
        &[("127.0.0.1:8080", &echo_server().to_string())],
    );
    let _gateway = recipe.serve();
    recipe.run(..);
}

#[test]
fn an_nginx_configuration_is_converted() {
    let app = echo_server().to_string();
    let recipe = Recipe::new("files", "Convert an nginx configuration", &[("127.0.0.1:8080", &app)]);
    recipe.run(..2);
    recipe.complete();
    let _gateway = recipe.serve();
    recipe.run(2..);
}
