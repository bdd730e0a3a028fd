//! `ip`'s options, which stand before the object. Called by [`super`].

use super::Tool;
use super::grammar::begins;
use super::stop::Stop;

/// What the options say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `AF_…`, if one is named.
    pub family: Option<u8>,
    /// `-j`
    pub json: bool,
    /// `-p`
    pub pretty: bool,
    /// `-o`
    pub oneline: bool,
    /// `-br`
    pub brief: bool,
    /// `-d`, so many times.
    pub details: u8,
    /// `-s`, so many times.
    pub statistics: u8,
    /// `-h`
    pub human: bool,
    /// `-iec`
    pub iec: bool,
    /// `-c`
    pub colour: When,
    /// `-N`
    pub numeric: bool,
    /// `-a`
    pub all: bool,
    /// `-n`
    pub netns: Option<String>,
    /// `-b`
    pub batch: Option<String>,
    /// `-force`
    pub force: bool,
    /// `-t`
    pub timestamp: bool,
    /// `-ts`
    pub short_timestamp: bool,
    /// `-compressvlans`
    pub ranges: bool,
    /// `-V`
    pub version: bool,
    /// An option that is understood and not built.
    pub not_built: Option<String>,
}

/// When colours are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum When {
    /// Never.
    #[default]
    Never,
    /// To a terminal.
    Auto,
    /// Always.
    Always,
}

/// `AF_PACKET`, `AF_BRIDGE`, `AF_MPLS`, `linux/socket.h`.
pub const AF_PACKET: u8 = 17;
const AF_BRIDGE: u8 = 7;
const AF_MPLS: u8 = 28;

#[derive(Clone, Copy)]
enum Means {
    Family(u8),
    FamilyNamed,
    /// A number that changes nothing here; what is said of another word.
    Number(&'static str),
    Set(fn(&mut Options)),
    Netns,
    Batch,
    NotBuilt,
    Help,
}

const COLOUR: Means = Means::Set(|options| options.colour = When::Always);

/// In the order of `ip`, for a beginning means the first that has it.
const IP: &[(&str, Means)] = &[
    ("loops", Means::Number("Invalid loops value")),
    ("family", Means::FamilyNamed),
    ("4", Means::Family(table::AF_INET)),
    ("6", Means::Family(table::AF_INET6)),
    ("0", Means::Family(AF_PACKET)),
    ("M", Means::Family(AF_MPLS)),
    ("B", Means::Family(AF_BRIDGE)),
    ("human-readable", Means::Set(|options| options.human = true)),
    ("iec", Means::Set(|options| options.iec = true)),
    ("statistics", Means::Set(|options| options.statistics += 1)),
    ("details", Means::Set(|options| options.details += 1)),
    ("resolve", Means::NotBuilt),
    ("oneline", Means::Set(|options| options.oneline = true)),
    ("timestamp", Means::Set(|options| options.timestamp = true)),
    (
        "tshort",
        Means::Set(|options| {
            options.timestamp = true;
            options.short_timestamp = true;
        }),
    ),
    ("Version", Means::Set(|options| options.version = true)),
    ("force", Means::Set(|options| options.force = true)),
    ("batch", Means::Batch),
    ("brief", Means::Set(|options| options.brief = true)),
    ("json", Means::Set(|options| options.json = true)),
    ("pretty", Means::Set(|options| options.pretty = true)),
    ("rcvbuf", Means::Number("Invalid rcvbuf size")),
    ("color", COLOUR),
    ("help", Means::Help),
    ("netns", Means::Netns),
    ("Numeric", Means::Set(|options| options.numeric = true)),
    ("all", Means::Set(|options| options.all = true)),
    ("echo", Means::NotBuilt),
];

const BRIDGE: &[(&str, Means)] = &[
    ("help", Means::Help),
    ("Version", Means::Set(|options| options.version = true)),
    ("statistics", Means::Set(|options| options.statistics += 1)),
    ("details", Means::Set(|options| options.details += 1)),
    ("oneline", Means::Set(|options| options.oneline = true)),
    ("timestamp", Means::Set(|options| options.timestamp = true)),
    ("family", Means::FamilyNamed),
    ("4", Means::Family(table::AF_INET)),
    ("6", Means::Family(table::AF_INET6)),
    ("netns", Means::Netns),
    ("color", COLOUR),
    ("compressvlans", Means::Set(|options| options.ranges = true)),
    ("force", Means::Set(|options| options.force = true)),
    ("json", Means::Set(|options| options.json = true)),
    ("pretty", Means::Set(|options| options.pretty = true)),
    ("batch", Means::Batch),
];

/// Reads the options; gives where the object stands.
pub fn read(tool: Tool, arguments: &[String]) -> Result<(Options, usize), Stop> {
    let mut options = Options::default();
    let mut at = 0;
    while let Some(argument) = arguments.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        if argument == "--" {
            break;
        }
        let word = argument.strip_prefix('-').unwrap_or(argument);
        let word = word.strip_prefix('-').unwrap_or(word);
        if let Some((name, when)) = word.split_once('=')
            && begins(name, "color")
        {
            options.colour = colour(when).ok_or_else(|| unknown(tool, argument))?;
            continue;
        }
        // One dash more than an option has is of the message.
        let told = argument
            .strip_prefix('-')
            .filter(|rest| rest.starts_with('-'));
        let means = meant(tool, word).ok_or_else(|| unknown(tool, told.unwrap_or(argument)))?;
        let mut value = || {
            let value = arguments.get(at).cloned();
            let value = value.ok_or_else(|| Stop::wrong(super::usage::of_tool(tool)));
            at += 1;
            value
        };
        match means {
            Means::Family(family) => options.family = Some(family),
            Means::FamilyNamed => options.family = family(&value()?)?,
            Means::Number(why) => {
                let text = value()?;
                // Of `-loops` it takes any word.
                if name_of(tool, word) == Some("rcvbuf") && super::grammar::number(&text).is_none()
                {
                    return Err(Stop::wrong(format!("{why} '{text}'")));
                }
            }
            Means::Set(set) => set(&mut options),
            Means::Netns => {
                let missing = "Cannot open network namespace \"(null)\": No such file or directory";
                options.netns = Some(value().map_err(|_| Stop::wrong(missing))?);
            }
            Means::Batch => options.batch = Some(value()?),
            Means::NotBuilt => {
                options.not_built.get_or_insert_with(|| argument.clone());
            }
            Means::Help => return Err(Stop::wrong(super::usage::of_tool(tool))),
        }
    }
    Ok((options, at))
}

/// What stands behind `-color=`.
fn colour(when: &str) -> Option<When> {
    match when {
        "always" => Some(When::Always),
        "auto" => Some(When::Auto),
        "never" => Some(When::Never),
        _ => None,
    }
}

fn meant(tool: Tool, word: &str) -> Option<Means> {
    known(tool, word).map(|(_, means)| *means)
}

fn name_of(tool: Tool, word: &str) -> Option<&'static str> {
    known(tool, word).map(|(name, _)| *name)
}

fn known(tool: Tool, word: &str) -> Option<&'static (&'static str, Means)> {
    let known = match tool {
        Tool::Ip => IP,
        Tool::Bridge => BRIDGE,
    };
    // A dash alone is the beginning of the first.
    let is_meant = |name: &str| match name.len() {
        1 => name == word,
        _ => name.starts_with(word) || name == "statistics" && word == "stats",
    };
    known.iter().find(|(name, _)| is_meant(name))
}

fn family(name: &str) -> Result<Option<u8>, Stop> {
    Ok(Some(match name {
        "inet" => table::AF_INET,
        "inet6" => table::AF_INET6,
        "link" => AF_PACKET,
        "bridge" => AF_BRIDGE,
        "mpls" => AF_MPLS,
        "help" => return Err(Stop::wrong(super::usage::of_tool(Tool::Ip))),
        _ => return Err(Stop::argument(name, "invalid protocol family")),
    }))
}

fn unknown(tool: Tool, option: &str) -> Stop {
    let help = match tool {
        Tool::Ip => "ip -help",
        Tool::Bridge => "bridge help",
    };
    Stop::wrong(format!("Option \"{option}\" is unknown, try \"{help}\"."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_words(line: &str) -> Result<(Options, usize), Stop> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        read(Tool::Ip, &words)
    }

    #[test]
    fn a_beginning_means_the_first_that_has_it() {
        let (options, at) = read_words("-j -d -s -s -4 -o -h -ts -N -br addr").unwrap();
        assert_eq!(at, 10);
        assert!(options.json && options.oneline && options.human && options.numeric);
        assert!(options.brief && options.short_timestamp);
        assert_eq!((options.details, options.statistics), (1, 2));
        assert_eq!(options.family, Some(table::AF_INET));
        let (options, _) = read_words("-b lines -force -n blue").unwrap();
        assert_eq!(options.batch.as_deref(), Some("lines"));
        assert_eq!(options.netns.as_deref(), Some("blue"));
        assert!(options.force);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in [
            "-x link",
            "-f nope link",
            "-n",
            "-rcvbuf x link",
            "-44 addr",
        ] {
            assert!(read_words(line).is_err(), "{line}");
        }
    }
}
