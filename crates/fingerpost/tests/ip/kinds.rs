//! Links of all kinds that this kernel has, with all details: byte for byte
//! what `ip` says of the same namespace, but for timers; from the kernel, and
//! from a daemon, whose timers are as new as its answer.

use lab::situation::kinds;
use lab::{Netns, skip, wait_until};

use crate::common::{Daemon, PATIENCE, fingerpost, said, says};

#[test]
fn links_of_ten_kinds_are_told_as_ip_tells_them() {
    let Some(netns) = skip::unless(Netns::new("kinds")) else {
        return;
    };
    kinds::build(&netns, 8).unwrap();
    equal(&netns);
    let daemon = Daemon::up(&netns, &[]);
    let before = answers(&netns);
    equal(&netns);
    assert!(answers(&netns) >= before + 4, "the kernel was asked");
    timers_are_new(&netns);
    daemon.end();
}

fn equal(netns: &Netns) {
    for question in ["-j -d addr", "-j -d link", "-j -d -4 addr", "-br link"] {
        let words: Vec<&str> = question.split(' ').collect();
        let theirs = || kinds::steady(&netns.ip(&words).unwrap());
        // What the kernel does by and by falls between two questions: what
        // `ip` says before and behind is the same in the end. What it does
        // without a word a daemon may know a moment later.
        let mut differs = None;
        let asked = wait_until(PATIENCE, "the same answer", || {
            let before = theirs();
            let ours = said(fingerpost(netns, &[&["ip"], &words[..]].concat()));
            let ours = kinds::steady(&ours);
            let parts = |text: &str| text.replace("},{\"ifindex", "},\n{\"ifindex");
            let (theirs, ours) = (parts(&before), parts(&ours));
            let different = theirs.lines().zip(ours.lines()).find(|(a, b)| a != b);
            differs = different.map(|(a, b)| format!("{a}\n{b}"));
            (theirs == ours).then_some(())
        });
        assert!(asked.is_ok(), "ip {question}: {differs:?}");
    }
}

/// How many answers the daemon has given.
fn answers(netns: &Netns) -> u64 {
    let status = says(netns, &["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    status["answered"]["answers"].as_u64().unwrap()
}

/// A timer that runs lies between what `ip` says of it before and behind,
/// unless it began anew meanwhile.
fn timers_are_new(netns: &Netns) {
    let timer = |text: &str| -> f64 {
        let link: serde_json::Value = serde_json::from_str(text).unwrap();
        let timer = &link[0]["linkinfo"]["info_data"]["gc_timer"];
        timer.as_f64().unwrap()
    };
    let words = ["-j", "-d", "link", "show", "dev", "br1"];
    let between = wait_until(PATIENCE, "a timer that runs", || {
        let theirs = || timer(&netns.ip(&words).unwrap());
        let before = theirs();
        let ours = timer(&said(fingerpost(netns, &[&["ip"], &words[..]].concat())));
        let behind = theirs();
        (before > ours && ours > behind).then_some(())
    });
    between.unwrap();
}
