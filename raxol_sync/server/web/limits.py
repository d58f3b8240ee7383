"""Every bound and deadline of the embedded server, in one place. Pure. Floor 2."""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True)
class Limits:
    """What the server grants its clients. All times are in seconds, all sizes in bytes.

    Attributes:
        max_threads: requests that run at once, event streams not counted.
        max_streams: event streams that are open at once; each has one more thread.
        max_connections: connections that are open at once, the idle ones included.
        max_target: the request line's target (status 414).
        max_head: the request line and all headers (431).
        max_fields: header lines (431).
        max_body: a request's body (413).
        max_bodies: bodies that are being received, all together (503).
        backlog: connections that the system may hold for us.
        header_timeout: from a request's first byte, or from the connection, to its last header;
            the handshake of TLS too.
        body_timeout: for a body to come, and one second more for each ``min_rate`` bytes of it.
        idle_timeout: between two requests of a connection.
        write_timeout: for a client to take what is written, and one second more for each
            ``min_rate`` bytes of it.
        drain_timeout: for a client to read why it was refused: without a byte from it, and in all,
            with one second more for each ``min_rate`` bytes that it still sends.
        queue_timeout: for a whole request to get a thread (503).
        linger: how long a thread that has answered waits for the next request.
        idle_thread: how long a thread without work stays.
        min_rate: bytes a second that a body must come at, or an answer be read at.
    """

    max_threads: int = 128
    max_streams: int = 512
    max_connections: int = 2048
    max_target: int = 8 * KIB
    max_head: int = 64 * KIB
    max_fields: int = 100
    max_body: int = 32 * MIB
    max_bodies: int = 256 * MIB
    backlog: int = 512
    header_timeout: float = 10.0
    body_timeout: float = 20.0
    idle_timeout: float = 60.0
    write_timeout: float = 20.0
    drain_timeout: float = 2.0
    queue_timeout: float = 10.0
    linger: float = 0.02
    idle_thread: float = 10.0
    min_rate: int = 16 * KIB

    def __post_init__(self) -> None:
        """Check them.

        Raises:
            ValueError: one is not above zero.
        """
        for name, value in vars(self).items():
            if not value > 0 and name not in ("linger", "max_streams"):
                raise ValueError(f"{name} must be above 0, not {value!r}")

    def body_allowance(self, received: int) -> float:
        """Seconds in which a body may come of which so much is there."""
        return self.body_timeout + received / self.min_rate

    def write_allowance(self, size: int) -> float:
        """Seconds in which a client must take so many bytes."""
        return self.write_timeout + size / self.min_rate
