//! RTSP (RFC 2326): where a client or a server names the UDP ports that media
//! are to come to (§12.39, Transport), RealNetworks' transports among them.
//! Ports alone are named; the address is the connection's.

use super::named::{Form, MOST_NAMED, Named, Nameds};

/// The ports of servers (RFC 2326 §3.2), RealNetworks' behind.
pub const PORTS: [u16; 2] = [554, 7_070];

/// What begins a header that names ports.
const HEADER: &[u8] = b"transport:";

/// The ports that a line names, its end left out: `Transport:
/// RTP/AVP;unicast;client_port=4588-4589`. A server's answer repeats the
/// client's, and adds its own (`server_port`). Of several transports in one
/// line each is read. O(bytes).
pub fn read(line: &[u8], is_server: bool) -> Nameds {
    let mut found = Nameds::new();
    let begins = line.get(..HEADER.len());
    if !begins.is_some_and(|begin| begin.eq_ignore_ascii_case(HEADER)) {
        return found;
    }
    let word: &[u8] = if is_server {
        b"server_port="
    } else {
        b"client_port="
    };
    let mut from = HEADER.len();
    for transport in line
        .get(from..)
        .unwrap_or_default()
        .split(|byte| *byte == b',')
    {
        if let Some(named) = ports(transport, word)
            && found.len() < MOST_NAMED
        {
            found.push(Named {
                start: from + named.start,
                end: from + named.end,
                ..named
            });
        }
        from += transport.len() + 1;
    }
    found
}

/// The ports of one transport; none of a group's, where they are the same
/// everywhere.
fn ports(transport: &[u8], word: &[u8]) -> Option<Named> {
    let mut from = 0;
    let mut found = None;
    for parameter in transport.split(|byte| *byte == b';') {
        let name = parameter.trim_ascii();
        if name.eq_ignore_ascii_case(b"multicast") {
            return None;
        }
        let is_it = parameter.get(..word.len());
        if found.is_none() && is_it.is_some_and(|begin| begin.eq_ignore_ascii_case(word)) {
            let value = parameter.get(word.len()..).unwrap_or_default();
            found = Some(range(value, from + word.len())?);
        }
        from += parameter.len() + 1;
    }
    found
}

/// `4588` or `4588-4589` at a place of its transport.
fn range(value: &[u8], at: usize) -> Option<Named> {
    let (first, digits) = number(value)?;
    let named = |len: usize, form| Named {
        start: at,
        end: at + len,
        form,
        address: None,
        port: first,
    };
    let Some(rest) = value.get(digits..).and_then(|rest| rest.strip_prefix(b"-")) else {
        return is_end(value, digits).then(|| named(digits, Form::Ports(1)));
    };
    let (last, more) = number(rest)?;
    let len = digits + 1 + more;
    // More than two in a row are nobody's: what they would be for is not said.
    let fits = first.checked_add(1) == Some(last) && is_end(value, len);
    fits.then(|| named(len, Form::Ports(2)))
}

fn is_end(value: &[u8], at: usize) -> bool {
    matches!(value.get(at), None | Some(b'\r' | b' '))
}

/// A port, never 0, and how many digits it has.
fn number(value: &[u8]) -> Option<(u16, usize)> {
    let digits = value
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let text = std::str::from_utf8(value.get(..digits)?).ok()?;
    let port = text.parse().ok().filter(|port| *port != 0)?;
    Some((port, digits))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(line: &str, is_server: bool) -> Vec<(u16, &str)> {
        let all = read(line.as_bytes(), is_server);
        all.iter()
            .map(|named| (named.port, &line[named.start..named.end]))
            .collect()
    }

    #[test]
    fn each_transport() {
        let line = "Transport: RTP/AVP;unicast;client_port=4588-4589\r";
        assert_eq!(named(line, false), [(4_588, "4588-4589")]);
        assert_eq!(named(line, true), []);
        let line = "transport:RTP/AVP/UDP;client_port=4588;mode=play";
        assert_eq!(named(line, false), [(4_588, "4588")]);
        let line = "Transport: RTP/AVP;unicast;client_port=3-4;server_port=6256-6257\r";
        assert_eq!(named(line, true), [(6_256, "6256-6257")]);
        let line = "Transport: x-real-rdt/udp;client_port=6970;mode=play,\
                    x-pn-tng/udp;client_port=6970,RTP/AVP/TCP;interleaved=0-1,\
                    rtp/avp;unicast;client_port=6970-6971\r";
        let all = [(6_970, "6970"), (6_970, "6970"), (6_970, "6970-6971")];
        assert_eq!(named(line, false), all);
    }

    #[test]
    fn what_is_none() {
        for line in [
            "",
            "Transport: RTP/AVP/TCP;interleaved=0-1\r",
            "Transport: RTP/AVP;multicast;client_port=4588-4589\r",
            "Transport: RTP/AVP;client_port=4588-4589;multicast\r",
            "Transport: RTP/AVP;client_port=0\r",
            "Transport: RTP/AVP;client_port=65536\r",
            "Transport: RTP/AVP;client_port=65535-65536\r",
            "Transport: RTP/AVP;client_port=4588-4590\r",
            "Transport: RTP/AVP;client_port=4588-\r",
            "Transport: RTP/AVP;client_port=\r",
            "Transport: RTP/AVP;client_port=45x\r",
            "X-Transport: RTP/AVP;client_port=4588\r",
        ] {
            assert_eq!(named(line, false), [], "{line}");
        }
    }

    proptest! {
        #[test]
        fn total_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let line = [b"Transport: a;client_port=", bytes.as_slice()].concat();
            for line in [&bytes, &line] {
                let mut last = 0;
                for named in read(line, false) {
                    prop_assert!(last <= named.start && named.start < named.end);
                    prop_assert!(named.end <= line.len() && named.port != 0);
                    last = named.end;
                }
            }
        }
    }
}
