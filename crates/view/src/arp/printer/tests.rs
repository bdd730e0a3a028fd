use std::net::Ipv4Addr;

use table::LinkLayerAddress;

use super::*;

fn entry(last: u8) -> Entry<'static> {
    Entry {
        host: None,
        address: Ipv4Addr::new(10, 0, 0, last),
        lladdr: LinkLayerAddress::new(&[2, 0, 0, 0, 0, last]).unwrap(),
        complete: true,
        published: false,
        lifetime: Lifetime::Seconds(12),
        link: "v0",
        hardware: 1,
    }
}

/// One of each kind, in the order of the captures below.
fn entries() -> Vec<Entry<'static>> {
    vec![
        Entry {
            complete: false,
            lladdr: LinkLayerAddress::NONE,
            lifetime: Lifetime::Unknown,
            ..entry(14)
        },
        entry(4),
        Entry {
            lifetime: Lifetime::Permanent,
            ..entry(2)
        },
        Entry {
            lladdr: LinkLayerAddress::NONE,
            hardware: 0xFFFE,
            link: "tun0",
            ..entry(3)
        },
        Entry {
            hardware: 772,
            link: "lo",
            ..entry(5)
        },
        Entry {
            lifetime: Lifetime::Permanent,
            complete: false,
            published: true,
            lladdr: LinkLayerAddress::NONE,
            hardware: 0,
            link: "*",
            ..entry(99)
        },
    ]
}

fn print(style: Style, entries: &[Entry<'_>]) -> String {
    let mut printer = Printer::new(style, Vec::new());
    for entry in entries {
        printer.entry(entry).unwrap();
    }
    String::from_utf8(printer.finish().unwrap()).unwrap()
}

#[test]
fn the_row_as_its_users_know_it() {
    let row = Entry {
        address: Ipv4Addr::new(10, 0, 5, 80),
        lladdr: LinkLayerAddress::new(&[0, 0x0c, 0x29, 0x65, 0x4d, 0x48]).unwrap(),
        lifetime: Lifetime::Permanent,
        link: "em1",
        ..entry(0)
    };
    assert_eq!(
        print(Style::Bsd, &[row]),
        "? (10.0.5.80) at 00:0c:29:65:4d:48 on em1 permanent [ethernet]\n"
    );
}

#[test]
fn bsd_lines() {
    assert_eq!(
        print(Style::Bsd, &entries()),
        "? (10.0.0.14) at (incomplete) on v0 [ethernet]\n\
         ? (10.0.0.4) at 02:00:00:00:00:04 on v0 expires in 12 seconds [ethernet]\n\
         ? (10.0.0.2) at 02:00:00:00:00:02 on v0 permanent [ethernet]\n\
         ? (10.0.0.3) at (incomplete) on tun0 expires in 12 seconds\n\
         ? (10.0.0.5) at 02:00:00:00:00:05 on lo expires in 12 seconds\n\
         ? (10.0.0.99) at (incomplete) on * permanent published\n"
    );
}

/// The words of FreeBSD's `arp.c`, in its order: the time that is left, what
/// is published, the kind of link.
#[test]
fn bsd_tells_each_end_of_an_entry() {
    for (lifetime, published, said) in [
        (Lifetime::Permanent, false, " permanent [ethernet]"),
        (Lifetime::Permanent, true, " permanent published [ethernet]"),
        (
            Lifetime::Seconds(1),
            false,
            " expires in 1 seconds [ethernet]",
        ),
        (Lifetime::Seconds(0), false, " expired [ethernet]"),
    ] {
        let row = Entry {
            lifetime,
            published,
            ..entry(7)
        };
        let line = format!("? (10.0.0.7) at 02:00:00:00:00:07 on v0{said}\n");
        assert_eq!(print(Style::Bsd, &[row]), line);
    }
}

/// What net-tools 2.10 printed for such entries.
#[test]
fn net_tools_lines_and_table() {
    assert_eq!(
        print(Style::LinuxLines, &entries()),
        "? (10.0.0.14) at <incomplete> on v0\n\
         ? (10.0.0.4) at 02:00:00:00:00:04 [ether] on v0\n\
         ? (10.0.0.2) at 02:00:00:00:00:02 [ether] PERM on v0\n\
         ? (10.0.0.3) at  [ether] on tun0\n\
         ? (10.0.0.5) at 02:00:00:00:00:05 [loop] on lo\n\
         ? (10.0.0.99) at <from_interface> PERM PUB on *\n"
    );
    assert_eq!(
        print(Style::LinuxTable, &entries()),
        "Address                  HWtype  HWaddress           Flags Mask            Iface\n\
         10.0.0.14                        (incomplete)                              v0\n\
         10.0.0.4                 ether   02:00:00:00:00:04   C                     v0\n\
         10.0.0.2                 ether   02:00:00:00:00:02   CM                    v0\n\
         10.0.0.3                 ether                       C                     tun0\n\
         10.0.0.5                 loop    02:00:00:00:00:05   C                     lo\n\
         10.0.0.99                *       <from_interface>    MP                    *\n"
    );
}

#[test]
fn names_are_cut_in_the_table_only() {
    let long = Entry {
        host: Some("a.very.long.host.name.that.does.not.fit.example.org"),
        ..entry(2)
    };
    assert!(
        print(Style::LinuxTable, &[long])
            .contains("\na.very.long.host.name.t  ether   02:00:00:00:00:02   C  ")
    );
    assert!(print(Style::Bsd, &[long]).contains("fit.example.org (10.0.0.2) at"));
}

#[test]
fn json_is_valid_also_when_empty() {
    assert_eq!(print(Style::Json, &[]), "[]\n");
    let odd = Entry {
        host: Some("a\"b\\c\u{1}"),
        ..entry(2)
    };
    let mut all = entries();
    all.push(odd);
    let parsed: serde_json::Value = serde_json::from_str(&print(Style::Json, &all)).unwrap();
    let rows = parsed.as_array().unwrap();
    assert_eq!(rows.len(), all.len());
    assert_eq!(rows[0]["incomplete"], true);
    assert_eq!(rows[1]["expires"], 12);
    assert_eq!(rows[1]["mac-address"], "02:00:00:00:00:04");
    assert_eq!(rows[5]["published"], true);
    assert_eq!(rows[6]["hostname"], "a\"b\\c\u{1}");
}

#[test]
fn text_is_written_in_large_pieces_and_an_error_comes_back() {
    struct ThreePieces(Vec<usize>);
    impl Write for ThreePieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() == 3 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.0.push(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut pieces = ThreePieces(Vec::new());
    let mut printer = Printer::new(Style::Bsd, &mut pieces);
    let error = (0..10_000).find_map(|_| printer.entry(&entry(4)).err());
    assert_eq!(error.unwrap().kind(), io::ErrorKind::BrokenPipe);
    assert!(pieces.0.iter().all(|len| *len >= put::ENOUGH_BYTES));
}
