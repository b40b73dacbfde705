"""Stops the server when the bot is gone, where the kernel has no parent-death signal.

Run as a program of its own, by `python watch.py PID`, with a pipe for its input that only the bot holds
open: the pipe's end tells that the bot has ended, however it ended.
"""

from __future__ import annotations

import os
import signal
import sys

if __name__ == "__main__":
    sys.stdin.buffer.read()
    os.kill(int(sys.argv[1]), signal.SIGINT)
