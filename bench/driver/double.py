#!/usr/bin/env python3
"""What servers ask over HTTP, on loopback: always the same answers.

Reads one line, a JSON list of `[words, type, body]`: a request whose target has these words gets that answer, the first that
fits. Prints its port, and serves until its standard input ends.
"""
import json
import os
import select
import socket
import sys


def answer(kind, body):
    body = body.encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind.encode(), len(body)) + body


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def length(head):
    """Bytes of the body that follows."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


class Peer:
    """A connection and what of its next request has come."""

    def __init__(self, sock, answers):
        self.sock, self.answers, self.rest = sock, answers, b""

    def read(self):
        """Answers the whole requests that are there; false when the connection ends."""
        data = self.sock.recv(1 << 16)
        self.rest += data
        out = b""
        while (end := self.rest.find(b"\r\n\r\n")) >= 0:
            size = end + 4 + length(self.rest[:end])
            if len(self.rest) < size:
                break
            target = self.rest.split(b" ", 2)[1]
            out += next((answer for words, answer in self.answers if words in target), NOT_FOUND)
            self.rest = self.rest[size:]
        if out:
            self.sock.sendall(out)
        return bool(data)


def main():
    answers = [(words.encode(), answer(kind, body)) for words, kind, body in json.loads(sys.stdin.buffer.raw.readline())]
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(listener.getsockname()[1], flush=True)
    poll, peers = select.epoll(), {}
    poll.register(listener, select.EPOLLIN)
    poll.register(0, select.EPOLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == 0:
                if not os.read(0, 4096):
                    return
            elif fd == listener.fileno():
                sock, _ = listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                peers[sock.fileno()] = Peer(sock, answers)
                poll.register(sock, select.EPOLLIN)
            else:
                try:
                    more = peers[fd].read()
                except OSError:
                    more = False
                if not more:
                    poll.unregister(fd)
                    peers.pop(fd).sock.close()


if __name__ == "__main__":
    main()
