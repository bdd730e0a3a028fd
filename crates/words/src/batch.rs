//! A line of `ip -batch` cut into its words, which may be quoted. For who
//! runs such lines; ours alone are read by [`crate::Words`], without quotes.

/// What is said of a quote without its end.
pub const UNTERMINATED: &str = "Unterminated quoted string";
/// Words of a line at most, as `ip` has it.
const MAX_WORDS: usize = 512;

/// The words of a line: blanks between, quotes around those with blanks,
/// `#` ends it. They take the places of those of the line before.
pub fn split(text: &str, words: &mut Vec<String>) -> Result<(), &'static str> {
    // Wherever it stands, as `ip` has it.
    let text = text.split('#').next().unwrap_or_default();
    let mut rest = without_blanks(text);
    let mut many = 0;
    while let Some(first) = rest.chars().next() {
        if many == MAX_WORDS {
            return Err("Too many arguments to command");
        }
        let (word, after) = if first == '"' || first == '\'' {
            let inside = rest.get(1..).unwrap_or_default();
            inside.split_once(first).ok_or(UNTERMINATED)?
        } else {
            let end = rest.bytes().position(is_blank).unwrap_or(rest.len());
            rest.split_at(end)
        };
        match words.get_mut(many) {
            Some(place) => {
                place.clear();
                place.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
        many += 1;
        rest = without_blanks(after);
    }
    words.truncate(many);
    Ok(())
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn without_blanks(text: &str) -> &str {
    let start = text.bytes().position(|byte| !is_blank(byte));
    text.get(start.unwrap_or(text.len())..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        split(text, &mut words).unwrap();
        words
    }

    #[test]
    fn lines_are_split_as_ip_splits_them() {
        assert_eq!(
            words("link add  x\ttype veth\n"),
            ["link", "add", "x", "type", "veth"]
        );
        assert_eq!(
            words("link set x alias \"a b\" up"),
            ["link", "set", "x", "alias", "a b", "up"]
        );
        assert_eq!(words("  # nothing"), [""; 0]);
        assert_eq!(words("route show # all"), ["route", "show"]);
        assert_eq!(words("link show lo#a \"b\""), ["link", "show", "lo"]);
        assert!(split("alias 'a b", &mut Vec::new()).is_err());
    }

    #[test]
    fn words_take_the_places_of_those_before() {
        let mut words = Vec::new();
        for (text, expected) in [
            ("a bc d", ["a", "bc", "d"].as_slice()),
            ("e", &["e"]),
            ("  \n", &[]),
            ("'f g'\thij  k l", &["f g", "hij", "k", "l"]),
        ] {
            split(text, &mut words).unwrap();
            assert_eq!(words, expected);
        }
        let most = "w ".repeat(MAX_WORDS);
        assert!(split(&most, &mut words).is_ok());
        assert!(split(&(most + "w"), &mut words).is_err());
    }
}
