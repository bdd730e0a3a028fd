//! What a request asks, out of its query string and headers: each
//! parameter is looked up in the tables that also make the command line
//! and the OpenAPI document.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::ACCEPT;
use view::conditions::{Word, of_object};
use view::{Format, Object, Output};

use super::problem::Problem;

/// Bytes of a query string at most.
pub const MAX_QUERY_BYTES: usize = 4096;
/// Parameters of a query string at most.
const MAX_PARAMETERS: usize = 64;

/// The parameters of a query string, taken out one by one; one that nobody
/// took is an error.
#[derive(Debug)]
pub struct Parameters<'q> {
    left: Vec<(Cow<'q, str>, Cow<'q, str>)>,
    known: Vec<&'static str>,
}

impl<'q> Parameters<'q> {
    /// Splits a query string.
    pub fn parse(query: Option<&'q str>) -> Result<Self, Problem> {
        let query = query.unwrap_or_default();
        if query.len() > MAX_QUERY_BYTES {
            return Err(Problem::new(
                http::StatusCode::URI_TOO_LONG,
                format!(
                    "the query string is longer than {MAX_QUERY_BYTES} octets: ask for less at once"
                ),
            ));
        }
        let left: Vec<_> = form_urlencoded::parse(query.as_bytes())
            .take(MAX_PARAMETERS + 1)
            .collect();
        if left.len() > MAX_PARAMETERS {
            return Err(Problem::bad_request(format!(
                "more than {MAX_PARAMETERS} parameters"
            )));
        }
        let broken = |text: &str| text.contains(|c: char| c == '\u{fffd}' || c.is_control());
        if let Some((name, _)) = left
            .iter()
            .find(|(name, value)| broken(name) || broken(value))
        {
            return Err(Problem::bad_request(format!(
                "parameter `{}`: text in UTF-8 is expected, percent-encoded",
                name.escape_default()
            )));
        }
        Ok(Self {
            left,
            known: Vec::new(),
        })
    }

    /// Takes a parameter out that may be said once.
    pub fn take(&mut self, name: &'static str) -> Result<Option<Cow<'q, str>>, Problem> {
        let mut values = self.take_all(name);
        match values.len() {
            0 | 1 => Ok(values.pop()),
            _ => Err(Problem::bad_request(format!(
                "parameter `{name}` is said more than once"
            ))),
        }
    }

    /// Takes out all of a name.
    pub fn take_all(&mut self, name: &'static str) -> Vec<Cow<'q, str>> {
        self.known.push(name);
        let (taken, left) = std::mem::take(&mut self.left)
            .into_iter()
            .partition(|(said, _)| said == name);
        self.left = left;
        let taken: Vec<(_, _)> = taken;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// Takes a parameter out that is there or not: `?up`, `?up=true`.
    pub fn take_switch(&mut self, name: &'static str) -> Result<bool, Problem> {
        match self.take(name)?.as_deref() {
            None | Some("false" | "0") => Ok(false),
            Some("" | "true" | "1") => Ok(true),
            Some(other) => Err(Problem::bad_request(format!(
                "parameter `{name}`: true or false is expected, not `{}`",
                shown(other)
            ))),
        }
    }

    /// Takes a number out.
    pub fn take_number(&mut self, name: &'static str) -> Result<Option<u64>, Problem> {
        let said = self.take(name)?;
        let number = said.map(|text| {
            text.parse().map_err(|_| {
                Problem::bad_request(format!(
                    "parameter `{name}`: a number is expected, not `{}`",
                    shown(&text)
                ))
            })
        });
        number.transpose()
    }

    /// Takes out what makes sense for an object, by the words of the
    /// command line.
    pub fn take_words<T>(
        &mut self,
        all: &'static [Word<T>],
        object: Object,
        to: &mut T,
    ) -> Result<(), Problem> {
        for word in of_object(all, object) {
            let name = word.flag;
            let set = |to: &mut T, value: &str| {
                (word.set)(to, value)
                    .map_err(|why| Problem::bad_request(format!("parameter `{name}`: {why}")))
            };
            if word.value.is_none() {
                if self.take_switch(name)? {
                    set(to, "")?;
                }
            } else if word.many {
                for value in self.take_all(name) {
                    set(to, &value)?;
                }
            } else if let Some(value) = self.take(name)? {
                set(to, &value)?;
            }
        }
        Ok(())
    }

    /// Refuses what nobody took.
    pub fn finish(self) -> Result<(), Problem> {
        match self.left.first() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::bad_request(format!(
                "parameter `{}` is not known here: there are {}; /openapi.json describes them",
                shown(name),
                self.known.join(", ")
            ))),
        }
    }
}

/// The start of a text that somebody sent.
fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

/// How an answer is to be written: `fields`, `details`, `statistics`, and
/// the format by `format` or by `Accept`.
pub fn output(parameters: &mut Parameters<'_>, headers: &HeaderMap) -> Result<Output, Problem> {
    let fields = parameters.take_all("fields");
    let fields = fields
        .iter()
        .flat_map(|some| some.split(','))
        .map(str::trim)
        .filter(|field| !field.is_empty());
    Ok(Output {
        fields: fields.map(str::to_owned).collect(),
        count: parameters.take_switch("count")?,
        details: parameters.take_switch("details")?,
        statistics: parameters.take_switch("statistics")?,
        words: parameters.take_switch("words")?,
        format: format(parameters, headers)?,
        ..Output::default()
    })
}

/// What answers may be written as, in the order of preference.
pub const FORMATS: [(&str, Format, &str); 3] = [
    ("json", Format::Json, "application/json"),
    ("ndjson", Format::Ndjson, "application/x-ndjson"),
    ("csv", Format::Csv, "text/csv"),
];

/// The media type of a format.
pub fn media_type(format: Format) -> &'static str {
    let of = FORMATS.iter().find(|(_, one, _)| *one == format);
    of.map_or("text/plain", |(_, _, media_type)| media_type)
}

/// The format, by `format` or by `Accept`.
pub fn format(parameters: &mut Parameters<'_>, headers: &HeaderMap) -> Result<Format, Problem> {
    if let Some(name) = parameters.take("format")? {
        let found = FORMATS.iter().find(|(known, ..)| *known == name);
        return found.map(|(_, format, _)| *format).ok_or_else(|| {
            Problem::bad_request(format!(
                "parameter `format`: json, ndjson or csv is expected, not `{}`",
                shown(&name)
            ))
        });
    }
    accepted(headers).ok_or_else(|| {
        Problem::new(
            http::StatusCode::NOT_ACCEPTABLE,
            "there is application/json, application/x-ndjson and text/csv: name one as Accept, \
             or as `?format=json`, `ndjson` or `csv`",
        )
    })
}

/// The format that `Accept` likes best (RFC 9110 §12.5.1); JSON without
/// one.
pub fn accepted(headers: &HeaderMap) -> Option<Format> {
    let mut accept = headers.get_all(ACCEPT).iter().peekable();
    if accept.peek().is_none() {
        return Some(Format::Json);
    }
    let ranges: Vec<(String, u16)> = accept
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .take(MAX_PARAMETERS)
        .map(range)
        .collect();
    let mut best: Option<(u16, Format)> = None;
    for (_, format, media_type) in FORMATS {
        let quality = quality(&ranges, media_type);
        if quality > best.map_or(0, |(quality, _)| quality) {
            best = Some((quality, format));
        }
    }
    best.map(|(_, format)| format)
}

/// A media range and its quality in thousandths.
fn range(text: &str) -> (String, u16) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let quality = parts
        .find_map(|part| part.strip_prefix("q="))
        .map_or(Some(1.0), |quality| quality.parse::<f32>().ok())
        .unwrap_or(0.0);
    (name, (quality.clamp(0.0, 1.0) * 1000.0) as u16)
}

/// How much a media type is liked: what the most precise range says.
fn quality(ranges: &[(String, u16)], media_type: &str) -> u16 {
    let of = |name: &str| {
        let found = ranges.iter().find(|(range, _)| range == name);
        found.map(|(_, quality)| *quality)
    };
    let kind = media_type.split('/').next().unwrap_or_default();
    let other: &[&str] = match media_type {
        "application/x-ndjson" => &["application/ndjson", "application/jsonl"],
        _ => &[],
    };
    of(media_type)
        .or_else(|| other.iter().find_map(|name| of(name)))
        .or_else(|| of(&format!("{kind}/*")))
        .or_else(|| of("*/*"))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
