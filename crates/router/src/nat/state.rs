//! What a translation leaves behind for the next one: its flows, mappings and
//! blocks in a file, written at its end and taken up at the next start, which
//! removes it before anything is translated. A start that fails before that
//! leaves all as it was. After an end without one (a kill, a power failure) the
//! journal says whose blocks were, and these rest with their subscribers.
//!
//! For `nat run` and `forward --nat`. A file that cannot be taken up is set
//! aside and said, and all begins empty.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use nat::saved::{self, ChunkReader, Chunks, SavedError};
use nat::{Nat, TakenUp};
use tracing::{info, warn};

use super::log::record::{Record, What};
use super::log::{self, Log};
use super::settings::Settings;

/// The chunk before those of the engines.
const HEAD: [u8; 4] = *b"head";
/// Whom flows are of is root's business.
const MODE: u32 = 0o600;

/// Where a state is kept, and which journal knows of blocks.
#[derive(Debug, Default)]
pub struct State {
    path: Option<PathBuf>,
    journal: Option<PathBuf>,
}

/// What a file begins with.
struct Head {
    /// Milliseconds since 1970, and of the machine's run.
    wall: u64,
    boot: u64,
    boot_id: [u8; 16],
    seed: u64,
    /// Flows of the engine that has the most.
    flows: u64,
    engines: u16,
}

impl Head {
    fn of(engines: &[Nat]) -> Self {
        let flows = engines.iter().map(|nat| nat.statistics().flows).max();
        Self {
            wall: log::wall_millis(),
            boot: log::boot_millis(),
            boot_id: boot_id(),
            seed: engines.first().map_or(0, |nat| nat.config().seed),
            flows: flows.unwrap_or(0) as u64,
            engines: engines.len() as u16,
        }
    }

    fn record(&self) -> saved::Record {
        let record = saved::Record::default().u64(self.wall).u64(self.boot);
        let record = record.with(self.boot_id).u64(self.seed);
        record.u64(self.flows).u16(self.engines)
    }

    /// How long it is ago: by a clock that nobody sets, as long as the
    /// machine has not been started anew.
    fn gone_millis(&self) -> u64 {
        match self.boot_id == boot_id() {
            true => log::boot_millis().saturating_sub(self.boot),
            false => log::wall_millis().saturating_sub(self.wall),
        }
    }
}

impl State {
    /// By what the command line says, or else the rules.
    pub fn new(
        said: Option<&Path>,
        settings: &Settings,
        journal: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let path = match said {
            Some(path) => Some(path.to_owned()),
            None => settings.state_file()?,
        };
        Ok(Self {
            path,
            journal: journal.map(Path::to_owned),
        })
    }

    /// The engines, with what was left by those before, and what is to be done
    /// before they translate. `now_millis` is the engines' time.
    pub fn begin(
        &self,
        settings: &Settings,
        parts: u16,
        now_millis: u64,
    ) -> anyhow::Result<(Vec<Nat>, Beginning)> {
        if let Some(path) = &self.path {
            match self.take_up(path, settings, parts, now_millis) {
                Ok(Some(engines)) => {
                    let beginning = Beginning {
                        file: Some(path.clone()),
                        ..Beginning::of(What::Resumed)
                    };
                    return Ok((engines, beginning));
                }
                Ok(None) => {}
                Err(error) => set_aside(path, &error)?,
            }
        }
        let mut engines = settings.engines(parts)?;
        let beginning = self.recover(&mut engines, now_millis)?;
        Ok((engines, beginning))
    }

    /// The engines with a state; `None`: there is none.
    fn take_up(
        &self,
        path: &Path,
        settings: &Settings,
        parts: u16,
        now_millis: u64,
    ) -> anyhow::Result<Option<Vec<Nat>>> {
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut chunks = ChunkReader::new(BufReader::with_capacity(1 << 20, file))?;
        let head = read_head(&mut chunks)?;
        if head.engines != parts {
            return Err(SavedError::Settings("number of workers").into());
        }
        self.check_journal()?;
        let gone = head.gone_millis();
        let following = settings.following(head.seed, head.flows as usize);
        let mut engines = following.engines(parts)?;
        let mut all = TakenUp::default();
        for nat in &mut engines {
            let taken = nat.take_up(&mut chunks, gone, now_millis)?;
            all.flows += taken.flows;
            all.left_out += taken.left_out;
            all.blocks += taken.blocks;
        }
        info!(
            "{}: {} flows and {} blocks go on after {} s",
            path.display(),
            all.flows,
            all.blocks,
            gone / 1_000
        );
        if all.left_out > 0 {
            warn!(
                "{}: {} flows found no place by the settings as they are",
                path.display(),
                all.left_out
            );
        }
        Ok(Some(engines))
    }

    /// A journal that went on since knows more than the state.
    fn check_journal(&self) -> anyhow::Result<()> {
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        let last = log::journal::last(journal);
        let last = last.with_context(|| journal.display().to_string())?;
        match last {
            Some(record) if record.what != What::Suspended => {
                anyhow::bail!("the journal {} has gone on since", journal.display())
            }
            _ => Ok(()),
        }
    }

    /// Gives blocks to whom the journal says they were, where its translation
    /// did not end. A block that cannot be any more is told as given back.
    fn recover(&self, engines: &mut [Nat], now_millis: u64) -> anyhow::Result<Beginning> {
        let Some(journal) = &self.journal else {
            return Ok(Beginning::of(What::Started));
        };
        let held = match log::journal::held(journal) {
            Ok(held) => held.blocks,
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                warn!(
                    "{}: {error}: whose blocks were is not known, and all begins empty",
                    journal.display()
                );
                return Ok(Beginning::of(What::Started));
            }
            Err(error) => return Err(error).with_context(|| journal.display().to_string()),
        };
        let mut lost = Vec::new();
        for record in held.values() {
            let has_it = engines
                .iter_mut()
                .any(|nat| nat.hold_block(record.inside, record.alias, record.ports, now_millis));
            if !has_it {
                lost.push(*record);
            }
        }
        if !held.is_empty() {
            info!(
                "{} blocks rest with whom the journal says they were, {} are none any more",
                held.len() - lost.len(),
                lost.len()
            );
        }
        if lost.len() == held.len() {
            // Nobody has anything: that says all of it.
            return Ok(Beginning::of(What::Started));
        }
        Ok(Beginning {
            lost,
            ..Beginning::of(What::Recovered)
        })
    }

    /// Keeps what there is, at the end. Whether it is kept.
    pub fn end(&self, engines: &mut [Nat], now_millis: u64) -> anyhow::Result<bool> {
        let Some(path) = &self.path else {
            return Ok(false);
        };
        save(path, engines, now_millis)
            .with_context(|| format!("saving the state to {}", path.display()))?;
        Ok(true)
    }
}

/// How a translation begins. What says that it did is done once nothing can
/// fail any more, and before the first packet.
#[derive(Debug)]
#[must_use]
pub struct Beginning {
    /// The state that was taken up.
    file: Option<PathBuf>,
    mark: What,
    /// Blocks that nobody can have any more.
    lost: Vec<Record>,
}

impl Beginning {
    fn of(mark: What) -> Self {
        Self {
            file: None,
            mark,
            lost: Vec::new(),
        }
    }

    /// The translation begins: the state is used up, since after a kill it
    /// would say nothing about what was, and the log is told.
    pub fn confirm(&self, log: &Log) -> anyhow::Result<()> {
        if let Some(path) = &self.file {
            fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
            // Else a power failure brings it back.
            if let Err(error) = sync_directory_of(path) {
                warn!("{}: syncing its removal: {error}", path.display());
            }
        }
        log.give_back(&self.lost);
        log.mark(self.mark);
        Ok(())
    }
}

fn sync_directory_of(path: &Path) -> std::io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

fn read_head(chunks: &mut ChunkReader<'_>) -> Result<Head, SavedError> {
    let chunk = chunks.next_chunk()?;
    let fields = chunk.records().next().filter(|_| chunk.tag == HEAD);
    let mut fields = fields.ok_or(SavedError::Damaged("it begins otherwise"))?;
    Ok(Head {
        wall: fields.u64(),
        boot: fields.u64(),
        boot_id: fields.bytes(),
        seed: fields.u64(),
        flows: fields.u64(),
        engines: fields.u16(),
    })
}

/// Writes it beside, and puts it in place once it is on the disk.
fn save(path: &Path, engines: &mut [Nat], now_millis: u64) -> std::io::Result<()> {
    let beside = path.with_added_extension("new");
    let written = write(&beside, engines, now_millis);
    let placed = written.and_then(|()| fs::rename(&beside, path));
    if placed.is_err() {
        let _ = fs::remove_file(&beside);
        return placed;
    }
    // The name, too, is to outlive a power failure.
    sync_directory_of(path)
}

fn write(path: &Path, engines: &mut [Nat], now_millis: u64) -> std::io::Result<()> {
    // One that is left belongs to nobody, and may be of another mode.
    let _ = fs::remove_file(path);
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(MODE).open(path)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut chunks = Chunks::new(&mut out)?;
    chunks.record(HEAD, Head::of(engines).record().bytes())?;
    for nat in engines {
        nat.save(now_millis, &mut chunks)?;
    }
    chunks.flush()?;
    out.flush()?;
    out.get_ref().sync_data()
}

/// What cannot be taken up stays for who wants to look at it.
fn set_aside(path: &Path, error: &anyhow::Error) -> anyhow::Result<()> {
    let aside = path.with_added_extension("aside");
    fs::rename(path, &aside).with_context(|| format!("setting {} aside", path.display()))?;
    warn!(
        "{}: {error:#}; nothing of it is taken up, and it stays as {}",
        path.display(),
        aside.display()
    );
    Ok(())
}

/// Which start of the machine this is.
fn boot_id() -> [u8; 16] {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let mut id = [0; 16];
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    for (place, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *place = pair.iter().fold(0, |byte, digit| byte << 4 | digit);
    }
    id
}
