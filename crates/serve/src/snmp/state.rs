//! What SNMP keeps from one start to the next: the engine's id and how
//! often it started (RFC 3414 §2.2.1). A version 3 client refuses an agent
//! whose clock goes back, so a start is counted, and the count is on the
//! disk, before the first answer.
//!
//! Called by the daemon when it starts, and by `fingerpost snmp user`.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};

/// Where root's daemon keeps state.
const SYSTEM_DIRECTORY: &str = "/var/lib/fingerpost";
/// The engine's file in it.
const ENGINE: &str = "snmp-engine.toml";
/// Another with each start of the host.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The file of the one that was seen last.
const SEEN_BOOT: &str = "snmp-boot-id";
/// A longer file is not ours.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The first octets of an engine id (RFC 3411 §5, SnmpEngineID): made by
/// the rules of that RFC, by no registered enterprise, octets of our own.
const ENGINE_ID_HEAD: [u8; 5] = [0x80, 0, 0, 0, 5];
/// Random octets behind them.
const ENGINE_ID_TAIL: usize = 12;
/// Starts that can be counted (RFC 3414 §2.2.2); from then on nobody is
/// authenticated until the id is changed.
pub const MAX_BOOTS: u32 = 0x7fff_ffff;

/// An engine as its file tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// `snmpEngineID`, hexadecimal.
    #[serde(with = "super::hex")]
    pub engine_id: Vec<u8>,
    /// `snmpEngineBoots`.
    pub boots: u32,
}

/// The directory for state: the wanted one; what the service manager made
/// for us; the system's; the user's.
pub fn directory(wanted: Option<&Path>) -> Result<PathBuf> {
    if let Some(wanted) = wanted {
        make(wanted).with_context(|| format!("snmp.state_directory: {}", wanted.display()))?;
        return Ok(wanted.to_owned());
    }
    let mut tried = Vec::new();
    for directory in directories() {
        match make(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) => tried.push(format!("{}: {error}", directory.display())),
        }
    }
    Err(anyhow!(
        "there is no place for SNMP's state ({}); name a directory as snmp.state_directory in \
         the configuration",
        tried.join("; ")
    ))
}

/// The engine that is kept, and where; `None`: none is, or it cannot be
/// read.
pub fn stored(wanted: Option<&Path>) -> Option<(PathBuf, Engine)> {
    let usual = || directories().into_iter().find(|one| one.is_dir());
    let directory = wanted.map(Path::to_owned).or_else(usual)?;
    let engine = directory.join(ENGINE).is_file();
    let engine = engine.then(|| read_engine(&directory).ok())??;
    Some((directory, engine))
}

fn directories() -> Vec<PathBuf> {
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let users = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("fingerpost"));
    absolute("STATE_DIRECTORY")
        .into_iter()
        .chain([PathBuf::from(SYSTEM_DIRECTORY)])
        .chain(users)
        .collect()
}

/// Makes a directory if need be, and sees whether files can be made in it.
fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let probe = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    Ok(rustix::fs::access(directory, probe)?)
}

/// Counts a start of the engine: reads it, or makes a new one, and writes
/// it back one start further. An error means that the count is not on the
/// disk.
pub fn count_start(directory: &Path) -> Result<Engine> {
    let _lock = lock(directory)?;
    let mut engine = read_engine(directory)?;
    engine.boots = engine.boots.saturating_add(1).min(MAX_BOOTS);
    write_engine(directory, &engine)?;
    Ok(engine)
}

/// The engine as it is; a new one is made if there is none.
pub fn engine(directory: &Path) -> Result<Engine> {
    let _lock = lock(directory)?;
    let engine = read_engine(directory)?;
    if engine.boots == 0 {
        write_engine(directory, &engine)?;
    }
    Ok(engine)
}

/// Whether the host has started since this was last asked.
pub fn is_first_since_boot(directory: &Path) -> Result<bool> {
    let boot = read(Path::new(BOOT_ID))?.unwrap_or_default();
    let _lock = lock(directory)?;
    let path = directory.join(SEEN_BOOT);
    let is_first = read(&path)?.is_none_or(|seen| seen != boot);
    if is_first {
        replace(&path, &boot)?;
    }
    Ok(is_first)
}

/// A lock on the directory's state, held by one process at a time for the
/// moment of a change.
pub fn lock(directory: &Path) -> Result<File> {
    let path = directory.join("snmp.lock");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    own_as_directory(&file, directory)?;
    flock(&file, FlockOperation::LockExclusive)
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

fn read_engine(directory: &Path) -> Result<Engine> {
    let path = directory.join(ENGINE);
    let Some(text) = read(&path)? else {
        return Ok(Engine {
            engine_id: new_engine_id()?,
            boots: 0,
        });
    };
    let engine: Engine = toml::from_str(&text).with_context(|| {
        format!(
            "{} cannot be read; remove it to begin with a new engine id (the keys of all users \
             must be made anew then)",
            path.display()
        )
    })?;
    // RFC 3411 §5: five octets at least, 32 at most.
    if !(5..=32).contains(&engine.engine_id.len()) || engine.boots > MAX_BOOTS {
        bail!(
            "{}: an engine id of 5 to 32 octets and at most {MAX_BOOTS} boots are expected",
            path.display()
        );
    }
    Ok(engine)
}

fn write_engine(directory: &Path, engine: &Engine) -> Result<()> {
    let text = format!(
        "# The SNMP engine of fingerpost: kept by it. Users' keys are bound to the id.\n{}",
        toml::to_string(engine)?
    );
    replace(&directory.join(ENGINE), &text)
}

/// An engine id that nobody else has.
pub fn new_engine_id() -> Result<Vec<u8>> {
    let mut tail = [0; ENGINE_ID_TAIL];
    let got = getrandom(&mut tail, GetRandomFlags::empty()).context("no random numbers")?;
    if got < tail.len() {
        bail!("the system gave {got} of {ENGINE_ID_TAIL} random octets");
    }
    Ok([&ENGINE_ID_HEAD[..], &tail].concat())
}

/// A file of state; `None` if there is none.
pub fn read(path: &Path) -> Result<Option<String>> {
    let named = || format!("cannot read {}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(named),
    };
    let mut text = String::new();
    let read = file.take(MAX_FILE_BYTES).read_to_string(&mut text);
    if read.with_context(named)? as u64 == MAX_FILE_BYTES {
        bail!("{}: longer than 1 MiB", path.display());
    }
    Ok(Some(text))
}

/// What root puts into the directory of a daemon that is not root's is
/// that daemon's: it has to read it.
fn own_as_directory(file: &File, directory: &Path) -> io::Result<()> {
    let (made, directory) = (file.metadata()?, fs::metadata(directory)?);
    if geteuid().is_root() && made.uid() != directory.uid() {
        fchown(file, Some(directory.uid()), Some(directory.gid()))?;
    }
    Ok(())
}

/// Puts a file in the place of another, whole or not at all, readable by
/// its owner only.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    let write = || -> io::Result<()> {
        let new = path.with_extension("new");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        own_as_directory(&file, directory)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        // The new name, too, must outlive a power cut.
        File::open(directory)?.sync_all()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn starts_are_counted_and_the_id_stays() {
        let directory = tempfile::tempdir().unwrap();
        let made = engine(directory.path()).unwrap();
        let first = count_start(directory.path()).unwrap();
        let second = count_start(directory.path()).unwrap();
        assert_eq!((made.boots, first.boots, second.boots), (0, 1, 2));
        assert_eq!(made.engine_id, second.engine_id);
        assert_eq!(first.engine_id.len(), 17);
        assert_eq!(engine(directory.path()).unwrap(), second);
        let mode = fs::metadata(directory.path().join(ENGINE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_start_of_the_host_is_told_from_one_of_the_agent() {
        let directory = tempfile::tempdir().unwrap();
        let is_first = || is_first_since_boot(directory.path()).unwrap();
        assert!(is_first() && !is_first() && !is_first());
        fs::write(directory.path().join(SEEN_BOOT), "another").unwrap();
        assert!(is_first() && !is_first());
    }

    #[test]
    fn the_count_ends_at_its_end_and_nonsense_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(ENGINE);
        replace(&path, "engine_id = \"8000000005aa\"\nboots = 2147483647\n").unwrap();
        assert_eq!(count_start(directory.path()).unwrap().boots, MAX_BOOTS);
        for wrong in ["engine_id = \"80\"\nboots = 1\n", "boots = 1\n", "x"] {
            replace(&path, wrong).unwrap();
            let error = count_start(directory.path()).unwrap_err();
            assert!(format!("{error:#}").contains(ENGINE), "{error:#}");
        }
    }
}
