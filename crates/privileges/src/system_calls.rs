//! System calls that no command needs once it runs.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter_all_threads};
use thiserror::Error;

/// Why system calls were not taken away.
#[derive(Debug, Error)]
#[error("system calls cannot be taken away: {0}")]
pub struct Unconfined(String);

/// To start programs and to look into others; to mount and to change the
/// root; to load code into the kernel; to set clocks and names of the host;
/// keys, swap, and files by handle. What is not named stays allowed: a list
/// of what is needed would break with the next C library.
const TAKEN: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_personality,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_syslog,
    libc::SYS_vhangup,
];

/// Whether this process needs bpf(2) all its life.
static NEEDS_BPF: AtomicBool = AtomicBool::new(false);

/// Leaves bpf(2) to this process whatever is taken away later, by whichever
/// thread: for what reads and sets maps, and attaches again. Call it before
/// [`confine`].
pub fn need_bpf() {
    NEEDS_BPF.store(true, Relaxed);
}

/// Takes them away for all threads of this process and all that it starts:
/// from then on they fail with `EPERM`. Sets `no_new_privs`, without which
/// an ordinary user may not do this. Done twice it is done.
///
/// A processor whose calls the filter's library does not know is said in
/// the error; nothing is taken away then.
pub fn confine() -> Result<(), Unconfined> {
    let needs_bpf = NEEDS_BPF.load(Relaxed);
    take_away(
        TAKEN
            .iter()
            .filter(|call| !needs_bpf || **call != libc::SYS_bpf),
    )
}

fn take_away<'a>(calls: impl Iterator<Item = &'a libc::c_long>) -> Result<(), Unconfined> {
    rustix::thread::set_no_new_privs(true).map_err(unconfined)?;
    let arch = TargetArch::try_from(ARCH).map_err(unconfined)?;
    // No condition on its arguments: the call as such.
    let taken: BTreeMap<i64, _> = calls.map(|call| (*call, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(taken, SeccompAction::Allow, refused, arch);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(unconfined)?;
    apply_filter_all_threads(&program).map_err(unconfined)
}

fn unconfined(error: impl ToString) -> Unconfined {
    Unconfined(error.to_string())
}
