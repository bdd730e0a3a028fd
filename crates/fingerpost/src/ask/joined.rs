//! One answer of several: one JSON array of lines of JSON, one header of
//! several CSV answers; text follows text.

use std::io::{self, Write};

use view::Format;

/// Joins the answers that are written to it.
pub struct Joined<W> {
    format: Format,
    out: W,
    answers: usize,
    /// Inside the header of a CSV answer that is not the first.
    in_header: bool,
    /// Inside an object of a JSON array.
    in_object: bool,
    /// The JSON array has begun.
    begun: bool,
}

impl<W: Write> Joined<W> {
    /// For answers in a format; for a JSON array they are lines of JSON.
    pub fn new(format: Format, out: W) -> Self {
        Self {
            format,
            out,
            answers: 0,
            in_header: false,
            in_object: false,
            begun: false,
        }
    }

    /// The next answer begins.
    pub fn next(&mut self) {
        self.in_header = self.format == Format::Csv && self.answers > 0;
        self.answers += 1;
    }

    /// The last answer has ended.
    pub fn finish(mut self) -> io::Result<()> {
        if self.format == Format::Json {
            let open: &[u8] = if self.begun { b"" } else { b"[" };
            self.out.write_all(open)?;
            self.out.write_all(b"]\n")?;
        }
        self.out.flush()
    }

    fn write_objects(&mut self, lines: &[u8]) -> io::Result<()> {
        for line in lines.split_inclusive(|octet| *octet == b'\n') {
            let object = line.strip_suffix(b"\n").unwrap_or(line);
            if !object.is_empty() && !self.in_object {
                self.out.write_all(if self.begun { b"," } else { b"[" })?;
                self.begun = true;
            }
            self.out.write_all(object)?;
            self.in_object = object.len() == line.len();
        }
        Ok(())
    }

    fn write_values(&mut self, mut lines: &[u8]) -> io::Result<()> {
        if self.in_header {
            let Some(end) = lines.iter().position(|octet| *octet == b'\n') else {
                return Ok(());
            };
            self.in_header = false;
            lines = lines.get(end + 1..).unwrap_or_default();
        }
        self.out.write_all(lines)
    }
}

impl<W: Write> Write for Joined<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.format {
            Format::Json => self.write_objects(bytes)?,
            Format::Csv => self.write_values(bytes)?,
            Format::Text | Format::Ndjson => self.out.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins answers, each cut into pieces at every place.
    fn joined(format: Format, answers: &[&str]) -> String {
        let mut out = Vec::new();
        for cut in 0..=answers.iter().map(|answer| answer.len()).max().unwrap_or(0) {
            let mut text = Vec::new();
            let mut joined = Joined::new(format, &mut text);
            for answer in answers {
                joined.next();
                let (first, second) = answer.split_at(cut.min(answer.len()));
                joined.write_all(first.as_bytes()).unwrap();
                joined.write_all(second.as_bytes()).unwrap();
            }
            joined.finish().unwrap();
            assert!(
                cut == 0 || out == text,
                "{cut}: {:?}",
                String::from_utf8_lossy(&text)
            );
            out = text;
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_array_of_many() {
        assert_eq!(joined(Format::Json, &[]), "[]\n");
        assert_eq!(joined(Format::Json, &["", ""]), "[]\n");
        let answers = ["{\"a\":1}\n{\"a\":2}\n", "", "{\"b\":3}\n"];
        assert_eq!(
            joined(Format::Json, &answers),
            "[{\"a\":1},{\"a\":2},{\"b\":3}]\n"
        );
    }

    #[test]
    fn one_header_of_many() {
        let answers = ["netns,dev\nred,a\n", "netns,dev\n", "netns,dev\nblue,b\n"];
        assert_eq!(joined(Format::Csv, &answers), "netns,dev\nred,a\nblue,b\n");
    }
}
