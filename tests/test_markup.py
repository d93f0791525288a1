"""Strangers' text is inert: nothing that is typed, linked, pasted or uploaded becomes markup, a link or a picture."""

import re
from datetime import date
from html import escape
from itertools import cycle

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.blocks import NO_WIDTH, plain
from sizing import Scenario
from sizing.sheet import sheet_of

TIMEOUT = 60
ROOT = ".."
# What Streamlit's Markdown makes of a text, by what it looks for (its StreamlitMarkdown module, micromark and GFM).
HOSTILE = {
    "address": "www.evil.example",
    "link": "http://evil.example/a",
    "secure link": "HTTPS://evil.example/a",
    "mail": "a.b+c@evil.example",
    "logo": ":streamlit:",
    "icon": ":material/home:",
    "icon as it is read": ":material_home:",
    "emoji": ":smile:",
    "thumb": ":+1:",
    "dash": "a -- b",
    "arrow": "-> <- <->",
    "signs": ">= <= ~=",
    "mathematics": "$x^2$ and $$y$$",
    "HTML": "<img src=x onerror=alert(1)><b>b</b>",
    "entity": "&lt;b&gt; &#119;ww.evil.example &copy;",
    "Markdown": "**b** _i_ `c` ~~s~~ # h [t](http://evil.example) ![i](x) | c |",
    "colour": ":red[x] :blue-background[y] :small[z]",
    "heading": "x\n===\ny\n---\n# z",
    "reference": "[^1] [a]: //evil.example",
}
# Found in a text after its escapes are gone: the patterns of Streamlit 1.67's own bundle.
LATER = (
    re.compile(r"https?://[-.\w]|www\.[-.\w]", re.IGNORECASE),
    re.compile(r"[-.\w+]+@[-\w]+(?:\.[-\w]+)+"),
    re.compile(r":(?!\d\d?:)[\w+-]+:|:material[/_]\w+:"),
    re.compile(r"(?:^|\s)(?:<->|->|<-|--|>=|<=|~=)(?:\s|$)"),
)
# Found where a sign stands without its escape.
UNESCAPED = re.compile(r"(?<!\\)(?:\\\\)*([*_`\[\]<>$~|#!&=:@])")


def live(markdown: str, text: str) -> list[str]:
    """What of a hostile text is alive in a piece of Markdown; nothing where the text is not in it."""
    found = []
    for part in re.split(r"\n|(?<!\\)\|", markdown):
        shown = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", part)
        hostile = [line for line in text.split("\n") if line.strip() and line in shown.replace(NO_WIDTH, "")]
        if hostile:
            found += [found[0] for later in LATER for found in later.finditer(shown) if found[0].strip() in text]
    return found


@pytest.mark.parametrize("kind", HOSTILE)
def test_plain_leaves_nothing_alive(kind: str) -> None:
    """Every sign that Markdown knows is escaped, and what is looked for later is broken; the text reads the same."""
    text = HOSTILE[kind]
    for words in (text, f"Name {text}.", f"“{text}”", f"{text} {text}", f"{text}\n{text}"):
        markdown = plain(words)
        assert [later.findall(line) for later in LATER for line in _shown(markdown).split("\n")] == [
            [] for _ in LATER for _ in _shown(markdown).split("\n")
        ]
        assert UNESCAPED.findall(markdown) == []
        assert _shown(markdown).replace(NO_WIDTH, "") == words


def _shown(markdown: str) -> str:
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown.replace("  \n", "\n"))


def test_what_is_ours_stays_as_it_is() -> None:
    """Flags, times and formulas keep every sign, so that what is copied is what is read."""
    for words in ("--mamba-full-memory-ratio 0.9", "10:02:11", "S = 4, 74 and 0", "K3: 51 requests", "x->y"):
        assert NO_WIDTH not in plain(words)


def bodies(app: AppTest) -> list[str]:
    """Every text of a page that Streamlit reads as Markdown, and every label."""
    found = [
        element.value
        for kind in ("markdown", "error", "warning", "info", "success", "caption")
        for element in getattr(app, kind)
    ]
    found += [
        str(getattr(block, "label", "") or "")
        for kind in ("button", "expander", "checkbox", "tabs")
        for block in getattr(app, kind)
    ]
    return found + [str(element.proto.label) for element in app.get("page_link")]


MAY_BE_NAMES = [text for text in HOSTILE.values() if re.fullmatch(r"[\w .,:;+\-/()=]*", text)]
# Several in one name, which takes 60 characters.
NAMES = [" ".join(some) for some in (MAY_BE_NAMES[:2], MAY_BE_NAMES[2:4], MAY_BE_NAMES[4:])]
PAGES = ("", "pages/target.py", "pages/traffic.py", "pages/compare.py", "pages/model.py", "pages/log.py")


def opened(query: dict[str, str], page: str) -> AppTest:
    """A page opened by a link."""
    app = AppTest.from_file(f"{ROOT}/app.py", default_timeout=TIMEOUT)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    return app.switch_page(page).run() if page else app


def check(app: AppTest, text: str) -> None:
    """Nothing of a text is alive on a page, and no page failed."""
    assert not app.exception
    assert [found for body in bodies(app) for found in live(body, text)] == []


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("present", [False, True])
def test_names_in_links(page: str, present: bool) -> None:
    """A scenario's name, the kept ones' too, on every page, presented too."""
    shown = {"present": ""} if present else {}
    for text in NAMES:
        check(opened({"name": text, **shown}, page), text)


IN_LINKS = ("L", "model", "name", "want", "kept", "traffic", "release", "strange")


@pytest.mark.parametrize("name", IN_LINKS)
def test_values_in_links(name: str) -> None:
    """What a link gets wrong is said with the value as it stands there: all of them at once."""
    text = " ".join(value.replace("\n", " ") for value in HOSTILE.values())
    for page in ("", "pages/target.py"):
        app = opened({name: text[:600]}, page)
        check(app, text)


@pytest.mark.parametrize(("kind", "name"), list(zip(HOSTILE, cycle(IN_LINKS))))
def test_each_value_in_a_link(kind: str, name: str) -> None:
    """Each alone, as the value of one input or another."""
    check(opened({name: HOSTILE[kind][:60]}, ""), HOSTILE[kind])


@pytest.mark.parametrize("kind", HOSTILE)
def test_boxes(kind: str) -> None:
    """A log, a launch command, a config.json and wanted requests that hold it."""
    text = HOSTILE[kind].replace("\n", " ")
    app = opened({}, "pages/log.py")
    app.text_area(key="log_text").set_value(
        f"server_args={{'model_path': {text!r}, 'mamba_ssm_dtype': {text!r}}}\n{text}"
    )
    app.text_area(key="command_text").set_value(
        f"sglang serve --model-path '{text}' --tp '{text}' --kv-cache-dtype '{text}'"
    )
    check(app.run(), text)
    app.text_area(key="log_text").set_value("")
    check(app.run(), text)
    app = opened({}, "pages/model.py")
    app.text_area(key="config_text").set_value(f'{{"model_type": "{text}", "architectures": ["{text}"]}}')
    check(app.run(), text)
    app = opened({}, "pages/target.py")
    app.text_input(key="target_requests").set_value(text)
    app.text_area(key="target_more").set_value(f"{text} 16")
    check(app.run(), text)


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_uploaded_trace(kind: str) -> None:
    """The name of its file, and the names of its columns where none is known."""
    text = HOSTILE[kind].replace("\n", " ")
    name = f"{text.replace('/', ' ')}.csv"
    app = opened({}, "pages/traffic.py")
    for data in (f'"{text}","b {text}"\n1,2\n', "input_tokens,output_tokens\n900,100\n", text):
        app.file_uploader(key="traffic_file").set_value((name, data.encode(), "text/csv"))
        check(app.run(), text)
        check(app, name)


@pytest.mark.parametrize("text", NAMES)
def test_a_name_on_the_sheet(text: str) -> None:
    """It is text there: nothing in it can be followed or loads, and HTML is escaped."""
    named, plain_sheet = (sheet_of(Scenario(name=name), on=date(2026, 1, 1)) for name in (text, "x"))
    for live_part in ("<a ", "<img", "<script", "href=", "src="):
        assert named.count(live_part) == plain_sheet.count(live_part)
    assert escape(text) in named
