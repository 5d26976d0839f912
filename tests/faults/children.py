"""Processes that are forked off, and killed or asked to stop at some moment."""

import os
import signal
import sys
import time
import traceback


def forked(work, log):
    """Run work in a forked process, what it says going to a file; return its number once it began.

    The libraries are imported once, before, so that hundreds of processes can be had in a minute.
    """
    reading, writing = os.pipe()
    number = os.fork()
    if number:
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)
        return number
    code = 99
    try:
        os.close(reading)
        with open(log, "wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        os.write(writing, b"!")
        code = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def ended(number, kind, after, limit=60.0):
    """Send a signal after some seconds; return how the process ended, and how long that took."""
    time.sleep(after)
    sent = time.monotonic()
    os.kill(number, kind)
    while True:
        found, status = os.waitpid(number, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), time.monotonic() - sent
        if time.monotonic() - sent > limit:
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)
            raise AssertionError(f"it did not end within {limit:g} s")
        time.sleep(0.005)


def finished(number):
    """Wait for a process and return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
