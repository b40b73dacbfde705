"""Stops the server when the bot is gone, where the kernel has no parent-death signal.

Run as a program of its own, by `python watch.py`, with a pipe for its input that only the bot holds open.
The bot writes the server's process number into it, and the pipe's end tells that the bot has ended, however
it ended.
"""

from __future__ import annotations

import os
import signal
import sys

if __name__ == "__main__":
    server = sys.stdin.read()
    if server:
        os.kill(int(server), signal.SIGINT)
