use proptest::prelude::*;

use super::*;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);

fn places(message: &str, out: bool) -> Vec<(What, &str)> {
    let all = read(message.as_bytes(), HOST, out).unwrap();
    all.iter()
        .map(|place| (place.what, &message[place.start..place.end]))
        .collect()
}

const INVITE: &str = "INVITE sip:bob@example.net SIP/2.0\r\n\
    Via: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK1;received=10.0.0.5\r\n\
    From: <sip:alice@10.0.0.5>;tag=1\r\n\
    m: \"10.0.0.5\" <sip:alice@10.0.0.5>\r\n\
    Contact:\r\n\
    \t<sip:alice@10.0.0.5:5070;x=1>\r\n\
    Call-ID: 7@10.0.0.5\r\n\
    c: application/sdp\r\n\
    l: 139\r\n\
    \r\n\
    v=0\r\n\
    o=alice 1 1 IN IP4 10.0.0.5\r\n\
    s=-\r\n\
    c=IN IP4 10.0.0.5\r\n\
    t=0 0\r\n\
    m=audio 4000 RTP/AVP 0\r\n\
    a=rtcp:4001 IN IP4 10.0.0.5\r\n\
    m=image 4010 udptl t38\r\n\
    m=video 0 RTP/AVP 31\r\n\
    m=video 4020/2 RTP/AVP 31\r\n\
    m=text 4030 TCP/MSRP *\r\n\
    m=audio 4040 RTP/AVP 0\r\n\
    c=IN IP4 18.0.0.1\r\n";

#[test]
fn what_a_message_names() {
    use What::{Address, Control, End, Length, Media};
    let expected = vec![
        (End(Some(5_060)), "10.0.0.5:5060"),
        (End(None), "10.0.0.5"),
        (End(Some(5_070)), "10.0.0.5:5070"),
        (Length(139), "139"),
        (Address, "10.0.0.5"),
        (Address, "10.0.0.5"),
        (Media(4_000, 2), "4000"),
        (Control(4_001, 4_000), "4001"),
        (Address, "10.0.0.5"),
        (Media(4_010, 1), "4010"),
    ];
    assert_eq!(places(INVITE, true), expected);
    // Of what comes in, the ends alone.
    assert_eq!(places(INVITE, false), expected[..3]);
    let request = "OPTIONS sip:alice@10.0.0.5:5060;ob SIP/2.0\n\n";
    let whose = [(End(Some(5_060)), "10.0.0.5:5060")];
    assert_eq!(places(request, false), whose);
    let answer = "SIP/2.0 200 OK\r\nv:SIP/2.0/UDP 10.0.0.5\r\nRoute: <sip:10.0.0.5>\r\n\r\n";
    assert_eq!(places(answer, false).len(), 2);
}

#[test]
fn what_is_none() {
    for message in [
        "",
        "\r\n\r\n",
        "GET / HTTP/1.1\r\nVia: 10.0.0.5\r\n\r\n",
        "INVITE sip:a SIP/2.0\r\nVia: SIP/2.0/UDP 110.0.0.5:5060\r\n\r\n",
        "INVITE sip:a SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.50:5060\r\n\r\n",
        "INVITE sip:a SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.5.example\r\n\r\n",
        "INVITE sip:a SIP/2.0\r\nVia: SIP/2.0/UDP x;maddr=10.0.0.5\r\n\r\n",
        "INVITE sip:a SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.5:99999\r\n\r\n",
        // Not the address of these media.
        "INVITE sip:a SIP/2.0\r\nc:application/sdp\r\n\r\nc=IN IP4 1.2.3.4\r\nm=audio 4000 RTP/AVP 0\r\n",
        // A body of another kind.
        "INVITE sip:a SIP/2.0\r\nc:text/plain\r\n\r\nc=IN IP4 10.0.0.5\r\nm=audio 4000 RTP/AVP 0\r\n",
    ] {
        assert_eq!(places(message, true), [], "{message}");
    }
}

#[test]
fn too_many_ends_are_refused() {
    let many = "Via: SIP/2.0/UDP 10.0.0.5\r\n".repeat(MAX_EDITS);
    let message = format!("INVITE sip:a SIP/2.0\r\n{many}\r\n");
    assert_eq!(places(&message, true).len(), MAX_EDITS);
    let message = format!("INVITE sip:10.0.0.5 SIP/2.0\r\n{many}\r\n");
    let read = read(message.as_bytes(), HOST, true);
    assert_eq!(read, Err(Refusal::TooMany));
}

#[test]
fn the_longest_texts_fit() {
    let all = (Ipv4Addr::BROADCAST, u16::MAX);
    assert_eq!(end_text(all, true).as_slice(), b"255.255.255.255:65535");
    assert_eq!(end_text((HOST, PORT), false).as_slice(), b"10.0.0.5");
    assert_eq!(end_text((HOST, 9), false).as_slice(), b"10.0.0.5:9");
    assert_eq!(number_text(usize::MAX).len(), 20);
}

/// Pieces of messages in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "INVITE sip:10.0.0.5 SIP/2.0\r\n",
        "SIP/2.0 200 OK\r\n",
        "Via: SIP/2.0/UDP 10.0.0.5:5060\r\n",
        "m: <sip:a@10.0.0.5>\r\n",
        " 10.0.0.5:1\r\n",
        "l: 12\r\n",
        "c: application/sdp\r\n",
        "\r\n",
        "o=a 1 1 IN IP4 10.0.0.5\n",
        "c=IN IP4 10.0.0.5/127\r\n",
        "m=audio 4000 RTP/AVP 0\r\n",
        "a=rtcp:4001\r\n",
        "a=rtcp:7 IN IP4 10.0.0.5\n",
        "m=",
        "c=IN IP4 ",
        "10.0.0.5",
        ":",
        "\u{e4}",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn total_on_any_message(text in pieces(), noise in prop::collection::vec(any::<(usize, u8)>(), 0..4), out in any::<bool>()) {
        let mut bytes = text.into_bytes();
        for (at, byte) in noise {
            if !bytes.is_empty() {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
        }
        if let Ok(places) = read(&bytes, HOST, out) {
            let mut last = 0;
            for place in places {
                prop_assert!(last <= place.start && place.start < place.end);
                prop_assert!(place.end <= bytes.len());
                last = place.end;
            }
        }
    }
}
