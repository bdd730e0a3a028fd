//! `apply --watch`: after each change in the kernel it is looked whether
//! all is still as files say; a link that came gets its part. Called by
//! [`mod@super`].

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::Result;
use linux::socket::{DATAGRAM_BYTES, Received, Socket};

use super::apply::{Counts, carry_out_all};
use super::look::{look, wanted};
use super::wanted::Wanted;
use super::{Job, keep, shown};
use crate::complaint::complain;

/// Changes of the kernel's come in bursts: so long is waited for the rest.
const SETTLES: Duration = Duration::from_millis(100);
/// Nobody announces settings: so often they are looked at.
const AT_LEAST: Duration = Duration::from_secs(30);
/// A look may take this part of the time.
const SHARE: u32 = 10;
/// So often is looked whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// `RTNLGRP_…`: links, neighbours and forwarding entries, addresses, routes
/// and rules of both families, settings of links, next-hop objects.
const GROUPS: [u32; 11] = [1, 3, 5, 7, 8, 9, 11, 19, 24, 25, 32];

/// Keeps it so until it is told to stop; with `tell` it is only told what is
/// not. Ends well.
pub fn run(job: &Job<'_>, tell: bool) -> Result<bool> {
    let wanted = wanted(job)?;
    keep::settle(job)?;
    let socket = Socket::open(&job.namespace)?;
    socket.join(&GROUPS)?;
    let mut told = HashSet::new();
    loop {
        let began = Instant::now();
        once(job, &wanted, tell, &mut told)?;
        let took = began.elapsed();
        if !wait(job, &socket, took * SHARE)? {
            return Ok(true);
        }
    }
}

/// One look, and what follows from it.
fn once(job: &Job<'_>, wanted: &Wanted, tell: bool, told: &mut HashSet<String>) -> Result<()> {
    let look = match look(job, wanted) {
        Ok(look) => look,
        // A link of another kind in the place of one of ours: it may go.
        Err(error) if !told.is_empty() || error.is::<super::Senseless>() => {
            once_told(told, &format!("{error:#}"));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let waiting: HashSet<String> = look.resolved.waiting.iter().cloned().collect();
    for why in &waiting {
        once_told(told, why);
    }
    // What came and goes again is told again.
    told.retain(|why| waiting.contains(why));
    if look.plan.is_empty() {
        return Ok(());
    }
    shown::show(job, wanted, &look)?;
    io::stdout().flush()?;
    if tell {
        return Ok(());
    }
    let mut counts = Counts::default();
    carry_out_all(job, wanted, look, &mut counts)
}

fn once_told(told: &mut HashSet<String>, why: &str) {
    if told.insert(why.to_owned()) {
        complain(why);
    }
}

/// Waits for a change, but `rest` at least; false: it is to stop.
fn wait(job: &Job<'_>, socket: &Socket, rest: Duration) -> Result<bool> {
    let began = Instant::now();
    let mut buffer = vec![0; DATAGRAM_BYTES];
    let mut changed: Option<Instant> = None;
    loop {
        if job.is_stopped() {
            return Ok(false);
        }
        let due = changed.is_some_and(|at| at.elapsed() >= SETTLES && began.elapsed() >= rest);
        if due || began.elapsed() >= AT_LEAST.max(rest) {
            return Ok(true);
        }
        if !socket.wait(PATIENCE)? {
            continue;
        }
        while !matches!(socket.try_receive(&mut buffer)?, Received::Nothing) {
            changed.get_or_insert_with(Instant::now);
        }
    }
}
