"""Say of an operator that no importer knows what to do instead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pipeline.errors import ThimbleError

DOCS = "docs/importing.md"

LABELS = "end the network with what it is taken of: the label is the same"
RECURRENT = (
    "nothing recurrent is; convolutions over time are, as docs/zoo.md's networks for speech have "
    f"them; {DOCS} lists all that is"
)
ATTENTION = (
    "products of two activations as matrices are not; convolutions, pools and gates of channels "
    f"are; {DOCS} lists all that is"
)
DYNAMIC = (
    "scales are not found at run time here; quantize with fixed ones (onnxruntime's "
    "quantize_static), or give the float network, which is quantized here"
)
RUN_TIME = (
    "the network has to be the same for every input: export it with what decides or counts fixed"
)
ENDS = ("argmax", "topk", "logsoftmax", "customoperator", "nonmaxsuppression")
"""Begin the names of operators before which a network may as well end."""
INSTEAD = {
    "argmax": LABELS,
    "topk": LABELS,
    "logsoftmax": "end the network with its logits: the label is the same",
    **dict.fromkeys(("lstm", "gru", "rnn", "rnntanh", "rnnrelu", "svdf"), RECURRENT),
    **dict.fromkeys(
        (f"{way}directionalsequence{kind}" for way in ("uni", "bi") for kind in ("lstm", "rnn")),
        RECURRENT,
    ),
    **dict.fromkeys(
        ("attention", "multiheadattention", "scaleddotproductattention", "batchmatmul", "bmm",
         "baddbmm", "einsum"),
        ATTENTION,
    ),
    **dict.fromkeys(
        ("dynamicquantizelstm", "dynamicquantizematmul"),
        DYNAMIC,
    ),
    **dict.fromkeys(("if", "loop", "scan", "while", "cond", "whileloop"), RUN_TIME),
    **dict.fromkeys(
        ("convtranspose", "transposeconv", "convtranspose1d", "convtranspose2d"),
        "enlarge by nearest neighbours, then convolve",
    ),
}  # fmt: skip
"""Advice on what to do instead, by name in small letters only."""


def instead(name: str) -> str:
    """Look up what to do instead of the operator or module ``name``; "" where nothing is known."""
    return INSTEAD.get(_plain(name), "")


def unsupported(name: str) -> str:
    """Say ``not supported``, and what to do instead, or where all that is supported is listed."""
    return f"not supported; {instead(name) or f'{DOCS} lists what is'}"


def lacking(found: Sequence[tuple[str, str]], before: Sequence[str] = ()) -> ThimbleError:
    """Refuse a network for all operators that nothing here knows.

    Args:
        found: each one's name, and where it is, ending in a colon or a few words, in order.
        before: the names of the tensors that they read of operators that are known.
    """
    first, kinds = dict(reversed(found)), Counter(name for name, _ in found)
    ends = all(_plain(name).startswith(ENDS) for name in kinds)
    cut = f"; model.outputs=[{','.join(before)}] ends it before that" if before and ends else ""
    if len(kinds) == 1:
        ((name, count),) = kinds.items()
        times = f" ({count} times)" if count > 1 else ""
        return ThimbleError(f"{first[name]} {unsupported(name)}{times}{cut}")
    places = {
        name: re.split(":(?: |$)", where)[0].removesuffix(f", {name}")
        for name, where in found[::-1]
    }
    each = (
        f"{name} ({f'{count} times, first ' if count > 1 else ''}{places[name]})"
        for name, count in kinds.items()
    )
    advice = dict.fromkeys([*filter(None, map(instead, kinds)), f"{DOCS} lists what is"])
    listed = f"{', '.join(each)}; {'; '.join(advice)}"
    return ThimbleError(f"operators that are not supported: {listed}{cut}")


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace(" ", "")
