//! `NOTIFICATION`: why a session ended, in words (RFC 4271 §4.5, RFC 4486,
//! RFC 9003).

/// Characters of what an operator said at most.
const MAX_SAID: usize = 255;

/// What a `NOTIFICATION` says, without its header. Whatever is in it, there
/// are words for it, of a bounded length and without control characters.
pub fn in_words(body: &[u8]) -> String {
    let Some(([code, subcode], data)) = body.split_first_chunk() else {
        return "nothing said".to_owned();
    };
    let of_code = match code {
        1 => "message header error",
        2 => "OPEN message error",
        3 => "UPDATE message error",
        4 => "hold timer expired",
        5 => "finite state machine error",
        6 => return cease(*subcode, data),
        7 => "ROUTE-REFRESH message error",
        _ => return format!("code {code}, subcode {subcode}"),
    };
    match subcode {
        0 => of_code.to_owned(),
        _ => format!("{of_code}, subcode {subcode}"),
    }
}

fn cease(subcode: u8, data: &[u8]) -> String {
    let why = match subcode {
        1 => "maximum number of prefixes reached",
        2 => "administrative shutdown",
        3 => "peer de-configured",
        4 => "administrative reset",
        5 => "connection rejected",
        6 => "other configuration change",
        7 => "connection collision resolution",
        8 => "out of resources",
        9 => "hard reset",
        10 => "BFD down",
        _ => return format!("cease, subcode {subcode}"),
    };
    // RFC 9003: a length and what the operator said.
    let said = match (subcode, data) {
        (2 | 4, [len, said @ ..]) => said.get(..usize::from(*len)).unwrap_or_default(),
        _ => &[],
    };
    match said {
        [] => why.to_owned(),
        _ => format!("{why}: {}", text(said)),
    }
}

/// Text that somebody else has written, as one line of a bounded length.
pub fn text(bytes: &[u8]) -> String {
    let all = String::from_utf8_lossy(bytes);
    let shown = all.chars().filter(|one| !one.is_control() && !turns(*one));
    shown.take(MAX_SAID).collect()
}

/// Whether a character breaks lines or turns the direction of text.
fn turns(one: char) -> bool {
    matches!(one, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_words() {
        for (body, told) in [
            (&[][..], "nothing said"),
            (&[4, 0], "hold timer expired"),
            (&[3, 11, 9], "UPDATE message error, subcode 11"),
            (&[6, 2], "administrative shutdown"),
            (
                &[6, 2, 3, b'b', 0x1b, b'y', 7],
                "administrative shutdown: by",
            ),
            (&[6, 4, 200, b'x'], "administrative reset"),
            (&[6, 99], "cease, subcode 99"),
            (&[99, 1], "code 99, subcode 1"),
        ] {
            assert_eq!(in_words(body), told);
        }
        assert_eq!(text(&[b'a'; 1_000]).len(), MAX_SAID);
    }
}
