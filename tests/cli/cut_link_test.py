"""Training over two network namespaces that stand for two machines, until the link
between them is cut. Ends with 77, skipped, where no such namespaces can be made."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import processes_test
import support
from support import run

SKIPPED = 77
ADDRESSES = ("10.213.77.1", "10.213.77.2")
FEW_SECONDS = 10


def call(*command):
    return subprocess.run(command, check=True, capture_output=True, timeout=FEW_SECONDS)


class Machines:
    """Two of them, each a process that keeps its namespaces alive, and a wire."""

    def __init__(self):
        self.keepers = []
        try:
            for name in "one", "two":
                self.keepers.append(subprocess.Popen(
                    ["unshare", "--net", "--uts", "sh", "-c",
                     f"hostname {name} && ip link set lo up && echo ready && exec sleep 600"],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
                answer = self.keepers[-1].stdout.readline()
                if answer != b"ready\n":
                    raise OSError(answer.decode().strip())
            one, two = (str(keeper.pid) for keeper in self.keepers)
            call("ip", "link", "add", "wire", "netns", one, "type", "veth",
                 "peer", "name", "wire", "netns", two)
            for index, address in enumerate(ADDRESSES):
                call(*self.inside(index), "ip", "addr", "add", address + "/24", "dev", "wire")
                call(*self.inside(index), "ip", "link", "set", "wire", "up")
        except BaseException:
            self.end()
            raise

    def inside(self, index):
        """The beginning of a command that runs on that machine."""
        return ["nsenter", f"--net=/proc/{self.keepers[index].pid}/ns/net",
                f"--uts=/proc/{self.keepers[index].pid}/ns/uts", "--"]

    def cut(self):
        call(*self.inside(0), "ip", "link", "delete", "wire")

    def processes(self):
        """Ids of all that run on them."""
        places = {os.readlink(f"/proc/{keeper.pid}/ns/net") for keeper in self.keepers}
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(process / "ns" / "net") in places:
                    found.append(int(process.name))
            except OSError:
                pass
        return set(found) - {keeper.pid for keeper in self.keepers}

    def end(self):
        if len(self.keepers) == 2:
            for process in self.processes():
                os.kill(process, signal.SIGKILL)
        for keeper in self.keepers:
            keeper.kill()
            keeper.wait()
            keeper.stdout.close()
        self.keepers = []


def mpirun(machines):
    """Two processes on each machine; what logs in on the other is a script."""
    agent = support.scratch() / "login"
    agent.write_text(f"#!/bin/sh\nshift\nexec {' '.join(machines.inside(1))} sh -c \"$*\"\n")
    agent.chmod(0o755)
    settings = {
        "plm_rsh_agent": agent,
        "btl_tcp_if_include": "wire",
        "oob_tcp_if_include": "wire",
        "oob_tcp_keepalive_time": "5",
        "oob_tcp_keepalive_intvl": "1",
        "oob_tcp_keepalive_probes": "7"}
    command = [*machines.inside(0), "mpirun", "--oversubscribe", "--allow-run-as-root",
               "--bind-to", "none", "--host", ",".join(f"{name}:2" for name in ADDRESSES)]
    for name, value in settings.items():
        command += ["--mca", name, os.fspath(value)]
    return command


class CutLink(unittest.TestCase):
    def start(self, machines):
        """A run without end that has saved its state."""
        settings = ("training.max_updates=1000000", *processes_test.Ends.QUIET)
        job = subprocess.Popen(
            [*mpirun(machines), os.fspath(support.PROGRAM),
             *processes_test.training("cut", *settings)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.kill)
        checkpoints = support.scratch() / "cut" / "training" / "checkpoints"
        last = time.monotonic() + support.TIMEOUT
        while not list(checkpoints.glob("update-*.safetensors")):
            self.assertIsNone(job.poll(), "it ended by itself")
            self.assertLess(time.monotonic(), last, "it does not train")
            time.sleep(0.05)
        return job

    def test_it_ends_all_within_half_a_minute_with_a_state_to_go_on_from(self):
        machines = Machines()
        self.addCleanup(machines.end)
        job = self.start(machines)
        self.assertGreaterEqual(len(machines.processes()), 6)  # four ranks, two of mpirun
        machines.cut()
        last = time.monotonic() + 30
        try:
            _, message = job.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            machines.end()
            self.fail(f"it does not end: {job.communicate()[1]}")
        message = message.decode("utf-8", "replace")
        while machines.processes():
            self.assertLess(time.monotonic(), last, f"processes are left over\n{message}")
            time.sleep(0.1)
        self.assertLess(time.monotonic(), last, message)
        self.assertNotEqual(job.returncode, 0, message)
        self.assertIn(f"on node {ADDRESSES[1]}", message)
        self.assert_goes_on()

    def assert_goes_on(self):
        update = processes_test.position("cut")["update"]
        self.assertGreaterEqual(update, 5)
        settings = (f"training.max_updates={update + 3}", *processes_test.Ends.QUIET)
        result = run(*processes_test.training("cut", *settings), "--resume")
        self.assertEqual(result.code, 0, result.message)
        self.assertEqual(processes_test.records("cut", "end")[-1]["update"], update + 3)


def main():
    try:
        Machines().end()
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        print("Skipped: no network namespaces can be made here:", said.decode().strip())
        sys.exit(SKIPPED)
    unittest.main()


if __name__ == "__main__":
    main()
