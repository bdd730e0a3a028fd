//! Helpers of telephones, media and names through the whole engine: PNA,
//! Skinny, SIP, NetBIOS.

use std::net::Ipv4Addr;

use fingerpost_nat::{Behaviour, Config, Dependence, Nat, Verdict};
use packet::build::{Ip, Segment};
use packet::{Ipv4, Tcp, Udp, tcp};

use crate::trial::{EXT, End, MASQ, PRIVATE, PRIVATES, Trial};

const CLIENT: u16 = 3_000;
const STRANGER: Ipv4Addr = Ipv4Addr::new(18, 52, 86, 121);
const ROOM: usize = 256;

/// Unasked packets are refused, and all helpers are on.
fn helped() -> Trial {
    let mut trial = Trial::new();
    trial.mode(|mode| mode.deny_incoming = true);
    let helpers = trial.nat.config().helpers.skinny_at(2_000);
    trial
        .nat
        .set_helpers(helpers.switched("sip", true).unwrap());
    trial
}

/// A connection of [`PRIVATE`]'s with a server, by its sides' bytes.
struct Connection {
    server: End,
    alias: u16,
    sent: u32,
    shift: u32,
}

impl Connection {
    fn new(trial: &mut Trial, server: End) -> Self {
        let mut new = Self {
            server,
            alias: 0,
            sent: 999,
            shift: 0,
        };
        let (verdict, port, ..) = new.packet(trial, true, 999, tcp::SYN, b"");
        assert_eq!(verdict, Verdict::Translated);
        (new.alias, new.sent) = (port, 1_000);
        for (out, flags) in [(false, tcp::SYN | tcp::ACK), (true, tcp::ACK)] {
            new.packet(trial, out, 1_000, flags, b"");
        }
        new
    }

    /// Verdict, source port, sequence number, data.
    fn packet(
        &self,
        trial: &mut Trial,
        out: bool,
        sequence: u32,
        flags: u8,
        data: &[u8],
    ) -> (Verdict, u16, u32, Vec<u8>) {
        let (from, to) = match out {
            true => ((PRIVATE, CLIENT), self.server),
            false => (self.server, (MASQ, self.alias)),
        };
        let segment = Segment {
            source_port: from.1,
            destination_port: to.1,
            sequence,
            acknowledgement: if out { 1_001 } else { self.sent + self.shift },
            flags,
            window: u16::MAX,
            data,
            ..Segment::default()
        };
        let mut bytes = Ip::new(from.0, to.0).tcp(&segment);
        bytes.resize(bytes.len() + ROOM, 0);
        let verdict = match out {
            true => trial.nat.translate_out(&mut bytes, trial.now),
            false => trial.nat.translate_in(&mut bytes, trial.now),
        };
        let ip = Ipv4::new(&bytes).unwrap();
        let tcp = Tcp::new(ip.payload()).unwrap();
        assert!(ip.checksum_is_right() && tcp.checksum_is_right(ip.pseudo_header()));
        let data = tcp.payload().to_vec();
        (verdict, tcp.source_port(), tcp.sequence(), data)
    }

    /// What becomes of data from the inside; sent twice, it is the same.
    fn say(&mut self, trial: &mut Trial, data: &[u8]) -> Vec<u8> {
        let (verdict, _, sequence, seen) = self.packet(trial, true, self.sent, tcp::ACK, data);
        assert_eq!(verdict, Verdict::Translated);
        assert_eq!(sequence, self.sent.wrapping_add(self.shift));
        let (.., again) = self.packet(trial, true, self.sent, tcp::ACK, data);
        assert_eq!(again, seen);
        self.sent += data.len() as u32;
        self.shift = self
            .shift
            .wrapping_add((seen.len() as u32).wrapping_sub(data.len() as u32));
        self.packet(trial, false, 1_001, tcp::ACK, b"");
        seen
    }
}

fn port_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[test]
fn an_early_player_names_the_port_of_its_media() {
    for server_port in [554, 7_070] {
        let mut trial = helped();
        trial.nat.set_ports(40_000..=40_099).unwrap();
        let mut connection = Connection::new(&mut trial, (EXT, server_port));
        let greeting = b"PNA\0\x0a\0\x63\0\x02ab\0\x01\0\x02\x1b\x3a\0\0rest";
        let seen = connection.say(&mut trial, greeting);
        let port = port_at(&seen, 15);
        assert!((40_000..=40_099).contains(&port), "within the range");
        assert_eq!(
            (&seen[..15], &seen[17..]),
            (&greeting[..15], &greeting[17..])
        );
        trial.udp_in_fails((STRANGER, 7_000), (MASQ, port));
        trial.udp_in((EXT, 7_000), (MASQ, port), (PRIVATE, 6_970));
        assert_eq!(trial.udp_out((PRIVATE, 6_970), (EXT, 7_000), MASQ), port);
    }
}

/// A message of Skinny's.
fn message(number: u8, fields: &[u8]) -> Vec<u8> {
    let head = [4 + fields.len() as u8, 0, 0, 0, 0, 0, 0, 0, number, 0, 0, 0];
    [&head[..], fields].concat()
}

/// Where a phone waits for voice, as it says so.
fn voice(host: Ipv4Addr, port: u16) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    message(
        0x22,
        &[&[0; 4][..], &host.octets(), &[low, high, 0, 0], &[7; 4]].concat(),
    )
}

#[test]
fn a_phone_of_skinny_registers_and_is_called() {
    let mut trial = helped();
    let mut connection = Connection::new(&mut trial, (EXT, 2_000));
    let register = |host: Ipv4Addr, port: [u8; 2]| {
        let fields = [&[b'S'; 24][..], &host.octets(), &[0; 8]].concat();
        let [high, low] = port;
        [message(1, &fields), message(2, &[low, high, 0, 0])].concat()
    };
    let seen = connection.say(&mut trial, &register(PRIVATE, CLIENT.to_be_bytes()));
    assert_eq!(seen, register(MASQ, connection.alias.to_be_bytes()));
    // Behind another message in one segment; and from anybody.
    let both = [message(9, &[1, 2, 3]), voice(PRIVATE, 16_384)].concat();
    let seen = connection.say(&mut trial, &both);
    let port = u16::from_le_bytes([seen[35], seen[36]]);
    assert_eq!(seen, [message(9, &[1, 2, 3]), voice(MASQ, port)].concat());
    assert_eq!(port & 1, 0);
    trial.udp_in((STRANGER, 7_000), (MASQ, port), (PRIVATE, 16_384));
    trial.udp_in((STRANGER, 7_001), (MASQ, port + 1), (PRIVATE, 16_385));
    trial.udp_in_fails((EXT, 7_000), (MASQ, port));
    // Somebody else's address, and a privileged port, are not opened.
    for foreign in [voice(PRIVATES[1], 16_384), voice(PRIVATE, 22)] {
        assert_eq!(connection.say(&mut trial, &foreign), foreign);
    }
    // One that is cut stays as it is, wherever; the next one is read.
    for cut in 1..28 {
        let (first, second) = both.split_at(15 + cut);
        let whole = voice(PRIVATE, 16_400);
        assert_eq!(connection.say(&mut trial, first), first, "{cut}");
        let seen = connection.say(&mut trial, &[second, &whole].concat());
        assert_eq!(seen[..second.len()], *second, "{cut}");
        assert_ne!(seen[second.len()..], whole, "{cut}");
    }
    // What is none of Skinny's ends it.
    let noise = [0xff; 20];
    assert_eq!(connection.say(&mut trial, &noise), noise);
    let whole = voice(PRIVATE, 16_400);
    assert_eq!(connection.say(&mut trial, &whole), whole);
}

impl Trial {
    /// What becomes of a datagram's data, and its two ends.
    fn datagram(&mut self, out: bool, from: End, to: End, data: &str) -> (End, End, String) {
        let mut bytes = Ip::new(from.0, to.0).udp(from.1, to.1, data.as_bytes());
        bytes.resize(bytes.len() + ROOM, 0);
        let verdict = match out {
            true => self.nat.translate_out(&mut bytes, self.now),
            false => self.nat.translate_in(&mut bytes, self.now),
        };
        assert_eq!(verdict, Verdict::Translated, "{data}");
        let ip = Ipv4::new(&bytes).unwrap();
        let udp = Udp::new(ip.payload()).unwrap();
        assert!(ip.checksum_is_right() && udp.checksum_is_right(ip.pseudo_header()));
        assert_eq!(udp.length(), ip.payload().len());
        let text = String::from_utf8(udp.payload().to_vec()).unwrap();
        let ends = (
            (ip.source(), udp.source_port()),
            (ip.destination(), udp.destination_port()),
        );
        (ends.0, ends.1, text)
    }
}

fn invite(host: Ipv4Addr, port: u16, media: u16, control: u16) -> String {
    let body = format!(
        "v=0\r\no=a 1 1 IN IP4 {host}\r\ns=-\r\nc=IN IP4 {host}\r\nt=0 0\r\n\
         m=audio {media} RTP/AVP 0\r\na=rtcp:{control}\r\n"
    );
    format!(
        "INVITE sip:bob@example.net SIP/2.0\r\n\
         Via: SIP/2.0/UDP {host}:{port};branch=z9hG4bK1;rport\r\n\
         Contact: <sip:a@{host}:{port}>\r\n\
         Call-ID: 1@{}\r\n\
         Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
        PRIVATE,
        body.len()
    )
}

/// The port of a message's media.
fn media_of(message: &str) -> u16 {
    let line = message.split("m=audio ").nth(1).unwrap();
    line.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_phone_of_sip_calls_and_is_called() {
    let mut trial = helped();
    let (phone, proxy) = ((PRIVATE, 5_060), (EXT, 5_060));
    let (from, _, sent) = trial.datagram(true, phone, proxy, &invite(PRIVATE, 5_060, 4_000, 4_001));
    let media = media_of(&sent);
    assert_eq!(from.0, MASQ);
    assert_eq!(sent, invite(MASQ, from.1, media, media + 1));
    assert!(media & 1 == 0 && media != 4_000);
    // What comes again is changed in the same way.
    let again = trial.datagram(true, phone, proxy, &invite(PRIVATE, 5_060, 4_000, 4_001));
    assert_eq!(again.2, sent);
    // The answer finds the phone as it had called itself.
    let answer = |end: String| {
        format!(
            "SIP/2.0 180 Ringing\r\nVia: SIP/2.0/UDP {end};branch=z9hG4bK1;received=1.2.3.4\r\n\r\n"
        )
    };
    let (_, to, back) = trial.datagram(false, proxy, from, &answer(format!("{}:{}", MASQ, from.1)));
    assert_eq!((to, back), (phone, answer(format!("{PRIVATE}:5060"))));
    // Media come from anybody, within three minutes, to both ports; the
    // phone's leave by the same.
    trial.now += 170_000;
    trial.udp_in((STRANGER, 8_000), (MASQ, media), (PRIVATE, 4_000));
    assert_eq!(
        trial.udp_out((PRIVATE, 4_000), (STRANGER, 8_000), MASQ),
        media
    );
    trial.udp_in((STRANGER, 8_001), (MASQ, media + 1), (PRIVATE, 4_001));
    trial.udp_in_fails((EXT, 9_000), (MASQ, media));
    // The session is described once more: the same ports, now for one more.
    let again = trial.datagram(true, phone, proxy, &invite(PRIVATE, 5_060, 4_000, 4_001));
    assert_eq!(media_of(&again.2), media);
    trial.udp_in((EXT, 9_000), (MASQ, media), (PRIVATE, 4_000));
    trial.udp_in((STRANGER, 8_000), (MASQ, media), (PRIVATE, 4_000));
    // A request to the phone.
    let request =
        |end: String| format!("BYE sip:a@{end} SIP/2.0\r\nVia: SIP/2.0/UDP 18.52.86.120\r\n\r\n");
    let (_, _, back) = trial.datagram(false, proxy, from, &request(format!("{}:{}", MASQ, from.1)));
    assert_eq!(back, request(format!("{PRIVATE}:5060")));
}

#[test]
fn media_are_waited_for_anew_each_time_they_are_named() {
    let mut trial = helped();
    let (phone, proxy) = ((PRIVATE, 5_060), (EXT, 5_060));
    let message = invite(PRIVATE, 5_060, 4_000, 4_001);
    let media = media_of(&trial.datagram(true, phone, proxy, &message).2);
    trial.now += 150_000;
    assert_eq!(
        media_of(&trial.datagram(true, phone, proxy, &message).2),
        media
    );
    trial.now += 179_000;
    trial.udp_in((STRANGER, 8_000), (MASQ, media), (PRIVATE, 4_000));
    // What is not named any more is over as it was before.
    trial.now += 2_000;
    trial.udp_in_fails((STRANGER, 8_001), (MASQ, media + 1));
}

#[test]
fn media_that_are_named_again_leave_a_port_that_another_one_has_now() {
    let mut trial = helped();
    trial.nat.set_udp(Behaviour {
        mapping: Dependence::Endpoint,
        ..trial.nat.config().udp
    });
    let (phone, proxy) = ((PRIVATE, 5_060), (EXT, 5_060));
    let message = invite(PRIVATE, 5_060, 4_000, 4_001);
    let media = media_of(&trial.datagram(true, phone, proxy, &message).2);
    trial.udp_in((STRANGER, 8_000), (MASQ, media), (PRIVATE, 4_000));
    // Its own mapping there is none of another one's.
    assert_eq!(
        media_of(&trial.datagram(true, phone, proxy, &message).2),
        media
    );
    trial.now += 500_000;
    trial.nat.maintain(trial.now, 1 << 20);
    trial.same_ports(true);
    let other = (PRIVATES[1], media);
    assert_eq!(trial.udp_out(other, (EXT, 53), MASQ), media);
    let again = media_of(&trial.datagram(true, phone, proxy, &message).2);
    assert_ne!(again, media);
    trial.udp_in((STRANGER, 8_000), (MASQ, again), (PRIVATE, 4_000));
}

#[test]
fn a_contact_at_another_port_is_reached_there() {
    let mut trial = helped();
    let register = |via: String, contact: String| {
        format!(
            "REGISTER sip:example.net SIP/2.0\r\nv: SIP/2.0/UDP {via}\r\nm: <sip:a@{contact}>\r\nl: 0\r\n\r\n"
        )
    };
    let proxy = (EXT, 5_060);
    let own = register(format!("{PRIVATE}:40000"), format!("{PRIVATE}"));
    let (from, _, sent) = trial.datagram(true, (PRIVATE, 40_000), proxy, &own);
    let contact = sent.split("sip:a@").nth(1).unwrap();
    let contact = contact.split('>').next().unwrap();
    assert_eq!(
        sent,
        register(format!("{}:{}", MASQ, from.1), contact.to_owned())
    );
    let port = contact.rsplit(':').next().unwrap().parse().unwrap();
    trial.udp_in_fails((STRANGER, 5_060), (MASQ, port));
    trial.udp_in(proxy, (MASQ, port), (PRIVATE, 5_060));
}

/// What is not asked for stays as it is: off, no SIP, no room, another's.
#[test]
fn what_sip_s_helper_leaves_alone() {
    let (phone, proxy) = ((PRIVATE, 5_060), (EXT, 5_060));
    let message = invite(PRIVATE, 5_060, 4_000, 4_001);
    let mut trial = Trial::new();
    assert_eq!(trial.datagram(true, phone, proxy, &message).2, message);
    let mut trial = helped();
    let foreign = invite(PRIVATES[1], 5_060, 4_000, 4_001);
    assert_eq!(trial.datagram(true, phone, proxy, &foreign).2, foreign);
    assert!(trial.nat.rules().is_empty());
    let mut config = Config::new(&[Ipv4Addr::new(203, 0, 113, 100)]);
    config.helpers = trial.nat.config().helpers;
    let mut nat = Nat::new(config).unwrap();
    let mut bytes = Ip::new(phone.0, proxy.0).udp(phone.1, proxy.1, message.as_bytes());
    let before = bytes.clone();
    assert_eq!(nat.translate_out(&mut bytes, 0), Verdict::HelperRefused);
    assert_eq!(bytes, before);
}

#[test]
fn names_and_datagrams_of_netbios_name_the_alias_end() {
    let mut trial = helped();
    let datagram = |host: Ipv4Addr, port: u16| {
        [
            &[0x10, 2, 0, 9][..],
            &host.octets(),
            &port.to_be_bytes(),
            b"rest",
        ]
        .concat()
    };
    let send = |trial: &mut Trial, out: bool, from: End, to: End, data: &[u8]| {
        let mut bytes = Ip::new(from.0, to.0).udp(from.1, to.1, data);
        let verdict = match out {
            true => trial.nat.translate_out(&mut bytes, trial.now),
            false => trial.nat.translate_in(&mut bytes, trial.now),
        };
        assert_eq!(verdict, Verdict::Translated);
        let ip = Ipv4::new(&bytes).unwrap();
        let udp = Udp::new(ip.payload()).unwrap();
        assert!(udp.checksum_is_right(ip.pseudo_header()));
        (udp.source_port(), udp.payload().to_vec())
    };
    let sent = datagram(PRIVATE, 138);
    let (port, seen) = send(&mut trial, true, (PRIVATE, 138), (EXT, 138), &sent);
    assert_eq!(seen, datagram(MASQ, port));
    let (_, back) = send(&mut trial, false, (EXT, 138), (MASQ, port), &seen);
    assert_eq!(back, seen, "its sender is whom it says");
    // A registration, and the answer to it.
    let record = |host: Ipv4Addr| {
        let head = [0, 7, 0x29, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        let name = [&[32][..], &[b'C'; 32], &[0]].concat();
        let rest = [0, 0x20, 0, 1, 0, 0, 0, 9, 0, 6, 0x60, 0];
        [&head[..], &name, &rest, &host.octets()].concat()
    };
    let (port, seen) = send(
        &mut trial,
        true,
        (PRIVATE, 137),
        (EXT, 137),
        &record(PRIVATE),
    );
    assert_eq!(seen, record(MASQ));
    let (_, back) = send(&mut trial, false, (EXT, 137), (MASQ, port), &seen);
    assert_eq!(back, record(PRIVATE));
}
