"""What to say of an operator that an importer does not know."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

DOCS = "docs/importing.md"
NEAREST = 3

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
        ("dynamicquantizelinear", "matmulinteger", "convinteger", "dynamicquantizelstm",
         "dynamicquantizematmul"),
        DYNAMIC,
    ),
}  # fmt: skip
"""What to do instead, by name in small letters only."""


def instead(name: str) -> str:
    """What to do instead of the operator or module ``name``; "" where nothing is known."""
    return INSTEAD.get(name.lower().replace("_", ""), "")


def unsupported(name: str, known: Iterable[str]) -> str:
    """``not supported``, and what to do instead; or the supported operators of a similar name, and
    where all of them are."""
    if hint := instead(name):
        return f"not supported; {hint}"
    names = {each.lower(): each for each in known}
    near = [names[each] for each in difflib.get_close_matches(name.lower(), names, NEAREST)]
    said = f" (of a similar name: {', '.join(near)})" if near else ""
    return f"not supported{said}; {DOCS} lists what is"
