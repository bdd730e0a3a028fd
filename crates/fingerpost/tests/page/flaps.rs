//! Which prefixes flapped, drawn over time.

use crate::browser::Browser;
use crate::common::{Daemon, furnished};
use crate::{BEYOND, PAGE, is_quiet};

/// What a line of time shows: its words, and how many of its pixels are of
/// a bar.
const LINES_OF_TIME: &str = "
    return [...document.querySelectorAll('#flaps canvas')].map((one) => {
      const { data } = one.getContext('2d').getImageData(0, 0, one.width, one.height);
      let seen = 0;
      for (let at = 3; at < data.length; at += 4) seen += data[at] === 255 ? 1 : 0;
      return [one.getAttribute('aria-label'), seen - one.width];
    });
";

#[test]
fn which_prefixes_flapped_is_drawn_over_time() {
    let Some(netns) = furnished("pageflaps") else {
        return;
    };
    let _daemon = Daemon::up(&netns, &[]);
    let mut lines = String::new();
    for _ in 0..6 {
        lines += "route add 198.51.100.0/24 dev br0\nroute del 198.51.100.0/24 dev br0\n";
    }
    lines += "route add 203.0.113.0/24 dev br0\n";
    netns.ip_batch(&lines).unwrap();
    let browser = Browser::start(&netns, 1440, 900);
    for (width, height) in [(1440, 900), (768, 1024), (360, 740)] {
        browser.resize(width, height);
        browser.go(&format!("{PAGE}?{width}#/changes"));
        browser.shows("#flaps", "198.51.100.0/24");
        let told = browser.run(LINES_OF_TIME);
        let told: Vec<(String, i64)> = serde_json::from_value(told).unwrap();
        let (words, bars) = &told[0];
        // All of it is of the last minutes.
        assert!(words.ends_with(": 0, 0, 0, 12"), "{told:?}");
        assert!(
            *bars > 0 && told.iter().all(|(_, bars)| *bars > 0),
            "{told:?}"
        );
        let beyond = browser.run(BEYOND);
        assert_eq!(beyond, serde_json::json!([]), "at {width}");
        browser.shot(&format!("flaps-{width}"));
    }
    is_quiet(&browser);
}
