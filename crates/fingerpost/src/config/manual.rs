//! fingerpost.toml(5), made of the list of keys.

use std::io::{self, Write};

use clap_mangen::roff::{Roff, bold, italic, roman};
use serve::setting::{Section, Setting, Without};

use super::settings::sections;

const ABOUT: &str = "\
The configuration of `fingerpost up`, in TOML. All of it is optional, and so is the file: it is \
looked for at /etc/fingerpost/fingerpost.toml, then at /etc/fingerpost.toml, unless --config names \
another. A key that is not known is refused, and so is a value that makes no sense, with the line \
and the key. `fingerpost check` says whether a file is right, and refuses all that `up` would; \
`fingerpost check --example` writes one with every key.";

const RELOADING: &str = "\
SIGHUP (`systemctl reload fingerpost`) reads the file again; a file that is wrong changes nothing. \
At once take effect: netns, all_netns, log, limits, nat, all of snmp but state_directory, and of http \
hosts, token_file, certificate_file, key_file, netns_without_token and addresses of listen that \
are left out. mirror holds for namespaces that are mirrored from then on; control, answers, \
record, history, router, new feeds and the rest of http take effect at the next start, and the log says so.";

/// Writes the page.
pub fn page(out: &mut impl Write) -> io::Result<()> {
    let mut page = Roff::new();
    page.control("TH", ["fingerpost.toml", "5", "", "Fingerpost"]);
    page.control("SH", ["NAME"]);
    page.text([roman(
        "fingerpost.toml - configuration of the daemon `fingerpost up`",
    )]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(ABOUT)]);
    for section in sections() {
        of_section(&mut page, &section);
    }
    page.control("SH", ["RELOADING"]);
    page.text([roman(RELOADING)]);
    page.control("SH", ["EXAMPLE"]);
    page.text([roman(
        "SNMP for a management station, and HTTP for the network:",
    )]);
    page.control("nf", []);
    page.text([roman(EXAMPLE.trim_end())]);
    page.control("fi", []);
    page.control("SH", ["FILES"]);
    page.text([italic("/etc/fingerpost/fingerpost.toml")]);
    page.control("SH", ["SEE ALSO"]);
    page.text([roman(
        "fingerpost(1), fingerpost-up(1), fingerpost-check(1), fingerpost-snmp(1)",
    )]);
    page.to_writer(out)
}

/// What stands under EXAMPLE.
pub(super) const EXAMPLE: &str = "\
[snmp]
listen = [\"0.0.0.0:161\"]

[[snmp.community]]
name = \"noc\"
sources = [\"192.0.2.0/24\"]

[http]
listen = [\"127.0.0.1:9797\", \"0.0.0.0:9798\"]
token_file = \"/etc/fingerpost/token\"
certificate_file = \"/etc/fingerpost/certificate.pem\"
key_file = \"/etc/fingerpost/key.pem\"
";

fn of_section(page: &mut Roff, section: &Section) {
    let head = match section.head {
        "" => "KEYS BEFORE ALL SECTIONS".to_owned(),
        head => format!("SECTION {head}"),
    };
    page.control("SH", [head.as_str()]);
    if !section.head.is_empty() {
        page.text([roman(section.about)]);
    }
    for setting in section.settings {
        of_setting(page, setting);
    }
}

fn of_setting(page: &mut Roff, setting: &Setting) {
    page.control("TP", []);
    page.text([bold(setting.key)]);
    if !setting.about.is_empty() {
        page.text([roman(setting.about)]);
    }
    let without = match setting.without {
        Without::Value(value) => format!("Default: {value}."),
        Without::Words(words) => format!("Default: {words}."),
        Without::Nothing => "It must be there.".to_owned(),
    };
    let is_said = matches!(setting.without, Without::Value(value) | Without::Words(value)
        if value == setting.example.trim_matches('"') || value == setting.example);
    page.text([roman(match is_said {
        true => without,
        false => format!("{without} Example: {} = {}", setting.key, setting.example),
    })]);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::parse;

    #[test]
    fn the_page_has_every_key_its_default_and_an_example() {
        let mut page = Vec::new();
        super::page(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        for section in sections() {
            assert!(page.contains(&section.head.replace('-', "\\-")), "{page}");
            for setting in section.settings {
                let key = format!("\\fB{}\\fR", setting.key);
                assert!(page.contains(&key), "{key}: {page}");
            }
        }
        for wanted in [
            "Default: 65507.",
            "Example: kind = \"bmp\"",
            "It must be there",
        ] {
            assert!(page.contains(wanted), "{wanted}");
        }
    }

    #[test]
    fn the_example_of_the_page_is_right() {
        parse(Path::new("f.toml"), EXAMPLE).unwrap();
    }
}
