//! What to run instead, when a link was to be changed.

/// Words that take an address away; some stand before it, some after.
const REMOVALS: [&str; 4] = ["del", "delete", "-alias", "remove"];

/// The commands of `ip` that do what the words after a link's name ask
/// for, one a line; `None` if nothing is asked for.
pub fn commands(words: &[String]) -> Option<String> {
    let (link, words) = words.split_first()?;
    if words.is_empty() {
        return None;
    }
    let mut commands: Vec<String> = Vec::new();
    let is_removal = words.iter().any(|word| REMOVALS.contains(&word.as_str()));
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut value = |placeholder| words.next().unwrap_or(placeholder).to_owned();
        match word {
            "up" | "down" => commands.push(format!("ip link set {link} {word}")),
            "mtu" => commands.push(format!("ip link set {link} mtu {}", value("BYTES"))),
            "name" => commands.push(format!("ip link set {link} name {}", value("NAME"))),
            "txqueuelen" => commands.push(format!(
                "ip link set {link} txqueuelen {}",
                value("PACKETS")
            )),
            "ether" | "lladdr" => {
                commands.push(format!("ip link set {link} address {}", value("LLADDR")))
            }
            "hw" => {
                let _type = value("ether");
                commands.push(format!("ip link set {link} address {}", value("LLADDR")));
            }
            "arp" | "promisc" | "allmulti" | "multicast" | "dynamic" => {
                commands.push(format!("ip link set {link} {} on", ip_word(word)));
            }
            "-arp" | "-promisc" | "-allmulti" | "-multicast" | "-dynamic" => {
                let word = ip_word(word.trim_start_matches('-'));
                commands.push(format!("ip link set {link} {word} off"));
            }
            "create" => commands.push(format!("ip link add {link} type KIND")),
            "destroy" => commands.push(format!("ip link del {link}")),
            "netmask" | "broadcast" | "prefixlen" => drop(value("")),
            "inet" | "inet6" | "alias" | "add" => {}
            _ if REMOVALS.contains(&word) => {}
            address => {
                let what = if is_removal { "del" } else { "add" };
                let len = if address.contains('/') { "" } else { "/LEN" };
                commands.push(format!("ip addr {what} {address}{len} dev {link}"));
            }
        }
    }
    if commands.is_empty() {
        commands.push(format!("fingerpost addr --dev {link}"));
    }
    Some(format!("  {}", commands.join("\n  ")))
}

fn ip_word(word: &str) -> &str {
    if word == "allmulti" {
        "allmulticast"
    } else {
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_ip_that_do_it() {
        for (line, expected) in [
            ("em1", None),
            ("em1 up", Some("  ip link set em1 up")),
            ("em1 -arp", Some("  ip link set em1 arp off")),
            (
                "em1 10.0.0.1 netmask 255.255.255.0 up",
                Some("  ip addr add 10.0.0.1/LEN dev em1\n  ip link set em1 up"),
            ),
            (
                "em1 inet 10.0.0.1/24 -alias",
                Some("  ip addr del 10.0.0.1/24 dev em1"),
            ),
            (
                "em1 hw ether 2:0:0:0:0:1",
                Some("  ip link set em1 address 2:0:0:0:0:1"),
            ),
            ("em1 mtu", Some("  ip link set em1 mtu BYTES")),
            ("em1 inet", Some("  fingerpost addr --dev em1")),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(commands(&words).as_deref(), expected, "{line}");
        }
    }
}
