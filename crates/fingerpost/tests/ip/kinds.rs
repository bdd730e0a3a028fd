//! Links of all kinds that this kernel has, with all details: byte for byte
//! what `ip` says of the same namespace, but for timers.

use lab::situation::kinds;
use lab::{Netns, skip, wait_until};

use crate::common::{PATIENCE, fingerpost, said};

#[test]
fn links_of_ten_kinds_are_told_as_ip_tells_them() {
    let Some(netns) = skip::unless(Netns::new("kinds")) else {
        return;
    };
    kinds::build(&netns, 8).unwrap();
    for question in ["-j -d addr", "-j -d link", "-j -d -4 addr", "-br link"] {
        let words: Vec<&str> = question.split(' ').collect();
        let theirs = || kinds::steady(&netns.ip(&words).unwrap());
        // What the kernel does by and by falls between two questions: what
        // `ip` says before and behind is the same in the end.
        let asked = wait_until(PATIENCE, "the kernel's rest", || {
            let before = theirs();
            let ours = said(fingerpost(&netns, &[&["ip"], &words[..]].concat()));
            (before == theirs()).then_some((before, kinds::steady(&ours)))
        });
        let (theirs, ours) = asked.unwrap();
        let parts = |text: &str| text.replace("},{\"ifindex", "},\n{\"ifindex");
        let (theirs, ours) = (parts(&theirs), parts(&ours));
        let differs = theirs.lines().zip(ours.lines()).find(|(a, b)| a != b);
        assert_eq!(differs, None, "ip {question}");
        assert_eq!(theirs.len(), ours.len(), "ip {question}");
    }
}
