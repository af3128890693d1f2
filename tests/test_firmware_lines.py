"""Lines of firmware/ that ran: counted by gcov, told by marks at the ends of lines."""

import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import jinja2

from pipeline.home import ROOT
from tests.firmware_lines import Hits, Marked, add, counted, table

TEMPLATE = """\
#define TWICE(x) (2 * (x))
/* not
   code; */
{% for n in [1, 2] %}
static int f{{ n }}(int x) {
    if (x) {
        return {{ n }};
    }
    return TWICE(x); {# nor this; #}
}
{% endfor %}
int main(void) {
    return f1(0) + f2(0);
}
"""


def test_lines_of_a_template(tmp_path: Path) -> None:
    environment = jinja2.Environment(trim_blocks=True, extensions=[Marked])
    marked, assembly = (
        Marked(environment).preprocess(TEMPLATE, None, str(ROOT / "firmware" / name))
        for name in ("x.c.j2", "kernels/avr/x.c.j2")
    )
    assert assembly == TEMPLATE
    plain = jinja2.Environment(trim_blocks=True)
    (tmp_path / "x.c").write_text(plain.from_string(marked).render())
    assert "#define TWICE(x) (2 * (x))\n" in marked and "   code; */\n" in marked
    subprocess.run(["cc", "--coverage", "x.c", "-o", "x"], cwd=tmp_path, check=True)
    prefix = tmp_path / "counts"
    env = {"GCOV_PREFIX": str(prefix)}
    subprocess.run([tmp_path / "x"], cwd=tmp_path, env=env, check=True)
    hits: Hits = defaultdict(Counter)
    for count in prefix.rglob("*.gcda"):
        for path, lines in counted(count, prefix):
            add(hits, path, lines)
    assert {line for line, ran in hits["firmware/x.c.j2"].items() if not ran} == {7}
    assert hits["firmware/x.c.j2"][5] == 2
    assert list(table(hits)) == [
        " 83.3% of    6 lines  firmware/x.c.j2, never 7",
        "83.3% of 6 lines of firmware/ that hosts compile ran",
    ]
