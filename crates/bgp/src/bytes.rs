//! Bytes of a message, taken from the front.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Bad;

/// The bytes that are left. What is taken is named, for the error.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// Whether nothing is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many bytes.
    #[inline]
    pub fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], Bad> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Bad::Short(what))?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    fn chunk<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Bad> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Bad::Short(what))?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A byte.
    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Bad> {
        self.chunk(what).map(|[byte]| byte)
    }

    /// Two bytes in network order.
    #[inline]
    pub fn u16(&mut self, what: &'static str) -> Result<u16, Bad> {
        self.chunk(what).map(u16::from_be_bytes)
    }

    /// Four bytes in network order.
    #[inline]
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Bad> {
        self.chunk(what).map(u32::from_be_bytes)
    }

    /// An address of a family.
    pub fn address(&mut self, is_v6: bool, what: &'static str) -> Result<IpAddr, Bad> {
        match is_v6 {
            false => self.chunk::<4>(what).map(|of| Ipv4Addr::from(of).into()),
            true => self.chunk::<16>(what).map(|of| Ipv6Addr::from(of).into()),
        }
    }
}
