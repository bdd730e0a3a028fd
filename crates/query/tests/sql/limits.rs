//! Where a statement ends: what it may not do, and what it may not take.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fingerpost_query::{Limits, Question, SqlError, answer};
use view::Format;

use crate::looked_up::many_routes;
use crate::tables::{Namespace, WIDE, filled};

const ENDLESS: &str = "with recursive n(i) as (select 1 union all select i + 1 from n) \
                       select count(*) from n";

#[test]
fn a_statement_reads_and_does_nothing_else() {
    let writer = filled(0);
    let namespace = Namespace::new(&writer);
    let file = std::env::temp_dir().join(format!("fingerpost-sql-{}", std::process::id()));
    let file = file.to_str().unwrap();
    for (statement, why) in [
        (
            &*format!("attach database '{file}' as y"),
            "another database is refused",
        ),
        ("create table x(y)", "to change anything is refused"),
        ("create temp table x(y)", "to change anything is refused"),
        ("create view x as select 1", "to change anything is refused"),
        (
            "insert into links(ifname) values ('x')",
            "to change anything is refused",
        ),
        ("update routes set metric = 1", "may not be modified"),
        ("delete from routes", "may not be modified"),
        ("drop view arp_cache", "to change anything is refused"),
        (
            "create virtual table x using routes",
            "to change anything is refused",
        ),
        ("pragma writable_schema = on", "that pragma is refused"),
        (
            "pragma temp_store_directory = '/tmp'",
            "that pragma is refused",
        ),
        ("pragma hard_heap_limit = 0", "that pragma is refused"),
        (&*format!("vacuum into '{file}'"), "refused"),
        ("begin", "a transaction is refused"),
        ("savepoint x", "a transaction is refused"),
        ("analyze", "refused"),
        ("select load_extension('x')", "function"),
        ("select 1; select 2", "more than one statement"),
        ("", "there is no statement"),
        ("-- nothing", "there is no statement"),
        ("select ?", "has its values in it"),
        ("select nonsense from links", "no such column: nonsense"),
        ("select \"nonsense\" from links", "no such column"),
        ("select * from nowhere", "no such table: nowhere"),
        ("selct 1", "syntax error, at `selct 1`"),
    ] {
        let error = namespace.error(statement);
        assert!(error.contains(why), "{statement}: {error}");
    }
    assert!(!std::path::Path::new(file).exists());
    let columns = namespace.rows("select name from pragma_table_info('routes')");
    assert!(columns.iter().any(|name| name == "prefix"));
    let twice = namespace.rows("select (select count(*) from links), count(*) from rules;");
    assert_eq!(twice, ["30,30"]);
}

#[test]
fn a_statement_without_end_is_cut_off_in_time() {
    let writer = many_routes(3_000);
    let namespace = Namespace::new(&writer);
    let limits = Limits {
        time: Duration::from_millis(200),
        ..WIDE
    };
    for statement in [
        ENDLESS,
        "select count(*) from routes a, routes b, routes c where a.metric + b.metric = c.metric - 9",
        "select max(length(hex(randomblob(1000)))) from routes a, routes b",
    ] {
        let begun = Instant::now();
        let (answered, _) = namespace.ask(statement, &limits, Format::Csv);
        assert!(
            matches!(answered, Err(SqlError::TooLong(_))),
            "{answered:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert_eq!(namespace.rows("select 1"), ["1"]);
    }
}

#[test]
fn a_statement_that_takes_all_memory_gets_no_more_than_its_own() {
    let writer = many_routes(20_000);
    let namespace = Namespace::new(&writer);
    let limits = Limits {
        memory: 8 << 20,
        ..WIDE
    };
    let numbers = "with recursive n(i) as (select 1 union all select i + 1 from n limit 200000)";
    for statement in [
        format!("{numbers} select hex(zeroblob(400)), i from n order by 1, 2 desc"),
        format!("{numbers} select count(distinct hex(zeroblob(200)) || i) from n"),
        format!("{numbers} select json_group_array(hex(zeroblob(500))) from n limit 1"),
        "select * from routes a, routes b order by random()".to_owned(),
    ] {
        let (answered, _) = namespace.ask(&statement, &limits, Format::Csv);
        let too_much = matches!(answered, Err(SqlError::TooMuchMemory(_)))
            || answered
                .as_ref()
                .is_err_and(|error| error.to_string().contains("longer than"));
        assert!(too_much, "{statement}: {answered:?}");
    }
    for statement in [
        "select length(zeroblob(2000000000))",
        "select length(printf('%2000000d', 1))",
        "select length(group_concat(hex(zeroblob(1000)))) from routes",
        "select replace(hex(zeroblob(100000)), '0', hex(zeroblob(100000)))",
    ] {
        let (answered, _) = namespace.ask(statement, &limits, Format::Csv);
        assert!(answered.is_err(), "{statement}");
    }
    let sorted = "select count(*) from (select prefix from routes order by random())";
    let (answered, text) = namespace.ask(sorted, &limits, Format::Csv);
    assert!(
        answered.is_ok() && text.ends_with("\n20001\n"),
        "{answered:?} {text}"
    );
}

#[test]
fn others_are_answered_while_one_takes_all_that_it_may() {
    let writer = many_routes(2_000);
    let namespace = Arc::new(Namespace::new(&writer));
    let done = Arc::new(AtomicBool::new(false));
    let greedy: Vec<_> = (0..2)
        .map(|_| {
            let (namespace, done) = (Arc::clone(&namespace), Arc::clone(&done));
            thread::spawn(move || {
                let limits = Limits {
                    memory: 4 << 20,
                    ..WIDE
                };
                let sort = "select * from routes a, routes b order by random()";
                let mut refused = 0;
                while !done.load(Ordering::Relaxed) {
                    let (answered, _) = namespace.ask(sort, &limits, Format::Csv);
                    assert!(matches!(answered, Err(SqlError::TooMuchMemory(_))));
                    refused += 1;
                }
                refused
            })
        })
        .collect();
    for number in 0..200 {
        let rows = namespace.rows(&format!(
            "select count(*) from routes where within(prefix, '1.0.{}.0/24')",
            number % 7
        ));
        assert_eq!(rows, ["1"]);
    }
    done.store(true, Ordering::Relaxed);
    for one in greedy {
        assert!(one.join().unwrap() > 0);
    }
}

#[test]
fn rows_end_at_their_limit() {
    let writer = many_routes(1_000);
    let namespace = Namespace::new(&writer);
    let limits = Limits { rows: 500, ..WIDE };
    let ask = |limit: u64| {
        let statement = format!("select prefix from routes limit {limit}");
        namespace.ask(&statement, &limits, Format::Csv)
    };
    let (answered, text) = ask(500);
    assert_eq!(answered.unwrap().rows, 500);
    assert_eq!(text.lines().count(), 501);
    let (answered, text) = ask(501);
    assert!(
        matches!(answered, Err(SqlError::TooManyRows(500))),
        "{answered:?}"
    );
    assert_eq!(text.lines().count(), 501, "what there is is told");
    assert_eq!(ask(499).0.unwrap().rows, 499);
}

/// Takes a piece now and then.
struct Slow(Duration);

impl Write for Slow {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        thread::sleep(self.0);
        Ok(piece.len().min(1000))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn who_takes_ten_million_rows_slowly_is_cut_off_as_well() {
    let writer = many_routes(4_000);
    let namespace = Namespace::new(&writer);
    let question = Question {
        statement: "select a.prefix, b.prefix from routes a, routes b".to_owned(),
        format: Format::Ndjson,
        explain: false,
    };
    let limits = Limits {
        time: Duration::from_millis(300),
        ..WIDE
    };
    let mut slow = Slow(Duration::from_millis(5));
    let ended = answer(&question, &namespace, &limits, || false, &mut slow);
    assert!(matches!(ended, Err(SqlError::TooLong(_))), "{ended:?}");
}

#[test]
fn a_statement_ends_when_nobody_waits_for_it() {
    let writer = many_routes(10);
    let namespace = Namespace::new(&writer);
    let question = Question {
        statement: ENDLESS.to_owned(),
        format: Format::Csv,
        explain: false,
    };
    let begun = Instant::now();
    let is_gone = move || begun.elapsed() > Duration::from_millis(50);
    let ended = answer(&question, &namespace, &WIDE, is_gone, &mut io::sink());
    assert!(matches!(ended, Err(SqlError::Gone)), "{ended:?}");
}
