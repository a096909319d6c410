//! Conditions of `if`, as conditions of routes and rules.

use super::statement::Statement;
use crate::expression;
use crate::yaml::{Map, Value};
use quadrille_draft::variables::Context;
use std::collections::BTreeMap;

/// Variables that `map` and `geo` define.
pub(super) type Definitions<'a> = BTreeMap<&'a str, &'a Statement>;

/// A condition.
#[derive(Debug, PartialEq)]
pub(super) enum Test {
    Always,
    Never,
    /// One of these sets of conditions, with the keys of routes and rules.
    When(Vec<Map>),
    /// All methods but these.
    OtherMethods(Vec<String>),
    /// The client has not presented a valid certificate.
    NoCertificate,
    /// Clients with these addresses.
    Clients(Vec<String>),
}

/// An operator with its operand.
#[derive(Clone, Copy, Debug)]
enum Operator {
    /// The value is neither empty nor `0`.
    True,
    Is,
    Matches {
        ignore_case: bool,
    },
}

/// Reads the condition of an `if`.
///
/// # Errors
/// With the part that cannot be expressed.
pub(super) fn test(
    statement: &Statement,
    definitions: &Definitions<'_>,
    context: &Context,
) -> Result<Test, String> {
    let mut words: Vec<&str> = statement.args.iter().map(String::as_str).collect();
    if let Some(first) = words.first_mut() {
        *first = first.strip_prefix('(').unwrap_or(first);
    }
    if let Some(last) = words.last_mut() {
        *last = last.strip_suffix(')').unwrap_or(last);
    }
    words.retain(|word| !word.is_empty());
    let (name, operator, operand) = match words[..] {
        [name] => (name, "", ""),
        [name, operator] => (name, operator, ""),
        [name, operator, operand] => (name, operator, operand),
        _ => return Err("this form of a condition is not known".to_owned()),
    };
    let Some(variable) = name.strip_prefix('$') else {
        return Err("conditions on files are not evaluated: no files are served".to_owned());
    };
    let (negated, operator) = match operator.strip_prefix('!') {
        Some(operator) => (true, operator),
        None => (false, operator),
    };
    let operator = match operator {
        "" => Operator::True,
        "=" => Operator::Is,
        "~" => Operator::Matches { ignore_case: false },
        "~*" => Operator::Matches { ignore_case: true },
        _ => return Err(format!("the operator `{operator}` is not known")),
    };
    if let Some(definition) = definitions.get(variable) {
        return defined(definition, operator, operand, negated, definitions, context);
    }
    of_variable(variable, operator, operand, negated, context)
}

fn of_variable(
    variable: &str,
    operator: Operator,
    operand: &str,
    negated: bool,
    context: &Context,
) -> Result<Test, String> {
    let fixed = |holds: bool| Ok(if holds == negated { Test::Never } else { Test::Always });
    match variable {
        "scheme" => return fixed(fixed_value(if context.tls { "https" } else { "http" }, operator, operand)),
        "https" => return fixed(fixed_value(if context.tls { "on" } else { "" }, operator, operand)),
        "server_port" => return fixed(fixed_value(&context.port.to_string(), operator, operand)),
        "request_method" => return methods(operator, operand, negated),
        "ssl_client_verify" => {
            return match (operator, operand, negated) {
                (Operator::Is, "SUCCESS", true) if !context.requests_certificates => Ok(Test::Always),
                (Operator::Is, "NONE", false) if !context.requests_certificates => Ok(Test::Always),
                (Operator::Is, "SUCCESS", true) => Ok(Test::NoCertificate),
                (Operator::Is, "NONE", false) => Ok(Test::NoCertificate),
                _ => Err("only `$ssl_client_verify != SUCCESS` has an equivalent, `client_auth`".to_owned()),
            };
        }
        "remote_addr" if matches!(operator, Operator::Is) && !negated => {
            return Ok(Test::Clients(vec![operand.to_owned()]));
        }
        "host" | "http_host" if matches!(operator, Operator::Is) && !negated => {
            let host = quadrille_config::values::host(operand).map_err(|problem| problem.to_string())?;
            return Ok(Test::When(vec![Map::of("host", host)]));
        }
        "uri" | "document_uri" | "request_uri" => return path(operator, operand, negated),
        _ => {}
    }
    let (list, name) = if variable == "host" || variable == "http_host" {
        ("headers", "host".to_owned())
    } else if let Some(name) = variable.strip_prefix("http_") {
        ("headers", name.replace('_', "-"))
    } else if let Some(name) = variable.strip_prefix("cookie_") {
        ("cookies", name.to_owned())
    } else if let Some(name) = variable.strip_prefix("arg_") {
        ("queries", name.to_owned())
    } else {
        return Err(format!("`${variable}` has no condition"));
    };
    let condition = |more: Map| {
        let mut condition = Map::of("name", &name);
        condition.extend(more);
        Map::of(list, vec![condition])
    };
    let missing = condition(Map::of("present", "off"));
    // The header may have a port, which `$host` does not have.
    let text = |operator, operand: &str| match (name.as_str(), operator) {
        ("host", Operator::Is) => Ok(Map::of("regex", format!("{}{PORT}", expression::literal(operand)))),
        ("host", Operator::Matches { ignore_case }) => {
            Ok(Map::of("regex", format!("{}{PORT}", expression::whole(operand, ignore_case)?)))
        }
        _ => text(operator, operand),
    };
    Ok(Test::When(match (operator, operand, negated) {
        (Operator::True, _, false) | (Operator::Is, "", true) => vec![condition(Map::new())],
        (Operator::True, _, true) | (Operator::Is, "", false) => vec![missing],
        (operator, operand, false) => vec![condition(text(operator, operand)?)],
        (operator, operand, true) => {
            vec![missing, condition(text(operator, operand)?.with("invert", "on"))]
        }
    }))
}

/// Expression of the port in a header `Host`.
const PORT: &str = "(?::[0-9]+)?";

/// Returns the keys of a condition on a text.
fn text(operator: Operator, operand: &str) -> Result<Map, String> {
    if operand.contains('$') && !matches!(operator, Operator::Matches { .. }) {
        return Err("values with variables are not compared".to_owned());
    }
    match operator {
        Operator::True | Operator::Is => Ok(Map::of("exact", operand)),
        Operator::Matches { ignore_case } => Ok(Map::of("regex", expression::whole(operand, ignore_case)?)),
    }
}

fn path(operator: Operator, operand: &str, negated: bool) -> Result<Test, String> {
    match operator {
        Operator::Is if !negated => {
            let path = quadrille_config::values::path(operand).map_err(|problem| problem.to_string())?;
            Ok(Test::When(vec![Map::of("path_exact", path)]))
        }
        Operator::Matches { ignore_case } if !negated && !operand.contains(r"\?") => {
            Ok(Test::When(vec![Map::of("path_regex", expression::whole(operand, ignore_case)?)]))
        }
        _ => Err("this condition on the path has no equivalent".to_owned()),
    }
}

fn methods(operator: Operator, operand: &str, negated: bool) -> Result<Test, String> {
    let methods = match operator {
        Operator::Is => Some(vec![operand.to_owned()]),
        Operator::Matches { .. } => expression::words(operand),
        Operator::True => None,
    };
    let methods = methods.ok_or_else(|| format!("`{operand}` is not a list of methods"))?;
    Ok(if negated { Test::OtherMethods(methods) } else { Test::When(vec![Map::of("methods", methods)]) })
}

/// Evaluates a condition on a value that the conversion knows.
fn fixed_value(value: &str, operator: Operator, operand: &str) -> bool {
    match operator {
        Operator::True => !value.is_empty() && value != "0",
        Operator::Is => value == operand,
        Operator::Matches { ignore_case } => {
            let case = if ignore_case { "(?i)" } else { "" };
            regex::Regex::new(&format!("{case}{operand}")).is_ok_and(|expression| expression.is_match(value))
        }
    }
}

/// Converts a condition on a variable of `map` or `geo`: whether its value is true.
fn defined(
    definition: &Statement,
    operator: Operator,
    operand: &str,
    negated: bool,
    definitions: &Definitions<'_>,
    context: &Context,
) -> Result<Test, String> {
    let wanted = |value: &str| match operator {
        Operator::True => !value.is_empty() && value != "0",
        Operator::Is | Operator::Matches { .. } => fixed_value(value, operator, operand),
    };
    let entries = definition.statements();
    let default = entries.iter().find(|entry| entry.name == "default").map_or("", |entry| entry.arg(0));
    let (matching, others): (Vec<_>, Vec<_>) = entries
        .iter()
        .filter(|entry| !is_setting(&entry.name))
        .partition(|entry| wanted(entry.arg(0)) != negated);
    if wanted(default) != negated || !others.is_empty() {
        return Err("the variable has exceptions, which conditions cannot express".to_owned());
    }
    if definition.name == "geo" {
        return Ok(Test::Clients(matching.iter().map(|entry| entry.name.clone()).collect()));
    }
    let source = definition.arg(0).trim_start_matches('$');
    if definitions.contains_key(source) {
        return Err("the variable depends on another one of `map`".to_owned());
    }
    let mut all = Vec::new();
    for entry in matching {
        let name = entry.name.as_str();
        let (operator, operand) = match name.strip_prefix("~*") {
            Some(expression) => (Operator::Matches { ignore_case: true }, expression),
            None => match name.strip_prefix('~') {
                Some(expression) => (Operator::Matches { ignore_case: false }, expression),
                None => (Operator::Is, name),
            },
        };
        match of_variable(source, operator, operand, false, context)? {
            Test::When(conditions) => all.extend(conditions),
            _ => return Err("the values of the variable have different kinds of conditions".to_owned()),
        }
    }
    Ok(if all.is_empty() { Test::Never } else { Test::When(all) })
}

fn is_setting(name: &str) -> bool {
    ["default", "hostnames", "volatile", "ranges", "proxy", "delete", "include", "proxy_recursive"]
        .contains(&name)
}

/// Returns the conditions of a rule that are not those of a route: host and path.
pub(super) fn has_path_or_host(conditions: &Map) -> bool {
    ["host", "path_exact", "path_regex"].iter().any(|key| conditions.get(key).is_some())
}

/// Merges the conditions of a route with those of an `if` inside it.
pub(super) fn merged(route: &Map, more: &Map) -> Map {
    let mut merged = route.clone();
    for key in ["headers", "queries", "cookies"] {
        if let Some(Value::List(items)) = more.get(key) {
            items.iter().for_each(|item| merged.push(key, item.clone()));
        }
    }
    if let Some(methods) = more.get("methods") {
        merged.set("methods", methods.clone());
    }
    merged
}
