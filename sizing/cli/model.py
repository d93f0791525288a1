"""`model`: the bytes of a slot and of a token, from a config.json."""

import argparse
from pathlib import Path
from typing import Any, get_args

from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.files import opened
from sizing.basics.problems import shown
from sizing.basics.units import count, number
from sizing.cli.shared import aligned, print_answer, print_json, standard_input, stop, stop_with
from sizing.exchange.answer import ModelAnswer
from sizing.exchange.model_answer import KINDS, draft_answer, model_answer, unsized_draft_answer
from sizing.models import (
    Draft,
    Geometry,
    ModelRefusedError,
    byte_steps,
    charged_bytes,
    is_draft,
    most_kv_bytes,
    read_config,
    read_draft,
    stages,
    state_bytes,
)
from sizing.models.fields import MAX_FILE_BYTES, parse
from sizing.models.reading import CONFIG, QUANTISATION
from sizing.scenario.from_model import Widths, geometry_of, suggested


def add(commands: Any) -> None:
    """Declare the command."""
    model = commands.add_parser(
        "model",
        help="derive the bytes of a slot and of a token from a config.json",
        description="What one rank keeps for a model: bytes of a state slot and of a KV token, from its config.json. "
        "CONFIG is such a file, a folder that holds one, - for standard input, or a name of the catalogue.",
    )
    model.add_argument("config", metavar="CONFIG", help="file, folder, - or a name such as moonshotai/Kimi-K3")
    model.add_argument("--tp", type=int, default=1, help="attention TP width: tp_size / attn_dp_size (1)")
    model.add_argument("--dcp", type=int, default=1, help="dcp_size (1)")
    model.add_argument("--pp", type=int, default=1, help="pipeline stages (1)")
    model.add_argument("--kv-dtype", choices=get_args(KvDtype), help="KV dtype (what the checkpoint implies)")
    model.add_argument("--ssm-dtype", choices=get_args(StateDtype), help="SSM dtype (what the checkpoint implies)")
    model.add_argument("--conv-dtype", choices=get_args(StateDtype), default="bfloat16", help="conv dtype (bfloat16)")
    model.add_argument("--json", action="store_true", help="print the answer as JSON instead of tables")
    model.set_defaults(run=run, answer=ModelAnswer)


def run(options: argparse.Namespace) -> int:
    """Derive and print; gives the exit status."""
    try:
        config = _read(options.config)
        if isinstance(config, Draft | ModelRefusedError):
            return print_answer(options, _of_draft(config, options))
        widths = _widths(config, options)
        answer = model_answer(config, widths)
        if options.json:
            return print_json(answer)
        lines = _lines(config, widths, answer)
    except ModelRefusedError as refused:
        stop([refused.problem], KINDS[refused.kind])
    print("\n".join(lines))
    return answer.status


def _lines(geometry: Geometry, widths: Widths, answer: ModelAnswer) -> list[str]:
    """The formulas with their numbers, and what all stages charge."""
    tp, ssm, kv, dcp = widths.tp_size, widths.ssm, widths.kv, widths.dcp_size
    steps = byte_steps(geometry, tp, kv, dcp, ssm, widths.conv)
    lines = [
        answer.words,
        *aligned([(step.quantity, step.result, f"{step.formula}: {step.numbers}") for step in steps]),
    ]
    if isinstance(answer.token_equiv, float):
        dtypes = f"{ssm} SSM, {kv} KV" if state_bytes(geometry, tp, ssm, widths.conv).ssm else f"{kv} KV"
        lines.append(f"  token_equiv {number(answer.token_equiv)} tokens per slot ({dtypes}, TP{tp})")
    if widths.pp_size > 1:
        across = stages(geometry, widths.pp_size)
        most = most_kv_bytes(geometry, across, tp, kv, dcp)
        charged = count(charged_bytes(geometry, state_bytes(geometry, tp, ssm, widths.conv).total, across))
        stage = (
            f"  {widths.pp_size} stages: every rank is charged {charged} bytes a slot, at most {count(most)} a token"
        )
        lines.append(stage)
    return [*lines, *geometry.notes]


def _widths(geometry: Geometry, options: argparse.Namespace) -> Widths:
    asks = suggested(geometry)
    return Widths(
        tp_size=options.tp,
        attn_dp_size=1,
        dcp_size=options.dcp,
        pp_size=options.pp,
        ssm=options.ssm_dtype or asks["mamba_ssm_dtype"],
        conv=options.conv_dtype,
        kv=options.kv_dtype or asks["kv_cache_dtype"],
    )


def _of_draft(draft: Draft | ModelRefusedError, options: argparse.Namespace) -> ModelAnswer:
    if isinstance(draft, ModelRefusedError):
        return unsized_draft_answer(draft)
    return draft_answer(draft, options.tp, options.kv_dtype or draft.kv_dtype_auto)


def _read(config: str) -> Geometry | Draft | ModelRefusedError:
    """A catalogued name, a folder, a file or standard input; of a draft model what it is, or why it is not sized.

    Raises ModelRefusedError.
    """
    try:
        return geometry_of(config)
    except KeyError:
        pass
    folder = Path(config)
    try:
        if folder.is_dir():
            data, quantisation = (folder / CONFIG).read_bytes(), folder / QUANTISATION
            return _geometry(data[: MAX_FILE_BYTES + 1], quantisation.read_bytes() if quantisation.exists() else None)
        if config == "-":
            return _geometry(standard_input(MAX_FILE_BYTES))
        with opened(folder) as file:
            return _geometry(file.read(MAX_FILE_BYTES + 1))
    except (OSError, ValueError):
        stop_with(f"{shown(config)} is no name of the catalogue, and no file or folder to read.", where="CONFIG")


def _geometry(data: bytes, quantisation: bytes | None = None) -> Geometry | Draft | ModelRefusedError:
    if len(data) > MAX_FILE_BYTES:
        stop_with(f"It is larger than {MAX_FILE_BYTES // 2**20} MiB: no config.json is.", "CONFIG", "too_large")
    values = parse(data)
    if not is_draft(values):
        return read_config(values, quantisation)
    try:
        return read_draft(values)
    except ModelRefusedError as refused:
        return refused
