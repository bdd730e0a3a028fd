//! `fingerpost link set`, cut off at any moment: it goes on, or all is put
//! back, with what the kernel took along.

use super::*;

const SET: &str = "set testa{} -n 40 down mtu 1200 master br1 alias changed group 7 \
                   txqueuelen 77 name renamed{}";
const KILLS: usize = 12;

/// Pairs that are up, with addresses of both families, neighbours, next
/// hops and routes.
fn furnished(tag: &str) -> Option<Place> {
    let place = Place::new(tag)?;
    place.does(
        "add -n 40 --kind veth --name testa{} --peer testb{} --up --addr 10.0.{}.1/30 \
         --addr 2001:db8:{}::1/64",
    );
    let mut batch = String::from(
        // A bridge that chose its address itself takes another with its ports.
        "link add br0 address 02:00:00:00:aa:00 type bridge\n\
         link add br1 address 02:00:00:00:aa:01 type bridge\n",
    );
    for number in 1..=40 {
        batch += &format!(
            "neigh add 10.0.{number}.2 lladdr 02:00:00:00:00:{number:02x} dev testa{number} nud permanent\n\
             neigh add proxy 192.0.2.{number} dev testa{number}\n\
             nexthop add id {number} via 10.0.{number}.2 dev testa{number}\n\
             route add 198.51.{number}.0/24 via 10.0.{number}.2 dev testa{number} metric 5\n\
             route add 203.0.{number}.0/24 nhid {number}\n\
             route add 2001:db8:f{number:03}::/48 via 2001:db8:{number}::2 dev testa{number} metric 7\n"
        );
    }
    batch += "nexthop add id 1000 group 1/2,3\n\
              nexthop add id 100 group 39/40\n\
              route add 198.18.0.0/16 nhid 1000\n\
              route add 198.19.0.0/16 nexthop via 10.0.1.2 dev testa1 nexthop via 10.0.2.2 dev testa2 weight 3\n\
              link set testb40 master br0\n";
    place.netns.ip_batch(&batch).unwrap();
    Some(place)
}

/// Links and what stands on them, without what moves by itself. Links by
/// index: their names change.
fn everything(place: &Place) -> BTreeSet<String> {
    let ask = |words: &[&str]| -> Vec<Value> {
        let text = place.netns.ip(words).unwrap();
        let text = if text.trim().is_empty() { "[]" } else { &text };
        serde_json::from_str(text).unwrap()
    };
    let mut all = BTreeSet::new();
    let mut indexes = BTreeMap::new();
    for link in ask(&["-j", "link"]) {
        let is_up = link["flags"].as_array().unwrap().contains(&"UP".into());
        indexes.insert(link["ifname"].to_string(), link["ifindex"].to_string());
        let told = [
            "ifindex", "ifname", "mtu", "ifalias", "master", "group", "txqlen", "address",
        ];
        let told = told.map(|field| link[field].to_string());
        all.insert(format!("link {told:?} {is_up}"));
    }
    let on = |row: &Value| indexes.get(&row["dev"].to_string()).cloned();
    for family in ["-4", "-6"] {
        for link in ask(&["-j", family, "addr", "show", "scope", "global"]) {
            for address in link["addr_info"].as_array().unwrap() {
                let dev = indexes.get(&link["ifname"].to_string());
                all.insert(format!(
                    "address {dev:?} {} {}",
                    address["local"], address["prefixlen"]
                ));
            }
        }
        for route in ask(&["-j", family, "route"]) {
            if route["protocol"] == "kernel" {
                continue;
            }
            let hops = route["nexthops"].as_array().cloned().unwrap_or_default();
            let hops: Vec<_> = hops
                .iter()
                .map(|hop| {
                    (
                        on(hop),
                        hop["gateway"].to_string(),
                        hop["weight"].to_string(),
                    )
                })
                .collect();
            // What an object says is told with it.
            let (dev, hops) = match route["nhid"].is_null() {
                true => (on(&route), hops),
                false => (None, Vec::new()),
            };
            let told = ["dst", "gateway", "nhid", "metric", "protocol"];
            let told = told.map(|field| route[field].to_string());
            all.insert(format!("route {told:?} {dev:?} {hops:?}"));
        }
    }
    for hop in ask(&["-j", "nexthop"]) {
        all.insert(format!(
            "nexthop {} {:?} {} {}",
            hop["id"],
            on(&hop),
            hop["gateway"],
            hop["group"]
        ));
    }
    for neighbour in ask(&["-j", "neigh", "show", "nud", "permanent"]) {
        let told = ["dst", "lladdr"].map(|field| neighbour[field].to_string());
        all.insert(format!("neighbour {told:?} {:?}", on(&neighbour)));
    }
    for neighbour in ask(&["-j", "neigh", "show", "proxy"]) {
        all.insert(format!("proxy {} {:?}", neighbour["dst"], on(&neighbour)));
    }
    all
}

#[track_caller]
fn assert_same(wanted: &BTreeSet<String>, now: &BTreeSet<String>, what: &str) {
    let missing: Vec<_> = wanted.difference(now).collect();
    let extra: Vec<_> = now.difference(wanted).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "{what}: missing {missing:#?}, too many {extra:#?}"
    );
}

#[test]
fn killed_while_it_changes_links() {
    let Some(place) = furnished("kill-set") else {
        return;
    };
    let before = everything(&place);
    let whole = time(&place, SET);
    let changed = everything(&place);
    assert!(
        changed
            .iter()
            .filter(|row| row.starts_with("route"))
            .count()
            < 3
    );
    let said = place.does("set --undo");
    assert!(said.contains("40 links put back"), "{said}");
    assert!(said.contains("are there again"), "{said}");
    assert_same(&before, &everything(&place), "undone");
    let complaint = place.refuses("set --resume", 1);
    assert!(complaint.contains("taken back"), "{complaint}");
    let mut random = Random::new(u64::from(std::process::id()));
    for round in 0..KILLS {
        let after = whole.mul_f64(random.below(1000) as f64 / 900.0);
        let ended = killed(&place, SET, after);
        let is_open = place.has_open_journal();
        if !is_open && !ended {
            assert_same(&before, &everything(&place), "killed before it began");
            continue;
        }
        if is_open && round % 2 == 0 {
            place.does("set --resume");
            assert_same(&changed, &everything(&place), "gone on with");
        }
        place.does("set --undo");
        assert_same(&before, &everything(&place), &format!("round {round}"));
    }
}

#[test]
fn interrupted_while_it_changes_links() {
    let Some(place) = furnished("int-set") else {
        return;
    };
    let before = everything(&place);
    let whole = time(&place, SET);
    let changed = everything(&place);
    place.does("set --undo");
    for (part, atomic) in [
        (0.4, ""),
        (0.6, " --atomic"),
        (0.8, ""),
        (0.3, " --atomic --no-journal"),
    ] {
        let line = format!("{SET}{atomic}");
        let ended = signalled(&place, &line, whole.mul_f64(part), Signal::INT);
        if atomic.is_empty() && place.has_open_journal() {
            place.does("set --resume");
            assert_same(&changed, &everything(&place), "gone on with");
        }
        if ended && atomic.contains("no-journal") {
            // It was through before it heard, and nothing was kept.
            assert_same(&changed, &everything(&place), &line);
            return;
        }
        if ended || atomic.is_empty() && everything(&place) != before {
            place.does("set --undo");
        }
        assert_same(&before, &everything(&place), &line);
    }
}

#[test]
fn one_that_fails_puts_routes_back_too() {
    let Some(place) = furnished("fail-set") else {
        return;
    };
    place
        .netns
        .ip(&["link", "add", "renamed5", "type", "bridge"])
        .unwrap();
    let before = everything(&place);
    for line in [
        format!("{SET} --atomic"),
        format!("{SET} --atomic --no-journal"),
    ] {
        let complaint = place.refuses(&line, 1);
        assert!(complaint.contains("testa5"), "{complaint}");
        assert_same(&before, &everything(&place), &line);
    }
    assert!(!place.has_open_journal());
    // Without --atomic the rest is changed, and when nothing stands in the
    // way any more, it goes on.
    place.refuses(SET, 1);
    place.netns.ip(&["link", "del", "renamed5"]).unwrap();
    place.does("set --resume");
    assert!(place.names().contains("renamed5") && place.names().contains("renamed40"));
    let complaint = place.refuses("set --resume", 1);
    assert!(complaint.contains("were changed"), "{complaint}");
}

#[test]
fn links_and_masters_that_are_gone_are_left_alone() {
    let Some(place) = furnished("gone-set") else {
        return;
    };
    place
        .netns
        .ip(&["link", "add", "renamed5", "type", "bridge"])
        .unwrap();
    place.refuses("set testa{} -n 10 name renamed{} mtu 1400", 1);
    // One goes before it goes on, another is a stranger with its index.
    let index = place.links()["renamed4"].0;
    let batch = format!(
        "link del renamed3\nlink del renamed4\nlink del renamed5\n\
         link add stranger index {index} type bridge\n"
    );
    place.netns.ip_batch(&batch).unwrap();
    let said = place.does("set --resume");
    assert!(said.contains("2 of its links are gone"), "{said}");
    assert!(place.names().contains("renamed5"));
    let said = place.does("set --undo");
    assert!(said.contains("8 links put back"), "{said}");
    assert!(place.names().contains("testa10") && place.names().contains("stranger"));
    let stranger = place.netns.ip(&["link", "show", "stranger"]).unwrap();
    assert!(stranger.contains("mtu 1500"), "{stranger}");
    // A master that is gone.
    place.does("set testb40 nomaster alias alone");
    place.netns.ip(&["link", "del", "br0"]).unwrap();
    let complaint = place.refuses("set --undo", 1);
    assert!(
        complaint.contains("put it back into its master"),
        "{complaint}"
    );
    let link = place.netns.ip(&["link", "show", "testb40"]).unwrap();
    assert!(!link.contains("alias"), "{link}");
    // A journal is for the work that it is of.
    let journals = place.does("journal --json");
    let newest: Value = serde_json::from_str(journals.lines().next().unwrap()).unwrap();
    assert_eq!(newest["work"], "set");
    let id = newest["id"].as_str().unwrap();
    let complaint = place.refuses(&format!("delete --undo {id}"), 1);
    assert!(complaint.contains("another command"), "{complaint}");
}

#[test]
fn without_room_for_a_journal_nothing_is_changed() {
    let Some(place) = furnished("full-set") else {
        return;
    };
    let before = everything(&place);
    let journals = place.journals.path().to_str().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k,mode=700 tmpfs {journals} && head -c 56k /dev/zero > {journals}/fill && \
         \"$0\" link {SET} --journal {journals}; status=$?; ls {journals}; exit $status"
    );
    let mut command = place.netns.command("unshare");
    command.args(["--mount", "sh", "-c", &script, program()]);
    let output = command.output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("No space left"), "{complaint}");
    assert!(complaint.contains("nothing was done"), "{complaint}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "fill\n",
        "what was begun is removed"
    );
    assert_same(&before, &everything(&place), "nothing was done");
    place.does("set testa{} -n 40 mtu 1400 --no-journal");
}

/// Each link takes the name that its neighbour has: in their own order all
/// but the last would be refused.
#[test]
fn names_move_along_a_row() {
    let Some(place) = Place::new("renames") else {
        return;
    };
    place.does("add -n 20 --kind ifb --name s{}");
    let names = || {
        let links = place
            .netns
            .ip(&["-br", "link", "show", "type", "ifb"])
            .unwrap();
        let names = links.lines().filter_map(|line| line.split(' ').next());
        let mut names: Vec<u32> = names.map(|name| name[1..].parse().unwrap()).collect();
        names.sort_unstable();
        names
    };
    place.does("set s{} -n 20 name s{*1+1}");
    assert_eq!(names(), (2..=21).collect::<Vec<_>>());
    place.does("set --undo");
    assert_eq!(names(), (1..=20).collect::<Vec<_>>());
}
