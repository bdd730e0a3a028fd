"""Packets of many kinds from inside: what the translation knows and what it
does not. What the sender's own kernel refuses is left out."""

import socket
import time

FAR = ["198.51.100.2", "192.0.2.2", "203.0.113.9", "240.0.0.1", "0.1.2.3"]
# ICMP, IGMP, IPIP, TCP, UDP, IPv6, GRE, ESP, AH, OSPF, PIM, SCTP, UDP-Lite, none.
PROTOCOLS = [1, 2, 4, 6, 17, 41, 47, 50, 51, 89, 103, 132, 136, 253]
LOADS = [b"\x08\x00" + bytes(30), b"\x03\x04" + b"\x01" * 40, bytes(3), b"\xff" * 1480]
RECORD_ROUTE = bytes([7, 7, 4, 0, 0, 0, 0, 0])


def send(sender, load, to):
    try:
        sender.sendto(load, (to, 9))
    except OSError:
        pass
    # Queues on the way are short.
    time.sleep(0.001)


for to in FAR:
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for length in (10, 1472, 4000, 20000):
        send(datagrams, bytes(length), to)
    # IP_MTU_DISCOVER: it may be cut.
    datagrams.setsockopt(socket.IPPROTO_IP, 10, 0)
    send(datagrams, bytes(1472), to)
    datagrams.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, RECORD_ROUTE)
    send(datagrams, bytes(20), to)
    send(datagrams, bytes(4000), to)
    for ttl in (1, 2):
        datagrams.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
        send(datagrams, b"short-lived", to)
    for protocol in PROTOCOLS:
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
        for load in LOADS:
            send(raw, load, to)
    stream = socket.socket()
    stream.setblocking(False)
    stream.connect_ex((to, 80))
