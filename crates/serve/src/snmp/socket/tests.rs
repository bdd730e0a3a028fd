use std::net::UdpSocket;
use std::sync::mpsc;

use super::*;

fn local(text: &str) -> Socket {
    Socket::bind(text.parse().unwrap(), Duration::from_millis(50)).unwrap()
}

#[test]
fn answers_go_back_from_the_address_that_was_asked() {
    for (bound, asked) in [
        ("127.0.0.1:0", "127.0.0.1"),
        ("0.0.0.0:0", "127.0.0.7"),
        ("[::1]:0", "::1"),
        ("[::]:0", "::1"),
    ] {
        let socket = local(bound);
        let to = SocketAddr::new(asked.parse().unwrap(), socket.address().port());
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let client = UdpSocket::bind(any).unwrap();
        for number in 0..3u8 {
            client.send_to(&[number; 5], to).unwrap();
        }
        let mut batch = Batch::new();
        let mut seen = Vec::new();
        while seen.len() < 3 {
            socket.receive(&mut batch).unwrap();
            batch.answer(|_, datagram, _, out| {
                seen.push(datagram.to_vec());
                out[0] = datagram[0] + 10;
                (datagram[0] != 1).then_some(1)
            });
            assert_eq!(socket.send(&mut batch), 0);
        }
        assert_eq!(seen, [[0; 5], [1; 5], [2; 5]]);
        let mut answer = [0; 9];
        for wanted in [10, 12] {
            assert_eq!(client.recv_from(&mut answer).unwrap(), (1, to), "{bound}");
            assert_eq!(answer[0], wanted);
        }
    }
}

#[test]
fn a_wait_ends_by_itself_and_by_a_call() {
    let socket = local("127.0.0.1:0");
    let mut batch = Batch::new();
    socket.receive(&mut batch).unwrap();
    assert!(batch.is_empty());
    let patient = Socket::bind("127.0.0.1:0".parse().unwrap(), Duration::from_secs(60)).unwrap();
    let (told, tid) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut batch = Batch::new();
            told.send(rustix::thread::gettid()).unwrap();
            patient.receive(&mut batch).unwrap();
        });
        let tid = tid.recv().unwrap().as_raw_nonzero();
        let sleeps = || {
            let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).ok()?;
            stat.rsplit(") ").next()?.starts_with('S').then_some(())
        };
        let slept = lab::wait_until(Duration::from_secs(30), "a wait that has begun", sleeps);
        patient.wake();
        slept.unwrap();
    });
}

#[test]
fn an_address_that_is_taken_is_refused() {
    let first = local("127.0.0.1:0");
    let again = Socket::bind(first.address(), Duration::from_secs(1)).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
}
