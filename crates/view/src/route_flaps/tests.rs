use table::{Change, Feeder, Limits, Placement, Route, RouteBody, Writer};
use words::Names;

use super::*;

fn route(prefix: &str, table: u32) -> Route {
    Route {
        table,
        prefix: prefix.parse().unwrap(),
        tos: 0,
        metric: 0,
        body: RouteBody::default(),
    }
}

/// A feeder whose 10.0.0.0/8 came and went three times, a second each, and
/// whose 10.1.0.0/16 of table 100 came once.
fn flapping(writer: &Writer) -> Feeder {
    let mut feeder = writer.feeders().join("frr", Limits::default()).unwrap();
    for at in 0..6 {
        feeder.set_time(1_000_000 + at * 1_000);
        let row = route("10.0.0.0/8", 254);
        let shared = row
            .clone()
            .with_body(std::sync::Arc::new(RouteBody::default()));
        let change = match at % 2 {
            0 => Change::PutRoute(row, Placement::Last),
            _ => Change::DeleteRoute(shared),
        };
        feeder.commit([change]).unwrap();
    }
    let more = Change::PutRoute(route("10.1.0.0/16", 100), Placement::Last);
    feeder.commit([more]).unwrap();
    feeder
}

fn asked() -> RouteFlapsQuestion {
    RouteFlapsQuestion {
        source: Some("frr".to_owned()),
        table: None,
        within: None,
        secs: SECS,
        limit: LIMIT,
        sort: None,
        parts: 0,
        output: Output::default(),
    }
}

fn answer(question: &RouteFlapsQuestion) -> Result<(u64, String), String> {
    let writer = Writer::default();
    let feeder = flapping(&writer);
    let reader = feeder.reader();
    let tables = reader.snapshot();
    let source = FlapSource {
        name: "frr",
        tables: &tables,
        reader: &reader,
        downs: Some(1),
    };
    let mut out = Vec::new();
    let rows = route_flaps(question, &[source], &Names::default(), 1_010_000, &mut out);
    let rows = rows.map_err(|error| error.to_string())?;
    Ok((rows, String::from_utf8(out).unwrap()))
}

#[test]
fn prefixes_are_told_with_the_most_changes_first() {
    let (rows, text) = answer(&asked()).unwrap();
    let expected = "frr over 1h: 2 prefixes changed\n\
        10.0.0.0/8 changed 6 times: 3 added, 0 changed, 3 deleted, the last 5s ago, gone now\n\
        10.1.0.0/16 table 100 changed 1 time: 1 added, 0 changed, 0 deleted, the last 5s ago, there now\n";
    assert_eq!((rows, text.as_str()), (2, expected));
    let json = RouteFlapsQuestion {
        output: Output {
            format: Format::Json,
            ..Output::default()
        },
        sort: Some("name".to_owned()),
        limit: 1,
        ..asked()
    };
    let (rows, text) = answer(&json).unwrap();
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (rows, &told["count"], &told["complete"]),
        (2, &2.into(), &true.into())
    );
    let prefixes = told["prefixes"].as_array().unwrap();
    assert_eq!(prefixes.len(), 1);
    assert_eq!(prefixes[0]["dst"], "10.0.0.0/8");
    assert_eq!(prefixes[0]["deleted"], 3);
    assert_eq!(prefixes[0]["there"], false);
    assert!(prefixes[0]["parts"].is_null());
    let (_, text) = answer(&RouteFlapsQuestion { parts: 4, ..json }).unwrap();
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    let parts = told["prefixes"][0]["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|count| count.as_u64().unwrap()).sum();
    // All of them are of the last seconds.
    assert_eq!((parts.len(), sum, &parts[3]), (4, 6, &6.into()));
}

#[test]
fn a_sum_for_each_source_and_what_narrows() {
    let all = RouteFlapsQuestion {
        source: None,
        ..asked()
    };
    let (rows, text) = answer(&all).unwrap();
    let line = "frr changed 7 times: 4 added, 0 changed, 3 deleted, the last 5s ago; prefixes: 2; \
        its session went down 1 time since it is known\n";
    assert_eq!((rows, text.lines().nth(1).unwrap()), (1, line.trim_end()));
    let narrowed = [
        (asked().with_table("100"), 1),
        (asked().within("10.1.0.0/16"), 1),
        (asked().within("192.0.2.0/24"), 0),
        (RouteFlapsQuestion { secs: 4, ..asked() }, 0),
    ];
    for (question, count) in narrowed {
        assert_eq!(answer(&question).unwrap().0, count, "{question:?}");
    }
    for (sort, first) in [
        ("-last", "10.0.0.0"),
        ("changes", "10.1.0.0"),
        ("-name", "10.1.0.0"),
    ] {
        let sorted = RouteFlapsQuestion {
            sort: Some(sort.to_owned()),
            ..asked()
        };
        let (_, text) = answer(&sorted).unwrap();
        assert!(
            text.lines().nth(1).unwrap().starts_with(first),
            "{sort}: {text}"
        );
    }
    let bad = RouteFlapsQuestion {
        sort: Some("colour".to_owned()),
        ..asked()
    };
    assert!(answer(&bad).unwrap_err().contains("give one of changes"));
    assert!(
        answer(&asked().with_table("fish"))
            .unwrap_err()
            .contains("fish")
    );
}

impl RouteFlapsQuestion {
    fn with_table(self, table: &str) -> Self {
        Self {
            table: Some(table.to_owned()),
            ..self
        }
    }

    fn within(self, prefix: &str) -> Self {
        Self {
            within: Some(prefix.parse().unwrap()),
            ..self
        }
    }
}
