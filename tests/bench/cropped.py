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

from sizing.bootlog import read_text
from tests.cropped import GOLDEN, MARKS, at_width, columns, logs, prefixes, wrong_at_width, wrong_in_part


def main() -> int:
    parser = argparse.ArgumentParser(description="Crop logs at every column and compare their numbers.")
    parser.add_argument("folders", nargs="*", type=Path, help="folders with *.log (default tests/golden)")
    texts = logs(parser.parse_args().folders or [GOLDEN])
    cropped = 0
    found: Counter[tuple[str, str]] = Counter()
    for name, text in texts.items():
        whole = read_text(text)
        cuts = [
            (f"width {width}{mark!r}", wrong_at_width(at_width(text, width, mark), whole))
            for width in columns(text)
            for mark in MARKS
        ]
        cuts += [(f"character {len(prefix)}", wrong_in_part(prefix, whole)) for prefix in prefixes(text)]
        cropped += len(cuts)
        for where, sentences in cuts:
            for sentence in sentences:
                key = (name, sentence.partition(":")[0])
                found[key] += 1
                if found[key] == 1:
                    print(f"{name}, {where}: {sentence}", flush=True)
    print(f"{len(texts)} logs, {cropped:,} cropped, {found.total():,} numbers wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
