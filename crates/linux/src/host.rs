//! What the machine tells of itself: `/proc`, `/sys`, file systems. Read for
//! whoever asks by SNMP, once a second at most. Called by the mirror's
//! worker only.
//!
//! Only local file systems are asked how full they are: one on a network
//! may not answer for minutes.

mod file_systems;
mod processors;

use std::cell::OnceCell;
use std::fs;
use std::path::Path;

use table::{Machine, Memory, Product};

use processors::History;

/// Reads it, and keeps what a load over a minute is made from.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    history: History,
    /// What does not change.
    fixed: OnceCell<Fixed>,
}

#[derive(Debug)]
struct Fixed {
    processor_name: Box<str>,
    product: Product,
    command_line: Box<str>,
}

impl Fixed {
    fn read() -> Self {
        Self {
            processor_name: processors::name(&text("/proc/cpuinfo")),
            product: product(),
            command_line: text("/proc/cmdline").trim().into(),
        }
    }
}

impl Observer {
    /// The machine now. Some twenty small files, and one question for each
    /// local file system.
    pub(crate) fn observe(&mut self, now_millis: u64) -> Machine {
        let stat = text("/proc/stat");
        let vmstat = text("/proc/vmstat");
        let uptime_centisecs = uptime_centisecs();
        let paging = |name| numbered(&vmstat, name).unwrap_or(0);
        let times = processors::times(&stat);
        let fixed = self.fixed.get_or_init(Fixed::read);
        Machine {
            taken_at_millis: now_millis,
            date_and_time: date_and_time(now_millis),
            uptime_centisecs,
            load_hundredths: load(&text("/proc/loadavg")),
            processes: processes(),
            memory: memory(&text("/proc/meminfo")),
            processor_times: times.all,
            processors: self.history.loads(uptime_centisecs, times.each),
            processor_name: fixed.processor_name.clone(),
            interrupts: numbered(&stat, "intr").unwrap_or(0),
            context_switches: numbered(&stat, "ctxt").unwrap_or(0),
            paged_in_kib: paging("pgpgin"),
            paged_out_kib: paging("pgpgout"),
            swapped_in: paging("pswpin"),
            swapped_out: paging("pswpout"),
            file_systems: file_systems::local(),
            product: fixed.product.clone(),
            command_line: fixed.command_line.clone(),
        }
    }
}

/// What a file says; nothing where there is none.
fn text(path: impl AsRef<Path>) -> String {
    fs::read(path).map_or_else(
        |_| String::new(),
        |bytes| String::from_utf8_lossy(&bytes).into(),
    )
}

fn uptime_centisecs() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 100 + part(time.tv_nsec) / 10_000_000
}

/// `DateAndTime` (RFC 2579) of a time since the UNIX epoch, in UTC.
fn date_and_time(now_millis: u64) -> [u8; 11] {
    let seconds = now_millis / 1_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, so that a leap day is the last of a year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let [.., high, low] = year.to_be_bytes();
    let small = |number: u64| number as u8;
    [
        high,
        low,
        small(month),
        small(day),
        small(second / 3_600),
        small(second / 60 % 60),
        small(second % 60),
        small(now_millis % 1_000 / 100),
        b'+',
        0,
        0,
    ]
}

/// The first number behind a name at the start of a line.
fn numbered(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    lines.find_map(|rest| {
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        rest.starts_with(char::is_whitespace)
            .then(|| rest.split_ascii_whitespace().next()?.parse().ok())?
    })
}

fn load(loadavg: &str) -> [u32; 3] {
    let mut words = loadavg.split_ascii_whitespace();
    [(); 3].map(|()| {
        let hundredths = words.next().and_then(|word| {
            let (whole, part) = word.split_once('.')?;
            Some(whole.parse::<u32>().ok()?.saturating_mul(100) + part.parse::<u32>().ok()?)
        });
        hundredths.unwrap_or(0)
    })
}

/// Where a process may not see others (`hidepid`), it does not see the
/// first.
fn processes() -> Option<u32> {
    if !Path::new("/proc/1").exists() {
        return None;
    }
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let all = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_process));
    u32::try_from(all.count()).ok()
}

fn memory(meminfo: &str) -> Memory {
    let kib = |name| numbered(meminfo, name).unwrap_or(0);
    Memory {
        total: kib("MemTotal"),
        free: kib("MemFree"),
        available: kib("MemAvailable"),
        buffers: kib("Buffers"),
        cached: kib("Cached"),
        reclaimable: kib("SReclaimable"),
        shared: kib("Shmem"),
        swap_total: kib("SwapTotal"),
        swap_free: kib("SwapFree"),
    }
}

fn product() -> Product {
    let told = |name: &str| text(format!("/sys/class/dmi/id/{name}")).trim().into();
    Product {
        vendor: told("sys_vendor"),
        name: told("product_name"),
        version: told("product_version"),
        serial: told("product_serial"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_whole_names() {
        let meminfo = "MemTotal:       8000 kB\nSwapCached: 1 kB\nCached: 500 kB\n";
        let all = memory(meminfo);
        assert_eq!((all.total, all.cached, all.free), (8_000, 500, 0));
        assert_eq!(numbered("ctxt 77\n", "ctxt"), Some(77));
        assert_eq!(numbered("ctxt2 77\nctxt\n", "ctxt"), None);
        assert_eq!(load("0.25 1.50 12.07 2/300 4711\n"), [25, 150, 1_207]);
        assert_eq!(load("nonsense"), [0; 3]);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let told = |seconds: u64| {
            let [y1, y0, month, day, hour, minute, second, tenth, ..] =
                date_and_time(seconds * 1_000 + 700);
            assert_eq!(tenth, 7);
            (
                u16::from_be_bytes([y1, y0]),
                month,
                day,
                hour,
                minute,
                second,
            )
        };
        assert_eq!(told(0), (1970, 1, 1, 0, 0, 0));
        assert_eq!(told(951_782_399), (2000, 2, 28, 23, 59, 59));
        assert_eq!(told(951_782_400), (2000, 2, 29, 0, 0, 0));
        assert_eq!(told(1_794_000_000), (2026, 11, 6, 21, 20, 0));
        assert_eq!(told(4_107_542_400), (2100, 3, 1, 0, 0, 0));
    }

    #[test]
    fn this_machine_has_memory_and_a_processor() {
        let machine = Observer::default().observe(1);
        assert!(machine.memory.total > machine.memory.free);
        assert!(machine.uptime_centisecs > 0 && !machine.processors.is_empty());
        let (busy, all) = machine.processor_times.busy_and_all();
        assert!(busy > 0 && busy <= all);
        assert!(machine.processes.is_none_or(|processes| processes > 0));
    }
}
