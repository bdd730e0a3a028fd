//! The daemon that is attacked: started, asked, ended.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde_json::Value;

use super::{PATIENCE, Siege};
use crate::{Child, Netns};

/// Asks how the daemon is.
pub const STATUS: &str = "{\"v\":2,\"ask\":{\"status\":{\"json\":true}}}\n";
/// The recording's file.
const RECORDING: &str = "recording";
/// Where HTTP is asked.
pub const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9797);

/// A daemon, its directory and its cgroup; all end with the value.
pub struct Besieged {
    daemon: Child,
    directory: PathBuf,
    socket: PathBuf,
    program: PathBuf,
    cgroup: Option<Cgroup>,
    starts: usize,
    ready: Instant,
}

impl Besieged {
    /// Starts one in a namespace and waits until it is ready.
    /// Recorded, it writes down what its mirror is fed with.
    pub fn start(netns: &Netns, siege: &Siege, recorded: bool) -> Result<Self> {
        let directory = std::env::temp_dir().join(netns.name());
        DirBuilder::new().mode(0o755).create(&directory)?;
        // Everybody is to come as far as the socket.
        fs::set_permissions(&directory, Permissions::from_mode(0o755))?;
        let control = directory.join("run");
        let mut text = format!(
            "[control]\ndirectory = '{}'\n[answers]\nkept_bytes = {}\n",
            control.display(),
            siege.kept
        );
        if recorded {
            let file = directory.join(RECORDING);
            text += &format!("[record]\nfile = '{}'\n", file.display());
        }
        fs::write(directory.join("fingerpost.toml"), text)?;
        let inode = fs::metadata(netns.path())?.ino();
        let cgroup = Cgroup::new(netns.name(), siege.memory);
        let daemon = spawn(netns, &siege.program, &directory, cgroup.as_ref())?;
        Ok(Self {
            daemon,
            socket: control.join(format!("{inode}.sock")),
            program: siege.program.clone(),
            directory,
            cgroup,
            starts: 1,
            ready: Instant::now(),
        })
    }

    /// Its control socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its number.
    pub fn process(&self) -> u32 {
        self.daemon.id()
    }

    /// Its cgroup, where one could be made.
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// How it ended, if it did and nobody told it to.
    pub fn ended(&mut self) -> Option<String> {
        let status = match self.daemon.process().try_wait() {
            Ok(status) => status?,
            Err(error) => return Some(format!("the daemon cannot be waited for: {error}")),
        };
        let log = self.log();
        Some(match self.cgroup.as_ref().map_or(0, Cgroup::oom_kills) {
            0 => format!("the daemon ended: {status}; {log}"),
            _ => format!("the kernel ended the daemon for want of memory (`oom_kill`); {log}"),
        })
    }

    /// Kills it; for how long it had been ready.
    pub fn kill(&mut self) -> Result<Duration> {
        let lived = self.ready.elapsed();
        self.daemon.signal(Signal::KILL)?;
        self.daemon.wait(PATIENCE)?;
        Ok(lived)
    }

    /// Starts it again after it was killed; how long that took.
    pub fn start_again(&mut self, netns: &Netns) -> Result<Duration> {
        let began = Instant::now();
        self.daemon = spawn(netns, &self.program, &self.directory, self.cgroup.as_ref())?;
        self.starts += 1;
        self.ready = Instant::now();
        Ok(began.elapsed())
    }

    /// The program itself, in the namespace.
    pub fn program(&self, netns: &Netns) -> Command {
        netns.command(&self.program.display().to_string())
    }

    /// A directory for journals of changes.
    pub fn journals(&self) -> PathBuf {
        self.directory.join("journals")
    }

    /// What the run before this one recorded.
    pub fn recording_of_before(&self) -> PathBuf {
        self.directory.join(format!("{RECORDING}.1"))
    }

    /// Ends it; how long that took.
    pub fn end(mut self) -> Result<Duration> {
        let began = Instant::now();
        self.daemon.signal(Signal::TERM)?;
        let status = self.daemon.wait(PATIENCE)?;
        if !status.success() {
            bail!("the daemon ended with {status}: {}", self.log());
        }
        Ok(began.elapsed())
    }

    /// Starts, and how many of them its SNMP engine counted.
    pub fn starts(&self) -> Result<(usize, usize)> {
        let text = fs::read_to_string(self.directory.join("snmp-engine.toml"))?;
        let boots = text.lines().find_map(|line| line.strip_prefix("boots = "));
        Ok((self.starts, boots.context("no boots")?.trim().parse()?))
    }

    /// The routes of the situation that it shows, if it answers.
    pub fn routes(&self, netns: &Netns) -> Option<usize> {
        let got = netns.inside(|| http("/v1/routes?proto=bgp&count", PATIENCE));
        got.ok()?.ok()?.trim().parse().ok()
    }

    /// Whether nobody has a place but who asks this.
    pub fn is_idle(&self, netns: &Netns) -> bool {
        // Neither waits for the mirror, as metrics may.
        let got = netns.inside(|| http("/v1/status", PATIENCE));
        let Ok(Ok(of_http)) = got else { return false };
        let of_control = ask(&self.socket, STATUS, PATIENCE).unwrap_or_default();
        let parsed = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap_or_default();
        parsed(of_http.as_bytes())["clients"] == 1
            && parsed(&of_control)["answered"]["clients"] == 1
    }

    /// How it is, in words, for who waits in vain.
    pub fn state(&self, netns: &Netns) -> String {
        let metrics = netns.inside(|| http("/metrics", PATIENCE));
        let metrics = metrics.and_then(|metrics| metrics);
        let metrics = metrics.unwrap_or_else(|error| format!("no metrics: {error:#}"));
        let told = metrics.lines().filter(|line| line.contains("http_"));
        let told: Vec<&str> = told.filter(|line| !line.starts_with('#')).collect();
        format!("{}\n{}", told.join("\n"), self.log())
    }

    /// Processor time of all its threads.
    pub fn spent(&self) -> Result<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.process()))?;
        // Behind the name, which may hold anything: `utime` and `stime`.
        let (_, fields) = text.rsplit_once(')').context("no name")?;
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
        // Of 10 ms, whatever the kernel's own are (`USER_HZ`).
        Ok(Duration::from_millis(10 * ticks))
    }

    /// Memory that it took at most, and how that is known.
    pub fn peak(&self) -> Result<(u64, &'static str)> {
        if let Some(peak) = self.cgroup.as_ref().and_then(Cgroup::peak) {
            return Ok((peak, "cgroup"));
        }
        let text = fs::read_to_string(format!("/proc/{}/status", self.daemon.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        Ok((kib.context("no VmHWM")?.parse::<u64>()? << 10, "VmHWM"))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }
}

impl Drop for Besieged {
    fn drop(&mut self) {
        // A cgroup goes when nobody is in it.
        let _ = self.daemon.signal(Signal::KILL);
        let _ = self.daemon.wait(PATIENCE);
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn spawn(
    netns: &Netns,
    program: &Path,
    directory: &Path,
    cgroup: Option<&Cgroup>,
) -> Result<Child> {
    let mut command = netns.command("sh");
    // In a session of its own, as a service manager has it: the kernel shares
    // processors out among sessions first, and that of the attackers is another.
    let script = "test -z \"$0\" || echo $$ > \"$0\"; exec setsid \"$@\"";
    command.args(["-c", script]);
    command.arg(cgroup.map(Cgroup::members).unwrap_or_default());
    command.arg(program).args(["up", "--config"]);
    command.arg(directory.join("fingerpost.toml"));
    command.env("STATE_DIRECTORY", directory);
    let log = directory.join("log");
    command.stdout(Stdio::piped());
    command.stderr(fs::File::create(&log)?);
    let mut daemon = Child::spawn(command)?;
    let stdout = daemon.process().stdout.take();
    for line in BufReader::new(stdout.context("the daemon's output")?).lines() {
        if line?.starts_with("Ctrl-C") {
            return Ok(daemon);
        }
    }
    bail!("the daemon did not start: {}", fs::read_to_string(log)?)
}

/// What HTTP answers to one question of its own connection.
pub fn http(path: &str, patience: Duration) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&HTTP, patience)?;
    stream.set_read_timeout(Some(patience))?;
    // Version 1.0: a body that ends with the connection, without chunks.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    match said.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.") && head.contains(" 200 ") => {
            Ok(body.to_owned())
        }
        _ => bail!("{path}: {}", said.lines().next().unwrap_or("nothing")),
    }
}

/// A memory cgroup; of version 1 or 2.
#[derive(Debug, Clone)]
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// One of this name; `None` where none can be made.
    fn new(name: &str, limit: u64) -> Option<Self> {
        let second = Path::new("/sys/fs/cgroup").join(name);
        let first = Path::new("/sys/fs/cgroup/memory").join(name);
        for (path, file) in [(first, "memory.limit_in_bytes"), (second, "memory.max")] {
            // A v1 hierarchy without memory takes directories and no limits.
            if !path.parent()?.join("cgroup.procs").exists() || fs::create_dir(&path).is_err() {
                continue;
            }
            let cgroup = Self(path);
            if fs::write(cgroup.0.join(file), limit.to_string()).is_ok() {
                return Some(cgroup);
            }
            cgroup.remove();
        }
        None
    }

    fn members(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    fn peak(&self) -> Option<u64> {
        self.number(&["memory.peak", "memory.max_usage_in_bytes"])
            .filter(|peak| *peak > 0)
    }

    /// What it is charged with now: all of it, and the kernel's part.
    pub fn charged(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = self.number(&["memory.current", "memory.usage_in_bytes"]);
        let kernel = self.number(&["memory.kmem.usage_in_bytes"]);
        let kernel = kernel.or_else(|| self.entry("memory.stat", "kernel"));
        let all = all.map(|octets| ("of its cgroup", octets));
        all.into_iter()
            .chain(kernel.map(|octets| ("of the kernel", octets)))
    }

    /// How often the kernel ended one in it for want of memory.
    pub fn oom_kills(&self) -> u64 {
        let second = self.entry("memory.events", "oom_kill");
        let kills = second.or_else(|| self.entry("memory.oom_control", "oom_kill"));
        kills.unwrap_or(0)
    }

    /// The number in the first of some files that is there.
    fn number(&self, files: &[&str]) -> Option<u64> {
        let mut read = files
            .iter()
            .map(|file| fs::read_to_string(self.0.join(file)));
        read.find_map(Result::ok)?.trim().parse().ok()
    }

    /// The number behind a word in a file.
    fn entry(&self, file: &str, word: &str) -> Option<u64> {
        let text = fs::read_to_string(self.0.join(file)).ok()?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines
            .find(|(key, _)| *key == word)
            .and_then(|(_, number)| number.trim().parse().ok())
    }

    /// Removes it.
    fn remove(&self) {
        // Whoever is left in it is being reaped.
        let _ = super::wait_until(Duration::from_secs(5), "an empty cgroup", || {
            fs::remove_dir(&self.0).ok()
        });
    }
}

/// What the control socket is asked, and how it answers: the program's own
/// protocol, by hand.
pub fn ask(socket: &Path, request: &str, patience: Duration) -> Result<Vec<u8>> {
    let mut stream = std::os::unix::net::UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let [kind, len @ ..] = head;
        let mut payload = vec![0; u32::from_le_bytes(len) as usize];
        stream.read_exact(&mut payload)?;
        match kind {
            1 => answer.append(&mut payload),
            2 => return Ok(answer),
            4 => {}
            _ => bail!("{}", String::from_utf8_lossy(&payload)),
        }
    }
}

/// Runs a command to its end, which is not waited for longer than a siege.
pub fn quiet(mut command: Command) -> Result<Child> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Child::spawn(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip;

    #[test]
    fn an_end_for_want_of_memory_is_told_from_others() {
        let name = format!("fplab-cgroup-{}", std::process::id());
        let made = Cgroup::new(&name, 16 << 20).context("no memory cgroup can be made here");
        let Some(cgroup) = skip::unless(made) else {
            return;
        };
        let run = |what: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("echo $$ > \"$0\" && {what}")]);
            command.arg(cgroup.members());
            quiet(command).unwrap().wait(PATIENCE).unwrap()
        };
        assert!(run("exit 0").success());
        assert_eq!(cgroup.oom_kills(), 0);
        // It waits for the end of a line that does not come.
        assert!(!run("exec tail /dev/zero").success());
        let kills = cgroup.oom_kills();
        cgroup.remove();
        assert_eq!(kills, 1);
    }
}
