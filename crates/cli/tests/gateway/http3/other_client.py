"""aioquic against a gateway: other_client.py ADDRESS:PORT CA WHAT, where WHAT is one of the functions below.

Prints one line for each result. The violations are of RFC 9000; for them, the client discards its peer's limits or its
own state.
"""

import asyncio
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated
from aioquic.tls import Epoch

WITHIN = 10


class Client(QuicConnectionProtocol):
    """An HTTP/3 client."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = H3Connection(self._quic)
        self.answers = {}
        self.ended = asyncio.get_running_loop().create_future()

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated) and not self.ended.done():
            self.ended.set_result(event.error_code)
        for part in self.http.handle_event(event):
            if not isinstance(part, (HeadersReceived, DataReceived)):
                continue
            status, body, done = self.answers[part.stream_id]
            if isinstance(part, HeadersReceived):
                status.append(dict(part.headers).get(b":status", b"").decode())
            else:
                body.append(part.data)
            if part.stream_ended and not done.done():
                done.set_result(None)

    def ask(self, method, path, body=b""):
        stream = self._quic.get_next_available_stream_id()
        self.answers[stream] = ([], [], asyncio.get_running_loop().create_future())
        header = {":method": method, ":scheme": "https", ":authority": "localhost", ":path": path}
        if body:
            header["content-length"] = str(len(body))
        self.http.send_headers(stream, [(k.encode(), v.encode()) for k, v in header.items()], not body)
        if body:
            self.http.send_data(stream, body, True)
        self.transmit()
        return stream

    async def answer(self, stream):
        status, body, done = self.answers[stream]
        await asyncio.wait_for(done, WITHIN)
        return status[0], b"".join(body)

    async def get(self, path):
        status, body = await self.answer(self.ask("GET", path))
        return f"{status} {body.decode()}"


def configuration():
    settings = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name="localhost")
    settings.load_verify_locations(CA)
    return settings


def client(settings=None, **named):
    return connect(HOST, PORT, configuration=settings or configuration(), create_protocol=Client, **named)


async def requests():
    """Requests, bodies in both directions, a key update and another connection id on one connection."""
    async with client() as one:
        print("get:", await one.get("/"))
        body = bytes(range(256)) * 4096 * 3
        status, echo = await one.answer(one.ask("POST", "/echo", body))
        print("echo:", status, echo.endswith(body))
        one.request_key_update()
        print("after a key update:", await one.get("/"))
        one.change_connection_id()
        print("after another connection id:", await one.get("/"))
        many = [one.ask("GET", "/") for _ in range(100)]
        print("at once:", {await one.answer(stream) for stream in many})


async def resumption():
    """Resumption of a session on another connection."""
    tickets = []
    async with client(session_ticket_handler=tickets.append) as one:
        await one.get("/")
        while not tickets:
            await asyncio.wait_for(one.ping(), WITHIN)
    settings = configuration()
    settings.session_ticket = tickets[0]
    async with client(settings) as two:
        print("resumed:", two._quic.tls.session_resumed, await two.get("/"))


async def broken(how):
    """Prints the code with which the connection is closed after this violation."""
    async with client() as one:
        await one.get("/")
        how(one)
        one.transmit()
        print(hex(await asyncio.wait_for(one.ended, WITHIN)))


def opened(one, stream_id, offset, data=b"x"):
    """Sends bytes of a stream from this offset on, ignoring the peer's limits."""
    stream = one._quic._get_or_create_stream_for_send(stream_id)
    stream.is_blocked = False
    stream.max_stream_data_remote = 1 << 60
    stream.sender._buffer_start = stream.sender._buffer_stop = offset
    one._quic._remote_max_data = 1 << 60
    one._quic.send_stream_data(stream_id, data)
    return stream


def next_streams(one):
    first = one._quic.get_next_available_stream_id()
    return range(first, first + 4 * 90, 4)


def stream_data(one):
    """Exceeds the limit of one stream (section 4.1)."""
    opened(one, next_streams(one)[0], one._quic._remote_max_stream_data_bidi_remote)


def connection_data(one):
    """Exceeds the limit of the connection, but not that of any stream (section 4.1)."""
    each, in_all = one._quic._remote_max_stream_data_bidi_remote, one._quic._remote_max_data
    assert each * len(next_streams(one)) > in_all, (each, in_all)
    for stream_id in next_streams(one):
        opened(one, stream_id, each - 1)


def streams(one):
    """Exceeds the limit of streams by one (section 4.6)."""
    allowed = one._quic._remote_max_streams_bidi
    one._quic._remote_max_streams_bidi = 1 << 60
    opened(one, 4 * allowed, 0)


def final_size(one):
    """Resets a stream with a final size below the bytes sent (section 4.5)."""
    stream = opened(one, next_streams(one)[0], 0, b"x" * 100)
    one.transmit()
    stream.sender.highest_offset = 10
    one._quic.reset_stream(stream.stream_id, 0)


def handshake_data(one):
    """Sends handshake bytes at an offset far beyond those sent (section 7.5)."""
    sender = one._quic._crypto_streams[Epoch.ONE_RTT].sender
    sender._buffer_start = sender._buffer_stop = 1 << 20
    sender.write(b"x")


def acknowledgement(one):
    """Acknowledges a packet that was never sent (section 13.1)."""
    space = one._quic._spaces[Epoch.ONE_RTT]
    space.ack_queue.add(1 << 20, (1 << 20) + 1)
    space.ack_at = 0
    one._quic.send_ping(1)


WHAT = {each.__name__: each for each in (requests, resumption)}
BROKEN = (stream_data, connection_data, streams, final_size, handshake_data, acknowledgement)
WHAT |= {each.__name__: lambda each=each: broken(each) for each in BROKEN}

HOST, PORT = sys.argv[1].rsplit(":", 1)
PORT, CA, NAME = int(PORT), sys.argv[2], sys.argv[3]
asyncio.run(asyncio.wait_for(WHAT[NAME](), 60))
