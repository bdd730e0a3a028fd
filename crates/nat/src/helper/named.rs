//! What a line or a message of a connection names: an end, at a place of its
//! bytes, in one of some forms; and how another end is written there.

use std::io::Write;
use std::net::Ipv4Addr;

use arrayvec::ArrayVec;

use super::sequence::Text;

/// How an endpoint is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `192,0,2,1,19,137` (FTP's PORT, 227).
    Commas,
    /// `|1|192.0.2.1|5001|` (FTP's EPRT), with the speaker's own delimiter.
    Extended(u8),
    /// `|||5001|` (FTP's 229): the port alone, the address is the
    /// connection's.
    PortOnly(u8),
    /// `3221225985 5001`: two numbers (IRC's DCC, [`super::irc`]).
    Numbers,
    /// `5000` or `5000-5001`: one port or two in a row ([`super::rtsp`]).
    Ports(u8),
    /// A port in two bytes, the high one first ([`super::pna`]).
    Port,
    /// An address in four bytes and a port in four, the low one first
    /// ([`super::skinny`]).
    SkinnyEnd,
    /// The address of the connection itself, in four bytes; nothing is opened.
    SkinnyAddress,
    /// The port of the connection itself, in four bytes, the low one first;
    /// nothing is opened.
    SkinnyPort,
}

impl Form {
    /// Whether it names the connection itself, which has its alias end.
    pub fn is_of_connection(self) -> bool {
        matches!(self, Self::SkinnyAddress | Self::SkinnyPort)
    }
}

/// An endpoint that a line or a message names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// How it is written.
    pub form: Form,
    /// The address; `None`: the speaker's own.
    pub address: Option<Ipv4Addr>,
    /// The port; 0 where the form has none.
    pub port: u16,
}

/// Endpoints of one line or message at most.
pub const MOST_NAMED: usize = 4;
/// The endpoints of a line or a message, in order.
pub type Nameds = ArrayVec<Named, MOST_NAMED>;

/// An endpoint as `form` has it: 25 bytes at most.
pub fn write(form: Form, address: Ipv4Addr, port: u16) -> Text {
    let [a, b, c, d] = address.octets();
    let [high, low] = port.to_be_bytes();
    let mut text = Text::new();
    // The longest of each form fits: there is a test of it.
    let _ = match form {
        Form::Commas => write!(text, "{a},{b},{c},{d},{high},{low}"),
        Form::Extended(byte) => {
            let delimiter = char::from(byte);
            write!(
                text,
                "{delimiter}1{delimiter}{address}{delimiter}{port}{delimiter}"
            )
        }
        Form::PortOnly(byte) => {
            let delimiter = char::from(byte);
            write!(text, "{delimiter}{delimiter}{delimiter}{port}{delimiter}")
        }
        Form::Numbers => write!(text, "{} {port}", address.to_bits()),
        Form::Ports(1) => write!(text, "{port}"),
        Form::Ports(_) => write!(text, "{port}-{}", port.wrapping_add(1)),
        Form::Port => text.write_all(&[high, low]),
        Form::SkinnyEnd => text.write_all(&[a, b, c, d, low, high, 0, 0]),
        Form::SkinnyAddress => text.write_all(&[a, b, c, d]),
        Form::SkinnyPort => text.write_all(&[low, high, 0, 0]),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_texts_fit() {
        let all = Ipv4Addr::BROADCAST;
        assert_eq!(write(Form::Commas, all, u16::MAX).len(), 23);
        assert_eq!(write(Form::Extended(b'|'), all, u16::MAX).len(), 25);
        assert_eq!(write(Form::PortOnly(b'|'), all, u16::MAX).len(), 9);
        assert_eq!(write(Form::Numbers, all, u16::MAX).len(), 16);
        assert_eq!(write(Form::Ports(2), all, u16::MAX - 1).len(), 11);
        let end = write(Form::SkinnyEnd, Ipv4Addr::new(192, 0, 2, 1), 0x1234);
        assert_eq!(end.as_slice(), [192, 0, 2, 1, 0x34, 0x12, 0, 0]);
    }
}
