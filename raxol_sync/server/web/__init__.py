"""The embedded web server: any WSGI application, on threads and sockets. It knows no MCP. Floor 2.

Theory of operation. A connection is always in one hand. The *poller*, one thread, holds all that
wait for their client: idle ones, half-sent requests, handshakes of TLS, answers that are not read.
When something comes it hands the connection to a thread of the *crew*, which reads what is there
without waiting. If that makes a request whole, body included, the same thread runs the application
and writes the answer; if not, the connection goes back to the poller with its deadline. So a
thread is only ever held by an application that runs or by a stream that is open, never by a client
that is slow to ask. A thread that has answered keeps the connection for a few milliseconds: the
next request of a busy client then wakes it at once, and the poller has no part in it.

Event streams are counted apart: each has a thread of its own beyond those of the requests.
"""
