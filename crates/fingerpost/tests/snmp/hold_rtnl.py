"""Holds the kernel's lock of links (RTNL) until standard input ends, 30 s at
most, and says `held` once it does.

The kernel reads an ethtool request about the link that is named under that
lock. The second part of the request lies in a page that is not there, and
whose fault this process answers when it is to (userfaultfd).
"""

import ctypes
import mmap
import os
import select
import socket
import struct
import sys
import threading

PAGE = mmap.PAGESIZE
LONGEST_SECS = 30
# linux/userfaultfd.h
UFFDIO_API = 0xC018AA3F
UFFDIO_REGISTER = 0xC020AA00
UFFDIO_ZEROPAGE = 0xC020AA04
# linux/sockios.h, linux/ethtool.h
SIOCETHTOOL = 0x8946
ETHTOOL_GSTRINGS = 0x1B

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]


def ioctl(fd, request, *words):
    data = struct.pack("%dQ" % len(words), *words)
    buffer = ctypes.create_string_buffer(data, len(data))
    if libc.ioctl(fd, request, ctypes.addressof(buffer)) < 0:
        raise OSError(ctypes.get_errno(), "ioctl %#x" % request)


def userfaultfd():
    number = 323 if os.uname().machine == "x86_64" else 282
    fd = libc.syscall(number, os.O_CLOEXEC | os.O_NONBLOCK)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "userfaultfd")
    ioctl(fd, UFFDIO_API, 0xAA, 0, 0)
    return fd


faults = userfaultfd()
private_and_anonymous, readable_and_writable = 0x22, 3
pages = libc.mmap(None, 2 * PAGE, readable_and_writable, private_and_anonymous, -1, 0)
missing = pages + PAGE
ioctl(faults, UFFDIO_REGISTER, missing, PAGE, 1, 0)
ctypes.memmove(missing - 4, struct.pack("I", ETHTOOL_GSTRINGS), 4)
asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link = struct.pack("16sQ16x", sys.argv[1].encode(), missing - 4)
request = ctypes.create_string_buffer(link, len(link))
asking = threading.Thread(
    target=libc.ioctl, args=(asked.fileno(), SIOCETHTOOL, ctypes.addressof(request))
)
asking.start()
if select.select([faults], [], [], LONGEST_SECS)[0]:
    print("held", flush=True)
    select.select([sys.stdin], [], [], LONGEST_SECS)
ioctl(faults, UFFDIO_ZEROPAGE, missing, PAGE, 0, 0)
asking.join()
