"""Processes that do jobs: for the runs of a study, for the lab's sliders and for its figures.

A :class:`Worker` is one process, a :class:`Pool` shares a queue of jobs among several, and
:class:`Here` does the jobs of a pool in the process that asks for them. A job is
a function with its arguments; the function is called with a :class:`Job` as its last argument, by
which it can send parts and learn that it should stop.

Why not loky or pebble: they return one value for each job, so progress would need a second channel;
they end a job by killing its process, so a run could not write its checkpoint; neither limits
memory; a busy process of theirs outlives a parent that is killed; loky lets a ``queue.py`` in the
current directory take the place of the standard library's, and a process that pebble spawns imports
the user's script a second time. Starting a process and sending it a job cost the same with all.
"""

from __future__ import annotations

from attnscope.workers.child import Job
from attnscope.workers.here import Here
from attnscope.workers.pool import Pool
from attnscope.workers.process import Worker, WorkerDied

__all__ = ["Here", "Job", "Pool", "Worker", "WorkerDied"]
