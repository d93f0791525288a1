"""`model`: the bytes of a slot and of a token, from a config.json."""

import argparse
from pathlib import Path
from typing import Any, get_args

from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.files import opened
from sizing.basics.problems import shown
from sizing.basics.units import count, number
from sizing.cli.shared import aligned, print_json, standard_input, stop, stop_with
from sizing.exchange.answer import ModelAnswer
from sizing.models import (
    Geometry,
    ModelRefusedError,
    byte_steps,
    charged_bytes,
    kv_bytes_per_token,
    most_kv_bytes,
    read_config,
    read_folder,
    stages,
    state_bytes,
)
from sizing.models.fields import MAX_FILE_BYTES
from sizing.models.summary import layers_in_words
from sizing.scenario.from_model import Widths, draft_bytes, geometry_of, suggested
from sizing.specification import token_equiv


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
        geometry = _geometry(options.config)
        asks = suggested(geometry)
        ssm, kv = options.ssm_dtype or asks["mamba_ssm_dtype"], options.kv_dtype or asks["kv_cache_dtype"]
        steps = byte_steps(geometry, options.tp, kv, options.dcp, ssm, options.conv_dtype)
        across = stages(geometry, options.pp)
    except ModelRefusedError as refused:
        stop([refused.problem], "not_served")
    slot = state_bytes(geometry, options.tp, ssm, options.conv_dtype).total
    token = kv_bytes_per_token(geometry, options.tp, kv, options.dcp)
    words = layers_in_words(geometry)
    answer = ModelAnswer(
        words=words,
        state_bytes_per_slot=slot,
        kv_bytes_per_token=token,
        draft_kv_bytes_per_token=_draft_bytes(geometry, options, ssm, kv),
        token_equiv=token_equiv(slot, token) if token else None,
        family=geometry.family,
        state_layers=len(geometry.state_layers),
        kv_layers=len(geometry.kv_layers),
        is_draft=False,
    )
    if options.json:
        return print_json(answer)
    print(words)
    print("\n".join(aligned([(step.quantity, step.result, f"{step.formula}: {step.numbers}") for step in steps])))
    if token:
        print(f"  token_equiv {number(token_equiv(slot, token))} tokens per slot ({ssm} SSM, {kv} KV, TP{options.tp})")
    if options.pp > 1:
        most = most_kv_bytes(geometry, across, options.tp, kv, options.dcp)
        charged = count(charged_bytes(geometry, slot, across))
        print(f"  {options.pp} stages: every rank is charged {charged} bytes a slot, at most {count(most)} a token")
    for note in geometry.notes:
        print(note)
    return answer.status


def _draft_bytes(geometry: Geometry, options: argparse.Namespace, ssm: StateDtype, kv: KvDtype) -> int:
    """One KV row of the model's own draft head [bytes per rank]."""
    widths = Widths(
        tp_size=options.tp,
        attn_dp_size=1,
        dcp_size=options.dcp,
        pp_size=1,
        ssm=ssm,
        conv=options.conv_dtype,
        kv=kv,
    )
    return draft_bytes(geometry, widths)


def _geometry(config: str) -> Geometry:
    """A catalogued name, a folder, a file or standard input. Raises ModelRefusedError."""
    try:
        return geometry_of(config)
    except KeyError:
        pass
    try:
        if config == "-":
            return read_config(standard_input(MAX_FILE_BYTES))
        if Path(config).is_dir():
            return read_folder(Path(config))
        with opened(Path(config)) as file:
            return read_config(file.read(MAX_FILE_BYTES + 1))
    except (OSError, ValueError):
        stop_with(f"{shown(config)} is no name of the catalogue, and no file or folder to read.", where="CONFIG")
