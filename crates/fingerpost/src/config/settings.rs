//! What the keys of the configuration are for, all of them: those of this
//! room, and those that stand beside the sections of others. The manual page
//! (`fingerpost man`) and `fingerpost check --example` are made of it.

use serve::setting::{Section, Setting, Without};

use super::feed;

/// All sections, in the order of a file.
pub fn sections() -> Vec<Section> {
    let mut all = OWN.to_vec();
    all.extend(feed::SECTIONS);
    all.extend(serve::snmp::config::SECTIONS);
    all.push(serve::http::config::SECTION);
    all
}

const OWN: &[Section] = &[
    Section {
        head: "",
        about: "Before all sections.",
        settings: &[
            Setting::new(
                "netns",
                Without::Value("[]"),
                "[\"blue\", \"/proc/4711/ns/net\"]",
                "Namespaces to mirror, by name, path or process id; none: the daemon's own. For \
                 others it needs CAP_SYS_ADMIN.",
            ),
            Setting::usual(
                "all_netns",
                "false",
                "All named namespaces as they come and go, and the daemon's own.",
            ),
            Setting::new(
                "log",
                Without::Words("info"),
                "\"info\"",
                "What is logged: error, warn, info, debug, trace, or a filter as in RUST_LOG \
                 without spans and fields.",
            ),
        ],
    },
    Section {
        head: "[control]",
        about: "The control sockets, at which the command line asks.",
        settings: &[
            Setting::new(
                "directory",
                Without::Words("/run/fingerpost, or $XDG_RUNTIME_DIR/fingerpost"),
                "\"/run/fingerpost\"",
                "The directory of the sockets, an absolute path.",
            ),
            Setting::new(
                "group",
                Without::Words("root only"),
                "\"netadmin\"",
                "The group that may ask about other namespaces than the daemon's own, beside root.",
            ),
        ],
    },
    Section {
        head: "[answers]",
        about: "Answers on their way to clients.",
        settings: &[Setting::usual(
            "kept_bytes",
            "67108864",
            "Bytes of memory for all who are answered: connections, answers, what is not taken; \
             1048576 at least. A quarter is root's alone.",
        )],
    },
    Section {
        head: "[mirror]",
        about: "The mirrors of the kernel's tables.",
        settings: &[
            Setting::usual(
                "receive_buffer_bytes",
                "33554432",
                "Bytes of the kernel's queue of events for each namespace, 4096 to 1073741824.",
            ),
            Setting::usual(
                "scan_interval_secs",
                "600",
                "Seconds between two scans for drift, 1 to 604800.",
            ),
        ],
    },
    Section {
        head: "[record]",
        about: "Records what the kernel says, with its time, for `fingerpost replay`.",
        settings: &[
            Setting::new(
                "file",
                Without::Words("nothing is recorded"),
                "\"/var/lib/fingerpost/recording\"",
                "The file, an absolute path. The packaged service may write below \
                 /var/lib/fingerpost.",
            ),
            Setting::usual(
                "limit_bytes",
                "1073741824",
                "Bytes of FILE and FILE.1, the part before it, together; 1048576 at least.",
            ),
        ],
    },
    Section {
        head: "[history]",
        about: "Keeps what changes the tables, so that questions are answered as of a time that \
                has passed: `--at`. Who may read it: root, and `group` in [control].",
        settings: &[
            Setting::new(
                "directory",
                Without::Words("no history is kept"),
                "\"/var/lib/fingerpost/history\"",
                "A directory of its own, an absolute path. The packaged service may write below \
                 /var/lib/fingerpost.",
            ),
            Setting::usual(
                "limit_bytes",
                "1073741824",
                "Bytes that it takes at most: the oldest goes first; 4194304 at least.",
            ),
            Setting::usual(
                "keep_secs",
                "604800",
                "Seconds that it is kept at most, 60 to 315360000.",
            ),
            Setting::usual(
                "counters_secs",
                "60",
                "Seconds between two times that counters of links are kept, up to 86400; 0: they \
                 are not.",
            ),
        ],
    },
    Section {
        head: "[nat]",
        about: "The translation of this host, for `/v1/nat/…`, metrics and SQL.",
        settings: &[Setting::usual(
            "control",
            "\"/run/fingerpost-nat.sock\"",
            "The control socket of `nat run --control`, `forward --nat-control` or `router --nat-control`, an absolute \
             path. With `--control-group fingerpost` there the packaged service may ask.",
        )],
    },
    Section {
        head: "[ip]",
        about: "What is called by the names of ip(8) and bridge(8).",
        settings: &[
            Setting::new(
                "fallback",
                Without::Words("it is refused"),
                "\"/sbin/ip\"",
                "The program that takes what ip has and is not built here, an absolute path.",
            ),
            Setting::new(
                "bridge_fallback",
                Without::Words("it is refused"),
                "\"/sbin/bridge\"",
                "The same for bridge.",
            ),
        ],
    },
    Section {
        head: "[router]",
        about: "Forwarding at XDP: what `fingerpost router` does where its command line says \
                nothing, and where `up` asks it for its counters.",
        settings: &[
            Setting::new(
                "on",
                Without::Words("the command line says which"),
                "[\"eth1\", \"eth2\"]",
                "The links that packets are forwarded between, 2 to 64.",
            ),
            Setting::new(
                "accept",
                Without::Value("[]"),
                "[\"conntrack\", \"vlan-tags\"]",
                "Obstacles that do not matter, by their names: see fingerpost-router(1).",
            ),
            Setting::usual(
                "obstacle",
                "\"kernel\"",
                "What happens when another obstacle appears later: \"kernel\" leaves what it meets \
                 to the kernel until it is gone, \"tell\" tells of it alone.",
            ),
            Setting::usual(
                "control",
                "\"/run/fingerpost-router.sock\"",
                "The control socket of `fingerpost router`, an absolute path.",
            ),
            Setting::new(
                "group",
                Without::Words("root only"),
                "\"fingerpost\"",
                "The group that may ask there, beside root. The packaged `up` is in the group \
                 fingerpost.",
            ),
            Setting::new(
                "nat",
                Without::Words("nothing is translated"),
                "\"/etc/fingerpost/nat.conf\"",
                "The rules, in natd's words, by which IPv4 that leaves by a link of `outside` is \
                 translated: an absolute path.",
            ),
            Setting::new(
                "outside",
                Without::Words("none"),
                "[\"eth2\"]",
                "The links outside of the translation, of those in `on`.",
            ),
            Setting::usual(
                "without",
                "\"closed\"",
                "What becomes of what is to be translated while nobody does: \"closed\" drops it, \
                 \"open\" has the kernel forward it as it is.",
            ),
            Setting::new(
                "nat_control",
                Without::Words("nobody may ask"),
                "\"/run/fingerpost-nat.sock\"",
                "The translation's own control socket, for `nat show`, `clear`, `reload` and `who`, \
                 and for `up`: an absolute path.",
            ),
            Setting::new(
                "nat_control_group",
                Without::Words("root only"),
                "\"fingerpost\"",
                "The group that may ask there and change nothing, beside root.",
            ),
            Setting::new(
                "nat_state",
                Without::Words("state_file of the rules"),
                "\"/var/lib/fingerpost/nat.state\"",
                "The file that keeps flows from the end of one translation to the start of the \
                 next: an absolute path.",
            ),
        ],
    },
    Section {
        head: "[limits]",
        about: "Rows that each table may have, 1 or more.",
        settings: LIMITS,
    },
];

/// Rows of each table; the same for a feed's own.
pub(super) const LIMITS: &[Setting] = &[
    limit("links", "1048576"),
    limit("addresses", "4194304"),
    limit("neighbours", "8388608"),
    limit("routes", "16777216"),
    limit("nexthops", "4194304"),
    limit("rules", "1048576"),
    limit("fdb", "8388608"),
];

const fn limit(key: &'static str, rows: &'static str) -> Setting {
    Setting::new(key, Without::Words(rows), rows, "")
}

/// A configuration with every key: commented out, but for the heads that
/// change nothing. What stands behind a `#` is the default where there is
/// one.
pub fn example() -> String {
    let mut out = String::from(
        "# Configuration of `fingerpost up`; fingerpost.toml(5) is its manual. All of it\n\
         # is optional: what stands behind a # is the default, or an example where it\n\
         # says so. `fingerpost check` says whether it is right, `systemctl reload\n\
         # fingerpost` reads it again.\n",
    );
    for section in sections() {
        out.push('\n');
        if !section.head.is_empty() {
            comment(&mut out, section.about);
            let head = section.head.replace("NAME", "frr");
            // A section of its own would be one more.
            let mark = if is_plain(section.head) { "" } else { "# " };
            out += &format!("{mark}{head}\n");
        }
        for setting in section.settings {
            example_of(&mut out, &section, setting);
        }
    }
    out
}

/// Whether a head alone says nothing.
fn is_plain(head: &str) -> bool {
    !head.starts_with("[[") && !head.contains("NAME") && head != "[snmp.view]"
}

fn example_of(out: &mut String, section: &Section, setting: &Setting) {
    let mut about = setting.about.to_owned();
    let value = match setting.without {
        Without::Value(value) => value,
        Without::Words(words) if words == setting.example.trim_matches('"') => setting.example,
        Without::Words(words) => {
            about += &format!(" Without it: {words}. An example:");
            setting.example
        }
        Without::Nothing => {
            about += " It must be there. An example:";
            setting.example
        }
    };
    comment(out, about.trim_start());
    let key = setting.key.replace("NAME", "routes");
    let mark = if is_plain(section.head) { "#" } else { "# " };
    *out += &format!("{mark}{key} = {value}\n");
}

/// A text as comments of 78 characters a line.
fn comment(out: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > 78 {
            *out += &line;
            out.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line += word;
    }
    if line.len() > 1 {
        *out += &line;
        out.push('\n');
    }
}

#[cfg(test)]
mod tests;
