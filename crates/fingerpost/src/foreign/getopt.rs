//! Options as `getopt_long` of the C library reads them: letters behind one
//! dash together, long names cut as long as they stay clear, words between
//! them. For the commands with another tool's command line.

/// An option with a long name: the name, whether a value follows, and the
/// letter that it is read as.
pub type Long = (&'static str, bool, char);

/// What stands on a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Options in their order, with their values.
    pub options: Vec<(char, Option<String>)>,
    /// What is no option.
    pub words: Vec<String>,
}

/// Reads a command line. `short` has the letters; a colon follows one that
/// takes a value. The error is what the C library says, but for the name of
/// the program. O(arguments).
pub fn read(arguments: Vec<String>, short: &str, long: &[Long]) -> Result<Given, String> {
    let mut given = Given::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--") {
            Some("") => {
                given.words.extend(arguments);
                break;
            }
            Some(option) => {
                let (letter, value) = long_option(option, long, &mut arguments)?;
                given.options.push((letter, value));
            }
            None if argument.len() > 1 && argument.starts_with('-') => {
                letters(&argument[1..], short, &mut arguments, &mut given)?;
            }
            None => given.words.push(argument),
        }
    }
    Ok(given)
}

fn long_option(
    option: &str,
    long: &[Long],
    arguments: &mut impl Iterator<Item = String>,
) -> Result<(char, Option<String>), String> {
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (option, None),
    };
    let (full, takes_value, letter) = named(name, long)?;
    match (takes_value, value) {
        (false, Some(_)) => Err(format!("option '--{full}' doesn't allow an argument")),
        (true, None) => match arguments.next() {
            Some(value) => Ok((letter, Some(value))),
            None => Err(format!("option '--{full}' requires an argument")),
        },
        (_, value) => Ok((letter, value)),
    }
}

/// The option of a name, or of the beginning of a name that only one has.
fn named(name: &str, long: &[Long]) -> Result<Long, String> {
    if let Some(found) = long.iter().find(|(full, ..)| *full == name) {
        return Ok(*found);
    }
    let mut begun = long.iter().filter(|(full, ..)| full.starts_with(name));
    match (begun.next(), begun.next()) {
        (Some(found), None) => Ok(*found),
        (Some(_), Some(_)) => Err(format!("option '--{name}' is ambiguous")),
        (None, _) => Err(format!("unrecognized option '--{name}'")),
    }
}

fn letters(
    letters: &str,
    short: &str,
    arguments: &mut impl Iterator<Item = String>,
    given: &mut Given,
) -> Result<(), String> {
    for (at, letter) in letters.char_indices() {
        let known = short.find(letter).filter(|_| letter != ':');
        let Some(place) = known else {
            return Err(format!("invalid option -- '{letter}'"));
        };
        let after = &short[place + letter.len_utf8()..];
        if !after.starts_with(':') {
            given.options.push((letter, None));
            continue;
        }
        let attached = &letters[at + letter.len_utf8()..];
        let value = match attached {
            "" => arguments.next(),
            value => Some(value.to_owned()),
        };
        let Some(value) = value else {
            return Err(format!("option requires an argument -- '{letter}'"));
        };
        given.options.push((letter, Some(value)));
        return Ok(());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &[Long] = &[
        ("numeric", false, 'n'),
        ("numeric-hosts", false, 'o'),
        ("protocol", true, 'A'),
    ];

    fn given(line: &str) -> Result<(String, String), String> {
        let words = line.split_whitespace().map(str::to_owned).collect();
        let given = read(words, "nA:v", LONG)?;
        let options = given.options.iter().map(|(letter, value)| match value {
            Some(value) => format!("{letter}={value}"),
            None => letter.to_string(),
        });
        Ok((options.collect::<Vec<_>>().join(" "), given.words.join(" ")))
    }

    #[test]
    fn options_and_words_in_any_order() {
        for (line, options, words) in [
            ("", "", ""),
            ("-nv add x -Ainet -A inet6", "n v A=inet A=inet6", "add x"),
            (
                "--numeric --prot=inet --protocol inet6",
                "n A=inet A=inet6",
                "",
            ),
            ("- -- -n", "", "- -n"),
            ("add #net -v", "v", "add #net"),
        ] {
            let expected = (options.to_owned(), words.to_owned());
            assert_eq!(given(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_is_no_option_is_named() {
        for (line, says) in [
            ("-nx", "invalid option -- 'x'"),
            ("-n:", "invalid option -- ':'"),
            ("-A", "option requires an argument -- 'A'"),
            ("--bogus", "unrecognized option '--bogus'"),
            ("--n", "option '--n' is ambiguous"),
            (
                "--numeric=1",
                "option '--numeric' doesn't allow an argument",
            ),
            ("--protocol", "option '--protocol' requires an argument"),
        ] {
            assert_eq!(given(line), Err(says.to_owned()), "{line}");
        }
    }
}
