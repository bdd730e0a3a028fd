//! What the lines of one run share: options, namespace, names, the way to
//! the kernel. Called by [`super`] and the objects' files beside this one.

use std::collections::HashMap;
use std::io::Write;

use change::rows::{Asked, Lookup};
use linux::Namespace;
use netlink::decode::Item;
use table::{AF_INET, AF_INET6};
use words::{Context, Links as _, Names, Verb};

use super::Tool;
use super::options::Options;
use super::sending::{Beside, Failed, Order, Outcome, Pack, Sender, request};
use super::stop::{REFUSED, Stop};

/// What the lines of one run share.
pub struct Session {
    /// Which program it is called as.
    pub tool: Tool,
    /// The options before the object.
    pub options: Options,
    /// Where it is done.
    pub namespace: Namespace,
    /// Names of numbers.
    pub names: Names,
    /// Lines follow each other.
    pub is_batch: bool,
    /// The line of a batch that is being done.
    pub line: u64,
    /// A line failed, and the batch went on ([`Session::settle`]).
    pub has_failed: bool,
    /// Changes that have been read and not sent.
    waiting: Pack,
    /// What sends while lines are read.
    beside: Option<Beside>,
    kernel: Option<Kernel>,
    netns: HashMap<String, Namespace>,
}

/// The way to the kernel, opened when something is to be changed.
pub struct Kernel {
    /// Names of links.
    pub lookup: Lookup,
    /// Changes.
    sender: Sender,
}

impl Session {
    /// Begins with options.
    pub fn open(tool: Tool, options: Options) -> Result<Self, Stop> {
        let namespace = match &options.netns {
            Some(name) => Namespace::open(name).map_err(|error| no_namespace(name, &error))?,
            None => Namespace::current()?,
        };
        Ok(Self {
            tool,
            is_batch: options.batch.is_some(),
            options,
            namespace,
            names: words::load(),
            line: 0,
            has_failed: false,
            waiting: Pack::default(),
            beside: None,
            kernel: None,
            netns: HashMap::new(),
        })
    }

    /// `AF_INET` or `AF_INET6`, if one of them was asked for.
    pub fn family(&self) -> Option<u8> {
        self.options
            .family
            .filter(|family| matches!(*family, AF_INET | AF_INET6))
    }

    /// The way to the kernel.
    pub fn kernel(&mut self) -> Result<&mut Kernel, Stop> {
        if self.kernel.is_none() {
            self.kernel = Some(Kernel {
                lookup: Lookup::new(&self.namespace)?,
                sender: Sender::open(&self.namespace)?,
            });
        }
        self.kernel
            .as_mut()
            .ok_or_else(|| Stop::failed("the way to the kernel is closed"))
    }

    /// The index of a link.
    pub fn index(&mut self, name: &str) -> Result<u32, Stop> {
        // Of a name that is none the kernel would say another thing.
        if name.is_empty() || name.len() > 127 || name.contains('/') {
            return Err(Stop::no_device(name));
        }
        let found = self.kernel()?.lookup.index(name);
        let numbered = || number_of(name).ok_or_else(|| Stop::no_device(name));
        found.or_else(|_| numbered())
    }

    /// The name of a link by its index.
    pub fn name_of(&self, index: u32) -> Result<Option<Box<str>>, Stop> {
        let link = linux::once::link(index, &self.namespace)?;
        Ok(link.map(|link| link.name))
    }

    /// The table of a VRF; `None`: there is no VRF of that name.
    pub fn vrf_table(&mut self, name: &str) -> Result<Option<u32>, Stop> {
        Ok(self.kernel()?.lookup.vrf_table(name).ok())
    }

    /// Another namespace, by the name that a line has for it.
    pub fn other(&mut self, name: &str) -> Result<&Namespace, Stop> {
        if !self.netns.contains_key(name) {
            let refused = |text: &str| Stop::Said {
                status: REFUSED,
                text: format!("RTNETLINK answers: {text}"),
            };
            let opened = Namespace::open(name).map_err(|_| match name {
                "" => refused("Invalid argument"),
                pid if pid.parse::<u32>().is_ok() => refused("No such process"),
                _ => Stop::argument(name, "Invalid \"netns\" value\n"),
            })?;
            self.netns.insert(name.to_owned(), opened);
        }
        self.netns
            .get(name)
            .ok_or_else(|| Stop::failed("the namespace is gone"))
    }

    /// The numbers that this namespace has for those of some names.
    pub fn netns_ids(&self, names: &[String]) -> Result<Vec<Option<i32>>, Stop> {
        let mut ids = Vec::with_capacity(names.len());
        for name in names {
            let id = match Namespace::open(name) {
                Ok(other) => linux::once::netns_id(&other, &self.namespace)?,
                // Deleted meanwhile, or about to come.
                Err(_) => None,
            };
            ids.push(id);
        }
        Ok(ids)
    }

    /// Writes a listing of links with the names of namespaces in the place
    /// of their numbers, where they have names.
    pub fn name_namespaces(&self, text: &[u8], out: &mut impl Write) -> Result<(), Stop> {
        self.with_names(text, || self.names_by_id(), out)
    }

    /// The same with names that are known, or found once one is needed.
    pub fn with_names(
        &self,
        text: &[u8],
        known: impl Fn() -> Result<HashMap<i32, String>, Stop>,
        out: &mut impl Write,
    ) -> Result<(), Stop> {
        const BEFORE: &[u8] = b" link-netnsid ";
        let mut names = None;
        let mut rest = text;
        while let Some(at) = place_of(BEFORE, rest) {
            let (before, number) = rest.split_at(at);
            let number = number.get(BEFORE.len()..).unwrap_or_default();
            let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
            let (number, after) = number.split_at(digits.count());
            out.write_all(before)?;
            let ids = match &mut names {
                Some(names) => names,
                None => names.insert(known()?),
            };
            let id: Option<i32> = std::str::from_utf8(number)
                .ok()
                .and_then(|id| id.parse().ok());
            match id.and_then(|id| ids.get(&id)) {
                Some(name) => write!(out, " link-netns {name}")?,
                None => {
                    out.write_all(BEFORE)?;
                    out.write_all(number)?;
                }
            }
            rest = after;
        }
        out.write_all(rest)?;
        Ok(())
    }

    /// The names of namespaces that have a number in this one.
    pub fn names_by_id(&self) -> Result<HashMap<i32, String>, Stop> {
        let names = Namespace::names();
        let ids = self.netns_ids(&names)?;
        let named = ids.into_iter().zip(names);
        Ok(named.filter_map(|(id, name)| Some((id?, name))).collect())
    }

    /// Sends a change; waits for nothing in a batch.
    pub fn apply(&mut self, change: impl FnOnce(u32, &mut Vec<u8>)) -> Result<(), Stop> {
        let is_batch = self.is_batch;
        let step = self.kernel()?.sender.step();
        let answered = match is_batch {
            true => step.apply(change)?,
            false => step.acknowledged(change)?,
        };
        answered.map_err(|refusal| Stop::refused(&refusal))
    }

    /// Sends the change of a row. In a batch it waits for others, up to
    /// [`Session::settle`]; an error may be that of a line before it.
    pub fn change(&mut self, asked: Asked) -> Result<(), Stop> {
        if !self.is_batch {
            return self.change_now(&asked);
        }
        let order = match asked.item {
            // `ip` leaves at once after a refusal of these.
            Item::Neighbour(_) => Order::OneByOne,
            _ if self.options.force => Order::Together,
            _ => Order::OneByOne,
        };
        if !self.waiting.takes(order) {
            self.hand_over()?;
        }
        self.waiting.put(order, asked, self.line);
        match self.waiting.is_full() {
            true => self.hand_over(),
            false => Ok(()),
        }
    }

    fn change_now(&mut self, asked: &Asked) -> Result<(), Stop> {
        self.apply(request(asked, linux::mirror::now_millis()))
    }

    /// Whether one change waits, with none before it.
    pub fn begins_to_wait(&self) -> bool {
        self.waiting.len() == 1
    }

    /// Has what waits sent while more is read.
    fn hand_over(&mut self) -> Result<(), Stop> {
        let beside = match &mut self.beside {
            Some(beside) => beside,
            None => match Beside::start(&self.namespace) {
                Ok(started) => self.beside.insert(started),
                // Threads may be short; then it is sent here.
                Err(_) => return self.settle(),
            },
        };
        beside.hand(std::mem::take(&mut self.waiting));
        while let Some(sent) = self.beside.as_mut().and_then(Beside::heard) {
            self.tell(sent)?;
        }
        Ok(())
    }

    /// Sends what waits, and says what failed of it. Before anything else
    /// is done, said or waited for.
    pub fn settle(&mut self) -> Result<(), Stop> {
        while let Some(sent) = self.beside.as_mut().and_then(Beside::wait) {
            self.tell(sent)?;
        }
        if self.waiting.len() == 0 {
            return Ok(());
        }
        let pack = std::mem::take(&mut self.waiting);
        let sent = self.kernel()?.sender.send(&pack);
        self.tell(sent)
    }

    /// Says what failed of a pack. After an error nothing more is done of
    /// what has been read.
    fn tell(&mut self, sent: Result<Outcome, linux::Error>) -> Result<(), Stop> {
        let told = sent.map_err(Stop::from).and_then(|sent| self.say(sent));
        if told.is_err() {
            self.waiting = Pack::default();
            self.beside = None;
        }
        told
    }

    fn say(&mut self, sent: Outcome) -> Result<(), Stop> {
        let file = self.options.batch.as_deref().unwrap_or_default();
        for Failed { line, text, leaves } in sent.failed {
            if leaves {
                let status = REFUSED;
                return Err(Stop::Left { status, text });
            }
            complain(&format!("{text}\nCommand failed {file}:{line}"));
            self.has_failed = true;
        }
        match sent.has_ended {
            true => Err(Stop::Told),
            false => Ok(()),
        }
    }

    /// Names of links may lead elsewhere from now on.
    pub fn links_changed(&mut self) {
        if let Some(kernel) = &mut self.kernel {
            kernel.lookup.forget();
        }
    }

    /// Reads words of a row with what a row's words need.
    pub fn with_context<T>(
        &mut self,
        verb: Verb,
        read: impl FnOnce(&mut Context<'_>) -> Result<T, String>,
    ) -> Result<T, Stop> {
        let family = self.family();
        self.kernel()?;
        let Some(kernel) = &mut self.kernel else {
            return Err(Stop::failed("the way to the kernel is closed"));
        };
        let mut context = Context {
            links: &mut kernel.lookup,
            names: &self.names,
            family,
            verb,
            now_millis: linux::mirror::now_millis(),
        };
        read(&mut context).map_err(|why| Stop::wrong(format!("Error: {why}")))
    }
}

/// The index that a name like `if7` means where no link has it.
pub fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("if")?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|index| is_number && *index > 0)
}

/// Where a word with a dash in it begins. Dashes are few in a listing, so
/// that one octet is looked for most of the way.
fn place_of(word: &[u8], text: &[u8]) -> Option<usize> {
    let dash = word.iter().position(|octet| *octet == b'-')?;
    let mut from = 0;
    loop {
        let rest = text.get(from..)?;
        let at = from + rest.iter().position(|octet| *octet == b'-')?;
        let start = at.checked_sub(dash);
        let is_word = |start: &usize| text.get(*start..).is_some_and(|at| at.starts_with(word));
        if let Some(start) = start.filter(is_word) {
            return Some(start);
        }
        from = at + 1;
    }
}

/// What `ip` says of a namespace that cannot be opened.
pub fn no_namespace(name: &str, error: &linux::Error) -> Stop {
    let source = std::error::Error::source(error);
    let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    let reason = io.map_or_else(|| error.to_string(), super::stop::reason);
    Stop::wrong(format!(
        "Cannot open network namespace \"{name}\": {reason}"
    ))
}

/// Writes a line on standard error; nobody to tell when that is closed.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::place_of;

    #[test]
    fn a_word_is_found_behind_other_dashes() {
        let found = |text: &str| place_of(b" a-b ", text.as_bytes());
        assert_eq!(found("x a-b y"), Some(1));
        assert_eq!(found("-- a-c M-DOWN a-b "), Some(13));
        for text in ["", "-", "a-b", " a-b", "no dash"] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
