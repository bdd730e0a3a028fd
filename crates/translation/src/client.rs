//! Asks a translation, and waits for its answer no longer than it is told.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::answer::{Line, MAX_LINE_BYTES};
use crate::request::Request;
use crate::within::Within;

/// What is said where nobody answers.
pub fn nobody_at(path: &Path) -> String {
    format!(
        "asking {}: is there a `nat run --control` or `forward --nat-control` of it?",
        path.display()
    )
}

/// A connection with a translation, for one question.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Connects.
    pub fn open(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path).with_context(|| nobody_at(path))?;
        Ok(Self { stream })
    }

    /// Asks, and hands the rows of the answer on, which all have to come
    /// within `patience`, where there is one. Where a walk goes on.
    pub fn ask(
        self,
        request: &Request,
        patience: Option<Duration>,
        sink: &mut dyn FnMut(Value) -> Result<()>,
    ) -> Result<Option<String>> {
        let late = "the translation does not answer in time";
        let mut within = Within::new(&self.stream, patience);
        within
            .write_all(&request.line())
            .context("sending the question")?;
        let mut lines = BufReader::new(within);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut bounded = lines.by_ref().take(MAX_LINE_BYTES as u64);
            match bounded.read_until(b'\n', &mut line) {
                Err(error) if error.kind() == ErrorKind::TimedOut => bail!(late),
                read => read.context("reading the answer")?,
            };
            if line.last() != Some(&b'\n') {
                bail!("the answer was cut off: the translation has ended");
            }
            match Line::read(&line) {
                Some(Line::Row(row)) => sink(row)?,
                Some(Line::End(next)) => return Ok(next),
                Some(Line::Refused(why)) => bail!(why),
                None => return Err(anyhow!("who answers there is no translation")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;
    use crate::request::{Filter, Table};

    /// What becomes of a question to somebody who says this, and stays.
    fn asked(said: &'static str, stays: bool) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let peer = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut question = String::new();
            BufReader::new(&client).read_line(&mut question).unwrap();
            client.write_all(said.as_bytes()).unwrap();
            // Until the other one has gone.
            while stays && client.read(&mut [0]).is_ok_and(|read| read > 0) {}
            question
        });
        let request = Request::rows(Table::Flows, Filter::default());
        let mut rows = 0;
        let answered = Connection::open(&path).unwrap().ask(
            &request,
            Some(Duration::from_millis(200)),
            &mut |_| {
                rows += 1;
                Ok(())
            },
        );
        let question = peer.join().unwrap();
        assert_eq!(serde_json::from_str::<Request>(&question).unwrap(), request);
        match answered {
            Ok(next) => format!("{rows} {next:?}"),
            Err(error) => format!("{rows} {error:#}"),
        }
    }

    #[test]
    fn who_stalls_lies_or_goes_away_is_told_apart() {
        let whole = "{\"a\":1}\n{\"end\":true,\"next\":\"x\"}\n";
        assert_eq!(asked(whole, true), "1 Some(\"x\")");
        let late = "1 the translation does not answer in time";
        assert_eq!(asked("{\"a\":1}\n", true), late);
        let cut = "1 the answer was cut off: the translation has ended";
        assert_eq!(asked("{\"a\":1}\n{\"b\"", false), cut);
        let other = "0 who answers there is no translation";
        assert_eq!(asked("220 mail.example ESMTP\r\n", true), other);
        assert_eq!(asked("{\"error\":\"busy\"}\n", true), "0 busy");
        let nobody = Connection::open(Path::new("/nowhere/socket")).unwrap_err();
        assert!(
            format!("{nobody:#}").contains("nat run --control"),
            "{nobody:#}"
        );
    }
}
