//! What a process that gave everything up can and cannot do. A program of
//! its own, for what is taken away stays away.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::{fs, thread};

#[test]
fn programs_and_mounts_are_refused_and_sockets_and_threads_are_not() {
    let before = Command::new("true").status().unwrap();
    assert!(before.success());
    // The tests' runner has a thread beside this one: it is confined too.
    let beside = thread::spawn({
        let (said, heard) = std::sync::mpsc::channel::<()>();
        let ended = thread::spawn(move || {
            heard.recv().unwrap();
            Command::new("true").status().map_err(|error| error.kind())
        });
        fingerpost_privileges::give_up().unwrap();
        move || {
            said.send(()).unwrap();
            ended.join().unwrap()
        }
    });
    let refused = Err(ErrorKind::PermissionDenied);
    let status = Command::new("true").status();
    assert_eq!(status.map_err(|error| error.kind()), refused);
    assert_eq!(beside.join().unwrap(), refused);
    let mounted = rustix::mount::mount_bind("/tmp", "/tmp");
    assert_eq!(mounted, Err(rustix::io::Errno::PERM));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = thread::spawn(move || {
        TcpStream::connect(address)
            .unwrap()
            .write_all(b"x")
            .unwrap();
    });
    let mut heard = String::new();
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_to_string(&mut heard).unwrap();
    asked.join().unwrap();
    assert_eq!(heard, "x");
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    for line in ["Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000"] {
        assert!(status.contains(line), "{line} is not in {status}");
    }
    // Done twice it is done.
    fingerpost_privileges::confine().unwrap();
}
