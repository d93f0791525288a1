"""Is any number of a cropped log wrong? Every log, cut at every column with every mark, or broken off anywhere.

Lines cut by a terminal, a pager or a screenshot are the commonest damage of a pasted log. How to read it: `wrong` must
be 0; of each log and number the first is printed, with its width. The exit code is 1 where there is one.

    python tests/bench/cropped.py [FOLDER ...]

Without folders: the boot logs, reports and other logs of tests/golden.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.cropped import GOLDEN, MARKS, at_width, columns, facts_by_line, logs, prefixes, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Crop logs at every column and compare their numbers.")
    parser.add_argument("folders", nargs="*", type=Path, help="folders with *.log (default tests/golden)")
    texts = logs(parser.parse_args().folders or [GOLDEN])
    cropped = 0
    found: Counter[tuple[str, str]] = Counter()
    for name, text in texts.items():
        whole = facts_by_line(text)
        cuts = [(f"width {width}{mark!r}", at_width(text, width, mark)) for width in columns(text) for mark in MARKS]
        cuts += [(f"character {len(prefix)}", prefix) for prefix in prefixes(text)]
        for where, cut in cuts:
            cropped += 1
            for sentence in wrong(cut, whole):
                key = (name, sentence.partition(":")[0])
                found[key] += 1
                if found[key] == 1:
                    print(f"{name}, {where}: {sentence}", flush=True)
    print(f"{len(texts)} logs, {cropped:,} cropped, {found.total():,} numbers wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
