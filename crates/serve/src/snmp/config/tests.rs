use super::*;

#[derive(Debug, Deserialize)]
struct File {
    #[serde(deserialize_with = "section")]
    snmp: Snmp,
}

fn read(text: &str) -> Result<Snmp, String> {
    toml::from_str::<File>(text)
        .map(|file| file.snmp)
        .map_err(|error| error.message().to_owned())
}

#[test]
fn nothing_said_is_loopback_and_public_alone() {
    let snmp = read("[snmp]\n").unwrap();
    assert_eq!(snmp, Snmp::default());
    assert!(snmp.listen.iter().all(|address| address.ip().is_loopback()));
    let [community] = &snmp.communities[..] else {
        panic!("{snmp:?}");
    };
    assert_eq!(community.name, "public");
    assert_eq!(community.sources, loopback());
    assert!(snmp.agentx.is_none() && snmp.targets.is_empty());
    // Nor is a community said without its sources taken from anywhere.
    let snmp = read("[[snmp.community]]\nname = 'x'\n").unwrap();
    assert_eq!(snmp.communities[0].sources, loopback());
}

#[test]
fn all_of_it() {
    let snmp = read(
        "[snmp]\nlisten = ['0.0.0.0:161', '[::]:161']\nagentx = 'tcp:127.0.0.1:705'\n\
         contact = 'noc'\nlocation = 'here'\nname = 'r1'\nmax_message_bytes = 1400\n\
         allowed_sources = ['192.0.2.0/24']\namplification = 3\n\
         authentic_amplification = 10\nauthentication_failure_traps = true\n\
         description = 'core'\nobject_id = '.1.3.6.1.4.1.9'\nservices = 78\n\
         link_traps = ['*', '!veth*']\n\
         [[snmp.community]]\nname = 'x'\nsources = ['2001:db8::/32']\nview = 'r'\n\
         context = 'vrf-red'\n\
         [[snmp.user]]\nname = 'anna'\nlevel = 'authNoPriv'\nview = 'r'\ncontexts = ['']\n\
         [snmp.view]\nr = ['1.3.6.1.2.1', '!.1.3.6.1.2.1.4', '1.3.6.1.2.1.2.2.1.*.7']\n\
         [[snmp.target]]\naddress = '192.0.2.9:162'\nversion = '3'\nuser = 'anna'\n\
         [[snmp.target]]\naddress = '192.0.2.9:162'\ninform = true\nretries = 2\n",
    )
    .unwrap();
    assert_eq!(snmp.listen.len(), 2);
    let object = snmp.object_id.clone().unwrap();
    assert_eq!(
        (&*object.0, snmp.services),
        (&[1, 3, 6, 1, 4, 1, 9][..], 78)
    );
    let told = &snmp.targets[1];
    assert_eq!(
        (told.inform, told.retries, told.timeout_millis),
        (true, 2, 1_500)
    );
    assert!(!snmp.targets[0].inform);
    assert_eq!(
        snmp.agentx.clone().unwrap().to_string(),
        "tcp:127.0.0.1:705"
    );
    let view = snmp.view("r").unwrap();
    for (name, seen) in [
        (&[1, 3, 6, 1, 2, 1, 1, 1, 0][..], true),
        (&[1, 3, 6, 1, 2, 1, 4, 1, 0][..], false),
        (&[1, 3, 6, 1, 4][..], false),
    ] {
        assert_eq!(view.contains(name), seen, "{name:?}");
    }
    let Subtree(columns) = &snmp.views["r"][2];
    assert_eq!(columns.mask, [0xff, 0b1011_1111]);
    assert!(snmp.view(ALL).is_some() && snmp.view("other").is_none());
}

#[test]
fn what_is_wrong_is_said() {
    for (text, says) in [
        ("[snmp]\nlisten = ['eth0']", "socket address"),
        ("[snmp]\nagentx = 'master'", "/var/agentx/master"),
        ("[snmp]\namplification = 0", "amplification"),
        ("[snmp]\nmax_message_bytes = 100", "484"),
        ("[[snmp.community]]\nview = 'x'", "no view `x`"),
        ("[[snmp.user]]\nname = 'a'\nview = 'x'", "no view `x`"),
        ("[[snmp.user]]\nname = 'a'\nlevel = 'x'", "unknown variant"),
        (
            "[[snmp.target]]\naddress = '192.0.2.1:162'\nversion = '3'",
            "wants a user",
        ),
        (
            "[[snmp.target]]\naddress = '192.0.2.1:162'\nversion = '1'\ninform = true",
            "version 1 has no informs",
        ),
        (
            "[[snmp.target]]\naddress = '192.0.2.1:162'\ntimeout_millis = 99",
            "timeout_millis is between 100 and 60000",
        ),
        (
            "[[snmp.target]]\naddress = '192.0.2.1:162'\nretries = 21",
            "retries is 20 at most",
        ),
        (
            "[snmp]\nauthentic_amplification = 0",
            "authentic_amplification",
        ),
        ("[snmp]\nservices = 128", "services is between 0 and 127"),
        ("[snmp]\nobject_id = '1.x'", "1.x"),
        ("[snmp.view]\nx = ['1.x']", "not a number"),
        ("[snmp]\ncommunity = 'public'", "expected a sequence"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
    }
}
