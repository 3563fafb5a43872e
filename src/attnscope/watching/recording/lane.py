"""Steps that only write down what is there, in as few calls as it takes.

Between the steps of a training nothing of ours is in the processor's cache, and what recording
costs is the code that has to be fetched. So where a track has the loss alone, or the loss and the
weights of every point, steps go down a lane: weights are copied byte by byte into their place of
the chunk by the hook that hears them, while they are in the cache, and a step writes two numbers.
Channels hear of all that when a chunk is full, or when somebody wants to know.

Whatever is not as it was (another shape, another type, a loss that is no number, a point that was
not heard) leaves the lane, and that step goes the usual way.
"""

from __future__ import annotations

from ctypes import memmove
from typing import Any

import torch
from torch import Tensor

from attnscope.trajectory.channel import Channel
from attnscope.watching.recording.losses import LOSS
from attnscope.watching.track import Track

LARGEST = 2**20
"""Weights of more bytes than this are worth a copy on several threads."""
NOT_HEARD, IN_PLACE, LEFT = 0, 1, 2
"""What became of the weights of a point in the last forward pass."""


class Lane:
    """Where the steps of a track are written down while they are all of one kind.

    Args:
        left: weights of every point that the last forward pass left, for the usual way.
    """

    def __init__(self, left: list[Tensor]) -> None:
        self.left = left
        self.open = self.deaf = False
        self.shapes: tuple[torch.Size, ...] = ()
        self.kind, self.size, self.address = torch.float32, 0, 0
        self.heard = bytearray(len(left))
        self._all = bytearray([IN_PLACE] * len(left))
        self._channels: list[Channel] = []
        self._used = self._room = self._written = self._stride = 0
        self._clock: Any = None
        self._losses: Any = None

    def enter(self, track: Track, straight: bool) -> None:
        """Write the next steps of a track down here, if it reads nothing else.

        Args:
            track: which has a channel for each of its readings.
            straight: whether weights are those that training leaves, and not of a probe batch.
        """
        weights = [reading for reading in track.readings if reading.left]
        if self.deaf or track.broken or len(track.readings) != 1 + len(weights):
            return
        if LOSS not in track.readings or (weights and not straight):
            return
        channels = [track.clock, track.channels[LOSS.name]]
        self.size = self._stride = 0
        if weights:
            channel = track.channels[weights[0].name]
            rows, heads, queries, keys = shape = channel.shape[1:]
            # Modules with a single head may return weights without its axis.
            shapes = [shape, (rows, queries, keys)] if heads == 1 else [shape]
            self.shapes = tuple(torch.Size(sizes) for sizes in shapes)
            self.kind = channel.buffer.tensor.dtype
            self._stride = channel.buffer.tensor[0].nbytes
            self.size = self._stride // channel.shape[0]
            fits = channel.shape[0] == len(self.left) and 0 < self.size <= LARGEST
            if not fits or any(w.shape not in self.shapes for w in self.left):
                return
            channels.append(channel)
        self._channels, self._written, self.open = channels, 0, True
        self._bind()

    def take(self, step: int, loss: Any) -> bool:
        """Write down a step; return whether it could be, and nothing is written if not."""
        if loss.__class__ is Tensor and loss.is_cpu:
            try:
                loss = loss.item()
            except RuntimeError:
                return False
        if loss.__class__ is not float:
            self.deaf = True
            return False
        # Whether it is finite, without a call.
        if loss * 0.0 != 0.0:
            return False
        used = self._used
        if self._stride:
            if self.heard != self._all:
                return False
            self.heard = bytearray(len(self._all))
            self.address += self._stride
        self._clock[used] = step
        self._losses[used] = loss
        self._used = used + 1
        if self._used == self._room:
            self.settle()
        return True

    def settle(self) -> float | None:
        """Tell channels what was written down; return the last loss, if there is one."""
        used = self._used
        if not used:
            return None
        last = float(self._losses[used - 1])
        self._written += used
        if used == self._room:
            # A chunk is full and goes to the disk.
            self._keep_last()
            self._written = 0
        full = [channel.advance(used) for channel in self._channels]
        if any(full):
            for channel in self._channels:
                channel.flush()
        self._bind()
        return last

    def leave(self) -> None:
        """Put what was heard where the usual way finds it, and hear no more."""
        if not self.open:
            return
        self.settle()
        if self._stride:
            self._keep_last()
            for index, how in enumerate(self.heard):
                if how == IN_PLACE:
                    self.left[index] = self._copy(index, self.address)
        self.heard = bytearray(len(self._all))
        self.open, self._channels = False, []

    def _bind(self) -> None:
        """Find the places of the next steps in the buffers of channels."""
        places = [channel.count - channel.start for channel in self._channels]
        lengths = [channel.length for channel in self._channels]
        self._room = min(n - place for n, place in zip(lengths, places, strict=True))
        clock, losses = self._channels[:2]
        self._clock = clock.buffer.numbers[places[0] :]
        self._losses = losses.buffer.numbers[places[1] :]
        if self._stride:
            base = self._channels[2].buffer.tensor.data_ptr()
            self.address = base + places[2] * self._stride
        self._used = 0

    def _keep_last(self) -> None:
        """Leave the weights of the last step, for points that are not heard before the next."""
        if self._stride and self._written:
            for index, how in enumerate(self.heard):
                if how != LEFT:
                    self.left[index] = self._copy(index, self.address - self._stride)

    def _copy(self, index: int, address: int) -> Tensor:
        copy = torch.empty(self.shapes[0], dtype=self.kind)
        memmove(copy.data_ptr(), address + index * self.size, self.size)
        return copy


class Left:
    """Takes the weights of one point: into the lane if it is open, else for the usual way.

    Args:
        lane: the lane.
        index: of the point.
    """

    def __init__(self, lane: Lane, index: int) -> None:
        self.lane, self.index = lane, index

    def __call__(self, weights: Tensor) -> None:
        """Keep weights until the step."""
        if not self.quick(weights):
            self.lane.left[self.index] = weights.detach()

    def quick(self, weights: Tensor) -> bool:
        """Copy weights, with or without a gradient, to their place; return whether they fit."""
        lane = self.lane
        if not (lane.open and lane.size):
            return False
        try:
            if (
                weights.__class__ is Tensor
                and weights.shape in lane.shapes
                and weights.dtype is lane.kind
                and weights.is_contiguous()
                and weights.is_cpu
            ):
                # Neither a tensor that shares memory nor autograd: a copy in PyTorch costs ten
                # times the code.
                memmove(lane.address + self.index * lane.size, weights.data_ptr(), lane.size)
                lane.heard[self.index] = IN_PLACE
                return True
        except RuntimeError:
            pass  # Under torch.func a tensor may have no memory of its own.
        lane.heard[self.index] = LEFT
        return False
