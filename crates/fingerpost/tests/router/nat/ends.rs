//! What remains when the process is gone or stopped, and after a new start.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lab::{Netns, wait_until};
use rustix::process::Signal;

use crate::common::PATIENCE;
use crate::nat::host::is_reachable;
use crate::nat::sockets::{Call, Server, ask, asking, bytes};
use crate::nat::{ALIAS, FAR, Natted, Seen, Sums, natted, until_flows};
use crate::place::{has_program, refused};

const SOCKETS: usize = 16;
/// Packets that nobody outside should see. The router may answer from its own
/// address inside.
const PRIVATE: &str = "src net 10.0.0.0/8 and not src 10.0.0.1";

/// Datagrams of several sockets to the far one, and new sockets all the time,
/// until it is dropped.
struct Load {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    fn start(place: &Natted) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ended);
        let thread = move || {
            let to = format!("{FAR}:9000");
            let make = || UdpSocket::bind("0.0.0.0:0").unwrap();
            let sockets: Vec<UdpSocket> = (0..SOCKETS).map(|_| make()).collect();
            while !is_over.load(Relaxed) {
                for socket in sockets.iter().chain([&make()]) {
                    // There may be an error from before.
                    let _ = socket.send_to(b"load", &to);
                }
                thread::sleep(Duration::from_millis(1));
            }
        };
        // A thread in the namespace: what it starts is there, too.
        let thread = place.inside.inside(|| thread::spawn(thread)).unwrap();
        Self {
            ended,
            thread: Some(thread),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What takes the load.
fn sink(netns: &Netns) -> UdpSocket {
    let at = format!("{FAR}:9000");
    let socket = netns.inside(|| UdpSocket::bind(at)).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Takes so many and answers; where the last one was from.
fn take(sink: &UdpSocket, number: usize) -> SocketAddr {
    let mut last = sink.local_addr().unwrap();
    for _ in 0..number {
        last = loop {
            match sink.recv_from(&mut [0; 16]) {
                // Whatever happens to the process wakes who waits for a time.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received.unwrap().1,
            }
        };
        // Nobody inside may be there any more.
        let _ = sink.send_to(b"taken", last);
    }
    last
}

/// Asks once more, again and again, until there is an answer.
fn asked_again(socket: &UdpSocket) -> SocketAddr {
    socket
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let answer = wait_until(PATIENCE, "an answer", || ask(socket, b"again").ok());
    answer.unwrap()
}

#[test]
fn nothing_leaves_untranslated_after_a_kill() {
    let Some(place) = natted("xnkill", Sums::Finished) else {
        return;
    };
    let router = place.start(&[]);
    let arrived = sink(&place.outside);
    let seen = Seen::at(&place.outside, place.directory.path(), PRIVATE);
    let load = Load::start(&place);
    assert_eq!(take(&arrived, 2_000).ip().to_string(), ALIAS);
    router.forwarding.process.signal(Signal::KILL).unwrap();
    let killed = Instant::now();
    drop(router);
    assert!(has_program(&place.router, "lan") && has_program(&place.router, "wan"));
    is_reachable(&place);
    // What is no closed translation does not take its place.
    let rules = place.path("rules");
    for arguments in [
        &[][..],
        &["--without", "open", "--nat", &rules, "--outside", "wan"],
    ] {
        let said = refused(&place.router, arguments);
        assert!(said.contains("lan takes no program"), "{said}");
    }
    thread::sleep(Duration::from_secs(3).saturating_sub(killed.elapsed()));
    assert_eq!(seen.so_far(), "");
    // Another takes its place, and nothing leaves between them.
    let router = place.start(&[]);
    let _server = Server::udp(&place.outside, "198.51.100.2:9001");
    let socket = asking(&place.inside, &format!("{FAR}:9001"));
    assert_eq!(asked_again(&socket).ip().to_string(), ALIAS);
    assert!(!place.release().status.success(), "one is at work");
    router.forwarding.process.signal(Signal::KILL).unwrap();
    drop(router);
    assert_eq!(seen.so_far(), "");
    let released = place.release();
    assert!(released.status.success(), "{released:?}");
    let said = String::from_utf8(released.stderr).unwrap();
    assert!(said.contains("lan: the kernel forwards again, untranslated"));
    seen.until_one();
    assert!(!has_program(&place.router, "lan") && !has_program(&place.router, "wan"));
    drop(load);
    assert!(!place.release().status.success(), "there is none");
}

/// Fragments, options, protocols that nobody knows, reserved addresses.
#[test]
fn packets_of_no_kind_leave_untranslated() {
    for (tag, sums) in [("xnkind", Sums::Finished), ("xnkinu", Sums::Unfinished)] {
        let Some(place) = natted(tag, sums) else {
            return;
        };
        let everywhere = ["route", "add", "default", "via", "192.0.2.2"];
        place.router.ip(&everywhere).unwrap();
        let router = place.start(&[]);
        let translated = Seen::at(&place.outside, place.directory.path(), "src 192.0.2.1");
        let send = || {
            place
                .inside
                .run("python3", &["-c", include_str!("kinds.py")])
        };
        send().unwrap();
        let translated = translated.end();
        assert!(translated.lines().count() > 200, "{translated}");
        let untranslated = Seen::at(&place.outside, place.directory.path(), PRIVATE);
        send().unwrap();
        router.forwarding.process.signal(Signal::KILL).unwrap();
        drop(router);
        send().unwrap();
        assert_eq!(untranslated.end(), "");
    }
}

#[test]
fn an_open_one_that_is_killed_leaves_the_kernel_forwarding() {
    let Some(place) = natted("xnopen", Sums::Finished) else {
        return;
    };
    let router = place.start(&["--without", "open"]);
    let arrived = sink(&place.outside);
    let _load = Load::start(&place);
    assert_eq!(take(&arrived, 2_000).ip().to_string(), ALIAS);
    router.forwarding.process.signal(Signal::KILL).unwrap();
    let killed = Instant::now();
    // The load never ends: what waits here from before is soon read.
    let by_kernel = |from: &SocketAddr| from.ip().to_string() == "10.0.0.2";
    let first = std::iter::repeat_with(|| take(&arrived, 1)).find(by_kernel);
    assert!(first.is_some());
    let took = killed.elapsed();
    eprintln!("forwarded by the kernel {took:?} after the kill");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(!has_program(&place.router, "lan"));
    is_reachable(&place);
}

#[test]
fn nothing_leaves_untranslated_while_it_is_stopped() {
    let Some(place) = natted("xnstop", Sums::Finished) else {
        return;
    };
    let router = place.start(&[]);
    let _server = Server::tcp(&place.outside, "0.0.0.0:80");
    let mut call = Call::open(&place.inside, &format!("{FAR}:80")).unwrap();
    call.echo(&bytes(10_000)).unwrap();
    let arrived = sink(&place.outside);
    let seen = Seen::at(&place.outside, place.directory.path(), PRIVATE);
    let load = Load::start(&place);
    take(&arrived, 1_000);
    router.forwarding.process.signal(Signal::STOP).unwrap();
    // It has said for ten seconds ahead that it watches.
    thread::sleep(Duration::from_millis(10_500));
    is_reachable(&place);
    thread::sleep(Duration::from_secs(1));
    drop(load);
    router.forwarding.process.signal(Signal::CONT).unwrap();
    call.echo(&bytes(10_000)).unwrap();
    let mut another = Call::open(&place.inside, &format!("{FAR}:80")).unwrap();
    another.echo(&bytes(10_000)).unwrap();
    assert!(router.packets("lan", "closed") > 100);
    assert_eq!(seen.end(), "");
}

#[test]
fn flows_outlive_a_restart() {
    outlive("xnagain", Signal::TERM, &["--nat-state", "state"]);
}

/// The program that was left knows them.
#[test]
fn flows_outlive_a_kill() {
    outlive("xnslain", Signal::KILL, &[]);
}

fn outlive(tag: &str, signal: Signal, options: &[&str]) {
    let Some(place) = natted(tag, Sums::Finished) else {
        return;
    };
    let file = |option: &&str| match option.starts_with("--") {
        true => (*option).to_owned(),
        false => place.path(option),
    };
    let options: Vec<String> = options.iter().map(file).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut router = place.start(&options);
    let _tcp = Server::tcp(&place.outside, "0.0.0.0:80");
    let _udp = Server::udp(&place.outside, "198.51.100.2:9000");
    let mut call = Call::open(&place.inside, &format!("{FAR}:80")).unwrap();
    call.echo(&bytes(100_000)).unwrap();
    let sockets: Vec<UdpSocket> = (0..300)
        .map(|_| asking(&place.inside, &format!("{FAR}:9000")))
        .collect();
    let all = || -> Vec<SocketAddr> {
        let asked = sockets.iter().map(|socket| ask(socket, b"who?").unwrap());
        asked.collect()
    };
    let before = all();
    until_flows(&router, 301);
    let seen = Seen::at(&place.outside, place.directory.path(), PRIVATE);
    router.forwarding.process.signal(signal).unwrap();
    let status = router.forwarding.process.wait(PATIENCE).unwrap();
    assert_eq!(status.success(), signal == Signal::TERM, "{}", router.log());
    assert!(has_program(&place.router, "lan"));
    // Flows that are known go on; another does not begin.
    ask(&sockets[0], b"between").unwrap();
    let another = asking(&place.inside, &format!("{FAR}:9000"));
    another.send(b"lost").unwrap();
    is_reachable(&place);
    let router = place.start(&options);
    call.echo(&bytes(100_000)).unwrap();
    assert_eq!(all(), before);
    until_flows(&router, 301);
    call.close().unwrap();
    until_flows(&router, 300);
    assert_eq!(seen.end(), "");
}
