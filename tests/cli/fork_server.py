"""Runs of the program that share one start of LibTorch: fork_server.cpp.

Each run is a process of its own, with the program's own main, arguments,
streams and exit code. What it does not show is how the program starts and loads
its engine: program_test.py starts it as people do.
"""

import array
import atexit
import os
import queue
import signal
import socket
import subprocess
import tempfile

PIPE_SIZE = 65536  # as much as a pipe takes before somebody reads


class ForkServer:
    def __init__(self, program, library, engine, timeout):
        self.client, other = socket.socketpair()
        self.client.settimeout(timeout)
        environment = {
            **os.environ,
            "LD_PRELOAD": os.fspath(library),
            "SEQCONV_FORK_SOCKET": str(other.fileno()),
        }
        if engine is not None:
            environment["SEQCONV_FORK_ENGINE"] = os.fspath(engine)
        self.process = subprocess.Popen(
            [program], env=environment, pass_fds=[other.fileno()],
            stdin=subprocess.DEVNULL, start_new_session=True)
        other.close()

    def close(self):
        self.client.close()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def run(self, arguments, stdin):
        """(exit code as subprocess gives it, standard output, its error)."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given = standard_input(stdin)
            try:
                self.send(arguments, [given, out.fileno(), err.fileno()])
            finally:
                os.close(given)
            status = self.client.recv(4, socket.MSG_WAITALL)
            if len(status) != 4:
                raise AssertionError(f"the fork server is gone: {arguments}")
            code = os.waitstatus_to_exitcode(int.from_bytes(status, "little"))
            return code, *(read_all(stream) for stream in (out, err))

    def send(self, arguments, streams):
        text = b"".join(os.fsencode(word) + b"\0" for word in arguments)
        self.client.sendmsg(
            [len(text).to_bytes(4, "little")],
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))])
        self.client.sendall(text)


def standard_input(content):
    """Where a run reads: a pipe, or a file when a pipe cannot hold it all."""
    if len(content) <= PIPE_SIZE:
        reader, writer = os.pipe()
        os.write(writer, content)
        os.close(writer)
        return reader
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        file.seek(0)
        return os.dup(file.fileno())


def read_all(stream):
    stream.seek(0)
    return stream.read()


class ForkServers:
    """As many as there are threads that run something at once."""

    def __init__(self, *arguments):
        self.arguments = arguments
        self.idle = queue.SimpleQueue()

    def run(self, arguments, stdin):
        try:
            server = self.idle.get_nowait()
        except queue.Empty:
            server = ForkServer(*self.arguments)
            atexit.register(server.close)
        try:
            answer = server.run(arguments, stdin)
        except BaseException:
            server.close()  # whatever still runs there, nobody waits for it
            raise
        self.idle.put(server)
        return answer
