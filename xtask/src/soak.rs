//! `cargo xtask soak`: random changes of a namespace under a daemon, whose
//! tables and answers are then compared with what `ip` and `bridge` say.
//! A list of changes that fails is shrunk and kept as a shell script.

mod progress;
mod router;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ::lab::soak::{self, Failure, Soak};
use anyhow::{Context, Result, ensure};

use crate::host::{self, Needed, say};
use crate::uml;
use progress::Progress;

/// What a run starts.
const NEEDED: &[Needed] = &[
    ("ip", "iproute2"),
    ("bridge", "iproute2"),
    ("nsenter", "util-linux"),
];
/// Every so many seeds the daemon scans for drift, and must find none; the
/// others do without any scan.
const SCANNED: u64 = 9;

/// Which seeds, and how long each.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The first seed
    #[arg(long, visible_alias = "seed", default_value_t = 1)]
    from: u64,
    /// How many seeds
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// Changes of each
    #[arg(long, default_value_t = 120)]
    changes: usize,
    /// Questions about routes after each
    #[arg(long, default_value_t = 200)]
    questions: usize,
    /// Receive buffer of the mirror, bytes; every second seed has 4,096
    #[arg(long, default_value_t = 1 << 20)]
    buffer: usize,
    /// Seconds until both sides must be the same: the kernel announces IPv6
    /// addresses from a queue, which is late where the machine is busy
    #[arg(long, default_value_t = 30)]
    settles: u64,
    /// Runs that shrinking a failure may take
    #[arg(long, default_value_t = 150)]
    shrink: usize,
    /// Ends after this many failures
    #[arg(long, default_value_t = 1)]
    failures: u64,
    /// Begins no further seed after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Seeds at a time; as many as there are cores, unless said
    #[arg(long)]
    jobs: Option<usize>,
    /// Does the changes of a script that a failure has left, with `--from`
    /// as its seed
    #[arg(long, value_name = "SCRIPT")]
    replay: Option<PathBuf>,
    /// In a machine of its own: Debian's user-mode Linux
    #[arg(long, conflicts_with = "replay")]
    vm: bool,
    /// Instead: a router at XDP beside a twin that the kernel alone forwards,
    /// for `--seconds` (1,800)
    #[arg(long)]
    router: bool,
    /// The program under test
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Does it; fails when a seed does.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.router {
        return router::run(arguments);
    }
    host::install_missing(NEEDED)?;
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => built()?,
    };
    if arguments.vm {
        return in_machine(&program, &arguments.words());
    }
    let campaign = Campaign {
        arguments,
        program: program.display().to_string(),
        start: Instant::now(),
        next: AtomicU64::new(arguments.from),
        progress: Progress::new(arguments.count()),
    };
    let jobs = arguments.jobs.map_or_else(cores, |jobs| jobs.max(1));
    thread::scope(|scope| {
        let jobs: Vec<_> = (0..jobs).map(|_| scope.spawn(|| campaign.work())).collect();
        let mut ended = jobs.into_iter().map(|job| job.join());
        ended.try_for_each(|job| job.unwrap_or_else(|_| anyhow::bail!("a seed panicked")))
    })?;
    say(campaign.progress.summary(campaign.start.elapsed()));
    Ok(ExitCode::from(u8::from(campaign.progress.failed() > 0)))
}

/// Runs this command with these words in a machine of its own; fails when it
/// fails there.
fn in_machine(program: &Path, words: &[String]) -> Result<ExitCode> {
    let this = env::current_exe().context("finding our own program")?;
    let program = fs::canonicalize(program).with_context(|| program.display().to_string())?;
    let (this, program) = (this.display(), program.display());
    let said = uml::run(&format!(
        "{this} soak --program {program} {}",
        words.join(" ")
    ))?;
    let summary = said.iter().find(|line| line.starts_with("soak: "));
    let passed = summary.is_some_and(|line| line.contains(" passed, 0 failed"));
    Ok(ExitCode::from(u8::from(!passed)))
}

impl Arguments {
    fn count(&self) -> u64 {
        match self.replay {
            Some(_) => 1,
            None => self.seeds,
        }
    }

    /// The same for this command elsewhere.
    fn words(&self) -> Vec<String> {
        let mut words = vec![
            format!("--from {} --seeds {}", self.from, self.seeds),
            format!("--changes {} --questions {}", self.changes, self.questions),
            format!("--buffer {} --shrink {}", self.buffer, self.shrink),
            format!("--failures {} --settles {}", self.failures, self.settles),
            format!("--jobs {}", self.jobs.unwrap_or(1)),
        ];
        words.extend(self.seconds.map(|seconds| format!("--seconds {seconds}")));
        words
    }

    fn lines(&self, seed: u64) -> Result<Vec<String>> {
        let Some(file) = &self.replay else {
            return Ok(soak::lines(seed, self.changes));
        };
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        Ok(soak::lines_of_script(&text))
    }
}

/// Seeds that several threads take one by one.
struct Campaign<'a> {
    arguments: &'a Arguments,
    program: String,
    start: Instant,
    next: AtomicU64,
    progress: Progress,
}

impl Campaign<'_> {
    fn work(&self) -> Result<()> {
        while let Some(seed) = self.next() {
            let lines = self.arguments.lines(seed)?;
            let soak = self.soak(seed);
            match soak::soak(&soak, seed, &lines, self.arguments.shrink)? {
                Ok(outcome) => self.progress.passed(&outcome),
                Err(failure) => self.failed(seed, &failure)?,
            }
        }
        Ok(())
    }

    fn next(&self) -> Option<u64> {
        let arguments = self.arguments;
        let limit = arguments.seconds.map(Duration::from_secs);
        if self.progress.failed() >= arguments.failures
            || limit.is_some_and(|limit| self.start.elapsed() >= limit)
        {
            return None;
        }
        let seed = self.next.fetch_add(1, Ordering::Relaxed);
        (seed - arguments.from < arguments.count()).then_some(seed)
    }

    fn soak(&self, seed: u64) -> Soak {
        Soak {
            program: self.program.clone(),
            buffer: match seed % 2 {
                0 => 4_096,
                _ => self.arguments.buffer,
            },
            questions: self.arguments.questions,
            settles: Duration::from_secs(self.arguments.settles),
            scans: seed.is_multiple_of(SCANNED),
        }
    }

    fn failed(&self, seed: u64, failure: &Failure) -> Result<()> {
        let script = soak::script(&failure.lines);
        let directory = host::target()?.join("soak");
        let file = directory.join(format!("seed-{seed}.sh"));
        // A machine of its own cannot write the host's files.
        let kept = fs::create_dir_all(&directory).and_then(|()| fs::write(&file, &script));
        let mut text = match kept {
            Ok(()) => format!(
                "seed {seed}, again by `cargo xtask soak --from {seed} --replay {}`:\n",
                file.display()
            ),
            Err(error) => format!("seed {seed}, not kept ({error}):\n"),
        };
        for line in &failure.lines {
            text += &format!("  {line}\n");
        }
        for difference in &failure.differences {
            text += &format!("  != {difference}\n");
        }
        self.progress.failed_with(&text);
        Ok(())
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The program, built.
fn built() -> Result<PathBuf> {
    let built = host::cargo().args(["build", "-p", "fingerpost"]).status()?;
    ensure!(built.success(), "the program could not be built");
    Ok(host::target()?.join("debug/fingerpost"))
}
