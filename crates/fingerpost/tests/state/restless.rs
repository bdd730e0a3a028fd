//! While somebody else changes the same tables.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::*;

/// So long the other is at work.
const BUSY: Duration = Duration::from_secs(2);
/// More addresses than the kernel lists in one part.
const ADDRESSES: u32 = 2_000;

#[test]
fn an_apply_waits_until_the_tables_are_quiet() {
    let Some(netns) = at_rest("srestl") else {
        return;
    };
    let files = Files::new();
    let text = format!(
        "[[link]]\nname = \"br{{1..20}}\"\nkind = \"bridge\"\nup = true\n\
         addresses = \"2001:db8:{{}}::1/64\"\n\
         [[link]]\nname = \"many\"\nkind = \"bridge\"\n\
         [[address]]\nlocal = \"2001:db8:ff::{{1..{ADDRESSES}}}/128\"\ndev = \"many\"\n"
    );
    let file = files.write("a.toml", &text);
    said(files.apply(&netns, &file, &[]));
    // Addresses come and go all the time, as after links were made.
    netns
        .ip(&["link", "add", "other", "type", "bridge"])
        .unwrap();
    let mut lines = String::new();
    for number in 0..400_000_u32 {
        let verb = if number % 2 == 0 { "add" } else { "del" };
        let _ = writeln!(lines, "addr {verb} 2001:db8:fe::1/128 dev other");
    }
    let busy = files.write("busy", &lines);
    let mut command = netns.command("ip");
    command.arg("-batch").arg(&busy).stdout(Stdio::null());
    let began = Instant::now();
    let other = lab::Child::spawn(command).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(BUSY);
            drop(other);
        });
        let mut applied = 0;
        while began.elapsed() < BUSY {
            let again = files.apply(&netns, &file, &["--prune", "--atomic"]);
            let why = String::from_utf8_lossy(&again.stderr).into_owned();
            assert!(again.status.success(), "{why}");
            let told = String::from_utf8_lossy(&again.stdout).into_owned();
            assert!(told.contains("nothing was sent"), "{told}{why}");
            applied += 1;
        }
        assert!(applied > 0);
    });
}
