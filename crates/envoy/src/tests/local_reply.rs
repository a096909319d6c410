//! Local replies: translation of mappers and formats, and refused settings.

use super::{gateway, only_chain, problems, with_route_config};
use quadrille_config::model::{Comparison, LocalReplies, ReplyBody, ReplyFilter, ReplyPart, Serve};

fn text(config: &str) -> String {
    with_route_config("virtual_hosts: []") + &format!("          local_reply_config: {config}\n")
}

/// Returns a configuration with every field.
pub(super) fn all() -> String {
    text(
        "{ mappers: [ { filter: { and_filter: { filters: [
             { status_code_filter: { comparison: { op: GE, value: { default_value: 500 } } } },
             { or_filter: { filters: [ { header_filter: { header: { name: x-a, present_match: true } } } ] } } ] } },
           status_code: 503, body: { inline_string: Sorry }, headers_to_add: [ { header: { key: a, value: b } } ],
           body_format_override: { text_format_source: { inline_string: '%LOCAL_REPLY_BODY%' }, content_type: text/html } },
           { filter: { header_filter: { header: { name: x-b } } }, body_format_override: { text_format: '%%', omit_empty_values: true } } ],
         body_format: { json_format: { status: '%RESPONSE_CODE%', path: '%REQ(:path)%', list: [ a ] } } }"
            .replace('\n', " ")
            .as_str(),
    )
}

fn replies(text: &str) -> LocalReplies {
    let gateway = gateway(text);
    let Serve::Http(http) = &only_chain(&gateway).serve else { panic!("no HTTP") };
    LocalReplies::clone(http.local_replies.as_ref().expect("local replies"))
}

#[test]
fn mappers_and_formats_are_read() {
    let found = replies(&all());
    let [first, second] = &found.mappers[..] else { panic!("{found:?}") };
    let ReplyFilter::All(filters) = &first.filter else { panic!("{first:?}") };
    assert_eq!(filters[0], ReplyFilter::Status(Comparison::AtLeast, 500));
    assert!(matches!(&filters[1], ReplyFilter::Any(one) if one.len() == 1));
    assert_eq!(
        (first.status, first.body.as_deref(), first.headers.len()),
        (Some(503), Some(&b"Sorry"[..]), 1)
    );
    let format = first.format.as_ref().expect("a format");
    assert_eq!(
        (format.content_type.as_str(), &format.body),
        ("text/html", &ReplyBody::Text(vec![ReplyPart::Body]))
    );
    let format = second.format.as_ref().expect("a format");
    assert_eq!(format.body, ReplyBody::Text(vec![ReplyPart::Literal("%".into())]));
    assert!(format.omit_empty && format.content_type == "text/plain");
    assert_eq!(found.format.expect("a format").content_type, "application/json");
}

#[test]
fn what_cannot_be_had_is_refused() {
    for (config, message) in [
        ("{ body_format: { text_format: '%DURATION%' } }", "`%DURATION%` is not supported"),
        ("{ body_format: { text_format: '100%' } }", "unterminated `%`"),
        ("{ body_format: { json_format: { a: [ '%START_TIME%' ] } } }", "`%START_TIME%` is not supported"),
        ("{ body_format: { text_format_source: { filename: /x } } }", "files are not supported here"),
        ("{ mappers: [ { status_code: 500 } ] }", "`filter` is missing"),
        ("{ mappers: [ { filter: {} } ] }", "no field is set"),
        (
            "{ mappers: [ { filter: { response_flag_filter: {} } } ] }",
            "local replies are matched by their status",
        ),
        (
            "{ mappers: [ { filter: { header_filter: { header: { name: a } } }, status_code: 99 } ] }",
            "`99` is not a response status",
        ),
        ("{ mappers: [ { filter: { header_filter: { header: { name: a } } }, grpc: x } ] }", "grpc"),
    ] {
        let found = problems(&text(config));
        assert!(found.contains(message), "{config}: {found}");
    }
}
