//! Completions as somebody types: what the command line takes at a place,
//! and for names of links, namespaces, tables, prefixes and sources what the
//! daemon has (or the kernel, where none runs). Shells call the program for
//! it, with [`VARIABLE`] naming the shell (`fingerpost completions SHELL`
//! writes what they need). Called by the program before anything else.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use linux::Namespace;
use serve::control::protocol::Ask;
use view::conditions::{FILTERS, of_object};
use view::{Filter, Format, Object, Output, Question};

use crate::ask::{self, From};
use crate::cli;
use crate::generate::VARIABLE;

/// Candidates of one place at most: a shell would ask whether to show more.
const MOST: usize = 200;
/// Bytes of an answer that are read for them.
const MOST_BYTES: usize = 64 << 10;

/// Tables that there are without a rule.
const TABLES: [&str; 4] = ["main", "local", "default", "all"];

/// What may be done with ip's objects.
const VERBS: [&str; 9] = [
    "show", "list", "get", "add", "delete", "change", "replace", "set", "flush",
];

/// Whether bash asks. Kept, since clap takes the variable away before it asks
/// for values.
static IS_BASH: AtomicBool = AtomicBool::new(false);

/// Writes what completes a command line, if a shell asks for it; `false`: no
/// shell does.
pub fn run(arguments: Vec<OsString>) -> Result<bool, clap::Error> {
    let shell = env::var_os(VARIABLE).unwrap_or_default();
    if shell.is_empty() {
        return Ok(false);
    }
    IS_BASH.store(shell == "bash", Ordering::Relaxed);
    let typed = Typed::of(&arguments);
    CompleteEnv::with_factory(|| with_values(cli::command(), &typed, None))
        .var(VARIABLE)
        .try_complete(arguments, None)
}

/// What has been typed before the place.
#[derive(Debug, Clone, Default)]
struct Typed {
    words: Vec<String>,
}

impl Typed {
    /// Of the arguments that a shell calls with: `-- fingerpost neigh …`. The
    /// word at the place is the last, or the one that a shell counts to.
    fn of(arguments: &[OsString]) -> Self {
        let begins = arguments.iter().position(|word| word == "--");
        let words = arguments.get(begins.map_or(arguments.len(), |at| at + 1)..);
        let words: Vec<String> = words
            .unwrap_or_default()
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let counted = env::var("_CLAP_COMPLETE_INDEX").ok();
        let at = counted.and_then(|count| count.parse().ok());
        let at: usize = at.unwrap_or(words.len().saturating_sub(1));
        Self {
            words: words.into_iter().take(at).collect(),
        }
    }

    fn last(&self) -> &str {
        self.words.last().map_or("", String::as_str)
    }

    /// Of whose rows the values are.
    fn from(&self) -> From {
        let named = |word: &&String| ["-n", "--netns", "-netns"].contains(&word.as_str());
        let at = self.words.iter().position(|word| named(&word));
        From {
            netns: at.and_then(|at| self.words.get(at + 1).cloned()),
            ..From::default()
        }
    }
}

/// What stands at a place, where the tables know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Link,
    Namespace,
    Table,
    /// Of the rows of an object.
    Prefix(Object),
    Source,
    /// A column of an object, or several with commas.
    Columns(Object),
}

impl Kind {
    /// Of an option, or of a word of ip's.
    fn of(word: &str, object: Option<Object>) -> Option<Self> {
        Some(match word {
            "dev" | "iif" | "oif" | "link" | "master" | "br" | "vrf" | "brport" => Self::Link,
            "netns" => Self::Namespace,
            "table" | "lookup" => Self::Table,
            "to" | "exact" | "covering" | "root" | "match" => Self::Prefix(object?),
            "source" => Self::Source,
            "fields" | "sort" => Self::Columns(object?),
            _ => return None,
        })
    }

    /// The values that begin so.
    fn values(self, current: &str, from: &From) -> Vec<String> {
        match self {
            Self::Link => column(Object::Link, "ifname", Filter::default(), from),
            Self::Namespace => Namespace::names(),
            Self::Table => tables(from),
            Self::Prefix(object) => prefixes(object, current, from),
            Self::Source => sources(from),
            Self::Columns(object) => columns(object, current),
        }
    }
}

/// A command line whose places know their values. `object` is that of the
/// commands around it.
fn with_values(command: Command, typed: &Typed, object: Option<Object>) -> Command {
    let named = |name: &str| Object::ALL.into_iter().find(|one| one.name() == name);
    let object = object.or_else(|| named(command.get_name()));
    let foreign = ["arp", "ifconfig"].contains(&command.get_name());
    let ids: Vec<(String, bool)> = command
        .get_arguments()
        .map(|arg| (arg.get_id().to_string(), arg.is_positional()))
        .collect();
    let mut command = command;
    for (id, is_positional) in ids {
        let typed = typed.clone();
        let completer = match (Kind::of(&id, object), object) {
            (Some(kind), _) if !is_positional => of_kind(kind, typed),
            (_, Some(object)) if id == "words" => of_words(object, typed),
            _ if id == "arguments" && foreign => of_kind(Kind::Link, typed),
            _ if id == "arguments" && command.get_name() == "ip" => of_ip(typed),
            _ => continue,
        };
        command = command.mut_arg(&id, |arg: Arg| arg.add(completer));
    }
    let subs: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    for name in subs {
        command = command.mut_subcommand(&name, |sub| with_values(sub, typed, object));
    }
    command
}

fn of_kind(kind: Kind, typed: Typed) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy();
        beginning(&current, kind.values(&current, &typed.from()))
    })
}

/// ip's objects, behind one what may be done with it, and behind that what
/// picks rows.
fn of_ip(typed: Typed) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let words = typed.words.iter().skip_while(|word| *word != "ip").skip(1);
        let mut valued = false;
        let said: Vec<&String> = words
            .filter(|word| {
                let is_value =
                    std::mem::replace(&mut valued, ["-n", "-f"].contains(&word.as_str()));
                !is_value && !word.starts_with('-')
            })
            .collect();
        let known = |word: &&String| {
            let mut objects = Object::ALL.into_iter();
            objects.find(|one| *one != Object::Fdb && one.name().starts_with(word.as_str()))
        };
        let current = current.to_string_lossy();
        if valued {
            return beginning(&current, Namespace::names());
        }
        match (said.first().map(known), said.len()) {
            (None, _) => {
                let objects = Object::ALL.iter().filter(|one| **one != Object::Fdb);
                let names = objects.map(|one| one.name()).chain(["netns", "monitor"]);
                beginning(&current, names.map(str::to_owned).collect())
            }
            (Some(Some(_)), 1) => beginning(&current, VERBS.map(str::to_owned).to_vec()),
            (Some(Some(object)), _) => words_at(object, &typed, &current),
            (Some(None), _) => Vec::new(),
        }
    })
}

/// ip's own words: behind one that has a value, its values.
fn of_words(object: Object, typed: Typed) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        words_at(object, &typed, &current.to_string_lossy())
    })
}

fn words_at(object: Object, typed: &Typed, current: &str) -> Vec<CompletionCandidate> {
    let words = || of_object(FILTERS, object);
    let last = typed.last();
    let is_valued = |word: &&view::conditions::Word<Filter>| word.value.is_some();
    let of_last = words().find(|word| word.bare.contains(&last));
    if let Some(kind) = Kind::of(last, Some(object)) {
        return beginning(current, kind.values(current, &typed.from()));
    }
    if of_last.as_ref().is_some_and(is_valued) {
        return Vec::new();
    }
    let spoken = ["show"].into_iter();
    let spoken = spoken.chain(words().flat_map(|word| word.bare.iter().copied()));
    let names = match object {
        Object::Link => Kind::Link.values(current, &typed.from()),
        _ => Vec::new(),
    };
    let all = spoken.filter(|word| !word.contains(' ')).map(str::to_owned);
    beginning(current, all.chain(names).collect())
}

/// Those that begin so, each once, in order. Anybody who may name a link
/// chooses what stands here: control characters are never offered.
fn beginning(current: &str, mut values: Vec<String>) -> Vec<CompletionCandidate> {
    // bash puts a candidate on the line as it is; other shells quote it.
    let is_bash = IS_BASH.load(Ordering::Relaxed);
    let begun = if is_bash {
        unquoted(current)
    } else {
        current.to_owned()
    };
    values.retain(|value| value.starts_with(&begun) && !value.contains(char::is_control));
    values.sort();
    values.dedup();
    let values = values.into_iter().take(MOST);
    let said = |value: String| if is_bash { quoted(&value) } else { value };
    values.map(said).map(CompletionCandidate::new).collect()
}

/// A word of bash that means these characters, and no others.
fn quoted(value: &str) -> String {
    let mut word = String::with_capacity(value.len());
    for one in value.chars() {
        if !one.is_alphanumeric() && !"-_./:,@+=%".contains(one) {
            word.push('\\');
        }
        word.push(one);
    }
    word
}

/// What has been typed of such a word.
fn unquoted(word: &str) -> String {
    let mut value = String::with_capacity(word.len());
    let mut is_taken = false;
    for one in word.chars() {
        match one {
            '\\' if !is_taken => is_taken = true,
            '\'' | '"' if !is_taken => {}
            _ => {
                is_taken = false;
                value.push(one);
            }
        }
    }
    value
}

/// A column of an object's rows.
fn column(object: Object, name: &str, filter: Filter, from: &From) -> Vec<String> {
    let question = Question {
        object,
        filter,
        output: Output {
            format: Format::Csv,
            fields: vec![name.to_owned()],
            ..Output::default()
        },
    };
    answer(Ask::Question(Box::new(question)), from)
        .lines()
        .skip(1)
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
        .collect()
}

/// What begins an answer; nothing where there is none.
fn answer(ask: Ask, from: &From) -> String {
    let mut taken = Taken(Vec::new());
    // Whoever is typing is not told of trouble: he will be once he asks.
    let _ = ask::run(ask, from, &mut taken);
    let mut text = String::from_utf8_lossy(&taken.0).into_owned();
    // A line that was cut is none.
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    text
}

/// Prefixes that begin so: those inside the prefix that is typed to the last
/// whole octet.
fn prefixes(object: Object, current: &str, from: &From) -> Vec<String> {
    let octets: Vec<&str> = current.split('.').collect();
    let whole = octets.len().saturating_sub(1).min(3);
    let inside = || {
        let known: String = octets[..whole]
            .iter()
            .map(|one| format!("{one}."))
            .collect();
        let rest = "0.".repeat(4 - whole);
        format!("{known}{}/{}", rest.trim_end_matches('.'), whole * 8)
    };
    let filter = Filter {
        to: (whole > 0).then(|| inside().parse().ok()).flatten(),
        ..Filter::default()
    };
    let name = match object {
        Object::Route | Object::Neigh => "dst",
        Object::Addr => "addr_info.local",
        _ => return Vec::new(),
    };
    column(object, name, filter, from)
}

/// Tables that rules name, and those of the first routes: all where there
/// are few.
fn tables(from: &From) -> Vec<String> {
    let usual = TABLES.iter().map(|table| (*table).to_owned());
    let of_rules = column(Object::Rule, "table", Filter::default(), from);
    let all = Filter {
        table: Some("all".to_owned()),
        ..Filter::default()
    };
    let of_routes = column(Object::Route, "table", all, from);
    usual.chain(of_rules).chain(of_routes).collect()
}

/// The kernel, and those that feed routes.
fn sources(from: &From) -> Vec<String> {
    let status = answer(Ask::Status { json: true }, from);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
    let feeders = status["feeders"].as_array().cloned().unwrap_or_default();
    let names = feeders.iter().filter_map(|one| one["name"].as_str());
    std::iter::once("kernel")
        .chain(names)
        .map(str::to_owned)
        .collect()
}

/// Columns, behind those that are there already.
fn columns(object: Object, current: &str) -> Vec<String> {
    let said = current.rfind(',').map_or(0, |comma| comma + 1);
    let before = current.get(..said).unwrap_or_default();
    view::columns(object)
        .iter()
        .map(|column| format!("{before}{}", column.name))
        .collect()
}

/// The beginning of an answer; the rest is not wanted.
struct Taken(Vec<u8>);

impl Write for Taken {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if self.0.len() >= MOST_BYTES {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let room = (MOST_BYTES - self.0.len()).min(octets.len());
        self.0.extend_from_slice(&octets[..room]);
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_bash_means_the_name() {
        for (value, word) in [
            ("eth0.5", "eth0.5"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("a b", "a\\ b"),
            ("x;$(id)", "x\\;\\$\\(id\\)"),
            ("~", "\\~"),
            ("it's", "it\\'s"),
        ] {
            assert_eq!(quoted(value), word);
            assert_eq!(unquoted(word), value);
        }
        assert_eq!(unquoted("'a b"), "a b");
    }
}
