"""Public reports as questions to the command line, and what is wrong with an answer.

The contract is tests/golden/questions/README.md. SIZING_QUESTIONS names another folder of the same form.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden"
OTHER_FOLDER = os.environ.get("SIZING_QUESTIONS")
FOLDERS = [Path(OTHER_FOLDER)] if OTHER_FOLDER else [GOLDEN / "questions", GOLDEN / "more_questions"]

Case = dict[str, Any]
Fault = tuple[str, object, object]  # key, got, wanted

CODES = {"answer": 0, "engine": 1, "input": 2}  # exit status
ENGINE_KINDS = {"flags", "no_state_memory", "no_kv_memory", "no_tokens", "no_requests", "does_not_fit"}
INPUT_KINDS = {"other_engine", "not_a_log", "unreadable", "columns", "too_large", "not_served"}
NOTICES = {
    "log_and_command_differ", "ranks_differ", "several_boots", "several_servers", "cut_short", "died_later",
    "flags_elsewhere", "unread_flags", "asked_more", "no_spare_slot", "ratio_not_used", "radix_cache_off",
    "not_charged", "memory_idle", "rest_of_other_deployment", "draft_config", "multi_turn", "failed_left_out",
    "no_output", "buckets",
}  # fmt: skip
COMMON = {"refused", "words", "unknown", "notices"}
SIZING = COMMON | {
    "S", "D", "slots", "clamp", "kv_rows", "kv_tokens", "kv_cap", "runs", "binds", "L", "rest_gib",
    "state_bytes_per_slot", "kv_bytes_per_token", "draft_kv_bytes_per_token", "token_equiv", "r_star", "best",
    "mem_fraction_least", "flags", "command",
}  # fmt: skip
KEYS = {
    "plan": SIZING,
    "log": SIZING,
    "target": SIZING,
    "traffic": SIZING | {"requests", "failed", "lengths"},
    "model": COMMON
    | {
        "state_bytes_per_slot", "kv_bytes_per_token", "draft_kv_bytes_per_token", "token_equiv", "family",
        "state_layers", "kv_layers", "is_draft",
    },
}  # fmt: skip
CASE_KEYS = {"id", "title", "source", "want", "asks", "why_not", "how_known", "certainty"}
ASK_KEYS = {"run", "expect", "notices", "no_notices", "never", "says", "or"}
FORMS = {"value", "rel", "low", "high", "in", "matches"}  # of an expectation that is no plain value


def question_cases() -> list[Any]:
    """One parameter a question, (folder, case), under the case's id."""
    return [pytest.param(folder, case, id=case["id"]) for each in FOLDERS for folder, case in read_cases(each)]


def read_cases(questions: Path) -> Iterator[tuple[Path, Case]]:
    """Folder and case, in order of the number; a malformed one is an error."""
    paths = sorted(questions.glob("*/case.json"), key=lambda path: (len(path.parent.name), path.parent.name))
    if not paths:
        raise ValueError(f"{questions} holds no case.json, one folder down")
    for path in paths:
        case = json.loads(path.read_text(encoding="utf-8"))
        if faults := list(malformed(case, path.parent)):
            raise ValueError(f"{path}: {'; '.join(faults)}")
        yield path.parent, case


def malformed(case: Case, folder: Path) -> Iterator[str]:
    """What is wrong with the form of a case."""
    yield from (f"unknown key {key}" for key in case.keys() - CASE_KEYS)
    yield from (f"no {key}" for key in ("id", "title", "source", "want", "asks", "certainty") if key not in case)
    if not case.get("asks") and not case.get("why_not"):
        yield "neither asks nor why_not"
    for ask in case.get("asks", []):
        yield from (f"unknown key {key} of an ask" for key in ask.keys() - ASK_KEYS)
        yield from malformed_wants(ask["run"][0], [ask, *ask.get("or", [])])
        for name in ask["run"][1:]:
            if re.search(r"\.[a-z]\w*$", name) and not (folder / name).exists():
                yield f"no file {name}"


def malformed_wants(command: str, wants: list[Case]) -> Iterator[str]:
    for want in wants:
        keys = want.get("expect", {}).keys() | set(want.get("never", []))
        yield from (f"{command} answers no {key}" for key in keys - KEYS[command])
        codes = {*want.get("notices", []), *want.get("no_notices", [])}
        yield from (f"unknown notice {code}" for code in codes - NOTICES)
        kind = (want.get("expect", {}).get("refused") or {}).get("kind")
        if kind and kind not in ENGINE_KINDS | INPUT_KINDS:
            yield f"unknown kind {kind}"


def arguments(ask: Case, folder: Path) -> list[str]:
    """The words after `python -m sizing`; files of the folder as paths."""
    return [str((folder / word).resolve()) if (folder / word).is_file() else word for word in ask["run"]] + ["--json"]


def faults_of(ask: Case, status: object, printed: str) -> list[Fault]:
    """What is wrong with what was printed; of several accepted outcomes the nearest one counts."""
    answer = json.loads(printed)["answer"]
    if faults := list(ill_formed(answer, ask["run"][0], status)):
        return faults
    return min((list(compare(answer, want)) for want in (ask, *ask.get("or", []))), key=len)


def ill_formed(answer: Case, command: str, status: object) -> Iterator[Fault]:
    """What every answer has to keep to, whatever is asked."""
    if missing := sorted(KEYS[command] - answer.keys()):
        yield "form", f"no key {', '.join(missing)}", "every key of the command, null where there is no answer"
        return
    refused = answer["refused"]
    kind = refused.get("kind") if isinstance(refused, dict) else None
    if refused is not None and kind not in ENGINE_KINDS | INPUT_KINDS:
        yield "form refused", refused, "null, or a kind of the list with words"
    wanted = CODES["answer" if refused is None else "engine" if kind in ENGINE_KINDS else "input"]
    if status != wanted:
        yield "exit", status, wanted
    if not (isinstance(answer["words"], str) and answer["words"].strip()):
        yield "form words", answer["words"], "a sentence"
    if not isinstance(answer["notices"], list) or not all(well_noticed(notice) for notice in answer["notices"]):
        yield "form notices", answer["notices"], "a list of {about, words}, about from the list"
    unknown = answer["unknown"]
    if not isinstance(unknown, list) or not all(isinstance(key, str) and answer.get(key) is None for key in unknown):
        yield "form unknown", unknown, "a list of keys that are null"
    for key, value in answer.items():
        if isinstance(value, dict) and "value" in value and not well_measured(value):
            yield f"form {key}", value, "numbers, low <= value <= high"


def well_noticed(notice: object) -> bool:
    words = notice.get("words") if isinstance(notice, dict) else None
    return isinstance(notice, dict) and isinstance(words, str) and bool(words.strip()) and notice["about"] in NOTICES


def well_measured(value: Case) -> bool:
    if not all(is_number(value.get(key)) for key in ("low", "value", "high")):
        return False
    return bool(value["low"] <= value["value"] <= value["high"])


def compare(answer: Case, want: Case) -> Iterator[Fault]:
    """What differs from one accepted outcome."""
    for key, wanted in want.get("expect", {}).items():
        yield from differs(key, answer.get(key), wanted)
    given = {notice["about"] for notice in answer["notices"]}
    if missing := sorted(set(want.get("notices", [])) - given):
        yield "notices", sorted(given), f"also {', '.join(missing)}"
    if wrong := sorted(set(want.get("no_notices", [])) & given):
        yield "notices", sorted(given), f"not {', '.join(wrong)}"
    for key in want.get("never", []):
        if answer.get(key) not in (None, [], ""):
            yield key, answer.get(key), None
    text = "\n".join(strings(answer))
    for pattern in want.get("says", []):
        if not re.search(pattern, text, re.IGNORECASE | re.DOTALL):
            yield "says", text, pattern


def differs(key: str, got: Any, wanted: Any) -> Iterator[Fault]:
    """One key against its expectation."""
    if key == "unknown" and isinstance(wanted, list):
        if missing := sorted(set(wanted) - set(got or [])):
            yield key, got, f"also {missing}"
    elif not isinstance(wanted, dict):
        same = got == wanted and isinstance(got, bool) == isinstance(wanted, bool)
        if not (close(middle(got), wanted, 1e-9) if is_number(wanted) else same):
            yield key, got, wanted
    elif not wanted.keys() & FORMS:  # an object of which these keys count
        for inner, part in wanted.items():
            yield from differs(f"{key}.{inner}", got.get(inner) if isinstance(got, dict) else None, part)
    elif not fulfils(got, wanted):
        yield key, got, wanted


def fulfils(got: Any, wanted: Case) -> bool:
    if "in" in wanted:
        return got in wanted["in"]
    if "matches" in wanted:
        texts = [got] if isinstance(got, str) else got if isinstance(got, list) else []
        return any(isinstance(text, str) and re.search(wanted["matches"], text) for text in texts)
    return in_range(got, wanted)


def in_range(got: Any, wanted: Case) -> bool:
    """Whether a number, or a measured one with its band, is what is wanted."""
    value = middle(got)
    if value is None:
        return False
    true = wanted.get("value")
    if "rel" in wanted and not close(value, true, wanted["rel"]):
        return False
    low, high = wanted.get("low", float("-inf")), wanted.get("high", float("inf"))
    if not low <= value <= high:
        return False
    if not isinstance(got, dict):
        return True
    spare = (high - low) / 2  # a band that says nothing is no answer
    within = low - spare <= got["low"] and got["high"] <= high + spare
    return within and (true is None or "rel" in wanted or got["low"] <= true <= got["high"])


def middle(got: Any) -> float | None:
    value = got.get("value") if isinstance(got, dict) else got
    return value if is_number(value) else None


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def close(got: Any, wanted: Any, rel: float) -> bool:
    return is_number(got) and is_number(wanted) and abs(got - wanted) <= rel * abs(wanted)


def strings(value: object) -> Iterator[str]:
    """All texts of an answer."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)
