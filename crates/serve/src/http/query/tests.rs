use http::HeaderValue;
use proptest::prelude::*;
use view::Filter;
use view::conditions::FILTERS;

use super::*;

fn filter(object: Object, query: &str) -> Result<Filter, Problem> {
    let mut parameters = Parameters::parse(Some(query))?;
    let mut filter = Filter::default();
    parameters.take_words(FILTERS, object, &mut filter)?;
    parameters.finish()?;
    Ok(filter)
}

#[test]
fn the_words_of_the_command_line_are_the_parameters() {
    let asked = filter(
        Object::Neigh,
        "dev=eth0&to=10%2F8&state=stale&state=delay&up",
    )
    .unwrap();
    assert_eq!(asked.dev.as_deref(), Some("eth0"));
    assert_eq!(asked.to, Some("10.0.0.0/8".parse().unwrap()));
    assert_eq!(asked.state, ["stale", "delay"]);
    assert!(asked.up);
}

#[test]
fn what_is_wrong_is_named_with_what_to_do() {
    for (query, says) in [
        ("dve=eth0", "`dve` is not known here: there are"),
        ("to=10.0.0.300", "`to`: a prefix is expected"),
        ("dev=a&dev=b", "`dev` is said more than once"),
        ("up=perhaps", "`up`: true or false"),
        ("dev=%ff%fe", "UTF-8"),
        ("dev=a%00b", "UTF-8"),
        ("dev=", "a name is expected"),
    ] {
        let problem = filter(Object::Neigh, query).unwrap_err();
        assert_eq!(problem.status, http::StatusCode::BAD_REQUEST);
        assert!(problem.detail.contains(says), "{query}: {}", problem.detail);
    }
    let long = format!("dev={}", "x".repeat(MAX_QUERY_BYTES));
    assert_eq!(
        filter(Object::Neigh, &long).unwrap_err().status.as_u16(),
        414
    );
    assert!(filter(Object::Neigh, &"a&".repeat(MAX_PARAMETERS + 1)).is_err());
}

#[test]
fn the_best_liked_format_is_taken() {
    for (accept, format) in [
        ("*/*", Some(Format::Json)),
        ("text/csv", Some(Format::Csv)),
        ("text/csv;q=0.5, application/x-ndjson", Some(Format::Ndjson)),
        ("application/jsonl", Some(Format::Ndjson)),
        ("text/html, text/*;q=0.1", Some(Format::Csv)),
        ("application/json;q=0, */*;q=0.1", Some(Format::Ndjson)),
        ("image/png", None),
        (";;q=;,,", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        assert_eq!(accepted(&headers), format, "{accept}");
    }
    assert_eq!(accepted(&HeaderMap::new()), Some(Format::Json));
}

proptest! {
    #[test]
    fn no_query_string_does_harm(query in ".{0,200}", accept in "[ -~]{0,80}") {
        for object in [Object::Link, Object::Route, Object::Fdb] {
            if let Err(problem) = filter(object, &query) {
                prop_assert!(problem.status.is_client_error());
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&problem.json()).is_ok());
            }
        }
        let mut headers = HeaderMap::new();
        if let Ok(value) = HeaderValue::from_str(&accept) {
            headers.insert(ACCEPT, value);
        }
        let _ = accepted(&headers);
    }
}
