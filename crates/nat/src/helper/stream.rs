//! How a proxy is told where a connection was meant to go, as libalias's
//! proxy rules have it: in front of the data, or by an IP option.

use std::io::Write;
use std::net::Ipv4Addr;

use packet::Ipv4;
use packet::ipv4::HEADER_LEN;

use super::Refusal;
use super::sequence::Text;

/// Kind of the option, its length behind it.
pub const OPTION: [u8; 2] = [0x64, 8];
/// Longest IPv4 header.
const MAX_HEADER_LEN: usize = 60;

/// `[DEST 192.0.2.1 80]` and an end of line, an even number of bytes.
pub fn destination(address: Ipv4Addr, port: u16) -> Text {
    let mut text = Text::new();
    // `[DEST 255.255.255.255 65535] \n` has 30 bytes.
    let _ = write!(text, "[DEST {address} {port}]");
    if text.len().is_multiple_of(2) {
        text.push(b' ');
    }
    text.push(b'\n');
    text
}

/// Puts the option into a packet's header; `bytes` reaches to the end of
/// the room behind it. O(bytes).
pub fn put_option(bytes: &mut [u8], address: Ipv4Addr, port: u16) -> Result<(), Refusal> {
    let mut ip = Ipv4::new(&mut *bytes).map_err(|_| Refusal::NoRoom)?;
    let (header_len, total_len) = (ip.header_len(), ip.total_len());
    let option_len = usize::from(OPTION[1]);
    let new_len = total_len + option_len;
    let fits = u16::try_from(new_len).ok();
    let fits = fits.filter(|_| header_len + option_len <= MAX_HEADER_LEN);
    if !fits.is_some_and(|new_len| ip.set_total_len(new_len)) {
        return Err(Refusal::NoRoom);
    }
    // In front of the other options, an end of which would hide it.
    bytes.copy_within(HEADER_LEN..total_len, HEADER_LEN + option_len);
    let [a, b, c, d] = address.octets();
    let [high, low] = port.to_be_bytes();
    let option = [OPTION[0], OPTION[1], a, b, c, d, high, low];
    if let Some(place) = bytes.get_mut(HEADER_LEN..HEADER_LEN + option_len) {
        place.copy_from_slice(&option);
    }
    if let Some(first) = bytes.first_mut() {
        *first = 0x40 | ((header_len + option_len) / 4) as u8;
    }
    if let Ok(mut ip) = Ipv4::new(bytes) {
        ip.fill_checksum();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use packet::build::Ip;

    use super::*;

    const MEANT: Ipv4Addr = Ipv4Addr::new(18, 0, 0, 1);

    #[test]
    fn an_even_line() {
        assert_eq!(
            destination(MEANT, 80).as_slice(),
            b"[DEST 18.0.0.1 80]\x20\n"
        );
        assert_eq!(destination(MEANT, 443).as_slice(), b"[DEST 18.0.0.1 443]\n");
        assert_eq!(destination(Ipv4Addr::BROADCAST, u16::MAX).len(), 30);
    }

    #[test]
    fn an_option_in_front_of_all() {
        let mut bytes = Ip::new(Ipv4Addr::new(10, 0, 0, 5), MEANT).udp(1, 2, b"data");
        let before = bytes.clone();
        assert_eq!(put_option(&mut bytes, MEANT, 80), Err(Refusal::NoRoom));
        assert_eq!(bytes, before);
        bytes.resize(before.len() + 8, 0);
        put_option(&mut bytes, MEANT, 80).unwrap();
        let ip = Ipv4::new(&bytes).unwrap();
        assert_eq!(ip.options(), [0x64, 8, 18, 0, 0, 1, 0, 80]);
        assert!(ip.checksum_is_right());
        assert_eq!(ip.payload(), before.get(20..).unwrap());
    }
}
