//! The shell: statements line by line, with a history and completion of
//! names. It lasts until its user leaves it.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use view::Format;

use super::Asker;
use super::lines::Lines;

/// Lines of the history that are kept.
const MAX_HISTORY: usize = 1_000;

const HELP: &str = "\
A statement ends with `;`. Beside statements there are:
  .tables            the tables
  .columns TABLE     a table's columns, those that are no part of `*` too
  .format FORMAT     how rows are written: table, json, ndjson or csv
  .explain on|off    what statements look at instead of their rows
  .help              this
  .quit              the end, as Ctrl-D
";

/// Words that are completed beside names.
const WORDS: [&str; 29] = [
    "select",
    "distinct",
    "from",
    "where",
    "and",
    "or",
    "not",
    "in",
    "between",
    "like",
    "glob",
    "is null",
    "group by",
    "having",
    "order by",
    "desc",
    "limit",
    "join",
    "left join",
    "using",
    "count(*)",
    "sum(",
    "within(",
    "covers(",
    "longest_match(",
    "in_cidr_range(",
    "masklen(",
    "family(",
    "explain query plan",
];

/// Reads and answers until the end.
pub(super) fn run(mut asker: Asker, out: &mut impl Write) -> Result<ExitCode> {
    let config = Config::builder().max_history_size(MAX_HISTORY)?.build();
    let mut editor: Editor<Names, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Names::new()));
    let history = history();
    if let Some(file) = &history {
        // The first time there is none.
        let _ = editor.load_history(file);
    }
    let mut lines = Lines::default();
    loop {
        let prompt = if lines.is_empty() { "sql> " } else { "...> " };
        let line = match editor.readline(prompt) {
            Ok(line) => line,
            // Ctrl-C takes back what was begun.
            Err(ReadlineError::Interrupted) => {
                lines.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        };
        if line.trim().is_empty() {
            continue;
        }
        editor.add_history_entry(&line)?;
        if lines.is_empty() && line.trim_start().starts_with('.') {
            match dotted(line.trim(), &mut asker, out)? {
                true => continue,
                false => break,
            }
        }
        let answered = lines.take(&line).and_then(|statement| match statement {
            Some(statement) => asker.ask(&statement, out),
            None => Ok(None),
        });
        match answered {
            Ok(None) => {}
            Ok(Some(why)) => say(&why),
            Err(error) => say(&format!("{error:#}")),
        }
    }
    if let Some(file) = &history {
        let made = file.parent().map_or(Ok(()), fs::create_dir_all);
        if let Err(error) = made
            .map_err(ReadlineError::from)
            .and_then(|()| editor.save_history(file))
        {
            say(&format!(
                "the history is not kept: {}: {error}",
                file.display()
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Does what a word with a point says; whether the shell goes on.
fn dotted(line: &str, asker: &mut Asker, out: &mut impl Write) -> Result<bool> {
    let mut words = line.split_whitespace();
    let said = (words.next().unwrap_or_default(), words.next(), words.next());
    match said {
        (".quit" | ".exit", None, None) => return Ok(false),
        (".help", None, None) => out.write_all(HELP.as_bytes())?,
        (".tables", None, None) => {
            for (table, _) in query::tables() {
                writeln!(out, "{table}")?;
            }
        }
        (".columns", Some(name), None) => match query::tables().find(|(table, _)| *table == name) {
            Some((_, columns)) => {
                for column in columns {
                    writeln!(out, "{column}")?;
                }
            }
            None => say(&format!("no table is named `{name}`; `.tables` lists them")),
        },
        (".format", Some("table"), None) => asker.asked.format = Format::Text,
        (".format", Some("json"), None) => asker.asked.format = Format::Json,
        (".format", Some("ndjson"), None) => asker.asked.format = Format::Ndjson,
        (".format", Some("csv"), None) => asker.asked.format = Format::Csv,
        (".explain", Some("on"), None) => asker.asked.explain = true,
        (".explain", Some("off"), None) => asker.asked.explain = false,
        _ => say(&format!(
            "`{line}` is not known; `.help` says what there is"
        )),
    }
    out.flush()?;
    Ok(true)
}

/// Says something beside the rows.
fn say(what: &str) {
    // Nobody to tell when standard error is closed.
    let _ = writeln!(io::stderr(), "fingerpost: {what}");
}

/// Where the history is kept; `None`: nobody says where its user is at home.
fn history() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let state = env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .and_then(absolute);
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".local/state"));
    let directory = state.or_else(|| home().and_then(absolute))?;
    Some(directory.join("fingerpost/sql_history"))
}

/// Completes names of tables and columns, and words.
struct Names {
    all: Vec<String>,
}

impl Names {
    fn new() -> Self {
        let mut all: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
        for (table, columns) in query::tables() {
            all.push(table.to_owned());
            all.extend(columns.map(str::to_owned));
        }
        all.sort_unstable();
        all.dedup();
        Self { all }
    }

    /// Where the name at a place of a line begins, and what it may be.
    fn of(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let before = line.get(..at).unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start = before
            .rfind(|c: char| !is_name(c))
            .map_or(0, |last| last + 1);
        let begun = before.get(start..).unwrap_or_default().to_ascii_lowercase();
        // Behind a quote that is open stands a value.
        let in_quotes = before.matches('\'').count() % 2 == 1;
        if begun.is_empty() || in_quotes {
            return (start, Vec::new());
        }
        let fits = self.all.iter().filter(|name| name.starts_with(&begun));
        (start, fits.cloned().collect())
    }
}

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.of(line, at))
    }
}

impl Hinter for Names {
    type Hint = String;
}

impl Highlighter for Names {}
impl Validator for Names {}
impl Helper for Names {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_and_values_are_not() {
        let names = Names::new();
        let of = |line: &str| names.of(line, line.len());
        assert_eq!(of("sel"), (0, vec!["select".to_owned()]));
        let (start, some) = of("select r.tab");
        assert_eq!((start, some.contains(&"table_name".to_owned())), (9, true));
        assert!(of("select * from rou").1.contains(&"routes".to_owned()));
        assert_eq!(of("select 'rou").1, [""; 0]);
        assert_eq!(of("select ").1, [""; 0]);
        assert_eq!(names.of("ä", 1).1, [""; 0], "inside a letter");
    }
}
