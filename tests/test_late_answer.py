"""What a browser says before it has heard of the last run: the boxes that the reader sees are those that hold."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.test_guard import running

MODEL = "Qwen3-Next-80B-A3B-Instruct"
LARGEST_MESSAGE = 2**24
ENDS = {
    ForwardMsg.ScriptFinishedStatus.FINISHED_SUCCESSFULLY,
    ForwardMsg.ScriptFinishedStatus.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
}


class Reader:
    """A browser's part of the protocol: what stands in its boxes goes with each request."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket, self.page, self.query = socket, "", ""
        self.ids: dict[str, tuple[str, str]] = {}
        """The widget and the fragment of each label."""
        self.boxes: dict[str, WidgetState] = {}

    def run(self, fragment: str = "") -> None:
        """One run to its end, as the boxes stand."""
        asked = BackMsg()
        asked.rerun_script.query_string = self.query
        asked.rerun_script.page_script_hash = self.page
        asked.rerun_script.fragment_id = fragment
        asked.rerun_script.widget_states.widgets.extend(self.boxes.values())
        self.socket.send(asked.SerializeToString())
        while True:
            told = ForwardMsg.FromString(self.socket.recv(timeout=60, decode=False))
            if told.HasField("navigation"):
                self.page = told.navigation.page_script_hash
            if told.HasField("page_info_changed"):
                self.query = told.page_info_changed.query_string
            element = told.delta.new_element
            for kind in ("selectbox", "button_group"):
                if element.HasField(kind):
                    widget = getattr(element, kind)
                    self.ids[widget.label] = (widget.id, told.delta.fragment_id)
            if told.WhichOneof("type") == "script_finished" and told.script_finished in ENDS:
                return

    def choose(self, label: str, value: str) -> str:
        """Put a value into a box, and say which fragment it belongs to; nothing is sent yet."""
        widget, fragment = self.ids[label]
        state = WidgetState(id=widget)
        if label == "Split by":
            state.string_array_value.data.append(value)
        else:
            state.string_value = value
        self.boxes[label] = state
        return fragment

    def holds(self, name: str) -> str | None:
        """What the address holds of an input."""
        return parse_qs(self.query).get(name, [None])[0]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """One who has the balance page before them."""
    with (
        running(tmp_path) as server,
        connect(
            f"ws://localhost:{server.port}/_stcore/stream",
            subprotocols=[Subprotocol("streamlit")],
            max_size=LARGEST_MESSAGE,
            proxy=None,
        ) as socket,
    ):
        found = Reader(socket)
        found.run()
        yield found


def test_what_a_model_sets_outlasts_a_late_answer(reader: Reader) -> None:
    """The model's dtype replaces the one that was chosen; a move that still brings that one does not put it back. A
    choice does.
    """
    reader.run(reader.choose("SSM dtype", "bfloat16"))
    assert reader.holds("mamba_ssm_dtype") == "bfloat16"
    reader.run(reader.choose("Model", MODEL))
    assert (reader.holds("model"), reader.holds("mamba_ssm_dtype")) == (f"Qwen/{MODEL}", None)
    reader.run(reader.choose("Split by", "balanced"))
    assert (reader.holds("split"), reader.holds("mamba_ssm_dtype")) == ("balanced", None)
    reader.choose("SSM dtype", "float32")  # by now the browser has heard of it
    reader.run(reader.choose("Split by", "ratio"))
    assert (reader.holds("split"), reader.holds("mamba_ssm_dtype")) == (None, None)
    reader.run(reader.choose("SSM dtype", "bfloat16"))
    assert reader.holds("mamba_ssm_dtype") == "bfloat16"
