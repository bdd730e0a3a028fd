//! A statement from its text to its last row: what it may do, what it may
//! take, and why it ended.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fallible_iterator::FallibleIterator;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, ErrorCode, OpenFlags, Statement};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use view::{Format, Object};

use crate::moment::{Earlier, Moment, Running, Translation};
use crate::output::Output;
use crate::schema::{COUNTERS, Rows, SCHEMAS};
use crate::{function, heap, osquery, vtab};

/// A statement, and how its rows are written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// One `select`.
    pub statement: String,
    /// How rows are written.
    #[serde(default)]
    pub format: Format,
    /// Instead of the rows, which conditions were looked up in an index, and
    /// how many rows were looked at.
    #[serde(default)]
    pub explain: bool,
}

/// What a statement may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time, from its text to its last row being taken.
    pub time: Duration,
    /// Rows.
    pub rows: u64,
    /// Octets of memory that SQLite has for it.
    pub memory: usize,
}

/// Octets of a statement at most.
const MAX_STATEMENT: i32 = 64 << 10;
/// Octets of one value, or one row, at most: some functions look at each
/// octet of one for each octet of another, and nobody can end them.
const MAX_VALUE: i32 = 256 << 10;
/// Steps of SQLite between two looks at the time.
const STEPS: i32 = 2_000;
/// Between two looks at whether anybody waits.
const LOOK: Duration = Duration::from_millis(20);

/// Whom a statement is about.
pub trait Asked {
    /// What it has at this moment.
    fn moment(&self) -> Moment;
    /// Has what is not announced of a kind of row read, where a statement
    /// looks at it; waits a bounded time.
    fn refresh(&self, object: Object, statistics: bool);
    /// Where the translation of the host is asked, whose rows are told to
    /// few; else why it is not.
    fn translation(&self) -> Translation;
    /// Who tells what happened before; `None`: there are the events that
    /// are kept in memory.
    fn earlier(&self) -> Option<Arc<dyn Earlier>> {
        None
    }
}

/// What a statement gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// Rows written.
    pub rows: u64,
    /// Rows of ours that were looked at for them.
    pub visited: u64,
}

/// Why a statement has no whole answer.
#[derive(Debug, Error)]
pub enum SqlError {
    /// The statement is at fault.
    #[error("{0}")]
    Statement(String),
    /// It does more than read.
    #[error("a statement only reads here: {0} is refused; write one `select`")]
    Refused(&'static str),
    /// It took too long.
    #[error(
        "the statement was cut off after {0:?}, all the time that it may take: narrow it, or look \
         with `explain` at what it looks at"
    )]
    TooLong(Duration),
    /// It took too much memory.
    #[error(
        "the statement needs more than the {} MiB of memory that it may take: narrow it, or sort \
         and group fewer rows", .0 >> 20
    )]
    TooMuchMemory(usize),
    /// It has too many rows.
    #[error("the answer is cut off after {0} rows, the most that it may have: narrow it")]
    TooManyRows(u64),
    /// Nobody waits for its rows any more.
    #[error("nobody waits for the rows any more")]
    Gone,
    /// Its rows could not be written.
    #[error("cannot write the answer: {0}")]
    Write(#[from] io::Error),
}

/// Answers a question from one moment. `is_gone` says that nobody waits for
/// it any more; it is asked some times a second.
pub fn answer(
    question: &Question,
    asked: &dyn Asked,
    limits: &Limits,
    is_gone: impl FnMut() -> bool + Send + 'static,
    out: &mut dyn Write,
) -> Result<Answered, SqlError> {
    let deadline = Instant::now() + limits.time;
    let _bound = heap::bound(limits.memory).map_err(SqlError::Statement)?;
    let running = Running::new(
        asked.moment(),
        asked.translation(),
        asked.earlier(),
        deadline,
    );
    let running = Arc::new(running);
    let session = Session {
        running: Arc::clone(&running),
        gone: Arc::default(),
        refused: Arc::default(),
        deadline,
        limits: *limits,
    };
    let ended = session.run(question, asked, is_gone, out);
    ended.map(|rows| Answered {
        rows,
        visited: running.visited(),
    })
}

struct Session {
    running: Arc<Running>,
    gone: Arc<AtomicBool>,
    refused: Arc<std::sync::Mutex<Option<&'static str>>>,
    deadline: Instant,
    limits: Limits,
}

impl Session {
    fn run(
        &self,
        question: &Question,
        asked: &dyn Asked,
        is_gone: impl FnMut() -> bool + Send + 'static,
        out: &mut dyn Write,
    ) -> Result<u64, SqlError> {
        let mut connection = self
            .connect(&question.statement, is_gone)
            .map_err(|error| self.failed(&error))?;
        let used = self
            .confine(&mut connection)
            .map_err(|error| self.failed(&error))?;
        let mut statement = self.prepare(&connection, &question.statement)?;
        for (object, statistics) in wanted(&used) {
            asked.refresh(object, statistics);
        }
        self.running.renew(asked.moment());
        if question.explain {
            return self.explain(&mut statement, question.format, out);
        }
        let mut output = Output::new(question.format, names(&statement), out);
        let ended = self.rows(&mut statement, |statement_row, columns| {
            let value = |at| statement_row.get_ref(at).unwrap_or(ValueRef::Null);
            output.row((0..columns).map(value))
        });
        match ended {
            Ok(()) => output.finish()?,
            Err(error @ (SqlError::Gone | SqlError::Write(_))) => return Err(error),
            Err(error) => {
                output.cut()?;
                return Err(error);
            }
        }
        Ok(output.rows)
    }

    /// A connection in memory with our tables and no others, for a statement.
    fn connect(
        &self,
        statement: &str,
        mut is_gone: impl FnMut() -> bool + Send + 'static,
    ) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_in_memory_with_flags(flags)?;
        for (limit, most) in [
            (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE),
            (Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_STATEMENT),
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
            (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
            (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
            (Limit::SQLITE_LIMIT_VDBE_OP, 200_000),
            (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200),
            (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        ] {
            connection.set_limit(limit, most)?;
        }
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, true)?;
        // Quotes are names' alone: a misspelt column is no text.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
        connection.execute_batch("pragma temp_store = memory; pragma cache_spill = off")?;
        function::register(&connection)?;
        vtab::register(&connection, &self.running)?;
        for view in osquery::views(statement) {
            connection.execute_batch(view)?;
        }
        let (deadline, gone) = (self.deadline, Arc::clone(&self.gone));
        let running = Arc::clone(&self.running);
        let mut looked = Instant::now();
        connection.progress_handler(
            STEPS,
            Some(move || {
                let now = Instant::now();
                if now.saturating_duration_since(looked) >= LOOK {
                    looked = now;
                    if is_gone() {
                        gone.store(true, Ordering::Relaxed);
                    }
                }
                let is_over = now >= deadline || gone.load(Ordering::Relaxed);
                if is_over {
                    running.is_over.store(true, Ordering::Relaxed);
                }
                is_over
            }),
        )?;
        Ok(connection)
    }

    /// Lets a connection read our tables from now on, and nothing else.
    /// Gives the columns that statements read.
    fn confine(&self, connection: &mut Connection) -> rusqlite::Result<Used> {
        let used = Used::default();
        let told = Arc::clone(&used);
        let refused = Arc::clone(&self.refused);
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            match allowed(&context.action) {
                Ok(()) => {
                    if let AuthAction::Read {
                        table_name,
                        column_name,
                    } = context.action
                        && let Ok(mut told) = told.lock()
                    {
                        told.insert((table_name.to_owned(), column_name.to_owned()));
                    }
                    Authorization::Allow
                }
                Err(what) => {
                    if let Ok(mut refused) = refused.lock() {
                        refused.get_or_insert(what);
                    }
                    Authorization::Deny
                }
            }
        }))?;
        Ok(used)
    }

    /// The only statement of a text.
    fn prepare<'c>(
        &self,
        connection: &'c Connection,
        text: &str,
    ) -> Result<Statement<'c>, SqlError> {
        if text.len() > MAX_STATEMENT as usize {
            return Err(SqlError::Statement(format!(
                "the statement is longer than {} KiB",
                MAX_STATEMENT >> 10
            )));
        }
        let mut batch = Batch::new(connection, text);
        let statement = batch.next().map_err(|error| self.failed(&error))?;
        let statement = statement.ok_or_else(|| {
            SqlError::Statement("there is no statement: write one `select`".to_owned())
        })?;
        if !matches!(batch.next(), Ok(None)) {
            return Err(SqlError::Statement(
                "there is more than one statement: ask them one by one".to_owned(),
            ));
        }
        if statement.parameter_count() > 0 {
            return Err(SqlError::Statement(
                "a statement has its values in it, and no `?`".to_owned(),
            ));
        }
        match statement.readonly() {
            true => Ok(statement),
            false => Err(SqlError::Refused("to change anything")),
        }
    }

    /// Runs a statement row by row.
    fn rows(
        &self,
        statement: &mut Statement<'_>,
        mut each: impl FnMut(&rusqlite::Row<'_>, usize) -> io::Result<()>,
    ) -> Result<(), SqlError> {
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        let mut told = 0;
        loop {
            let row = rows.next().map_err(|error| self.failed(&error))?;
            let Some(row) = row else {
                return Ok(());
            };
            if told == self.limits.rows {
                return Err(SqlError::TooManyRows(told));
            }
            told += 1;
            each(row, columns)?;
            // Whoever takes rows slowly takes time as well.
            if told % 256 == 0 && Instant::now() >= self.deadline {
                return Err(SqlError::TooLong(self.limits.time));
            }
        }
    }

    /// Runs a statement for what it looks at.
    fn explain(
        &self,
        statement: &mut Statement<'_>,
        format: Format,
        out: &mut dyn Write,
    ) -> Result<u64, SqlError> {
        let mut rows = 0;
        self.rows(statement, |_, _| {
            rows += 1;
            Ok(())
        })?;
        // Its cursors tell what they did when they are gone.
        statement.clear_bindings();
        let names = ["table", "handed_on", "way", "times", "rows_visited"];
        let names = names.map(str::to_owned).into();
        let mut output = Output::new(format, names, out);
        let number = |number: u64| ValueRef::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        for (scanned, counts) in self.running.scans() {
            let handed_on = match scanned.conditions.as_str() {
                "" => ValueRef::Null,
                conditions => ValueRef::Text(conditions.as_bytes()),
            };
            let row = [
                ValueRef::Text(scanned.table.as_bytes()),
                handed_on,
                ValueRef::Text(scanned.way.as_bytes()),
                number(counts.times),
                number(counts.visited),
            ];
            output.row(row.into_iter())?;
        }
        let answer = [
            ValueRef::Text(b"(answer)"),
            ValueRef::Null,
            ValueRef::Text(b"rows of the answer"),
            ValueRef::Integer(1),
            number(rows),
        ];
        output.row(answer.into_iter())?;
        output.finish()?;
        Ok(output.rows)
    }

    /// What an error of SQLite means.
    fn failed(&self, error: &rusqlite::Error) -> SqlError {
        if let Ok(mut refused) = self.refused.lock()
            && let Some(what) = refused.take()
        {
            return SqlError::Refused(what);
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) if self.gone.load(Ordering::Relaxed) => {
                SqlError::Gone
            }
            Some(ErrorCode::OperationInterrupted) => SqlError::TooLong(self.limits.time),
            Some(ErrorCode::OutOfMemory) => SqlError::TooMuchMemory(self.limits.memory),
            Some(ErrorCode::TooBig) => SqlError::Statement(format!(
                "a value is longer than {} KiB, the most that it may be",
                MAX_VALUE >> 10
            )),
            _ => SqlError::Statement(in_words(error)),
        }
    }
}

/// The columns that a statement reads.
type Used = Arc<std::sync::Mutex<std::collections::BTreeSet<(String, String)>>>;

/// What a statement looks at of what is not announced.
fn wanted(used: &Used) -> Vec<(Object, bool)> {
    let mut wanted: Vec<(Object, bool)> = Vec::new();
    let used = used
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    for (table, column) in used.iter() {
        let Some(schema) = SCHEMAS.iter().find(|schema| schema.name == table) else {
            continue;
        };
        let Rows::Of(object) = schema.rows else {
            continue;
        };
        let field = schema.column(column).and_then(vtab::field_of);
        let statistics = schema.name == COUNTERS
            || field.is_some_and(|field| view::are_sampled(object, [field]));
        match wanted.iter_mut().find(|(known, _)| *known == object) {
            Some((_, known)) => *known |= statistics,
            None => wanted.push((object, statistics)),
        }
    }
    wanted
}

/// Whether a statement may do something; else what it is.
fn allowed(action: &AuthAction<'_>) -> Result<(), &'static str> {
    /// What tells about tables and changes nothing.
    const PRAGMAS: [&str; 5] = [
        "table_info",
        "table_xinfo",
        "table_list",
        "function_list",
        "module_list",
    ];
    match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Ok(()),
        AuthAction::Function { function_name } => {
            let is_refused = function_name.eq_ignore_ascii_case("load_extension")
                || function_name.to_ascii_lowercase().starts_with("fts");
            match is_refused {
                true => Err("that function"),
                false => Ok(()),
            }
        }
        AuthAction::Pragma { pragma_name, .. } => {
            let is_known = PRAGMAS
                .iter()
                .any(|known| pragma_name.eq_ignore_ascii_case(known));
            match is_known {
                true => Ok(()),
                false => Err("that pragma"),
            }
        }
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => Err("another database"),
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => Err("a transaction"),
        _ => Err("to change anything"),
    }
}

fn names(statement: &Statement<'_>) -> Vec<String> {
    statement.column_names().map(str::to_owned).collect()
}

/// An error in SQLite's words, with the place where it is one of the text.
fn in_words(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError {
            msg, sql, offset, ..
        } => {
            let at = usize::try_from(*offset).unwrap_or(0);
            let there: String = sql.get(at..).unwrap_or_default().chars().take(24).collect();
            match there.is_empty() {
                true => msg.clone(),
                false => format!("{msg}, at `{there}`"),
            }
        }
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    }
}
