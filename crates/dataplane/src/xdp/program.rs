//! The vendored program, made ready for this kernel: descriptors of maps and
//! the number of a function of the kernel are filled in, then it is loaded.

use std::fs;
use std::os::fd::OwnedFd;

use super::instructions::INSTRUCTIONS;
use super::{Maps, XdpError, btf, sys};

/// How the kernel tells its types, and the function that tells the VLAN tag
/// that a device has taken off (Linux 6.8).
const TYPES: &str = "/sys/kernel/btf/vmlinux";
const TAG_FUNCTION: &str = "bpf_xdp_metadata_rx_vlan_tag";

/// What stands in the place of maps (`MAP` in `forward.c`), and of the
/// function.
const MAP_MARK: u32 = 0x4650_0000;
const FUNCTION_MARK: i32 = 0x4650;

/// Codes: a constant of 64 bits, a call, a plain constant (`linux/bpf.h`).
const LOAD_64: u8 = 0x18;
const CALL: u8 = 0x85;
const MOVE: u8 = 0xb7;
/// `BPF_PSEUDO_MAP_FD`, `BPF_PSEUDO_KFUNC_CALL` in the place of a source.
const IS_MAP: u8 = 1;
const IS_FUNCTION: u8 = 2;

/// A loaded program.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) fd: OwnedFd,
    /// Whether it is told the VLAN tag that the device took off.
    pub(super) knows_tags: bool,
}

/// Loads it for a device: with the device's hints where kernel and driver
/// have them, without where not.
pub(super) fn load(maps: &Maps, device: u32) -> Result<Program, XdpError> {
    if cfg!(target_endian = "big") {
        return Err(XdpError::ByteOrder);
    }
    let function = fs::read(TYPES)
        .ok()
        .and_then(|types| btf::function(&types, TAG_FUNCTION));
    if let Some(function) = function
        && let Ok(fd) = sys::load_program(&patched(maps, Some(function)), Some(device))
    {
        return Ok(Program {
            fd,
            knows_tags: true,
        });
    }
    Ok(Program {
        fd: load_unbound(maps)?,
        knows_tags: false,
    })
}

/// Loads it for any device, without hints.
pub(super) fn load_unbound(maps: &Maps) -> Result<OwnedFd, XdpError> {
    let loaded = sys::load_program(&patched(maps, None), None);
    loaded.map_err(|(error, log)| XdpError::Load {
        error,
        log: last_lines(&log),
    })
}

/// The end of the verifier's log: it says there what it refuses.
fn last_lines(log: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = log.lines().collect();
    let first = lines.len().saturating_sub(LINES);
    lines[first..].join("\n")
}

/// The instructions with descriptors and number in their places.
fn patched(maps: &Maps, function: Option<u32>) -> Vec<u64> {
    let mut instructions = INSTRUCTIONS.to_vec();
    let mut at = 0;
    while at < instructions.len() {
        let instruction = Instruction::of(instructions[at]);
        match instruction.code {
            LOAD_64 => {
                let upper = instructions.get(at + 1).map(|next| Instruction::of(*next));
                let is_map = upper.is_some_and(|upper| upper.immediate as u32 == MAP_MARK);
                let map = maps.get(instruction.immediate);
                if let (true, Some(map)) = (is_map, map) {
                    instructions[at] = instruction.with(IS_MAP, map.descriptor()).word();
                    instructions[at + 1] = 0;
                }
                at += 2;
                continue;
            }
            CALL if instruction.immediate == FUNCTION_MARK => {
                instructions[at] = match function {
                    Some(number) => instruction.with(IS_FUNCTION, number.cast_signed()).word(),
                    None => NO_TAG.word(),
                };
            }
            _ => {}
        }
        at += 1;
    }
    instructions
}

/// What stands for the function where there is none: its answer.
const NO_TAG: Instruction = Instruction {
    code: MOVE,
    registers: 0,
    offset: 0,
    immediate: -libc::EOPNOTSUPP,
};

/// `struct bpf_insn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    code: u8,
    /// The destination in the lower half, the source in the upper.
    registers: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    fn of(word: u64) -> Self {
        let [code, registers, o0, o1, i0, i1, i2, i3] = word.to_le_bytes();
        Self {
            code,
            registers,
            offset: i16::from_le_bytes([o0, o1]),
            immediate: i32::from_le_bytes([i0, i1, i2, i3]),
        }
    }

    fn word(self) -> u64 {
        let ([o0, o1], [i0, i1, i2, i3]) =
            (self.offset.to_le_bytes(), self.immediate.to_le_bytes());
        u64::from_le_bytes([self.code, self.registers, o0, o1, i0, i1, i2, i3])
    }

    /// The same with this source and constant.
    fn with(self, source: u8, immediate: i32) -> Self {
        Self {
            registers: self.registers & 0x0f | source << 4,
            immediate,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_is_taken_apart_and_put_together() {
        for word in INSTRUCTIONS {
            assert_eq!(Instruction::of(*word).word(), *word);
        }
        let call = Instruction::of(0x0000_4650_0000_0085).with(IS_FUNCTION, 7);
        assert_eq!((call.code, call.registers, call.immediate), (CALL, 0x20, 7));
    }

    #[test]
    fn of_a_long_log_its_end_is_told() {
        let log: String = (0..40).map(|line| format!("{line}\n")).collect();
        assert!(last_lines(&log).starts_with("28\n"));
        assert!(last_lines(&log).ends_with("39"));
        assert_eq!(last_lines(""), "");
    }
}
