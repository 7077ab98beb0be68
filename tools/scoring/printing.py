"""Printing: a reader of a pipe that has read enough, and a full disk, are no faults of the tool."""

from __future__ import annotations

import errno
import os
import sys

ENDED = 1
"""Exit code where not all could be printed."""


def printed(text: str) -> int:
    """Print ``text`` and give the exit code: 0, or 1 where standard output takes no more."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as why:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to be flushed at the end
        if why.errno != errno.EPIPE:
            sys.stderr.write(f"standard output: {why.strerror}; make room there, or send the output somewhere else\n")
        return ENDED
    return 0
