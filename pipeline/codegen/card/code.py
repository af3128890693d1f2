"""C for a plan that swaps with a card: its second track, and how input and output pass."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.codegen.arrival import WHOLE, Arrival, counters, input_bytes
from pipeline.codegen.card.image import CHECK, LAST_MAGIC, Image
from pipeline.codegen.card.program import MOST_AXES, Code, Transfers
from pipeline.codegen.card.sealed import Sealed
from pipeline.codegen.checks import arena_bytes, arena_memory
from pipeline.codegen.program import Program
from pipeline.codegen.render import render
from pipeline.errors import ThimbleError
from pipeline.plan import ahead
from pipeline.plan.repair import Repair
from pipeline.plan.unrolled import repeated
from pipeline.plan.vocabulary import Buffer, Signal, Step, Track, Wait
from pipeline.sealing import driven


@dataclass
class Card:
    """The track ``moving`` of a program."""

    program: Program
    moving: Track

    def __post_init__(self) -> None:
        program = self.program
        driven(program.hardware.card.engine)
        self.sealed = Sealed.of(program.graph, program.plan, program.hardware)
        self.summed = program.hardware.card.summed
        self.image = Image(program.graph, program.plan, self.sealed is not None or self.summed)
        if (passing := ahead.place(program.plan)) is not None:
            ahead.check(passing.shape[0], program.hardware.card)
        self.ahead = self.image.ahead
        if self.sealed and self.taken:
            raise ThimbleError(
                f"security={self.sealed.security}: the result of {self.output_bytes:,} B has to "
                f"fit the arena of {arena_bytes(program.plan):,} B: security=unchecked, or a "
                "larger hardware.sram_bytes"
            )
        names = dict.fromkeys(
            step.counter
            for track in self.program.plan.tracks
            for step, _ in repeated(track.steps)
            if isinstance(step, Signal | Wait)
        )
        self.program.counters |= {name: number for number, name in enumerate(names)}
        if self.sealed:
            program.repair = Repair.noted(program.plan, program.graph)

    def begin(self, computing: Track) -> tuple[Arrival, Sequence[Step]]:
        """Return how the input gets to the card, and the steps of the program.

        Raises:
            ThimbleError: where it begins elsewhere.
        """
        program, graph = self.program, self.program.graph
        buffer = self.program.input_buffer
        self._check(buffer)
        size = input_bytes(graph.tensors[graph.input])
        room = self.ahead["room"] if self.ahead else self._room()
        if program.hardware.card.streamed:  # the line waits while it is written: a block at a time
            room = min(room, self.image.block_bytes)
        source = render(
            "frame/feed_card.c.j2", sealed=self.sealed is not None, ahead=self.ahead,
            at=self.image.at[buffer.name], room=min(room, size), frames=self.frames, each=size,
            stride=buffer.copy_stride // 2, **counters(program),
        )  # fmt: skip
        program.line("nn_card_begin();")
        return Arrival(source, *WHOLE), computing.steps

    def end(self) -> list[int]:
        """The track runs to its end, and the output comes to the arena, if it fits: the byte where
        it is."""
        program = self.program
        self._check(self._output)
        brought = 0 if self.taken else self.output_bytes
        program.line(f"if (!nn_card_end({self.image.at[self._output.name]}, {brought})) {{")
        program.line("    return nn_card.status;")
        program.line("}")
        if self.taken:
            program.line(f"nn_left = {self.frames * self.output_bytes};")
        return [0]

    @property
    def checked(self) -> bool:
        """Check whether what comes from the card is checked."""
        return self.sealed is not None or self.summed

    @property
    def repaired(self) -> bool:
        """Check whether an inference that loses something on the card goes on from a layer."""
        return bool(self.program.repair.places)

    @property
    def keyed(self) -> bool:
        """Check whether the card's tags take a key."""
        return self.program.hardware.card.keyed

    @property
    def blocks(self) -> int:
        """Count the blocks of the card."""
        return self.sealed.blocks if self.sealed else self.image.blocks

    @property
    def frames(self) -> int:
        """Count the frames that are computed together."""
        return self.program.plan.frames

    @property
    def taken(self) -> bool:
        """The output is larger than the arena, one for each of several frames, or may be taken
        later: it stays on the card, and the caller takes it."""
        large = self.output_bytes > arena_bytes(self.program.plan)
        return self.frames > 1 or bool(self.ahead) or large

    @property
    def _output(self) -> Buffer:
        return self.program.plan.buffer[self.program.plan.output]

    @property
    def output_bytes(self) -> int:
        """Count the bytes of a frame's output."""
        low, high = self._output.at(0).extent
        return (high - low) // 2

    def _room(self) -> int:
        """Bytes of the arena that pass together where nothing else is in it: whole blocks."""
        room = self.ahead.get("at") or arena_bytes(self.program.plan)
        block = self.image.block_bytes
        return room // block * block or room

    @property
    def line_bytes(self) -> int:
        """Count the bytes of a line of the data cache that the plan is made for."""
        return self.program.plan.memory[arena_memory(self.program.plan)].granule_bytes

    def _check(self, buffer: Buffer) -> None:
        if buffer.name not in self.program.plan.on_card:
            raise ThimbleError(
                f"{buffer.tensor}: generated code that swaps has input and output on the card, "
                f"not in {buffer.memory}"
            )

    def source(self) -> str:
        """
        Raises:
            ThimbleError: for transfers that it cannot express.
        """
        repair, fed, block = self.program.repair, self.program.input_buffer, self.image.block_bytes
        transfers = Transfers(self.image, self.program.counters, repair)
        sealed = self.sealed.context(fed, repair) if self.sealed else None
        fault = "nn_sums.fault" if self.summed else "NN_CARD_FAILED"
        return render(
            "frame/card.c.j2", card=self, sealed=sealed, codes=Code, transfers=transfers,
            summed=self.image.sums(fed) if self.summed else None, axes=MOST_AXES,
            via="nn_sealed" if sealed else "storage", fault="nn_sealed.fault" if sealed else fault,
            code=list(transfers.code(self.moving.steps)), last_magic=list(LAST_MAGIC),
            identity=list((self.sealed or self.image).identity()), block_bytes=block,
            room=self._room(), take_room=block if self.ahead else self._room(),
            output_at=self.image.at[self._output.name], header_check=block - CHECK.size,
            output_stride=self._output.copy_stride // 2,
        )  # fmt: skip
