//! The kernel's own types (BTF, Documentation/bpf/btf.rst): the number of a
//! function that programs may call. Pure; called by `program`.

const MAGIC: u16 = 0xeb9f;
/// `struct btf_header`, `struct btf_type`.
const HEADER: usize = 24;
const TYPE: usize = 12;
/// `BTF_KIND_FUNC`.
const FUNCTION: u32 = 12;

/// The number of a function by its name; `None` where there is none, or what
/// was read is no BTF. O(types).
pub fn function(btf: &[u8], name: &str) -> Option<u32> {
    let magic = u16::from_ne_bytes(*btf.first_chunk::<2>()?);
    if magic != MAGIC {
        return None;
    }
    let header = number(btf, 4)? as usize;
    let part = |offset_at, len_at| {
        let start = header.checked_add(number(btf, offset_at)? as usize)?;
        btf.get(start..start.checked_add(number(btf, len_at)? as usize)?)
    };
    if header < HEADER {
        return None;
    }
    let (types, names) = (part(8, 12)?, part(16, 20)?);
    let mut at = 0;
    // Number 0 is void, and stands nowhere.
    let mut id = 1;
    while at + TYPE <= types.len() {
        let info = number(types, at + 4)?;
        let kind = info >> 24 & 0x1f;
        if kind == FUNCTION && is_named(names, number(types, at)? as usize, name) {
            return Some(id);
        }
        at += TYPE + behind(kind, (info & 0xffff) as usize)?;
        id += 1;
    }
    None
}

/// Bytes behind a `struct btf_type` of a kind with so many members.
fn behind(kind: u32, members: usize) -> Option<usize> {
    Some(match kind {
        1 | 14 | 17 => 4,
        3 => 12,
        4 | 5 | 15 | 19 => 12 * members,
        6 | 13 => 8 * members,
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

fn is_named(names: &[u8], at: usize, name: &str) -> bool {
    let rest = names.get(at..).unwrap_or_default();
    rest.strip_prefix(name.as_bytes())
        .is_some_and(|rest| rest.first() == Some(&0))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types and names behind a header.
    fn btf(types: &[u8], names: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        let numbers = [HEADER, 0, types.len(), types.len(), names.len()];
        for number in numbers {
            bytes.extend((number as u32).to_ne_bytes());
        }
        bytes.extend(types);
        bytes.extend(names);
        bytes
    }

    fn one(name: u32, kind: u32, members: u32, behind: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [name, kind << 24 | members, 0] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.resize(TYPE + behind, 0);
        bytes
    }

    #[test]
    fn a_function_is_found_behind_types_of_all_lengths() {
        let mut types = one(0, 1, 0, 4);
        types.extend(one(0, 4, 2, 24));
        types.extend(one(0, 13, 3, 24));
        types.extend(one(1, FUNCTION, 0, 0));
        types.extend(one(7, FUNCTION, 0, 0));
        let whole = btf(&types, b"\0first\0second\0");
        assert_eq!(function(&whole, "second"), Some(5));
        assert_eq!(function(&whole, "first"), Some(4));
        assert_eq!(function(&whole, "sec"), None);
    }

    #[test]
    fn what_is_cut_off_or_no_btf_has_none() {
        let whole = btf(&one(1, FUNCTION, 0, 0), b"\0first\0");
        assert_eq!(function(&whole, "first"), Some(1));
        for len in 0..whole.len() {
            assert_eq!(function(&whole[..len], "first"), None, "{len}");
        }
        assert_eq!(function(&[7; 64], "first"), None);
    }

    #[test]
    fn the_kernel_s_own_is_read() {
        let Ok(kernel) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            lab::skip::skip("this kernel tells no types");
            return;
        };
        assert!(function(&kernel, "bpf_prog_load").is_some() || kernel.len() > 1 << 20);
        assert_eq!(function(&kernel, "no_such_function_anywhere"), None);
    }
}
