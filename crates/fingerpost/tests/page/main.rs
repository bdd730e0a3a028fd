//! The page in a real browser: clicked, filtered, scrolled, driven by keys
//! alone, on a phone, beside changes that `ip` makes. Pictures of it are
//! kept under Cargo's target directory, `tmp/page`.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

#[path = "../common/mod.rs"]
mod common;

mod browser;
mod flaps;
mod nat;

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use browser::{Browser, DOWN, END, ENTER, ESCAPE, HOME, TAB};
use common::{Daemon, furnished};
use lab::situation::routes::Family;
use lab::{Netns, situation, skip};

const PAGE: &str = "http://127.0.0.1:9797/";
/// What nobody may be made to run by the name they gave a link.
const HOSTILE: &str = "<img/src=x onerror=document.title='owned'>\"'&amp;";
/// All that the page can show.
const PARTS: [&str; 9] = [
    "overview",
    "links",
    "addresses",
    "neighbours",
    "routes",
    "nexthops",
    "rules",
    "fdb",
    "changes",
];
/// What does not fit: the document beside the window, a control beyond its
/// edge, a heading that is cut.
const BEYOND: &str = "
    const wrong = [];
    const wide = window.innerWidth;
    for (const one of [document.documentElement, document.querySelector('main')]) {
      if (one.scrollWidth > one.clientWidth) wrong.push(`${one.tagName} is ${one.scrollWidth} wide`);
    }
    for (const one of document.querySelectorAll('main button, main input, main select, .top button')) {
      const { right, left, width } = one.getBoundingClientRect();
      if (width > 0 && (right > wide + 1 || left < -1)) wrong.push(`${one.id || one.outerHTML} ends at ${right}`);
    }
    for (const one of document.querySelectorAll('#grid-head .cell')) {
      const inner = one.firstElementChild.getBoundingClientRect().width;
      if (inner > one.clientWidth + 1) wrong.push(`${one.innerText} has ${one.clientWidth} of ${inner}`);
    }
    return wrong;
";
const TOKEN: &str = "a-token-of-a-test";
const ROUTES: usize = 1_000_000;

/// The text of the row at a place among those drawn.
fn row(browser: &Browser<'_>, at: usize) -> String {
    let script = format!("return document.querySelectorAll('#layer .row')[{at}]?.innerText ?? ''");
    browser.run(&script).as_str().unwrap_or_default().to_owned()
}

/// Nothing was refused by the policy, nothing failed. A filter that is not
/// understood (yet) is refused by the daemon, which a browser logs as well.
fn is_quiet(browser: &Browser<'_>) {
    let log = browser.log();
    let entries: Vec<serde_json::Value> = serde_json::from_str(&log).unwrap();
    let is_filter = |entry: &serde_json::Value| {
        let of_network = entry["source"] == "network";
        of_network
            && entry["message"]
                .as_str()
                .unwrap_or_default()
                .contains("filter=")
    };
    let mut severe = entries.iter().filter(|entry| entry["level"] == "SEVERE");
    assert!(severe.all(is_filter), "{log}");
}

#[test]
fn tables_details_and_changes() {
    let Some(netns) = furnished("page") else {
        return;
    };
    netns.ip(&["link", "set", "br0", "alias", HOSTILE]).unwrap();
    let daemon = Daemon::up(&netns, &[]);
    let browser = Browser::start(&netns, 1280, 800);
    browser.go(PAGE);
    browser.shows("#state", "live");
    browser.shows("#tiles", "Routes");
    browser.click("nav a[data-part=links]");
    browser.shows("#layer", "veth1");
    // Of whoever names a link nothing is run, and all is shown.
    browser.shows("#layer", HOSTILE);
    let made =
        browser.run("return document.querySelectorAll('#layer img').length + document.title");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let title = format!("0Links · {} · Fingerpost", host.trim());
    assert_eq!(made, title);
    browser.shows("#host", host.trim());
    // Sorted both ways, by the name.
    browser.click("#grid-head .cell:first-child button");
    browser.sees("#layer .row:first-child", |text| text.starts_with("br0"));
    browser.click("#grid-head .cell:first-child button");
    browser.sees("#layer .row:first-child", |text| text.starts_with("veth1"));
    // Filtered while it is typed.
    browser.click("#filter");
    browser.types("type bridge");
    browser.sees("#position", |text| text.ends_with("of 1"));
    browser.press(&[ESCAPE]);
    browser.sees("#position", |text| text.ends_with("of 4"));
    // A word that is not known is said, and shows nothing else instead.
    browser.click("#filter");
    browser.types("bogus");
    browser.shows("#hint", "bogus");
    browser.press(&[ESCAPE]);
    browser.sees("#position", |text| text.ends_with("of 4"));
    // What may stand next is offered, names too, and taken by keys.
    browser.click("#filter");
    browser.types("mas");
    browser.shows("#suggestions", "Of links in this bridge");
    browser.press(&[TAB]);
    browser.shows("#suggestions", "br0");
    browser.types("br");
    browser.sees("#suggestions", |text| text.trim() == "br0");
    browser.press(&[DOWN]);
    browser.shot("suggestions");
    browser.press(&[ENTER]);
    browser.sees("#position", |text| text.ends_with("of 1"));
    browser.shows("#layer", "veth0");
    browser.press(&[ESCAPE]);
    browser.sees("#position", |text| text.ends_with("of 4"));
    // The last minutes of each link are drawn.
    browser.shows("#grid-head", "Last minutes");
    browser.sees("#layer", |_| {
        let drawn = "return [...document.querySelectorAll('#layer canvas')].filter((one) => \
             one.getContext('2d').getImageData(0, 0, one.width, one.height).data.some(Boolean)).length";
        browser.run(drawn) == 4
    });
    // What points to a link.
    browser.click("#layer .row:nth-child(4)");
    browser.shows("#detail-title", "br0");
    for text in ["10.9.0.1/24", "10.9.0.7", "10.1.0.0/16", HOSTILE] {
        browser.shows("#detail", text);
    }
    browser.shot("link");
    browser.press(&[ESCAPE]);
    browser.sees("#detail", str::is_empty);
    // What `ip` changes is seen without anything being done.
    browser.click("nav a[data-part=neighbours]");
    browser.shows("#layer", "10.9.0.7");
    netns
        .ip(&[
            "neigh",
            "add",
            "10.9.0.99",
            "lladdr",
            "02:00:00:00:00:99",
            "dev",
            "br0",
            "nud",
            "permanent",
        ])
        .unwrap();
    browser.shows("#layer", "10.9.0.99");
    browser.shot("neighbours");
    netns
        .ip(&["neigh", "del", "10.9.0.99", "dev", "br0"])
        .unwrap();
    browser.sees("#layer", |text| !text.contains("10.9.0.99"));
    let other = [
        "neigh",
        "replace",
        "10.9.0.7",
        "lladdr",
        "02:00:00:00:00:77",
    ];
    netns.ip(&[&other[..], &["dev", "br0"]].concat()).unwrap();
    browser.click("nav a[data-part=changes]");
    browser.shows("#events", "deleted");
    browser.shows(
        "#events .former",
        "lladdr 02:00:00:00:00:07 → 02:00:00:00:00:77",
    );
    browser.shot("changes");
    // Nobody looks: nothing comes. Somebody looks again: nothing is missed.
    browser.run(
        "Object.defineProperty(document, 'hidden', {configurable: true, get: () => true}); \
         document.dispatchEvent(new Event('visibilitychange'))",
    );
    browser.shows("#state", "paused");
    netns
        .ip(&[
            "neigh",
            "add",
            "10.9.0.98",
            "dev",
            "br0",
            "lladdr",
            "02:00:00:00:00:98",
        ])
        .unwrap();
    browser.run("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))");
    browser.shows("#state", "live");
    browser.shows("#events", "10.9.0.98");
    browser.click("nav a[data-part=rules]");
    browser.shows("#layer", "fwmark 0x7");
    is_quiet(&browser);
    // A daemon that goes is said to be gone, one that comes is found.
    daemon.end();
    browser.shows("#state", "disconnected");
    browser.shows("#problem", "trying again");
    browser.shot("disconnected");
    let _daemon = Daemon::up(&netns, &[]);
    browser.shows("#state", "live");
    netns
        .ip(&[
            "rule", "add", "fwmark", "77", "lookup", "100", "pref", "1077",
        ])
        .unwrap();
    browser.shows("#layer", "1077");
    browser.sees("#problem", str::is_empty);
}

#[test]
fn by_keys_alone_and_on_a_phone() {
    let Some(netns) = furnished("pagekeys") else {
        return;
    };
    // With a token, which is asked for, typed and taken.
    let directory = tempfile::tempdir().unwrap();
    let (file, token) = (
        directory.path().join("toml"),
        directory.path().join("token"),
    );
    std::fs::write(&token, TOKEN).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&file, format!("[http]\ntoken_file = {token:?}\n")).unwrap();
    let _daemon = Daemon::up(&netns, &["--config", file.to_str().unwrap()]);
    let browser = Browser::start(&netns, 1280, 800);
    browser.go(PAGE);
    browser.shows("#token", "token_file");
    browser.shot("token");
    browser.types(TOKEN);
    browser.press(&[ENTER]);
    browser.shows("#state", "live");
    browser.sees("#problem", str::is_empty);
    let focused =
        || browser.run("return document.activeElement.id || document.activeElement.className");
    browser.press(&[TAB]);
    let reached = focused();
    assert!(
        reached == "skip" || reached == "netns" || reached == "theme",
        "{reached}"
    );
    browser.press(&["?"]);
    browser.shows("#help", "go to a row by its number");
    browser.press(&[ESCAPE]);
    browser.sees("#help", str::is_empty);
    browser.press(&["4"]);
    browser.shows("#layer", "10.1.2.0/24");
    browser.sees("#grid", |_| focused() == "grid");
    let active = || {
        browser
            .run("return document.querySelector('[aria-selected]')?.getAttribute('aria-rowindex')")
    };
    browser.press(&[DOWN, DOWN]);
    browser.sees("#grid", |_| active() == "4");
    browser.press(&[END]);
    let last = browser.run("return document.getElementById('grid').getAttribute('aria-rowcount')");
    browser.sees("#grid", |_| active() == last);
    browser.press(&[HOME, ENTER]);
    browser.shows("#detail", "Same prefix");
    browser.press(&[ESCAPE]);
    browser.sees("#grid", |_| focused() == "grid");
    browser.press(&["/"]);
    browser.types("10.1.2.0/24");
    browser.sees("#position", |text| text.ends_with("of 1"));
    browser.press(&[ENTER]);
    browser.sees("#grid", |_| focused() == "grid");
    // Everything that can be reached has a name.
    let nameless = browser.run(
        "return [...document.querySelectorAll('button, input, select, a, [tabindex=\"0\"]')].filter((one) => \
         !one.innerText && !one.labels?.length && !one.getAttribute('aria-label') && \
         !one.getAttribute('aria-labelledby') && one.checkVisibility()).map((one) => one.outerHTML)",
    );
    assert_eq!(nameless, serde_json::json!([]));
    for (width, height) in [(1440, 900), (768, 1024), (360, 740)] {
        browser.resize(width, height);
        for part in PARTS {
            browser.go(&format!("{PAGE}#/{part}"));
            browser.sees("main", |text| text.len() > 20);
            let beyond = browser.run(BEYOND);
            assert_eq!(beyond, serde_json::json!([]), "{part} at {width}");
            browser.shot(&format!("{width}-{part}"));
        }
    }
    browser.go(&format!("{PAGE}#/links"));
    browser.shows("#layer", "br0");
    browser.click("#layer .row:first-child");
    browser.shows("#detail", "Addresses");
    browser.shot("phone-detail");
    browser.click("#detail header button");
    browser.sees("#detail", str::is_empty);
}

#[test]
fn any_column_can_be_shown_and_the_choice_is_kept() {
    let Some(netns) = furnished("pagecolumns") else {
        return;
    };
    let _daemon = Daemon::up(&netns, &[]);
    let browser = Browser::start(&netns, 1280, 800);
    browser.go(&format!("{PAGE}#/links"));
    browser.shows("#layer", "veth1");
    browser.press(&["k"]);
    browser.shows("#columns", "Columns of links");
    // What the command line knows is offered, to the last column.
    let refused = common::fingerpost(&netns, &["link", "--fields", "bogus"]);
    let refused = String::from_utf8(refused.stderr).unwrap();
    let (_, known) = refused.trim_end().rsplit_once("there are ").unwrap();
    let offered = browser.run(
        "return [...document.querySelectorAll('#columns input[type=checkbox]')].map((box) => box.value)",
    );
    let offered: Vec<String> = serde_json::from_value(offered).unwrap();
    // Settings of kinds stand there under one name, and are offered singly.
    let is_part = |one: &str, name: &str| {
        one.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    let is_offered = |name: &str| offered.iter().any(|one| one == name || is_part(one, name));
    let known: Vec<&str> = known.split(", ").collect();
    let missing: Vec<_> = known.iter().filter(|name| !is_offered(name)).collect();
    assert!(
        missing.is_empty() && known.len() > 40,
        "{missing:?} of {known:?}"
    );
    let chosen = ["txqlen", "stats64.rx.packets"];
    for name in chosen {
        browser.click(&format!("#columns input[value='{name}']"));
    }
    browser.shot("columns");
    browser.press(&[ESCAPE]);
    for name in chosen {
        browser.shows("#grid-head", name);
    }
    browser.shows("#layer", "1000");
    browser.shot("columns-chosen");
    // Another visit finds them as they were.
    browser.go(&format!("{PAGE}?again#/links"));
    browser.shows("#layer", "1000");
    for name in chosen {
        browser.shows("#grid-head", name);
    }
    // A table's choice is its own, and can be dropped.
    browser.click("nav a[data-part=routes]");
    browser.sees("#grid-head", |text| {
        text.contains("Prefix") && !text.contains("txqlen")
    });
    browser.click("nav a[data-part=links]");
    browser.shows("#grid-head", "txqlen");
    browser.click("#columns-button");
    browser.click("#usual-columns");
    browser.press(&[ESCAPE]);
    browser.sees("#grid-head", |text| {
        text.contains("Alias") && !text.contains("txqlen")
    });
    is_quiet(&browser);
}

#[test]
fn a_million_routes_are_scrolled_to_the_last() {
    let Some(netns) = skip::unless(Netns::new("pagemillion")) else {
        return;
    };
    situation::routes::build(&netns, Family::V4, ROUTES).unwrap();
    let _daemon = Daemon::up(&netns, &[]);
    let browser = Browser::start(&netns, 1280, 800);
    let all = common::says(
        &netns,
        &["route", "show", "table", "all", "--csv", "--fields", "dst"],
    );
    let mut prefixes = all.lines().skip(1);
    let (first, count) = (prefixes.next().unwrap(), all.lines().count() - 1);
    browser.go(&format!("{PAGE}#/routes"));
    browser.shows("#position", "of 1,000,0");
    assert!(row(&browser, 0).starts_with(first), "{}", row(&browser, 0));
    browser.shows("#hint", "in its order");
    browser.shot("million-first");
    let last = all.lines().last().unwrap();
    browser.click("#to-last");
    browser.sees("#layer .row:last-child", |text| text.starts_with(last));
    browser.shot("million-last");
    // The scroll bar does it as well: from the last to the middle, and a
    // little further by the wheel.
    browser.run("const s = document.getElementById('scroller'); s.scrollTop = (s.scrollHeight - s.clientHeight) / 2");
    let middle = all.lines().nth(1 + count / 2).unwrap();
    browser.sees("#layer", |text| text.contains(middle));
    let before = browser.text("#position");
    browser.run("document.getElementById('scroller').scrollTop += 320");
    browser.sees("#position", |text| text != before);
    // Any row by its number.
    browser.press(&["g"]);
    browser.types("765432");
    browser.press(&[ENTER]);
    let wanted = all.lines().nth(765_432).unwrap();
    browser.sees("#layer .row:first-child", |text| text.starts_with(wanted));
    // Few are in the document, whatever there are.
    let drawn = browser.run("return document.querySelectorAll('.row').length");
    assert!(drawn.as_u64().unwrap() < 100, "{drawn}");
    // A filter is the daemon's there; what is left is few and can be sorted.
    browser.press(&["/"]);
    browser.types(wanted);
    browser.shows("#hint", "asked for: ");
    browser.sees("#layer .row:first-child", |text| text.starts_with(wanted));
    browser.shot("million-filtered");
    browser.press(&[ESCAPE]);
    browser.shows("#position", "of 1,000,0");
    // The change of one route among them is seen.
    netns
        .ip(&["route", "add", "blackhole", "0.0.0.1/32", "table", "7"])
        .unwrap();
    browser.shows("#position", &grouped(count + 1));
    browser.press(&["o"]);
    browser.shows("#many-routes", &grouped(count + 1));
    browser.prefers("dark");
    browser.shot("overview-dark");
    browser.prefers("light");
    browser.shot("overview");
    is_quiet(&browser);
}

#[test]
#[ignore = "it looks for a minute: for `cargo xtask pictures`"]
fn the_picture_of_the_readme() {
    let Some(netns) = furnished("pagepicture") else {
        return;
    };
    situation::routes::build(&netns, Family::V4, 100_000).unwrap();
    let _daemon = Daemon::up(&netns, &[]);
    let changes = "while :; do
        ip neigh replace 10.9.0.7 lladdr 02:00:00:00:00:08 dev br0 nud permanent
        ip neigh replace 10.9.0.7 lladdr 02:00:00:00:00:07 dev br0 nud permanent
        ip route add 10.77.0.0/16 via 10.9.0.7; ip route del 10.77.0.0/16
        ping -q -c 50 -i 0.002 127.0.0.1 >/dev/null
        sleep 0.$((RANDOM % 9))
    done";
    let _busy = netns.spawn("bash", &["-c", changes]).unwrap();
    let browser = Browser::start(&netns, 1280, 860);
    browser.go(PAGE);
    browser.shows("#state", "live");
    std::thread::sleep(std::time::Duration::from_secs(60));
    browser.shot("picture");
}

/// A number as the page writes it.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap())
        .collect();
    groups.join(",")
}

/// A frame of FRR 10.3's zebra as it came: 16.0.0.0/24 by its next hop 6,
/// with the metric 20, made by OSPF.
const FRAME: [u8; 56] = [
    0x01, 0x01, 0x00, 0x38, 0x34, 0x00, 0x00, 0x00, 0x18, 0x00, 0x01, 0x05, 0x00, 0x00, 0x00, 0x00,
    0x45, 0x2f, 0x7a, 0xb4, 0x02, 0x18, 0x00, 0x00, 0xfe, 0xba, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x01, 0x00, 0x10, 0x00, 0x00, 0x00, 0x08, 0x00, 0x06, 0x00, 0x14, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x1e, 0x00, 0x06, 0x00, 0x00, 0x00,
];

#[test]
fn whose_routes_are_shown_is_a_choice() {
    let Some(netns) = furnished("page-fed") else {
        return;
    };
    let _daemon = Daemon::up(&netns, &["--fpm", "127.0.0.1"]);
    let connected = netns.inside(|| TcpStream::connect("127.0.0.1:2620"));
    let mut zebra = connected.unwrap().unwrap();
    zebra.write_all(&FRAME).unwrap();
    let browser = Browser::start(&netns, 1280, 800);
    browser.go(&format!("{PAGE}#/routes"));
    browser.sees("#layer", |text| {
        text.contains("10.1.0.0/16") && !text.contains("16.0.0.0/24")
    });
    browser.shows("#source-label", "kernel");
    let choose = |name: &str| {
        browser.run(&format!(
            "const s = document.getElementById('source'); s.value = '{name}'; \
             s.dispatchEvent(new Event('change'))"
        ));
    };
    choose("frr");
    browser.sees("#layer", |text| {
        text.contains("16.0.0.0/24") && !text.contains("10.1.0.0/16")
    });
    browser.shows("#hint", "Told by frr");
    // Each source has its say about a route.
    browser.click("#layer .row:nth-child(1)");
    browser.sees("#why", |text| {
        text.contains("kernel") && text.contains("frr")
    });
    browser.shot("fed");
    browser.press(&[ESCAPE]);
    // Links are the kernel's alone.
    browser.click("nav a[data-part=links]");
    browser.sees("#source-label", str::is_empty);
    browser.click("nav a[data-part=routes]");
    browser.shows("#layer", "16.0.0.0/24");
    choose("");
    browser.sees("#layer", |text| {
        text.contains("10.1.0.0/16") && !text.contains("16.0.0.0/24")
    });
    is_quiet(&browser);
}
