//! What was measured, for people, for programs and as a picture.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use view::plot::{Plot, Series};

use crate::drill::pass::Pass;

/// One size.
#[derive(Debug, Clone)]
pub struct Run {
    /// How many links, pairs for veth.
    pub count: u32,
    /// `IFLA_INFO_KIND`.
    pub kind: String,
    /// Making them.
    pub create: Pass,
    /// Taking them away.
    pub delete: Pass,
}

impl Run {
    fn passes(&self) -> [(&'static str, &Pass); 2] {
        [("create", &self.create), ("delete", &self.delete)]
    }

    /// Milliseconds a link.
    fn per_link_ms(&self, pass: &Pass) -> f64 {
        millis(pass.wall) / f64::from(self.count.max(1))
    }
}

/// What a link of a kind is called: a veth is made and deleted as a pair.
fn unit(kind: &str) -> &'static str {
    if kind == "veth" { "pair" } else { "link" }
}

/// A run, as a table.
pub fn text(run: &Run, place: &str, out: &mut impl Write) -> io::Result<()> {
    let Run { count, kind, .. } = run;
    let unit = unit(kind);
    let plural = if *count == 1 { "" } else { "s" };
    writeln!(out, "{count} {kind} {unit}{plural} in {place}")?;
    writeln!(
        out,
        "{:<8}{:>12}{:>16}{:>16}{:>16}{:>10}",
        "",
        "in all",
        format!("a {unit}"),
        "first hundred",
        "last hundred",
        "waiting"
    )?;
    for (name, pass) in run.passes() {
        let [first, last] = match pass.ends {
            Some(ends) => ends.map(|end| format!("{:.3} ms", millis(end) / 100.0)),
            None => ["-".to_owned(), "-".to_owned()],
        };
        writeln!(
            out,
            "{name:<8}{:>10.4} s{:>13.3} ms{first:>16}{last:>16}{:>8.0} %",
            pass.wall.as_secs_f64(),
            run.per_link_ms(pass),
            share(pass) * 100.0,
        )?;
    }
    for (name, pass) in run.passes() {
        write!(out, "{name}: {}", pass.way)?;
        if let Some(each) = pass.each {
            let [median, p99, max] = [each.median, each.p99, each.max].map(millis);
            write!(
                out,
                "; a request: median {median:.3} ms, p99 {p99:.3} ms, longest {max:.3} ms"
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The head of [`growth_row`]s.
pub fn growth_head(kind: &str, place: &str, out: &mut impl Write) -> io::Result<()> {
    let unit = unit(kind);
    writeln!(out, "{kind}, in {place}; ms a {unit}")?;
    writeln!(
        out,
        "{:>8}{:>10}{:>14}{:>14}{:>10}{:>14}{:>14}{:>10}",
        "count",
        "create",
        "first hundred",
        "last hundred",
        "delete",
        "first hundred",
        "last hundred",
        "waiting"
    )
}

/// A size of a growth, in a line.
pub fn growth_row(run: &Run, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{:>8}", run.count)?;
    for (_, pass) in run.passes() {
        let [first, last] = match pass.ends {
            Some(ends) => ends.map(|end| format!("{:.3}", millis(end) / 100.0)),
            None => ["-".to_owned(), "-".to_owned()],
        };
        write!(out, "{:>10.3}{first:>14}{last:>14}", run.per_link_ms(pass))?;
    }
    writeln!(out, "{:>8.0} %", share(&run.delete) * 100.0)
}

/// The growth as a picture.
pub fn svg(kind: &str, runs: &[Run]) -> String {
    let series = |name: &str, pass: fn(&Run) -> &Pass| Series {
        name: format!("{name} a {}", unit(kind)),
        points: runs
            .iter()
            .map(|run| (f64::from(run.count), run.per_link_ms(pass(run))))
            .collect(),
    };
    let plot = Plot {
        title: format!("fingerpost ifaceseq: {kind}"),
        x: format!("{}s", unit(kind)),
        y: "ms".into(),
        series: vec![
            series("create", |run| &run.create),
            series("delete", |run| &run.delete),
        ],
    };
    plot.svg()
}

/// A run as JSON.
#[derive(Debug, Serialize)]
pub struct Json<'a> {
    count: u32,
    kind: &'a str,
    create: JsonPass<'a>,
    delete: JsonPass<'a>,
}

#[derive(Debug, Serialize)]
struct JsonPass<'a> {
    wall_ms: f64,
    waiting_ms: f64,
    per_link_ms: f64,
    first_hundred_per_link_ms: Option<f64>,
    last_hundred_per_link_ms: Option<f64>,
    request_median_ms: Option<f64>,
    request_p99_ms: Option<f64>,
    request_max_ms: Option<f64>,
    way: &'a str,
}

impl<'a> Json<'a> {
    /// Of a run.
    pub fn of(run: &'a Run) -> Self {
        let pass = |pass: &'a Pass| JsonPass {
            wall_ms: millis(pass.wall),
            waiting_ms: millis(pass.waiting),
            per_link_ms: run.per_link_ms(pass),
            first_hundred_per_link_ms: pass.ends.map(|[first, _]| millis(first) / 100.0),
            last_hundred_per_link_ms: pass.ends.map(|[_, last]| millis(last) / 100.0),
            request_median_ms: pass.each.map(|each| millis(each.median)),
            request_p99_ms: pass.each.map(|each| millis(each.p99)),
            request_max_ms: pass.each.map(|each| millis(each.max)),
            way: &pass.way,
        };
        Self {
            count: run.count,
            kind: &run.kind,
            create: pass(&run.create),
            delete: pass(&run.delete),
        }
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

fn share(pass: &Pass) -> f64 {
    let wall = pass.wall.as_secs_f64();
    if wall > 0.0 {
        pass.waiting.as_secs_f64() / wall
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(count: u32) -> Run {
        let pass = |ms: u64| Pass {
            wall: Duration::from_millis(ms) * count,
            waiting: Duration::from_millis(ms) * count / 4,
            ends: (count > 200).then_some([Duration::from_millis(100), Duration::from_millis(200)]),
            each: None,
            way: "packed".into(),
        };
        Run {
            count,
            kind: "veth".into(),
            create: pass(2),
            delete: pass(4),
        }
    }

    #[test]
    fn a_run_tells_the_cost_of_a_pair() {
        let mut out = Vec::new();
        text(&run(1_000), "a fresh namespace", &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], "1000 veth pairs in a fresh namespace");
        assert!(lines[2].contains("2.0000 s        2.000 ms        1.000 ms        2.000 ms"));
        assert!(lines[3].ends_with("25 %"), "{out}");
    }

    #[test]
    fn json_and_picture_have_all_sizes() {
        let runs = [run(100), run(1_000)];
        let json = serde_json::to_value(Json::of(&runs[0])).unwrap();
        assert_eq!(json["create"]["per_link_ms"], 2.0);
        assert!(json["delete"]["first_hundred_per_link_ms"].is_null());
        assert_eq!(svg("veth", &runs).matches("<circle").count(), 4);
    }
}
