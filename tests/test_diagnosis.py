"""Why am I clamped: a log solved again gives what it printed, or says why not; the page and the command show it."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from sizing.bootlog import Boot, read_file, read_text
from sizing.bootlog.diagnosis import agrees, diagnose, likely_model, models_that_fit, no_cure
from sizing.cli.main import main
from sizing.command import read_command
from sizing.exchange.answer import Measured, SizingAnswer
from sizing.exchange.log_answer import log_answer
from tests.conftest import Run
from tests.test_pages import codes

GOLDEN = Path(__file__).parent / "golden"
LOGS = sorted((GOLDEN / "boot_logs").glob("*.log"))
WORKED = GOLDEN / "boot_logs" / "0.5.23_kda_mla_tp8_default.log"
# Its log has no line of the draft model's KV pool, which the engine charges.
COMMAND = """python -m sglang.launch_server \\
  --model-path moonshotai/Kimi-K3 --tp 8 \\
  --mamba-full-memory-ratio 0.9 --trust-remote-code
"""
BEFORE_KIMI_K3 = ("0.5.6_kda", "0.5.10_kda")
TIMEOUT = 30  # seconds; the harness gives three unless told otherwise


def boot_of(path: Path) -> Boot:
    """The boot that counts."""
    boot = read_file(path).last
    assert boot is not None
    return boot


def boot_in(text: str) -> Boot:
    """The same of a text."""
    boot = read_text(text).last
    assert boot is not None
    return boot


def answer_to(text: str, command: str = "", L: int | None = None) -> SizingAnswer:
    """The answer to a log as text, with a launch command."""
    return log_answer(read_text(text), read_command(command) if command else None, L).answer


def about(answer: SizingAnswer) -> set[str]:
    """The codes of its notices."""
    return {notice.about for notice in answer.notices}


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_a_log_solved_again_gives_what_it_printed(path: Path) -> None:
    """The model is found by its bytes; slots, tokens and requests come out to the integer."""
    boot = boot_of(path)
    model = likely_model(boot.facts, models_that_fit(boot.facts))
    found = diagnose(boot, model=model)
    served = not path.name.startswith(BEFORE_KIMI_K3)  # a model of the same shapes ran there
    assert (model != "", found.model, found.problems, found.refused) == (True, model if served else "", (), "")
    assert agrees(found)
    # One has no line of the draft's KV: the model's own MTP layer gives the bytes that its tokens were divided by.
    assert [row.predicted for row in found.beside] == [row.printed for row in found.beside]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_without_a_model_the_rounding_explains_what_differs(path: Path) -> None:
    """The middles of the intervals are not the bytes: what they miss by lies within what the decimals leave open."""
    found = diagnose(boot_of(path), model="")
    differ = [row.why for row in found.beside if row.predicted != row.printed]
    known = "the log's rounding", "the draft model's KV line is not in the log"
    assert all(why.startswith(known) for why in differ)


def test_ranks_that_differ_are_counted_as_the_least(tmp_path: Path) -> None:
    """Slots and tokens are both of the rank that has less, and nothing is said to contradict that."""
    text = WORKED.read_text(encoding="utf-8")
    second = text.replace("TP0", "TP1").replace("257", "240").replace("1167552", "1100032")
    whole = tmp_path / "two.log"
    whole.write_text(text + "".join(second.splitlines(keepends=True)[1:]), encoding="utf-8")
    facts = boot_of(whole).facts
    assert (facts.slots, facts.kv_rows, facts.printed_tokens) == (240, 1_100_032, 1_100_032)
    assert "ranks_differ" in about(answer_to(whole.read_text(encoding="utf-8")))


def test_what_the_user_states_is_not_asked_for() -> None:
    """L is never in a log; once it is stated it is no longer missing, and it decides the KV cap."""
    boot = boot_of(WORKED)
    assert any(ask.startswith("L:") for ask in diagnose(boot).inputs.missing)
    found = diagnose(boot, stated={"L": 20_000})
    assert not any(ask.startswith("L:") for ask in found.inputs.missing)
    assert found.scenario is not None
    assert found.scenario.L == 20_000


def test_the_log_wins_over_the_command() -> None:
    """A command that contradicts the log is of another run: that is the headline, and nothing of it is taken."""
    text = "sglang serve --model-path m --tp 4 --mamba-full-memory-ratio 3 --page-size 64"
    found = diagnose(boot_of(WORKED), command=read_command(text))
    assert [sentence.partition(":")[0] for sentence in found.differ] == ["--tp-size", "--mamba-full-memory-ratio"]
    assert found.scenario is not None
    assert (found.scenario.tp_size, found.scenario.mamba_full_memory_ratio) == (8, 0.9)
    answer = answer_to(WORKED.read_text(encoding="utf-8"), text, 9216)
    assert answer.words.startswith("The log and the command are not of one run. --tp-size: the log says 8")
    assert (answer.runs, answer.flags, answer.command) == (51, None, None)


@pytest.mark.parametrize("name", ["F15", "F16", "F28", "F29", "F38", "F47", "F49"])
def test_nothing_is_predicted_from_what_a_log_does_not_say(name: str) -> None:
    """Without rest or the bytes of a pool no number of the worked example stands in, and no link carries one."""
    found = diagnose(boot_of(GOLDEN / "field" / f"{name}.log"))
    assert found.inputs.missing
    assert (found.scenario, found.sizing, found.beside) == (None, None, ())


def test_sizes_printed_as_nothing_measure_nothing() -> None:
    """Two decimals of a tiny pool are 0.00: the bytes of a slot stay unknown."""
    text = WORKED.read_text(encoding="utf-8")
    tiny = re.sub(r"(conv_state|ssm_state) size: [0-9.]+GB", r"\1 size: 0.00GB", text)
    assert tiny != text
    assert diagnose(boot_in(tiny)).beside == ()


def test_a_boot_cut_short_does_not_hide_the_whole_one() -> None:
    """A log that ends in the first lines of another boot: the one with pools counts."""
    text = WORKED.read_text(encoding="utf-8")
    boot = read_text(text + "".join(text.splitlines(keepends=True)[:3])).last
    assert boot is not None
    assert boot.facts.slots == 257


def test_the_log_that_names_no_cap_wins_over_a_command_that_does() -> None:
    """The arguments line holds None for a flag that nobody set: a command that sets it is of another boot."""
    command = read_command("sglang serve --model-path m --tp 8 --max-running-requests 7 --max-mamba-cache-size 100")
    found = diagnose(boot_of(WORKED), model="moonshotai/Kimi-K3", command=command)
    named = [sentence.partition(":")[0] for sentence in found.differ]
    assert {"--max-running-requests", "--max-mamba-cache-size"} == set(named)
    assert agrees(found)


def test_a_cut_arguments_line_does_not_say_what_was_not_set() -> None:
    """A flag behind the cut may have been set: the command fills it in, and nothing is contradicted."""
    text = WORKED.read_text(encoding="utf-8")
    first, rest = text.split("\n", 1)
    cut = first[: first.index("'max_running_requests'")]
    command = read_command("sglang serve --model-path m --tp 8 --max-running-requests 60")
    found = diagnose(boot_in(f"{cut}\n{rest}"), model="moonshotai/Kimi-K3", command=command)
    assert found.differ == ()
    assert found.scenario is not None
    assert found.scenario.max_running_requests == 60


def test_a_refusal_is_not_called_unknown() -> None:
    """Where the flags themselves are refused the refusal is the reason that nothing is proposed, not a missing line."""
    text = WORKED.read_text(encoding="utf-8").replace("'page_size': 64", "'page_size': 48")
    found = diagnose(boot_in(text), model="moonshotai/Kimi-K3")
    assert found.refused
    assert no_cure(found) == "No flags are proposed: what was read does not fit together."


@pytest.mark.parametrize("length", ["0", "-5", "99999999999"])
def test_a_length_that_is_none(length: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command refuses it in a sentence instead of dividing by it."""
    assert main(["log", str(WORKED), "--length", length]) == 2
    assert "L must be" in capsys.readouterr().err


def test_the_cure_is_the_command_with_the_sizing_flags_changed() -> None:
    """Every other byte stays; solved with it, the number beside it runs."""
    answer = answer_to(WORKED.read_text(encoding="utf-8"), COMMAND, 9216)
    assert answer.flags == ("--mamba-full-memory-ratio 2.2045",)
    assert answer.command == COMMAND.replace("0.9", "2.2045")
    assert "51 → 74 requests at L = 9,216." in answer.words
    assert (answer.runs, answer.binds, answer.best and answer.best.runs) == (51, "state", 74)


# A boot of one rank without an arguments line: rest 58.80 - 94.00 x 0.2 = 40.0 GiB at ratio 0.9, S 5, K 616.
BOOT = """\
[2026-09-12 21:04:10] Load weight begin. avail mem=94.00 GB
[2026-09-12 21:06:01] Load weight end. elapsed=110.70 s, type=Qwen3_5MoeForConditionalGeneration, quant=fp8, \
fmt=e4m3, avail mem=58.80 GB, mem usage=35.20 GB.
[2026-09-12 21:06:31] max_running_requests is capped to 123 by the mamba state cache (max_mamba_cache_size=616, 5 \
state slots per request). To raise it: increase --mamba-full-memory-ratio or --max-mamba-cache-size, or halve the \
state size with --mamba-ssm-dtype bfloat16.
[2026-09-12 21:06:31] Mamba Cache is allocated. max_mamba_cache_size: 616, conv_state size: 0.85GB, ssm_state size: \
18.08GB\u0020
[2026-09-12 21:06:31] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1105016, K size: 10.54 GB, V size: \
10.54 GB
[2026-09-12 21:06:32] Memory pool end. avail mem=18.79 GB
[2026-09-12 21:07:20] max_total_num_tokens=1105016, chunked_prefill_size=8192, max_prefill_tokens=16384, \
max_running_requests=123, context_len=262144, available_gpu_mem=9.10 GB
"""
LAUNCH = "python -m sglang.launch_server --model-path some/copy"
L = 8192
NUMBERS = [
    name for name in SizingAnswer.model_fields if name not in ("words", "notices", "unknown", "flags", "command")
]


def ends(number: Any) -> tuple[float, float]:
    """Both ends of a number of an answer."""
    return (number.low, number.high) if isinstance(number, Measured) else (number, number)


@pytest.mark.parametrize(
    "flags",
    [
        "",
        "--tp 1 --mamba-ssm-dtype bfloat16",
        "--mamba-ssm-dtype float16 --kv-cache-dtype bf16",
        "--mem-fraction-static 0.8 --page-size 1",
        "--mamba-full-memory-ratio 0.9 --max-running-requests 200",
        "--mamba-radix-cache-strategy extra_buffer --context-length 262144 --max-total-tokens 2000000",
    ],
)
def test_a_command_that_agrees_changes_no_number(flags: str) -> None:
    """What is known without it stays what it is, or lies within the band that it had; bytes are never rescaled."""
    alone, joined = answer_to(BOOT, "", L), answer_to(BOOT, f"{LAUNCH} {flags}", L)
    assert "log_and_command_differ" not in about(joined)
    for name in NUMBERS:
        before, after = getattr(alone, name), getattr(joined, name)
        if isinstance(before, int | float | Measured):
            assert ends(before)[0] <= ends(after)[0], name
            assert ends(after)[1] <= ends(before)[1], name
    assert (joined.slots, joined.S, joined.runs, joined.binds) == (616, 5, 123, "state")


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ("--max-mamba-cache-size 64", ("616", "64")),
        ("--max-mamba-cache-size 1000 --dp-size 2 --enable-dp-attention --tp 2", ("616", "500")),
        ("--page-size 64", ("1,105,016", "64")),
        ("--mem-fraction-static 0.9", ("49.40", "40.0")),
        ("--mem-fraction-static 0.82", ("41.88", "40.0")),
        ("--mem-fraction-static 0.75", ("35.30", "40.0")),
        ("--max-running-requests 100", ("123", "100")),
        ("--kv-cache-dtype fp8_e4m3", ("bfloat16", "fp8_e4m3")),
        ("--max-total-tokens 500000", ("1,105,016", "500,000")),
        ("--context-length 32768", ("262,144", "32,768")),
        ("--mamba-full-memory-ratio 2", ("616", "slots of this rest")),
        ("--disable-radix-cache", ("5 state slots", "make it 1")),
    ],
)
def test_a_command_that_cannot_be_of_this_boot(flags: str, named: tuple[str, str]) -> None:
    """That is the headline, with both numbers; the log's own numbers stay, and nothing is proposed."""
    answer = answer_to(BOOT, f"{LAUNCH} {flags}", L)
    (notice,) = (one for one in answer.notices if one.about == "log_and_command_differ")
    assert all(number in notice.words for number in named)
    assert answer.words.startswith("The log and the command are not of one run. ")
    assert (answer.slots, answer.S, answer.runs, answer.flags, answer.command) == (616, 5, 123, None, None)
    assert "No flags are proposed" in answer.words


def test_more_ranks_than_the_command_has() -> None:
    """A rank's own name says how many there are at least."""
    answer = answer_to(BOOT.replace(":31]", ":31 TP3]"), f"{LAUNCH} --tp 2", L)
    assert "the log has a rank TP3, the command 2 ranks" in answer.words
    assert "log_and_command_differ" not in about(answer_to(BOOT.replace(":31]", ":31 TP3]"), f"{LAUNCH} --tp 4", L))


def test_the_slot_of_the_named_model_tells_its_width() -> None:
    """A model of the catalogue at another width has another slot: both sizes are named."""
    text = "sglang serve --model-path Qwen/Qwen3.5-35B-A3B --mamba-ssm-dtype bfloat16 --tp"
    assert "log_and_command_differ" not in about(answer_to(BOOT, f"{text} 1", L))
    assert "the log has 32,943,165: that of 1." in answer_to(BOOT, f"{text} 2", L).words


@pytest.mark.parametrize("flags", ["--config decode.yaml", "$EXTRA", "--mem-fraction-static $MEM", "--config=a.yaml"])
def test_with_flags_elsewhere_nothing_is_taken_as_left_out(flags: str) -> None:
    """The file or variable is named, the log is answered for, and nothing is proposed."""
    answer = answer_to(BOOT, f"{LAUNCH} --tp 1 {flags}", L)
    assert "flags_elsewhere" in about(answer)
    assert (answer.slots, answer.S, answer.flags, answer.command) == (616, 5, None, None)
    without = answer_to("\n".join(BOOT.splitlines()[3:]), f"{LAUNCH} --tp 1 {flags}", L)
    assert (without.S, "S" in without.unknown) == (None, True)


def test_a_flag_of_a_fork_is_named() -> None:
    """What it changes is not known; nothing else is wrong with the command."""
    answer = answer_to(BOOT, f"{LAUNCH} --gdn-mtp-cache-mode none --mem-fraction-static 0.9", L)
    assert about(answer) & {"unread_flags", "log_and_command_differ"} == {"unread_flags"}
    assert any("--gdn-mtp-cache-mode" in notice.words for notice in answer.notices)


def test_the_cure_says_before_and_after_and_is_one_that_solves() -> None:
    """The flags, written into the command, give the number beside them; a command that is best already gets none."""
    answer = answer_to(BOOT, f"{LAUNCH} --mem-fraction-static 0.8", L)
    assert answer.flags is not None
    assert answer.command == f"{LAUNCH} --mem-fraction-static 0.8 {answer.flags[0]}"
    found = re.search(r"123 → (\d+) requests at L = 8,192", answer.words)
    assert found is not None
    assert answer.best is not None
    low, high = ends(answer.best.runs)
    assert low <= int(found[1]) <= high
    none = answer_to(BOOT, f"{LAUNCH} --mem-fraction-static 0.8 --max-running-requests 123", 2**24)
    assert (none.runs, none.flags, none.command) == (0, None, None)
    assert "No flags are proposed" in none.words


def test_without_a_length_nothing_depends_on_it() -> None:
    """What the engine admits is said, and no split is proposed."""
    answer = answer_to(BOOT, f"{LAUNCH} --mem-fraction-static 0.8")
    assert (answer.L, answer.kv_cap, answer.r_star, answer.best, answer.flags) == (None, None, None, None, None)
    assert (answer.runs, answer.binds) == (123, "state")
    assert not {"kv_cap", "r_star", "best"} & set(answer.unknown)


REFUSED = """\
[2026-09-11 09:29:00] Load weight begin. avail mem=79.00 GB
[2026-09-11 09:30:00] Load weight end. elapsed=429.52 s, type=Qwen3_5ForConditionalGeneration, quant=fp8, fmt=e4m3, \
avail mem=50.01 GB, mem usage=28.47 GB.
[2026-09-11 09:30:00] RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed \
max_mamba_cache_size=-28 (total_rest_memory=-9.24 GB, mamba_cache_per_req=146.81 MB). Try: (1) reduce \
--max-running-requests, (2) increase --mem-fraction-static, (3) reduce --speculative-num-draft-tokens, or (4) use GPUs \
with more memory.
"""


def test_a_refused_boot_is_told_what_starts_it() -> None:
    """What the engine printed stays; the least fraction is the one whose rest holds S + 1 slots at the ratio."""
    command = "sglang serve --model-path some/copy --mamba-radix-cache-strategy extra_buffer --mem-fraction-static 0.25"
    answer = answer_to(REFUSED, command)
    assert answer.refused is not None
    assert (answer.refused.kind, answer.runs, answer.clamp, answer.best) == ("no_state_memory", 0, None, None)
    assert ends(answer.rest_gib) == pytest.approx((-9.245, -9.235))
    slot = answer.state_bytes_per_slot
    assert isinstance(slot, Measured)
    assert isinstance(answer.mem_fraction_least, Measured)
    needed = 6 * slot.value / 2**30 / (0.9 / 1.9)  # six slots, one of them padding, are 0.9 / 1.9 of rest
    assert answer.mem_fraction_least.value == pytest.approx(0.25 + (needed + 9.24) / 79, abs=1e-4)
    assert answer.flags == ("--mem-fraction-static 0.391",)
    assert answer.command == command.replace("0.25", "0.391")
    assert "11.06 GiB more" in answer.words
    unknown = answer_to(REFUSED)
    assert (unknown.mem_fraction_least, unknown.flags, unknown.command) == (None, None, None)


def test_a_boot_that_died_later_gets_no_flags() -> None:
    """More requests would not have kept it up."""
    crash = "[2026-09-12 21:07:30] Scheduler hit an exception: Traceback (most recent call last):\n"
    answer = answer_to(BOOT.replace(BOOT.splitlines()[-1] + "\n", crash), f"{LAUNCH} --mem-fraction-static 0.8", L)
    assert "died_later" in about(answer)
    assert (answer.flags, answer.refused, answer.runs) == (None, None, 123)


@pytest.mark.parametrize(
    ("change", "flags", "code"),
    [
        (("max_mamba_cache_size=616", "max_mamba_cache_size=615"), "", "no_spare_slot"),
        (("available_gpu_mem=9.10", "available_gpu_mem=29.10"), "", "memory_idle"),
        (("", ""), "--max-running-requests 200", "asked_more"),
    ],
)
def test_notice(change: tuple[str, str], flags: str, code: str) -> None:
    """Each is there when it applies, and not without."""
    text = BOOT.replace(*change).replace(
        "max_mamba_cache_size: 616", f"max_mamba_cache_size: {615 if '615' in change[1] else 616}"
    )
    assert code in about(answer_to(text, f"{LAUNCH} {flags}", L))
    assert code not in about(answer_to(BOOT, LAUNCH, L))


@pytest.fixture
def page() -> AppTest:
    """The page, opened without a log."""
    return AppTest.from_file("../app.py", default_timeout=TIMEOUT).run().switch_page("pages/log.py").run()


def words(page: AppTest) -> str:
    """All words of the page, with the escapes of Markdown taken out."""
    shown = [element.value for element in page.main if hasattr(element, "value") and isinstance(element.value, str)]
    return "\n".join(shown).replace("\\", "").replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_reads_a_pasted_log_and_keeps_it(page: AppTest) -> None:
    """Headline, predicted beside printed, the cure, and the text still there after another page."""
    assert "Why am I clamped?" in words(page)
    page.text_area(key="log_text").set_value(WORKED.read_text(encoding="utf-8"))
    page.text_area(key="command_text").set_value(COMMAND)
    page.run()
    assert not page.exception
    text = words(page)
    assert "51 requests run at L = 9,216: the state pool binds." in text
    assert "| K, state slots | 257 | 257 |" in text
    assert any("--mamba-full-memory-ratio 2.2045 --trust-remote-code" in block for block in codes(page))
    back = page.switch_page("app.py").run().switch_page("pages/log.py").run()
    assert str(back.text_area(key="log_text").value).startswith("[2026")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("F39", "This is a log of vLLM, not of SGLang"),
        ("F25", "No ratio helps; raise --mem-fraction-static"),
        ("F41", "2 boots, 1 of them refused"),
        ("F38", "max_mamba_cache_size"),
    ],
)
def test_the_page_explains_what_it_cannot_solve(page: AppTest, name: str, sentence: str) -> None:
    """Another engine, a refused boot, two boots, a line without its number: a sentence each, no exception."""
    page.text_area(key="log_text").set_value((GOLDEN / "field" / f"{name}.log").read_text(encoding="utf-8"))
    page.run()
    assert not page.exception
    assert sentence in words(page)


def test_a_command_alone_goes_to_the_balance_page(page: AppTest) -> None:
    """Without a log the flags of the command are listed with where they are from."""
    page.text_area(key="command_text").set_value(COMMAND)
    text = words(page.run())
    assert not page.exception
    assert "mamba_full_memory_ratio" in text


@pytest.fixture
def log(sizing_command: Run) -> Run:
    """`log ARGUMENTS`."""
    return partial(sizing_command, "log")


def test_the_command_reads_a_file_and_standard_input(log: Run) -> None:
    """The same words from both; status 0 for a boot that started, 1 for a refused one, 2 for no log."""
    status, printed, said = log(str(WORKED), "--L", "9216")
    assert (status, said) == (0, "")
    assert "51 requests run at L = 9,216: the state pool binds." in printed
    assert any(line.split() == ["K,", "state", "slots", "257", "/", "257"] for line in printed.splitlines())
    assert log("-", "--length", "9K", stdin=WORKED.read_bytes()) == (0, printed, "")
    assert "The engine admits 51 requests: the state pool binds." in log(str(WORKED))[1]
    assert log(str(GOLDEN / "field" / "F25.log"))[0] == 1
    assert log(str(GOLDEN / "field" / "F39.log"))[0] == 2
    assert log("no such file")[0] == 2


def test_nothing_is_evaluated_in_a_log() -> None:
    """An arguments line with calls in it is text: what is no literal is left out."""
    hostile = (
        "server_args={'tp_size': __import__('os').system('true'), 'page_size': 64}\n"
        + WORKED.read_text(encoding="utf-8").split("\n", 1)[1]
    )
    boot = read_text(hostile).last
    assert boot is not None
    assert boot.facts.settings.tp_size is None
