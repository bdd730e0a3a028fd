//! Ends by SIGKILL, at random moments under all attacks, and what must be
//! there after each: an answer soon, every route, the recording of the run
//! that was killed, links as they were before a change that was killed too.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;

use super::attackers::Attackers;
use super::besieged::{self, Besieged};
use super::{Figure, PATIENCE, Siege};
use crate::{Child, Netns, Random, wait_until};

/// Links that are changed meanwhile.
const LINKS: usize = 64;
/// Milliseconds that a daemon may have, of a thousand kills: most of them
/// soon after the start, some with a recording of some seconds.
const MOMENTS: [(usize, usize); 2] = [(750, 300), (1_000, 3_000)];
/// A daemon that was ready for so long has written all of its first listing
/// into its recording: it does so every 50 ms.
const RECORDED: Duration = Duration::from_secs(2);
/// All rows, and not only their number, are compared after one kill of so
/// many, and the recording of the run that was killed is replayed.
const WHOLE: u32 = 8;

/// With so many kills some come while links are changed, some late enough for
/// a whole recording.
const MANY: u32 = 20;
/// What is asked for all rows of each table.
const TABLES: [&str; 8] = [
    "link list",
    "addr list",
    "neigh list --state all",
    "route list -4 --table all",
    "route list -6 --table all",
    "rule list",
    "nexthop list",
    "fdb list",
];

/// All kills of a siege.
pub struct Kills<'a> {
    siege: &'a Siege,
    netns: &'a Netns,
    besieged: &'a mut Besieged,
    random: Random,
    /// What must be the same after each.
    links: String,
    routes: String,
    slowest: Duration,
    replayed: usize,
    undone: usize,
    /// What was lost, in words.
    lost: Vec<String>,
}

impl<'a> Kills<'a> {
    /// With a daemon that is ready and not yet attacked.
    pub fn new(siege: &'a Siege, netns: &'a Netns, besieged: &'a mut Besieged) -> Result<Self> {
        let made: Vec<String> = (1..=LINKS)
            .map(|link| format!("link add pool{link} type veth peer name peer{link}\n"))
            .collect();
        netns.ip_batch(&made.concat())?;
        Ok(Self {
            siege,
            netns,
            random: Random::new(siege.seed),
            links: links(netns)?,
            routes: routes(netns)?,
            besieged,
            slowest: Duration::ZERO,
            replayed: 0,
            undone: 0,
            lost: Vec::new(),
        })
    }

    /// Does all of them; what came of them.
    pub fn run(mut self) -> Result<Vec<Figure>> {
        let attackers = Attackers::start(self.netns, self.besieged, self.siege)?;
        for kill in 0..self.siege.kills {
            self.once(kill)
                .with_context(|| format!("kill {kill} of seed {}", self.siege.seed))?;
        }
        attackers.stop();
        self.equal_to_the_kernel();
        self.figures()
    }

    fn once(&mut self, kill: u32) -> Result<()> {
        let kind = self.random.below(1_000);
        let most = MOMENTS.iter().find(|(of, _)| kind < *of);
        let most = most.map_or(0, |(_, most)| *most);
        let moment = Duration::from_millis(self.random.below(most) as u64);
        let mut change = self.change()?;
        thread::sleep(moment);
        if let Some(how) = self.besieged.ended() {
            bail!("before it was killed: {how}");
        }
        change.signal(Signal::KILL)?;
        let lived = self.besieged.kill()?;
        change.wait(PATIENCE)?;
        self.slowest = self.slowest.max(self.besieged.start_again(self.netns)?);
        self.routes_are_there(kill);
        self.change_is_undone()?;
        if lived >= RECORDED && kill.is_multiple_of(WHOLE) {
            self.recording_tells(kill)?;
        }
        Ok(())
    }

    /// Begins to change links, for long enough to be killed in it.
    fn change(&self) -> Result<Child> {
        let words = format!("link set pool{{}} -n 1-{LINKS} mtu 1400 alias besieged");
        let mut command = self.besieged.program(self.netns);
        command.args(words.split(' '));
        command.arg("--journal").arg(self.besieged.journals());
        besieged::quiet(command)
    }

    /// Takes back what was done of the change, if anything was.
    fn change_is_undone(&mut self) -> Result<()> {
        if links(self.netns)? == self.links {
            return Ok(());
        }
        let mut command = self.besieged.program(self.netns);
        command.args(["link", "set", "--undo", "--journal"]);
        command.arg(self.besieged.journals());
        let undone = command.output()?;
        self.undone += 1;
        if links(self.netns)? != self.links {
            let why = String::from_utf8_lossy(&undone.stderr).into_owned();
            self.lost.push(format!("links are not as before: {why}"));
        }
        Ok(())
    }

    fn routes_are_there(&mut self, kill: u32) {
        let (besieged, netns) = (&self.besieged, self.netns);
        let counted = wait_until(PATIENCE, "the routes", || {
            (besieged.routes(netns)? == self.siege.routes).then_some(())
        });
        if let Err(error) = counted {
            self.lost.push(format!("{error:#}"));
        }
        if kill.is_multiple_of(WHOLE) && routes(self.netns).ok().as_ref() != Some(&self.routes) {
            self.lost.push("routes are not those of before".to_owned());
        }
    }

    /// The run that was killed can be replayed: all that its daemon knew.
    fn recording_tells(&mut self, kill: u32) -> Result<()> {
        let mut command = self.besieged.program(self.netns);
        command
            .arg("replay")
            .arg(self.besieged.recording_of_before());
        command.args(["--", "route", "list", "--proto", "bgp", "--count"]);
        let told = command.output()?;
        self.replayed += 1;
        let counted = String::from_utf8_lossy(&told.stdout).trim().parse();
        if counted != Ok(self.siege.routes) {
            let why = String::from_utf8_lossy(&told.stderr);
            let what = format!("the recording of kill {kill} tells {counted:?}: {why}");
            self.lost.push(what);
        }
        Ok(())
    }

    /// At the end, when nothing changes any more: each table, asked of the
    /// daemon and of the kernel.
    fn equal_to_the_kernel(&mut self) {
        for table in TABLES {
            let equal = wait_until(PATIENCE, table, || {
                let daemon = self.table(table, false).ok()?;
                (daemon == self.table(table, true).ok()?).then_some(())
            });
            if equal.is_err() {
                let what = format!("`{table}` is not as the kernel has it");
                self.lost.push(what);
            }
        }
    }

    /// All rows of a table, of the kernel or of the daemon; the kernel has
    /// some in an order of its own.
    fn table(&self, table: &str, direct: bool) -> Result<Vec<String>> {
        let mut command = self.besieged.program(self.netns);
        command.args(table.split(' ')).arg("--ndjson");
        match direct {
            true => command.arg("--direct"),
            false => command.arg("--socket").arg(self.besieged.socket()),
        };
        let told = command.output()?;
        let complaint = String::from_utf8_lossy(&told.stderr);
        ensure!(told.status.success(), "{table}: {complaint}");
        let text = String::from_utf8(told.stdout)?;
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        rows.sort_unstable();
        Ok(rows)
    }

    fn figures(self) -> Result<Vec<Figure>> {
        let kills = self.siege.kills;
        let ready = format!("ready after {kills} kills, longest");
        let lost = match self.lost.first() {
            Some(first) => format!("{}: {first}", self.lost.len()),
            None => "0".to_owned(),
        };
        let (starts, boots) = self.besieged.starts()?;
        // Of few kills none may have come at such a moment.
        let some =
            |what: &str, times: usize| Figure::new(what, times, "some", kills < MANY || times > 0);
        Ok(vec![
            Figure::time(&ready, self.slowest, self.siege.bounds.ready),
            Figure::new("lost by kills", lost, 0, self.lost.is_empty()),
            some("changes of links that were taken back", self.undone),
            some("recordings that were replayed", self.replayed),
            Figure::new(
                "starts that SNMP's engine counted",
                boots,
                starts,
                starts == boots,
            ),
        ])
    }
}

/// Names, sizes and aliases of the links that are changed.
fn links(netns: &Netns) -> Result<String> {
    netns.ip(&["-d", "-o", "link", "show", "type", "veth"])
}

/// The routes of the situation, as rows.
fn routes(netns: &Netns) -> Result<String> {
    let path = "/v1/routes?proto=bgp&format=csv";
    netns.inside(|| besieged::http(path, PATIENCE))?
}
