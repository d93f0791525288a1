"""Target: wanted requests at a length, solved for what to set; or what does not fit, and what would, with its price."""

import streamlit as st
from pydantic import ValidationError

from pages.parts.blocks import plain, table_text
from pages.parts.frame import WANT, show_page
from sizing import RefusedError, Scenario
from sizing.carried import Setting, Want
from sizing.link import to_query
from sizing.problems import from_validation
from sizing.target import Answer, Row, aim
from sizing.units import count, ratio_range_text

MAX_LINES = 12  # of further lengths; a page for a review has no room for more
LABELS = {"L": "L", "requests": "Wanted requests"}


def show_target(scenario: Scenario) -> None:
    """The page, from the wanted requests down."""
    first = st.container()
    wanted, more = st.columns(2)
    requests = _kept_text(wanted, "target_requests", f"Wanted requests at L = {count(scenario.L)}, all ranks", "64")
    lines = _kept_text(more, "target_more", "Further lengths, L and requests in each line", "32K 16", area=True)
    wants, faults = _wants(scenario, requests, lines)
    for fault in faults:
        st.error(plain(fault))
    if faults:
        return
    if not wants:
        first.markdown("### How many requests do you want to run?\n\nEnter a number; L is that of the sidebar.")
        return
    try:
        answer = aim(scenario, wants)
    except RefusedError as refused:
        first.error(plain(str(refused)))
        return
    first.markdown(_headline(scenario, answer))
    if answer.setting is not None:
        _setting(answer.setting)
    else:
        _instead(answer)
    query = to_query(scenario) | {WANT: f"{requests.strip()}\n{lines.strip()}".strip("\n")}
    if requests.strip():
        st.page_link("pages/target.py", label="Link to this target", query_params=query)


def _kept_text(place: object, key: str, title: str, example: str, *, area: bool = False) -> str:
    """A box that another page does not empty."""
    if key not in st.session_state:
        st.session_state[key] = st.session_state.get(f"kept_{key}", "")
    draw = getattr(place, "text_area" if area else "text_input")
    text = str(draw(title, key=key, placeholder=example, **({"height": 100} if area else {})))
    st.session_state[f"kept_{key}"] = text
    return text


def _wants(scenario: Scenario, requests: str, lines: str) -> tuple[list[Want], list[str]]:
    """What is wanted, and a sentence for every line that cannot be read."""
    rows = [("", str(scenario.L), requests)] if requests.strip() else []
    further = [line for line in lines.splitlines() if line.strip()]
    wants, faults = [], []
    for number, line in enumerate(further[:MAX_LINES], start=1):
        words = line.replace("\t", " ").split()
        if len(words) == 2:
            rows.append((f"Line {number}: ", words[0], words[1]))
        else:
            faults.append(f"Line {number} must hold two numbers, L and requests, such as 32K 16.")
    if len(further) > MAX_LINES:
        faults.append(f"There are {len(further)} further lengths: give at most {MAX_LINES}.")
    for where, L, number_of in rows:
        try:
            wants.append(Want.model_validate({"L": L, "requests": number_of}))
        except ValidationError as error:
            faults += [f"{where}{problem.sentence}" for problem in from_validation(error, LABELS)]
    return wants, faults


def _headline(scenario: Scenario, answer: Answer) -> str:
    wants = " and ".join(f"{count(want.requests)} requests of L = {count(want.L)}" for want in answer.wants)
    if answer.setting is not None:
        per = f", {count(answer.setting.requests)} on each of {scenario.attn_dp_size} ranks"
        share = per if scenario.attn_dp_size > 1 else ""
        return f"### {plain(f'{wants} fit.')}\n\n{plain(_carried(answer.setting, share))}"
    best = " and ".join(count(most) for most in answer.here.most)
    others = len(answer.fitting)
    found = (
        f"{others} other {'way' if others == 1 else 'ways'} of setting this deployment carry it."
        if others
        else ("No other way of setting this deployment carries it on this rest.")
    )
    return f"### {plain(f'{wants} do not fit: at most {best}.')}\n\n{plain(found)}"


def _carried(setting: Setting, share: str) -> str:
    """Every setting that does it, and what remains."""
    ratio = (
        f" or any --mamba-full-memory-ratio of {ratio_range_text(setting.ratio_low, setting.ratio_high)}"
        if setting.ratio_low is not None
        else ""
    )
    slots = f"{count(setting.slots_low)} to {count(setting.slots_high)} slots on a rank{share}"
    left = f"{count(setting.kv_left)} of {count(setting.kv_tokens)} KV tokens remain."
    spare = "" if setting.spare or setting.scenario.disable_radix_cache else " No slot is spare for the chunk boundary."
    return f"{slots}{ratio} carry them; {left}{spare}"


def _setting(setting: Setting) -> None:
    """The flags, and the way to the balance page with them put in."""
    st.code(" \\\n  ".join(setting.flags), language=None)
    label = "See it on the balance page"
    st.page_link("app.py", label=label, query_params=to_query(setting.scenario), icon="⚖️")


def _instead(answer: Answer) -> None:
    """Every way with the most it runs, then the nearest points of the deployment as it stands and of each way."""
    gates = list(dict.fromkeys(row.way.gate for row in answer.rows if row.way.gate))
    st.markdown(
        "\n\n".join(
            (
                "#### What else could be set, on this rest",
                table_text(
                    ("way", "the most", "fits", "slots to pin", "price"),
                    (_way_cells(row, gates) for row in answer.rows),
                ),
                *(plain(f"Accuracy gate {at}. {gate}") for at, gate in enumerate(gates, start=1)),
                "#### The nearest points that fit",
                table_text(("way", "instead", "price", "flags"), _near_cells(answer)),
            )
        )
    )
    for row in answer.fitting[:3]:
        if row.setting is not None:
            label = f"See “{row.way.words}” on the balance page"
            st.page_link("app.py", label=plain(label), query_params=to_query(row.setting.scenario), icon="⚖️")


def _way_cells(row: Row, gates: list[str]) -> tuple[str, ...]:
    price = f"{row.way.price[:1].upper()}{row.way.price[1:]}." if row.way.price else ""
    gate = f"Accuracy gate {gates.index(row.way.gate) + 1}." if row.way.gate else ""
    return (
        row.way.words,
        " and ".join(count(most) for most in row.most),
        "yes" if row.setting else "no",
        count(row.setting.slots) if row.setting else "-",
        f"{price} {gate}".strip() or "-",
    )


def _near_cells(answer: Answer) -> list[tuple[str, ...]]:
    return [
        (row.way.words, near.words, near.price, " ".join((*row.way.flags, *near.setting.flags)))
        for row in answer.rows
        for near in row.near
    ] or [("-", "no point fits on any axis", "-", "-")]


show_page("Target", show_target)
