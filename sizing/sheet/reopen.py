"""The link of a sheet, which opens all of it on the dashboard again."""

from collections.abc import Sequence
from urllib.parse import urlencode

from sizing.answers.carrying_settings import Want
from sizing.answers.fleet import FleetWanted
from sizing.exchange.fleet_text import fleet_to_query
from sizing.exchange.link import kept_to_query, to_query, wants_to_query
from sizing.scenario.inputs import Scenario
from sizing.sheet.compare import LEAST
from sizing.sheet.parts import Section, escaped, paragraph

TITLE = "To open this again"
TOO_LONG = (
    "The scenarios side by side are too long for a link, so this one leaves them out: hand on the file that the page "
    "Compare saves."
)


def reopen_section(
    scenario: Scenario,
    link_base: str | None,
    kept: Sequence[Scenario] = (),
    wants: Sequence[Want] = (),
    fleet: FleetWanted | None = None,
) -> Section:
    """The link that brings this sheet back; every input that is not in it is as in the worked example."""
    beside = kept_to_query(kept) if len(kept) >= LEAST else {}
    missing = paragraph(TOO_LONG) if beside is None else ""
    held = wants_to_query(scenario.L, wants) | fleet_to_query(fleet) | (beside or {})
    query = urlencode(to_query(scenario) | held, safe="/:,")
    if not query:
        words = "The dashboard opens on this scenario: no input differs from its worked example."
        return Section(TITLE, paragraph(words) + missing + (_link(link_base) if link_base else ""))
    words = (
        "Open the dashboard with this after its address; what is not in it is as in the worked example. This file is "
        "complete in itself: it loads and sends nothing."
    )
    address = f"{(link_base or '').partition('?')[0]}?{query}"
    return Section(TITLE, paragraph(words) + missing + _link(address))


def _link(address: str) -> str:
    """An address in full, so that it survives paper; one to click where it is a web address."""
    if address.startswith(("https://", "http://")):
        return f'<p class="link"><a href="{escaped(address)}" rel="noreferrer">{escaped(address)}</a></p>'
    return f'<p class="link">{escaped(address)}</p>'
