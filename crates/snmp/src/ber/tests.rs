use super::*;
use crate::mib::Value;
use crate::oid::Name;

fn name(content: &[u8]) -> Result<Vec<u32>, Malformed> {
    let mut bytes = vec![tag::OBJECT_IDENTIFIER, 0x81, content.len() as u8];
    bytes.extend_from_slice(content);
    let mut name = Name::new();
    let mut reader = Reader::new(&bytes);
    reader.name(&mut name)?;
    reader.finish()?;
    Ok(name.to_vec())
}

fn value(bytes: &[u8]) -> Result<Option<i128>, Malformed> {
    let mut object = Name::new();
    let mut reader = Reader::new(bytes);
    let value = reader.value(&mut object)?;
    Ok(match value {
        Value::Integer(number) => Some(number.into()),
        Value::Counter32(number) | Value::Gauge32(number) | Value::TimeTicks(number) => {
            Some(number.into())
        }
        Value::Counter64(number) => Some(number.into()),
        _ => None,
    })
}

#[test]
fn lengths_that_lie() {
    let element = |bytes: &[u8]| Reader::new(bytes).element().map(|_| ());
    for (bytes, expected) in [
        (&[][..], Malformed::Truncated),
        (&[0x30], Malformed::Truncated),
        (&[0x30, 1], Malformed::Truncated),
        (&[0x30, 0x7f, 0, 0], Malformed::Truncated),
        (&[0x30, 0x81], Malformed::Truncated),
        (&[0x30, 0x81, 2, 0], Malformed::Truncated),
        (&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], Malformed::Truncated),
        (
            &[0x30, 0x84, 0x7f, 0xff, 0xff, 0xff, 0],
            Malformed::Truncated,
        ),
        // Indefinite, and longer than anybody needs.
        (&[0x30, 0x80, 0, 0], Malformed::Length),
        (&[0x30, 0x85, 0, 0, 0, 0, 0], Malformed::Length),
        (&[0x30, 0xff, 0, 0], Malformed::Length),
    ] {
        assert_eq!(element(bytes), Err(expected), "{bytes:02x?}");
    }
    // Longer than need be is no lie.
    assert_eq!(element(&[0x04, 0x84, 0, 0, 0, 1, 9]), Ok(()));
}

#[test]
fn names_that_are_none() {
    assert_eq!(name(&[]), Ok(vec![0, 0]));
    assert_eq!(name(&[0x2b]), Ok(vec![1, 3]));
    assert_eq!(name(&[0x28]), Ok(vec![1, 0]));
    // 2^32 - 1, and one more; the first number holds 80 more.
    let greatest = [0x2b, 0x8f, 0xff, 0xff, 0xff, 0x7f];
    assert_eq!(name(&greatest), Ok(vec![1, 3, u32::MAX]));
    let over = [0x2b, 0x90, 0x80, 0x80, 0x80, 0x00];
    assert_eq!(name(&over), Err(Malformed::Name));
    let first = [0x90, 0x80, 0x80, 0x80, 0x4f];
    assert_eq!(name(&first), Ok(vec![2, u32::MAX]));
    let first_over = [0x90, 0x80, 0x80, 0x80, 0x50];
    assert_eq!(name(&first_over), Err(Malformed::Name));
    // A sub-identifier without end, and a long one full of zeros.
    assert_eq!(name(&[0x2b, 0x81]), Err(Malformed::Name));
    assert_eq!(name(&[0xff; 100]), Err(Malformed::Name));
    assert_eq!(
        name(&[0x2b, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]),
        Ok(vec![1, 3, 1])
    );
    // 128 sub-identifiers, and one more.
    assert_eq!(name(&[0x2b; 127]).map(|name| name.len()), Ok(128));
    assert_eq!(name(&[0x2b; 128]), Err(Malformed::Name));
}

#[test]
fn numbers_at_their_edges() {
    for (bytes, expected) in [
        (&[0x02, 1, 0x80][..], Ok(Some(-128))),
        (&[0x02, 4, 0x80, 0, 0, 0], Ok(Some(i128::from(i32::MIN)))),
        (&[0x02, 4, 0, 0, 0, 5], Ok(Some(5))),
        (&[0x02, 5, 0, 0x80, 0, 0, 0], Err(Malformed::Range)),
        (&[0x02, 0], Err(Malformed::Range)),
        (&[0x41, 5, 0, 0xff, 0xff, 0xff, 0xff], Ok(Some(0xffff_ffff))),
        (&[0x41, 5, 1, 0, 0, 0, 0], Err(Malformed::Range)),
        (&[0x42, 1, 0x80], Err(Malformed::Range)),
        (&[0x43, 0], Err(Malformed::Range)),
        (
            &[0x46, 9, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            Ok(Some(i128::from(u64::MAX))),
        ),
        (&[0x46, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0], Err(Malformed::Range)),
        (&[0x40, 3, 1, 2, 3], Err(Malformed::Value(0x40))),
        (&[0x05, 1, 0], Err(Malformed::Value(0x05))),
        (&[0x82, 1, 0], Err(Malformed::Value(0x82))),
        (&[0x45, 0], Err(Malformed::Value(0x45))),
        (&[0x1f, 0x81, 0], Err(Malformed::Value(0x1f))),
    ] {
        assert_eq!(value(bytes), expected, "{bytes:02x?}");
    }
}

#[test]
fn nothing_is_written_beyond_the_limit() {
    let long = [0xff; 300];
    let names: [&[u32]; 4] = [&[1, 3], &[1, 3, 6, 300, 20_000], &[u32::MAX; 128], &[]];
    let values = [
        Value::Counter64(u64::MAX),
        Value::Integer(-1),
        Value::OctetString(&long),
        Value::EndOfMibView,
    ];
    for name in names {
        for value in values {
            let mut whole = vec![0; 2_000];
            let mut out = Writer::new(&mut whole);
            out.binding(name, &value).expect("room");
            let len = out.len();
            for limit in 0..=len {
                let mut buffer = vec![0xee; len + 16];
                let mut out = Writer::new(&mut buffer);
                out.limit(limit);
                let written = out.binding(name, &value);
                assert_eq!(written.is_ok(), limit == len);
                assert_eq!(out.len(), if limit == len { len } else { 0 });
            }
            // The same wherever the room ends behind it.
            for more in 0..900 {
                let mut buffer = vec![0; len + 8 + more];
                let mut out = Writer::new(&mut buffer);
                out.binding(name, &value).expect("room");
                assert_eq!(out.written(), &whole[..len]);
            }
        }
    }
}

#[test]
fn closing_moves_what_is_short() {
    for (len, header) in [
        (0, &[0x30, 0][..]),
        (127, &[0x30, 127]),
        (128, &[0x30, 0x81, 128]),
        (255, &[0x30, 0x81, 255]),
        (256, &[0x30, 0x82, 1, 0]),
        (65_531, &[0x30, 0x82, 0xff, 0xfb]),
    ] {
        let content: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let mut buffer = vec![0; 70_000];
        let mut out = Writer::new(&mut buffer);
        let mark = out.open(tag::SEQUENCE).expect("room");
        out.bytes(&content).expect("room");
        let moved = out.close(mark);
        assert_eq!(moved, 4 - header.len());
        assert_eq!(out.written(), [header, &content[..]].concat());
    }
}
