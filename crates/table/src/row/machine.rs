//! What the machine itself tells: load, memory, processors, file systems.

/// The machine, as last sampled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Machine {
    /// When it was sampled, milliseconds since the UNIX epoch.
    pub taken_at_millis: u64,
    /// The same as a date in UTC, as `DateAndTime` of RFC 2579 writes it.
    pub date_and_time: [u8; 11],
    /// Since it was started, hundredths of a second, times of sleep
    /// included.
    pub uptime_centisecs: u64,
    /// Processes waiting or running on average over 1, 5 and 15 minutes,
    /// in hundredths.
    pub load_hundredths: [u32; 3],
    /// Processes; `None` where this process may not see those of others.
    pub processes: Option<u32>,
    /// Memory.
    pub memory: Memory,
    /// What all processors did together.
    pub processor_times: ProcessorTimes,
    /// Each processor that is on, ascending.
    pub processors: Vec<Processor>,
    /// The processors' name (`model name` of `/proc/cpuinfo`), if they have
    /// one.
    pub processor_name: Box<str>,
    /// Interrupts and changes of process.
    pub interrupts: u64,
    #[allow(missing_docs, reason = "see interrupts")]
    pub context_switches: u64,
    /// Kibibytes read from and written to disks.
    pub paged_in_kib: u64,
    #[allow(missing_docs, reason = "see paged_in_kib")]
    pub paged_out_kib: u64,
    /// Pages brought in from swap and put out to it.
    pub swapped_in: u64,
    #[allow(missing_docs, reason = "see swapped_in")]
    pub swapped_out: u64,
    /// Local file systems, in the order in which they were mounted.
    pub file_systems: Vec<FileSystem>,
    /// What the hardware calls itself.
    pub product: Product,
    /// What the kernel was started with.
    pub command_line: Box<str>,
}

/// `/proc/meminfo`, kibibytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub struct Memory {
    pub total: u64,
    pub free: u64,
    pub available: u64,
    pub buffers: u64,
    pub cached: u64,
    pub reclaimable: u64,
    pub shared: u64,
    pub swap_total: u64,
    pub swap_free: u64,
}

/// A processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Processor {
    /// Its number, from 0.
    pub number: u32,
    /// How much of the time it was not idle, per cent: over the last
    /// minute, or since the sample before where that was longer ago, or
    /// since the machine was started where there was none.
    pub load_percent: u8,
}

/// `/proc/stat`: what processors did, in hundredths of a second (`USER_HZ`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub struct ProcessorTimes {
    pub user: u64,
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    pub iowait: u64,
    pub irq: u64,
    pub softirq: u64,
    pub steal: u64,
    pub guest: u64,
    pub guest_nice: u64,
}

impl ProcessorTimes {
    /// Time that was not idle, and all time. (A guest's time is user time
    /// already.)
    pub fn busy_and_all(&self) -> (u64, u64) {
        let busy = [
            self.user,
            self.nice,
            self.system,
            self.irq,
            self.softirq,
            self.steal,
        ];
        let busy = busy
            .iter()
            .fold(0, |sum: u64, part| sum.saturating_add(*part));
        (
            busy,
            busy.saturating_add(self.idle).saturating_add(self.iowait),
        )
    }
}

/// A local file system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSystem {
    /// Its place among all that is mounted, each place counted once; from 1.
    pub number: u32,
    /// Where it is mounted.
    pub mounted_at: Box<str>,
    /// `ext4`, `tmpfs`, …
    pub kind: Box<str>,
    /// Bytes of a unit.
    pub unit_bytes: u64,
    /// Units in all, and those in use.
    pub units: u64,
    #[allow(missing_docs, reason = "see units")]
    pub used_units: u64,
}

/// What the hardware calls itself (`/sys/class/dmi/id`); empty where it, or
/// the system, does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "DMI's own names and meanings")]
pub struct Product {
    pub vendor: Box<str>,
    pub name: Box<str>,
    pub version: Box<str>,
    pub serial: Box<str>,
}
