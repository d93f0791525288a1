"""The review sheet: every number is the solve's, every input is on it, and no text of a stranger becomes markup."""

import os
import re
import time
from datetime import date
from html import escape
from html.parser import HTMLParser
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from sizing import RefusedError, Scenario, Sizing, Split, solve
from sizing.answers.carrying_settings import Want
from sizing.answers.compare import differing_inputs, names_of, results, solved
from sizing.answers.flip_points import flips, flips_words
from sizing.answers.limit_panel import lift_rows
from sizing.answers.recommended import recommended
from sizing.answers.target import aim, best_rows, nearest
from sizing.basics.units import count
from sizing.exchange.link import KEPT, WANT, from_query, kept_from_query, to_query, wants_from_query
from sizing.exchange.target_text import read_wants
from sizing.explain.launch_flags import environment, launch_flags
from sizing.explain.target_words import gates, headline, near_rows, reasons, way_rows
from sizing.explain.verdict import advice, idle_words, verdict
from sizing.explain.working import comparisons, working
from sizing.figures import LIGHT
from sizing.releases.flags import has_flag
from sizing.scenario.from_model import FILLED
from sizing.scenario.inputs import FIELDS, INPUTS, changed
from sizing.sheet import PdfError, find_chromium, sheet_of, sheet_pdf
from sizing.sheet.inputs import counts, other_inputs, stated_inputs
from sizing.version import tool_version

ON = date(2026, 3, 1)
SCENARIOS: list[dict[str, Any]] = [
    {},
    {"L": 200_000},
    {"D": 4, "dcp_size": 8, "skip_decode_lock": True, "max_running_requests": 64, "name": "Search, phase 2"},
    {"rest_gib": 28.529, "split": "pin", "max_mamba_cache_size": 300, "release": "0.5.13", "model": "", "page_size": 1},
    {"split": "balanced", "mamba_conv_dtype": "float32"},
    {
        "rest_gib": 28.529,
        "model": "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "tp_size": 4,
        "kv_cache_dtype": "bfloat16",
        "pp_size": 2,
    },
    {"rest_gib": 28.529, "replayssm": "spec", "D": 4, "attn_dp_size": 2},
    {"disable_radix_cache": True, "max_running_requests": 40},
    {
        "rest_gib": 28.529,
        "state_bytes_per_slot": 2_000_000,
        "conv_bytes_per_slot": None,
        "state_bytes_source": "boot log",
    },
    {"max_total_tokens": 100_000, "disaggregation_mode": "prefill"},
]
REFUSED_SPLITS: list[dict[str, Any]] = [{"mamba_full_memory_ratio": 0.001}, {"rest_gib": 0.2}, {"rest_gib": -5}]
REFUSED_FLAGS: list[dict[str, Any]] = [
    {"mamba_radix_cache_strategy": "no_buffer"},
    {"mamba_radix_cache_strategy": "extra_buffer_lazy", "pp_size": 2},
]


class Sheet(HTMLParser):
    """What a browser would make of a sheet: its elements, its tables, its blocks to copy and its words."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[tuple[str, ...]] = []
        self.blocks: list[str] = []
        self.words = ""
        self._open: list[str] = []
        self._row: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element; begin a row, a cell or a block to copy."""
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "col", "wbr"):
            self._open.append(tag)
        if tag == "tr":
            self._row = []
        if tag in ("td", "th"):
            self._row.append("")
        if tag == "pre":
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        """Every element that is opened is closed, in order."""
        assert self._open.pop() == tag
        if tag == "tr":
            self.rows.append(tuple(self._row))
        if tag not in ("strong", "a"):
            self.words += "\n"

    def handle_data(self, data: str) -> None:
        """Words of cells, blocks and all else that is shown."""
        if {"script", "style"} & set(self._open):
            return
        if {"td", "th"} & set(self._open):
            self._row[-1] += data
        if "pre" in self._open:
            self.blocks[-1] += data
        self.words += data


def read(page: str) -> Sheet:
    """A sheet as a browser takes it."""
    return Sheet(page)


def figures_of(page: str) -> dict[str, str]:
    """The drawings that a sheet holds, by name."""
    return dict(re.findall(r'<figure data-figure="(\w+)">(<svg.*?</svg>)</figure>', page, re.DOTALL))


@pytest.mark.parametrize("values", SCENARIOS + REFUSED_SPLITS, ids=str)
def test_every_number_is_the_solve_s(values: dict[str, Any]) -> None:
    """Verdict, flags, limits, flips, advice, working and both columns of the comparison, whole and in place."""
    sizing = solve(Scenario.model_validate(values))
    sheet = read(sheet_of(sizing.scenario, on=ON))
    said = verdict(sizing)
    for sentence in (said.headline, " ".join(said.sentences), idle_words(sizing)):
        assert sentence in sheet.words
    rows = set(sheet.rows)
    assert set(lift_rows(sizing)) <= rows
    turns = flips(sizing)
    if turns:
        assert flips_words(sizing, turns) in sheet.words
    for turn in turns:
        if turn.then:
            assert any(row[:3] == (turn.quantity, turn.now, turn.flips_at) for row in rows)
        else:
            assert turn.quantity in flips_words(sizing, turns)
    for item in advice(sizing):
        assert f"{item.topic}. {item.text}" in sheet.words
    for step in working(sizing):
        assert (step.quantity, step.formula, step.numbers, step.result) in rows
    for one in comparisons(sizing):
        why = one.why or ("the same" if one.specification == one.engine else "-")
        assert (one.quantity, one.specification, one.engine, why) in rows
    for row in sizing.allocations:
        assert any(cells[:2] == (row.what, count(row.charged)) for cells in rows)


@pytest.mark.parametrize("values", SCENARIOS, ids=str)
def test_flags_are_there_to_copy(values: dict[str, Any]) -> None:
    """The launch flags and the environment are blocks of their own, to the letter."""
    sizing = solve(Scenario.model_validate(values))
    found, sheet = recommended(sizing), read(sheet_of(sizing.scenario, on=ON))
    assert found is not None
    other = " ".join(found.alternative)
    launch = launch_flags(sizing, found)
    assert sheet.blocks == [text for text in (found.flag, other, environment(sizing.scenario), launch) if text]
    assert found.reason in sheet.words
    assert found.numbers in sheet.words


@pytest.mark.parametrize("values", SCENARIOS + REFUSED_SPLITS + REFUSED_FLAGS, ids=str)
def test_every_input_that_matters_is_on_it(values: dict[str, Any]) -> None:
    """What differs from the worked example always; of the rest only what changes nothing here is left out."""
    scenario = Scenario.model_validate(values)
    sheet = read(sheet_of(scenario, on=ON))
    stated, others = stated_inputs(scenario), other_inputs(scenario)
    assert [row.name for row in stated] == list(scenario.differences())
    left_out = set(FIELDS) - {row.name for row in (*stated, *others)}
    assert not any(counts(scenario, name) for name in left_out)
    for row in (*stated, *others):
        assert (row.title, row.flag or "-", row.value, row.origin) in sheet.rows


@pytest.mark.parametrize("values", SCENARIOS, ids=str)
def test_an_input_that_is_left_out_changes_nothing(values: dict[str, Any]) -> None:
    """Inputs are left out by name; each of these really has no effect on what is shown, if the release has its flag."""
    scenario = Scenario.model_validate(values)
    others: dict[str, Any] = {
        "speculative_algorithm": "NGRAM", "conv_kernel": 8, "linear_replayssm_cache_len": 7,
        "ring_bytes_per_position": 999, "mamba_full_memory_ratio": 3.0, "max_mamba_cache_size": 77,
        "mamba_radix_cache_strategy": "extra_buffer", "linear_attn_backend": "flashinfer", "mamba_track_interval": 512,
        "attention_backend": "triton", "speculative_eagle_topk": 2, "disaggregation_transfer_backend": "nixl",
        "disaggregation_decode_enable_radix_cache": True,
        "state_bytes_all_stages": 2**33, "swa_full_tokens_ratio": 0.5, "speculative_num_steps": 2,
        "disaggregation_decode_extra_slots": 5, "mem_fraction_static": 0.5, "free_gib": 9.0, "checkpoint": "bf16",
        "weights_bytes": 10**9, "draft_weights_bytes": 10**9, "language_only": True, "chunked_prefill_size": 4096,
        "cuda_graph_max_bs": 8, "moe_a2a_backend": "deepep", "gpu_memory_mib": 2**17,
    }  # fmt: skip
    rest = {"rest_gib": scenario.rest_gib, "rest_source": "typed in"}  # another deployment's rest is not stated
    shown = {row.name for row in (*stated_inputs(scenario), *other_inputs(scenario))}
    now = solve(scenario).now
    assert isinstance(now, Split)
    absent = {name for name in others if INPUTS[name].flag and not has_flag(scenario.release, INPUTS[name].flag)}
    for name in others.keys() - shown - absent:
        other = changed(scenario, **rest, **{name: others[name]})
        assert isinstance(other, Scenario) or name in FILLED  # the model says it, and no one else can
        assert not isinstance(other, Scenario) or solve(other).now == now, name


@pytest.mark.parametrize("values", REFUSED_FLAGS, ids=str)
def test_refused_flags_give_a_sheet(values: dict[str, Any]) -> None:
    """The engine's words, the cure and the inputs; no figure and no number of a split that does not exist."""
    scenario = Scenario.model_validate(values)
    with pytest.raises(RefusedError) as refused:
        solve(scenario)
    html = sheet_of(scenario, on=ON)
    sheet = read(html)
    assert f"{refused.value.refusal.words} {refused.value.refusal.cure}" in sheet.words
    assert figures_of(html) == {}
    assert [tag for tag, _ in sheet.elements if tag in ("script", "figure", "pre")] == []
    assert len(html) < 50_000


def test_a_refused_split_shows_the_balanced_one_or_nothing() -> None:
    """Figures are of the split that is set, else of the balanced one, which they say; with neither there is none."""
    html = sheet_of(Scenario(mamba_full_memory_ratio=0.001), on=ON)
    assert list(figures_of(html)) == ["crossing", "ratio", "memory"]
    assert "shown is the recommended one" in figures_of(html)["crossing"]
    assert "raise --mem-fraction-static, or the ratio" in read(html).words
    assert figures_of(sheet_of(Scenario(rest_gib=0.2), on=ON)) == {}


@pytest.mark.parametrize("values", SCENARIOS, ids=str)
def test_figures_are_painted_and_name_the_deployment(values: dict[str, Any]) -> None:
    """Three figures in the light palette, each with its inputs, all at one width."""
    scenario = Scenario.model_validate(values)
    figures = figures_of(sheet_of(scenario, on=ON))
    assert list(figures) == ["crossing", "ratio", "memory"]
    for drawn in figures.values():
        assert '"@' not in drawn
        assert escape(scenario.title, quote=False) in drawn
        assert f'fill="{LIGHT["@paper"]}"' in drawn
        assert 'viewBox="0 0 860 ' in drawn


HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&amp;<!--'


def hostile() -> Scenario:
    """A scenario whose checks were passed by: what stands between a stranger's text and the page is the sheet."""
    return Scenario(D=4, rest_gib=26).model_copy(update={"name": HOSTILE, "speculative_algorithm": HOSTILE})


@pytest.mark.parametrize(
    "base",
    [HOSTILE, f"https://x.example/{HOSTILE}", "javascript:alert(1)//", "JavaScript:alert(1)", " data:text/html,x"],
)
def test_problem_text_of_a_stranger_stays_text(base: str) -> None:
    """Nothing that is put in becomes an element, an attribute or an address that runs."""
    html, plain = (
        sheet_of(hostile(), on=ON, link_base=base),
        sheet_of(Scenario(D=4, rest_gib=26, name="plain", speculative_algorithm="NGRAM"), on=ON),
    )
    sheet = read(html)
    links = [found["href"] or "" for tag, found in sheet.elements if tag == "a"]
    assert "<script" not in html
    assert all(link.startswith("https://x.example/") for link in links)
    assert len(links) == base.startswith("https:")
    ours = {(tag, *sorted(found)) for tag, found in read(plain).elements}
    assert {(tag, *sorted(found)) for tag, found in sheet.elements if tag != "a"} == ours
    assert ("Speculative algorithm", "--speculative-algorithm", HOSTILE, "EAGLE") in sheet.rows
    assert HOSTILE in sheet.words
    assert HOSTILE not in html
    assert "alert(1)&lt;/script&gt;" in figures_of(html)["crossing"]


@pytest.mark.parametrize("brief", [False, True])
@pytest.mark.parametrize("values", SCENARIOS[:3] + REFUSED_FLAGS[:1], ids=str)
def test_nothing_is_loaded_and_no_script_runs(values: dict[str, Any], brief: bool) -> None:
    """No element names a source, the policy allows no script, and the file is small."""
    html = sheet_of(Scenario.model_validate(values), on=ON, link_base="https://pools.example/", brief=brief)
    for tag, found in read(html).elements:
        assert tag not in ("script", "img", "link", "iframe", "object", "embed", "form", "base", "video", "audio")
        assert not {"src", "srcset", "action", "data"} & found.keys()
        assert not [name for name in found if name.startswith("on")]
    assert "url(" not in html.partition("<style>")[2].partition("</style>")[0]
    assert "@import" not in html.partition("<style>")[2].partition("</style>")[0]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none';")
    assert "script-src" not in policy[1]
    assert html.index("Content-Security-Policy") < html.index("<title>")
    assert len(html.encode()) < 1_000_000


def test_one_page_and_a_reason() -> None:
    """The short form has answer, flags, figure and inputs alone; the reader's line stands below the title."""
    scenario = Scenario(D=4, dcp_size=8)
    html = sheet_of(scenario, on=ON, brief=True, reason="Why <b>now</b>")
    assert headings(html)[1:] == ["What to set", "What was set", "To open this again"]
    assert "<h1>Kimi-K3, TP8, L = 9K, D = 4, dcp_size = 8</h1><p>Reason: Why &lt;b&gt;now&lt;/b&gt;</p>" in html
    assert list(figures_of(html)) == ["crossing"]


@pytest.mark.parametrize("values", SCENARIOS + REFUSED_FLAGS, ids=str)
@pytest.mark.parametrize("base", ["https://pools.example/sizing/", "http://localhost:8501/?L=4", None])
def test_its_link_brings_the_scenario_back(values: dict[str, Any], base: str | None) -> None:
    """The address on the sheet, typed or clicked, is read as this scenario."""
    scenario = Scenario.model_validate(values)
    sheet = read(sheet_of(scenario, on=ON, link_base=base))
    shown = [line for line in re.split(r"\s+", sheet.words) if "?" in line and "=" in line]
    if not to_query(scenario):
        assert "no input differs" in sheet.words
        return
    (address,) = [line for line in shown if line.startswith(("http", "?"))]
    links = [found["href"] for tag, found in sheet.elements if tag == "a"]
    assert links == ([address] if base else [])
    assert from_query(dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))) == (scenario, [])


BESIDE = (
    Scenario(),
    Scenario(split="balanced", name="At the balance"),
    Scenario(rest_gib=0.1, name="Too little"),
    Scenario(mamba_radix_cache_strategy="no_buffer", name="Refused flags"),
)
WANTED = {"fit": [Want(L=9216, requests=64)], "do not": [Want(L=9216, requests=96), Want(L=32_768, requests=4)]}


def headings(html: str) -> list[str]:
    """The headings of the sections, in order."""
    return re.findall(r"<h2>(.*?)</h2>", html)


def test_what_is_kept_stands_side_by_side() -> None:
    """Every row of the page Compare with its differences, the inputs that differ, and a figure with every name."""
    html = sheet_of(Scenario(), on=ON, kept=BESIDE)
    sheet, names = read(html), names_of(BESIDE)
    assert sheet.rows.count(("", *names)) == 2
    for row in (*results(solved(BESIDE)), *differing_inputs(BESIDE)):
        assert (row.quantity, *row.cells) in sheet.rows
    assert "The scenario of this sheet is Kimi-K3, TP8." in sheet.words
    assert "The scenario of this sheet is none of these." in read(sheet_of(Scenario(D=4), on=ON, kept=BESIDE)).words
    drawn = figures_of(html)["compare"]
    assert '"@' not in drawn
    for name, found in zip(names, solved(BESIDE), strict=True):
        assert (name in drawn) == isinstance(found, Sizing)


@pytest.mark.parametrize("wants", WANTED.values(), ids=WANTED)
def test_the_target_is_the_page_s(wants: list[Want]) -> None:
    """Headline and reasons, then the flags to copy; or the best ways and nearest points, each accuracy gate once."""
    answer, sheet = aim(Scenario(), wants), read(sheet_of(Scenario(), on=ON, wants=wants))
    assert f"Target: {headline(answer)}" in sheet.words
    assert reasons(answer) in sheet.words
    if answer.setting is not None:
        assert " ".join(answer.setting.flags) in sheet.blocks
        assert "The nearest points that fit" not in sheet.words
        return
    best = best_rows(answer)
    points = nearest(answer)
    told = way_rows(answer, best) + near_rows(points)
    assert told == [row for row in sheet.rows if row in {*told}]
    assert len(best) == 4
    assert points[: len(answer.here.near)] == tuple((answer.here, near) for near in answer.here.near)
    assert len(points) <= 2 * len({(near.axis, near.varied) for _, near in points})
    for gate in gates(best):
        assert sheet.words.count(gate) == 1


def test_what_is_not_given_leaves_no_trace() -> None:
    """Without a target and with fewer than two scenarios the sheet is the one of its scenario alone."""
    alone = sheet_of(Scenario(), on=ON)
    assert not [title for title in headings(alone) if "Target" in title or "side by side" in title]
    assert sheet_of(Scenario(), on=ON, kept=BESIDE[1:2]) == alone


@pytest.mark.parametrize("wants", WANTED.values(), ids=WANTED)
@pytest.mark.parametrize("scenario", [Scenario(), Scenario(D=4, name="Search, phase 2"), BESIDE[3]], ids=str)
def test_its_link_brings_all_of_it_back(scenario: Scenario, wants: list[Want]) -> None:
    """Scenario, comparison and target, as the dashboard reads them from an address."""
    sheet = read(sheet_of(scenario, on=ON, link_base="https://pools.example/", kept=BESIDE, wants=wants))
    (address,) = [found["href"] or "" for tag, found in sheet.elements if tag == "a"]
    query = dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))
    assert kept_from_query(query.pop(KEPT)) == list(BESIDE)
    requests, further = wants_from_query(query.pop(WANT))
    assert read_wants(scenario.L, requests, further.splitlines()) == (wants, [])
    assert from_query(query) == (scenario, [])


def test_what_is_too_long_for_its_link_is_said() -> None:
    """The rest of the sheet has its link all the same."""
    long = [Scenario(L=L).model_copy(update={"name": "漢" * 200}) for L in range(1, 7)]
    sheet = read(sheet_of(Scenario(L=4096), on=ON, kept=long))
    assert "too long for a link, so this one leaves them out" in sheet.words
    assert "?L=4096\n" in sheet.words


def test_refused_flags_leave_the_comparison_and_no_target() -> None:
    """Nothing follows from flags that are refused, and the sheet says so of the target."""
    html = sheet_of(BESIDE[3], on=ON, kept=BESIDE, wants=WANTED["fit"])
    assert "Wanted: 64 requests of L = 9,216. No setting follows from flags that are refused." in read(html).words
    assert list(figures_of(html)) == ["compare"]
    refused = [BESIDE[3], BESIDE[3].model_copy(update={"name": "Again"})]
    assert figures_of(sheet_of(BESIDE[3], on=ON, kept=refused)) == {}


def test_problem_names_of_what_is_kept_stay_text() -> None:
    """They stand in a figure and in two tables; none becomes an element there."""
    html = sheet_of(Scenario(), on=ON, kept=[hostile(), Scenario()], wants=WANTED["fit"])
    plain = sheet_of(Scenario(), on=ON, kept=[Scenario(D=4, name="plain"), Scenario()], wants=WANTED["fit"])
    assert "<script" not in html
    assert HOSTILE not in html
    assert HOSTILE in [cell for row in read(html).rows for cell in row]
    ours, theirs = ({(tag, tuple(sorted(found))) for tag, found in read(sheet).elements} for sheet in (plain, html))
    assert theirs == ours


def test_it_says_what_made_it_and_when() -> None:
    """Name, model, date, release and version stand at the top; the same arguments give the same file."""
    scenario = Scenario(name="Search", release="0.5.16")
    html = sheet_of(scenario, on=ON)
    assert (
        f"Search\n2026-03-01 · Kimi-K3, TP8 · SGLang 0.5.16 · Hybrid Pool Sizing {tool_version()}" in read(html).words
    )
    assert html == sheet_of(scenario, on=ON)
    assert "<title>Search · Hybrid Pool Sizing</title>" in html


def test_version_of_a_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an installed package it is the one that pyproject.toml states."""

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("sizing.version.version", missing)
    stated = re.search(r'^version = "(.*)"', (Path(__file__).parents[1] / "pyproject.toml").read_text(), re.MULTILINE)
    assert stated is not None
    assert tool_version() == stated[1]


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to write a stand-in for Chromium to, which CHROMIUM names."""
    path = tmp_path / "browser"
    path.touch(0o755)
    monkeypatch.setenv("CHROMIUM", str(path))
    return path


def test_without_a_browser_there_is_no_pdf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """None, not a fault; a CHROMIUM that is no program is not replaced by another."""
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_chromium() is None
    assert sheet_pdf("<html></html>") is None
    chrome = tmp_path / "google-chrome"
    chrome.touch(0o755)
    assert find_chromium() == str(chrome)
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "nothing"))
    assert find_chromium() is None


def test_a_browser_that_prints_gives_the_pdf(browser: Path) -> None:
    """What it writes is handed back; it was given the sheet with its paper set."""
    browser.write_text(
        "#!/bin/sh\nfor a; do case $a in --print-to-pdf=*) out=${a#*=};; file:*) in=${a#file://};; esac; done\n"
        'cp "$in" "$out"\n'
    )
    assert sheet_pdf("<head></head>", "Letter") == b"<head><style>@page { size: Letter portrait; }</style></head>"


def test_problem_a_browser_that_fails_says_so(browser: Path) -> None:
    """One sentence with what to do instead."""
    browser.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(PdfError) as error:
        sheet_pdf("<head></head>")
    assert str(error.value) == (
        "browser printed no PDF (it ended with status 3). Open the HTML in a browser and print it from there."
    )
    browser.write_text("no program")
    with pytest.raises(PdfError, match=r"^browser could not be started \(.*\)\. Set CHROMIUM to a Chromium\.$"):
        sheet_pdf("<head></head>")


def test_problem_a_browser_that_hangs_is_ended(browser: Path, tmp_path: Path) -> None:
    """It and what it started are gone when the sentence is said."""
    browser.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/pid\nwait\n")
    with pytest.raises(PdfError, match=r"^browser printed no PDF within 0.5 seconds\. Try again, or "):
        sheet_pdf("<head></head>", seconds=0.5)
    child = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while _runs(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    """Whether a process is there and not merely waiting for its end to be noticed."""
    try:
        os.kill(pid, 0)
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
