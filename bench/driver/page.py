#!/usr/bin/env python3
"""A web page on loopback for the fetch servers: prints its port, serves until its standard input ends."""
import os
import socket
import sys
import threading

PARAGRAPH = (
    "<p>Paragraph {n} with some reasonably long text, so that it is kept when a page is simplified: boats, harbours, tides,"
    ' and <a href="/l{n}">a link</a>.</p>'
)
PAGE = (
    "<!doctype html><html><head><title>A page</title></head><body><nav><a href='/'>Home</a></nav><article><h1>Head</h1>"
    + "".join(PARAGRAPH.format(n=n) for n in range(20))
    + "</article></body></html>"
).encode()
ROBOTS = b"User-agent: *\nAllow: /\n"


def answer(body, kind):
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(body)) + body


ANSWERS = {True: answer(ROBOTS, b"text/plain"), False: answer(PAGE, b"text/html; charset=utf-8")}


def serve(peer):
    with peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        rest = b""
        while True:
            while b"\r\n\r\n" not in rest:
                data = peer.recv(65536)
                if not data:
                    return
                rest += data
            head, rest = rest.split(b"\r\n\r\n", 1)
            peer.sendall(ANSWERS[head.split(b" ", 2)[1].startswith(b"/robots.txt")])


def listen(listener):
    while True:
        peer, _ = listener.accept()
        threading.Thread(target=serve, args=(peer,), daemon=True).start()


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=listen, args=(listener,), daemon=True).start()
    while os.read(sys.stdin.fileno(), 4096):
        pass


if __name__ == "__main__":
    main()
