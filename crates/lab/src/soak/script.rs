//! A run as a shell script, and back.

use super::churn;

/// Before and after the lines of a run.
const BEGIN: &str = "in_it sh <<'CHANGES'";
const END: &str = "CHANGES";

/// A shell script that does what a run did, one command after the other.
pub fn script(lines: &[String]) -> String {
    let head = "#!/bin/sh\n\
                # Makes a namespace, starts a daemon in it, changes it, and shows both sides.\n\
                HERE=soak-here OTHER=soak-other\n\
                ip netns add $HERE; ip netns add $OTHER\n\
                in_it() { nsenter --net=/run/netns/$HERE -- \"$@\"; }\n\
                export HERE OTHER\n\
                in_it sh <<'BEGINNING'\n\
                echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad\n\
                echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad\n\
                echo 1 > /proc/sys/net/ipv4/conf/all/forwarding\n";
    let beginning = text(churn::BEGINNING.iter());
    let lines = text(lines.iter());
    format!(
        "{head}{beginning}BEGINNING\nin_it fingerpost up & sleep 1\n\
         DAEMON=$(ip netns pids $HERE | head -1); export DAEMON\n\
         {BEGIN}\n{lines}{END}\nkill -CONT $DAEMON\n"
    )
}

/// The lines of a run from its script; of a file that is none, all lines.
pub fn lines_of_script(script: &str) -> Vec<String> {
    let lines = match script.split_once(BEGIN) {
        Some((_, lines)) => lines.trim_start(),
        None => script,
    };
    let lines = lines.lines().take_while(|line| *line != END);
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

fn text(lines: impl Iterator<Item = impl AsRef<str>>) -> String {
    lines.fold(String::new(), |text, line| text + line.as_ref() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_gives_its_lines_back() {
        let lines = churn::lines(5, 100);
        assert_eq!(lines_of_script(&script(&lines)), lines);
        assert_eq!(
            lines_of_script("ip link\n\nip addr\n"),
            ["ip link", "ip addr"]
        );
    }
}
