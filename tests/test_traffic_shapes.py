"""Synthetic shapes: their numbers come out as they went in, the same every time."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sizing.traffic.mix import MAX_LENGTH
from sizing.traffic.shapes import SHAPES, LogNormal, log_normal, mix_of_shape
from sizing.traffic.workload import Shape, Workload, mix_of_workload
from tests.test_properties import examples

TOKENS = st.integers(1, 2**20)


@st.composite
def log_normals(draw: st.DrawFn) -> LogNormal:
    (median_in, p95_in), (median_out, p95_out) = (sorted((draw(TOKENS), draw(TOKENS))) for _ in range(2))
    return LogNormal(median_input=median_in, p95_input=p95_in, median_output=median_out, p95_output=p95_out)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_its_medians_and_tails(name: Shape) -> None:
    """The p95 to the token, the median within a percent: it lies between two quantiles of the grid."""
    mix, numbers = mix_of_workload(Workload(shape=name)), SHAPES[name].lengths
    assert (mix.name, mix.synthetic, mix.note) == (SHAPES[name].title, True, SHAPES[name].source)
    assert mix.inputs
    assert mix.outputs
    assert mix.inputs.quantile(0.95) == numbers.p95_input
    assert mix.outputs.quantile(0.95) == numbers.p95_output
    assert mix.inputs.quantile(0.5) == pytest.approx(numbers.median_input, rel=0.01)
    assert mix.outputs.quantile(0.5) == pytest.approx(numbers.median_output, rel=0.01)


def test_what_is_assumed_says_so() -> None:
    """Every other shape has a published source beside its numbers."""
    assert [name for name, shape in SHAPES.items() if "arXiv" not in shape.source] == []
    assert [shape.title for shape in SHAPES.values() if "ssumption" in shape.source] == ["RAG (assumed)"]


@given(log_normals())
@examples(20)
def test_any_four_numbers_make_a_mix(numbers: LogNormal) -> None:
    """Within the bounds of a trace, and the same again."""
    one, other = log_normal(numbers), log_normal(numbers)
    assert np.array_equal(one.lengths.values, other.lengths.values)
    assert np.array_equal(one.spans.whole.counts, other.spans.whole.counts)
    assert one.lengths.values[0] >= 2
    assert one.lengths.values[-1] <= MAX_LENGTH
    assert one.inputs
    assert one.inputs.quantile(0.95) == numbers.p95_input


def test_input_and_output_are_independent() -> None:
    """Each output occurs with each input as often: the mean of the sum is the sum of the means."""
    mix = mix_of_workload(Workload(shape="chat"))
    assert mix.inputs
    assert mix.outputs
    assert mix.lengths.mean == pytest.approx(mix.inputs.mean + mix.outputs.mean)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"p95_input": 99}, "The p95 of the input (99) is below its median (100). Correct one."),
        ({"p95_output": 9}, "The p95 of the output (9) is below its median (10). Correct one."),
        ({"median_input": 0}, "greater than or equal to 1"),
        ({"p95_output": 2**20 + 1}, "less than or equal to 1048576"),
        ({"median_output": 10.5}, "valid integer"),
    ],
)
def test_numbers_that_make_no_shape(changed: dict[str, float], sentence: str) -> None:
    """Tails shorter than medians, and what is no length."""
    numbers = {"median_input": 100, "p95_input": 200, "median_output": 10, "p95_output": 20}
    with pytest.raises(ValidationError) as error:
        LogNormal.model_validate({**numbers, **changed})
    assert sentence in str(error.value)


def test_every_shape_that_may_be_stated() -> None:
    """The names of a workload, and four numbers stated with one of them."""
    assert set(get_args(Shape)) == {*SHAPES, "log-normal"}

    stated = Workload(shape="log-normal", median_input=7, p95_input=7, median_output=3, p95_output=3)
    mix = mix_of_workload(stated)
    assert (mix.name, mix.lengths.values.tolist(), mix.note) == ("log-normal", [10], "")
    with pytest.raises(KeyError):
        mix_of_shape("poem", stated)
