//! The rows of a statement as a file of Apache Parquet, written as they come:
//! a group of rows at a time is held, and no more. Whole numbers are INT64,
//! others DOUBLE, texts UTF-8; each may be NULL. SQL's columns have no type,
//! so that of a column is what it has in the first group, and a value that
//! does not fit later is refused, with what to write instead.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use query::Question;
use serde_json::Value;
use serve::control::protocol::Ask;
use view::Format;

use super::row::{Row, trimmed};
use crate::ask::From;
use crate::replay::past;

/// Rows of a group, and octets of their values, at most.
const GROUP_ROWS: usize = 50_000;
const GROUP_OCTETS: usize = 16 << 20;
/// What a value counts as beside its text.
const VALUE_OCTETS: usize = 16;
/// Octets of a row at most: SQL has none that is as long.
const MAX_ROW: usize = 1 << 20;
/// Behind the name of a file that is not whole.
const UNFINISHED: &str = ".part";

/// Writes the rows of a statement into a file, which is there once it is
/// whole.
pub(super) fn write(statement: &str, file: &Path, from: &From) -> Result<ExitCode> {
    let mut name = file.as_os_str().to_owned();
    name.push(UNFINISHED);
    let unfinished = Unfinished(PathBuf::from(name));
    let created = File::create(&unfinished.0);
    let created = created.with_context(|| unfinished.0.display().to_string())?;
    let mut lines = Lines {
        rest: Vec::new(),
        rows: Rows::new(created),
        failed: None,
    };
    let ended = past::run(asked(statement, Format::Ndjson), from, &mut lines);
    if let Some(error) = lines.failed {
        return Err(error);
    }
    let ended = ended?;
    let mut rows = lines.rows;
    if rows.columns.is_empty() {
        // Without a row nobody said which columns there are.
        let none = format!("select * from ({}) limit 0", trimmed(statement));
        let mut head = Vec::new();
        past::run(asked(&none, Format::Csv), from, &mut head)?;
        if head.is_empty() {
            // There is no answer, which was said.
            return Ok(ended);
        }
        rows.named(&String::from_utf8_lossy(&head))?;
    }
    rows.finish()?;
    fs::rename(&unfinished.0, file).with_context(|| file.display().to_string())?;
    Ok(ended)
}

fn asked(statement: &str, format: Format) -> Ask {
    Ask::Sql(Box::new(Question {
        statement: statement.to_owned(),
        format,
        explain: false,
    }))
}

/// The name of a file that is not whole: what is left of it goes.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It has another name by now, where it is whole.
        let _ = fs::remove_file(&self.0);
    }
}

/// Takes an answer line by line.
struct Lines {
    rest: Vec<u8>,
    rows: Rows,
    /// Why no more is taken.
    failed: Option<anyhow::Error>,
}

impl Lines {
    fn take(&mut self, piece: &[u8]) -> Result<()> {
        let mut lines = piece.split_inclusive(|octet| *octet == b'\n');
        for line in &mut lines {
            self.rest.extend_from_slice(line);
            if line.last() == Some(&b'\n') {
                let row = serde_json::from_slice(&self.rest);
                self.rest.clear();
                self.rows.push(row.context("the answer is no JSON")?)?;
            } else if self.rest.len() > MAX_ROW {
                bail!("a row is longer than {} KiB", MAX_ROW >> 10);
            }
        }
        Ok(())
    }
}

impl Write for Lines {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.take(piece) {
            let why = format!("{error:#}");
            self.failed.get_or_insert(error);
            return Err(io::Error::other(why));
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Whole,
    Number,
    Text,
}

/// A column, and its values of the group at hand.
struct Column {
    name: String,
    values: Vec<Value>,
    /// Of the file, once a group was written.
    holds: Option<Holds>,
}

/// Rows on their way into a file.
struct Rows {
    /// Until the first group is written.
    file: Option<File>,
    writer: Option<SerializedFileWriter<File>>,
    columns: Vec<Column>,
    /// Rows of the groups that were written.
    written: usize,
    octets: usize,
}

impl Rows {
    fn new(file: File) -> Self {
        Self {
            file: Some(file),
            writer: None,
            columns: Vec::new(),
            written: 0,
            octets: 0,
        }
    }

    /// Has columns of these names (a line of CSV) and no rows.
    fn named(&mut self, head: &str) -> Result<()> {
        self.begin(names_of(head).into_iter())
    }

    fn begin(&mut self, names: impl Iterator<Item = String>) -> Result<()> {
        for name in names {
            if self.columns.iter().any(|known| known.name == name) {
                bail!("two columns are called `{name}`: call one of them otherwise, with `as`");
            }
            self.columns.push(Column {
                name,
                values: Vec::new(),
                holds: None,
            });
        }
        Ok(())
    }

    fn push(&mut self, Row(row): Row) -> Result<()> {
        if self.columns.is_empty() {
            self.begin(row.iter().map(|(name, _)| name.clone()))?;
        }
        for (column, (_, value)) in self.columns.iter_mut().zip(row) {
            self.octets += VALUE_OCTETS + value.as_str().map_or(0, str::len);
            column.values.push(value);
        }
        match self.held() >= GROUP_ROWS || self.octets >= GROUP_OCTETS {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    /// Rows of the group at hand.
    fn held(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    fn write_group(&mut self) -> Result<()> {
        for column in &mut self.columns {
            column.settle(self.written)?;
        }
        if let Some(file) = self.file.take() {
            let schema = schema(&self.columns)?;
            let properties = Arc::new(WriterProperties::builder().build());
            self.writer = Some(SerializedFileWriter::new(file, schema, properties)?);
        }
        let held = self.held();
        let writer = self.writer.as_mut().context("no file")?;
        if held > 0 {
            let mut group = writer.next_row_group()?;
            for column in &mut self.columns {
                let into = group.next_column()?.context("no column")?;
                column.write(into)?;
            }
            group.close()?;
        }
        self.written += held;
        self.octets = 0;
        Ok(())
    }

    /// Writes what is left, and what closes the file.
    fn finish(&mut self) -> Result<()> {
        if self.held() > 0 || self.writer.is_none() {
            self.write_group()?;
        }
        let writer = self.writer.take().context("no file")?;
        writer.close()?;
        Ok(())
    }
}

impl Column {
    /// Says what it has, or that a value is none of it; `before`: rows of the
    /// groups that were written.
    fn settle(&mut self, before: usize) -> Result<()> {
        let mut holds = self.holds;
        for (at, value) in self.values.iter().enumerate() {
            let Some(of_value) = holds_of(value) else {
                continue;
            };
            let both = holds.map_or(of_value, |holds| joined(holds, of_value));
            if self.holds.is_some_and(|settled| settled != both) {
                let (name, row) = (&self.name, before + at + 1);
                bail!(
                    "`{name}` has another kind of value in row {row} than before it, and a column of \
                     Parquet has one: write `cast({name} as text) as {name}`"
                );
            }
            holds = Some(both);
        }
        self.holds = holds;
        Ok(())
    }

    fn holds(&self) -> Holds {
        self.holds.unwrap_or(Holds::Text)
    }

    /// Writes its values, and has none.
    fn write(&mut self, mut into: SerializedColumnWriter<'_>) -> Result<()> {
        let values = std::mem::take(&mut self.values);
        let is_there: Vec<i16> = values
            .iter()
            .map(|value| i16::from(!value.is_null()))
            .collect();
        let there = values.iter().filter(|value| !value.is_null());
        let is_there = Some(is_there.as_slice());
        match self.holds() {
            Holds::Whole => {
                let all: Option<Vec<i64>> = there.map(Value::as_i64).collect();
                let all = all.context("no whole number")?;
                into.typed::<Int64Type>()
                    .write_batch(&all, is_there, None)?;
            }
            Holds::Number => {
                let all: Option<Vec<f64>> = there.map(Value::as_f64).collect();
                let all = all.context("no number")?;
                into.typed::<DoubleType>()
                    .write_batch(&all, is_there, None)?;
            }
            Holds::Text => {
                let text = |value: &Value| match value {
                    Value::String(text) => ByteArray::from(text.as_str()),
                    other => ByteArray::from(other.to_string().as_str()),
                };
                let all: Vec<ByteArray> = there.map(text).collect();
                into.typed::<ByteArrayType>()
                    .write_batch(&all, is_there, None)?;
            }
        }
        into.close()?;
        Ok(())
    }
}

/// The names in a line of CSV.
fn names_of(head: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut is_quoted = false;
    let mut letters = head.trim_end_matches('\n').chars().peekable();
    while let Some(letter) = letters.next() {
        let is_twice = is_quoted && letter == '"' && letters.next_if_eq(&'"').is_some();
        match (letter, names.last_mut()) {
            ('"', _) if !is_twice => is_quoted = !is_quoted,
            (',', _) if !is_quoted => names.push(String::new()),
            (letter, Some(name)) => name.push(letter),
            _ => {}
        }
    }
    names
}

/// What a column has that has this value; `None`: it may have anything.
fn holds_of(value: &Value) -> Option<Holds> {
    match value {
        Value::Null => None,
        Value::Number(number) if number.is_i64() => Some(Holds::Whole),
        Value::Number(_) => Some(Holds::Number),
        _ => Some(Holds::Text),
    }
}

/// What a column has that has both: the numbers of a column with texts in it
/// are texts.
fn joined(one: Holds, other: Holds) -> Holds {
    match (one, other) {
        (Holds::Text, _) | (_, Holds::Text) => Holds::Text,
        (Holds::Number, _) | (_, Holds::Number) => Holds::Number,
        (Holds::Whole, Holds::Whole) => Holds::Whole,
    }
}

fn schema(columns: &[Column]) -> Result<Arc<Type>> {
    let field = |column: &Column| {
        let (physical, logical) = match column.holds() {
            Holds::Whole => (Physical::INT64, None),
            Holds::Number => (Physical::DOUBLE, None),
            Holds::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(&column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    };
    let fields: Result<Vec<_>, _> = columns.iter().map(field).collect();
    let schema = Type::group_type_builder("rows")
        .with_fields(fields?)
        .build();
    schema.map(Arc::new).map_err(|error| anyhow!(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of JSON as a file; why not, if not.
    fn written(path: &Path, lines: impl Iterator<Item = String>) -> Result<()> {
        let mut into = Lines {
            rest: Vec::new(),
            rows: Rows::new(File::create(path)?),
            failed: None,
        };
        for line in lines {
            let line = format!("{line}\n");
            // It comes in pieces that end anywhere.
            let (one, other) = line.split_at(line.len() / 2);
            into.write_all(one.as_bytes())?;
            into.write_all(other.as_bytes())?;
        }
        into.rows.finish()
    }

    /// What the crate's own reader reads.
    fn read(path: &Path) -> Vec<String> {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().to_string()).collect()
    }

    #[test]
    fn rows_of_several_groups_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let count = 2 * GROUP_ROWS + 7;
        let line = |at: usize| {
            let half = if at == 3 {
                "0.5".to_owned()
            } else {
                at.to_string()
            };
            let text = if at % 2 == 0 {
                "null".to_owned()
            } else {
                format!("\"t\u{e9}{at}\"")
            };
            format!("{{\"n\":{at},\"half\":{half},\"text\":{text},\"none\":null}}")
        };
        written(&path, (0..count).map(line)).unwrap();
        let rows = read(&path);
        assert_eq!(rows.len(), count);
        assert_eq!(rows[2], "{n: 2, half: 2.0, text: null, none: null}");
        assert_eq!(rows[3], "{n: 3, half: 0.5, text: \"t\u{e9}3\", none: null}");
        let last = count - 1;
        assert_eq!(
            rows[last],
            format!("{{n: {last}, half: {last}.0, text: null, none: null}}")
        );
    }

    #[test]
    fn what_has_no_one_type_is_said_or_is_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let mixed = ["{\"a\":1}", "{\"a\":\"x\"}", "{\"a\":1.5}"].map(str::to_owned);
        written(&path, mixed.into_iter()).unwrap();
        assert_eq!(read(&path), ["{a: \"1\"}", "{a: \"x\"}", "{a: \"1.5\"}"]);
        let late = |at| match at {
            GROUP_ROWS => "{\"a\":\"x\"}".to_owned(),
            _ => "{\"a\":1}".to_owned(),
        };
        let error = written(&path, (0..=GROUP_ROWS).map(late))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("row 50001") && error.contains("cast(a as text)"),
            "{error}"
        );
        let twice = ["{\"a\":1,\"a\":2}".to_owned()];
        let error = written(&path, twice.into_iter()).unwrap_err().to_string();
        assert!(error.contains("two columns are called `a`"), "{error}");
    }

    #[test]
    fn no_rows_have_columns_as_well() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let mut rows = Rows::new(File::create(&path).unwrap());
        rows.named("prefix,\"a,\"\"b\"\"\"\n").unwrap();
        let names: Vec<&str> = rows.columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["prefix", "a,\"b\""]);
        rows.finish().unwrap();
        assert!(read(&path).is_empty());
    }
}
