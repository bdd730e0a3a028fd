//! Applied over ssh, by a file that cuts off the session: nobody can
//! confirm, and all is taken back in time.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::{Child, Sshd};

use super::*;

/// Both ends of the session, by a link that the file will take down.
struct Ssh {
    far: Netns,
    near: Netns,
    server: Sshd,
    files: Files,
}

const FAR: &str = "198.51.100.2";
const WITHIN: Duration = Duration::from_secs(4);

impl Ssh {
    fn new() -> Option<Self> {
        let (far, near) = (at_rest("sshfar")?, at_rest("sshnear")?);
        far.ip_batch(&format!(
            "link add up0 type veth peer name up1 netns {}\n\
             link set up0 up\naddr add {FAR}/24 dev up0\nlink set lo up\n",
            near.name()
        ))
        .unwrap();
        near.ip_batch("link set up1 up\naddr add 198.51.100.1/24 dev up1\n")
            .unwrap();
        let files = Files::new();
        let server = Sshd::start(&far, files.path(), Some(&format!("{FAR}:2222"))).unwrap();
        let ssh = Self {
            far,
            near,
            server,
            files,
        };
        wait_until(PATIENCE, "sshd", || {
            let said = ssh.command("true").output().ok()?;
            said.status.success().then_some(())
        })
        .unwrap();
        Some(ssh)
    }

    /// A command on the far end, by ssh.
    fn command(&self, line: &str) -> Command {
        self.command_with(&[], line)
    }

    fn command_with(&self, options: &[&str], line: &str) -> Command {
        let usual = [
            "-p",
            "2222",
            "-o",
            "ConnectTimeout=10",
            "-o",
            "LogLevel=ERROR",
        ];
        let options = [&usual, options].concat();
        let mut client = self.server.session(&self.near, FAR, &options);
        client.arg(line).stdin(Stdio::null());
        client
    }

    fn line(&self, file: &Path) -> String {
        format!(
            "{} apply {} --journal {} --confirm {}s",
            program(),
            file.display(),
            self.files.path().join("journal").display(),
            WITHIN.as_secs()
        )
    }
}

#[test]
fn a_file_that_cuts_off_its_own_session_is_taken_back_in_time() {
    let Some(ssh) = Ssh::new() else { return };
    let before = says(&ssh.far, &["export"]);
    let file = ssh.files.write(
        "cut.toml",
        "[[link]]\nname = \"up0\"\nup = false\n\
         [[link]]\nname = \"br{1..20}\"\nkind = \"bridge\"\nup = true\n\
         addresses = \"10.0.{}.1/24\"\n",
    );
    let began = Instant::now();
    let mut command = ssh.command(&ssh.line(&file));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let session = Child::spawn(command).unwrap();
    let is_cut = || {
        let shown = ssh.far.ip(&["-o", "link", "show", "up0"]).ok()?;
        shown.contains("state DOWN").then_some(())
    };
    wait_until(PATIENCE, "the link to go down", is_cut).unwrap();
    // Who called goes, and cannot say so.
    drop(session);
    wait_until(PATIENCE, "all as it was", || {
        (says(&ssh.far, &["export"]) == before).then_some(())
    })
    .unwrap();
    assert!(began.elapsed() >= WITHIN, "it was taken back too early");
    // The way back is there again, once the carriers are and who asked for
    // its neighbour in vain asks again.
    wait_until(PATIENCE, "a login", || {
        let again = ssh.command("echo logged in").output().unwrap();
        (again.stdout.trim_ascii() == b"logged in").then_some(())
    })
    .unwrap();
}

#[test]
fn a_session_that_dies_while_it_applies_leaves_the_old_state() {
    let Some(ssh) = Ssh::new() else { return };
    let before = says(&ssh.far, &["export"]);
    let file = ssh.files.write(
        "many.toml",
        "[[link]]\nname = \"br{1..200}\"\nkind = \"bridge\"\nup = true\n\
         addresses = \"10.0.{}.1/24\"\n",
    );
    // With a terminal: what hangs up sends SIGHUP to all that have it.
    let line = ssh.line(&file);
    let mut command = ssh.command_with(&["-tt"], &line);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let session = Child::spawn(command).unwrap();
    let has_begun = || {
        let links = ssh.far.ip(&["-o", "link"]).ok()?;
        (links.lines().count() > 20).then_some(())
    };
    wait_until(PATIENCE, "the first links", has_begun).unwrap();
    drop(session);
    wait_until(PATIENCE, "all as it was", || {
        (says(&ssh.far, &["export"]) == before).then_some(())
    })
    .unwrap();
}
