"""What is wanted, as text: requests at the scenario's L, then a line with L and requests for each further length."""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from sizing.answers.carrying_settings import Want
from sizing.basics.problems import Problem, from_validation

MAX_LINES = 12  # of further lengths; a page for a review has no room for more
LABELS = {"L": "L", "requests": "Wanted requests"}


def read_wants(
    L: int, requests: str, further: Sequence[str], line: str = "Line {}", labels: Mapping[str, str] = LABELS
) -> tuple[list[Want], list[Problem]]:
    """What is wanted, and a sentence for every part that cannot be read; blank parts want nothing.

    `requests` is the number at `L` [tokens]; each line of `further` holds another L and its requests, such as "32K 16"
    or "32K:16". The sentences call such a line `line` with its number, and the inputs of the first want by `labels`.

    >>> read_wants(9216, "64", ["32K 16"])[0]
    [Want(L=9216, requests=64), Want(L=32768, requests=16)]
    """
    rows = [("", str(L), requests, labels)] if requests.strip() else []
    lines = [text for text in further if text.strip()]
    problems = []
    for number, text in enumerate(lines[:MAX_LINES], start=1):
        words, where = text.replace(":", " ").split(), line.format(number)
        if len(words) == 2:
            rows.append((f"{where}: ", words[0], words[1], LABELS))
        else:
            problems.append(_problem(f"{where} must hold two numbers, L and requests, such as 32K 16."))
    if len(lines) > MAX_LINES:
        problems.append(_problem(f"There are {len(lines)} further lengths: give at most {MAX_LINES}."))
    wants = []
    for where, length, number_of, names in rows:
        try:
            wants.append(Want.model_validate({"L": length, "requests": number_of}))
        except ValidationError as error:
            problems += [_problem(where + found.sentence) for found in from_validation(error, dict(names))]
    return wants, problems


def _problem(sentence: str) -> Problem:
    return Problem(where="want", sentence=sentence)


def wants_text(L: int, wants: Sequence[Want]) -> tuple[str, str]:
    """The same as text that `read_wants` takes at the scenario's `L`: the requests there, and the further lines.

    >>> wants_text(9216, [Want(L=9216, requests=64), Want(L=32768, requests=16)])
    ('64', '32768 16')
    """
    own = wants[:1] if wants and wants[0].L == L else wants[:0]
    further = "\n".join(f"{want.L} {want.requests}" for want in wants[len(own) :])
    return (str(own[0].requests) if own else "", further)
