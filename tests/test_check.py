"""`check`: launch files in the forms people use, right and wrong ones."""

from pathlib import Path

import pytest

from sizing.cli.main import main

REST = "28.529"  # GiB of the specification's worked boot log, Kimi-K3 at TP8: 51 run by the default ratio, 74 balanced
MODEL = "--model-path moonshotai/Kimi-K3"
OTHERS = "--tp 8 --kv-cache-dtype fp8_e4m3"
GOOD = "--max-mamba-cache-size 371"  # what `target` sets for 74 requests of 9,216 tokens

DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {{name: sglang}}
spec:
  template:
    spec:
      containers:
        - name: sidecar
          image: proxy
          args: ["--listen", ":80"]
        - name: sglang
          image: lmsysorg/sglang
          command: ["python3", "-m", "sglang.launch_server"]
          args:
            - --model-path=moonshotai/Kimi-K3
            - --tp=$(TP)
            - --kv-cache-dtype=fp8_e4m3
            - {flag}
          env:
            - name: TP
              value: "8"
"""
BLOCK = """kind: Pod
spec:
  containers:
    - command: [/bin/bash, -c]
      args:
        - |
          set -e
          exec python3 -m sglang.launch_server \\
            --model-path /models/Kimi-K3 --tp-size 8 --kv-cache-dtype fp8_e4m3 \\
            {flag}
"""
COMPOSE = """services:
  sglang:
    image: lmsysorg/sglang
    environment:
      WIDTH: 8
    command: >
      python3 -m sglang.launch_server --model-path moonshotai/Kimi-K3 --tp ${{WIDTH}}
      --kv-cache-dtype fp8_e4m3 {flag}
"""
COMPOSE_LIST = """services:
  sglang:
    entrypoint: sglang serve
    command:
      - --model-path
      - moonshotai/Kimi-K3
      - --tp
      - ${{TP:-8}}
      - --kv-cache-dtype
      - fp8_e4m3
      - {flag}
"""
SCRIPT = (
    "#!/bin/sh\n# starts the server\nTP=8\nexec sglang serve "
    + MODEL
    + " --tp $TP \\\n  --kv-cache-dtype fp8_e4m3 {flag}\n"
)
DOCKER = (
    "docker run --gpus all -e SGLANG_X=1 lmsysorg/sglang python3 -m sglang.launch_server \\\n"
    "  --model-path moonshotai/Kimi-K3 --tp 8 --kv-cache-dtype=fp8_e4m3 {flag}\n"
)
CONFIG_SCRIPT = "sglang serve --config flags.yaml {flag}\n"
README = """# Serve

Start it with `sglang serve`, like this:

```bash
export TP=8
python3 -m sglang.launch_server --model-path moonshotai/Kimi-K3 \\
  --tp $TP --kv-cache-dtype fp8_e4m3 {flag}
```

```bash
curl http://localhost:30000/v1/models
```
"""
ARGS_ALONE = """kind: Pod
spec:
  containers:
    - image: lmsysorg/sglang
      args: ["--model-path=moonshotai/Kimi-K3", "--tp-size=8", "--kv-cache-dtype=fp8_e4m3", "{flag}"]
"""
ANCHORS = """x-common: &common
  image: lmsysorg/sglang
  entrypoint: ["python3", "-m", "sglang.launch_server"]
  environment: {{TP: "8"}}
services:
  one:
    <<: *common
    command: --model-path moonshotai/Kimi-K3 --tp ${{TP}} --kv-cache-dtype fp8_e4m3 {flag}
"""
SHELL_IN_A_LIST = """kind: Deployment
spec:
  containers:
    - command: ["/bin/sh", "-c"]
      args: ["export TP=8 && exec sglang serve --model-path moonshotai/Kimi-K3 --tp $TP --kv-cache-dtype fp8_e4m3 {flag}"]
"""  # noqa: E501
DOCUMENTS = """kind: ConfigMap
data:
  start.sh: |
    TP=8
    exec sglang serve --model-path moonshotai/Kimi-K3 --tp $TP --kv-cache-dtype fp8_e4m3 {flag}
---
kind: Service
spec:
  ports: [{{port: 30000}}]
"""
LEADER = """kind: LeaderWorkerSet
spec:
  leaderWorkerTemplate:
    size: 2
    leaderTemplate:
      spec:
        containers:
          - command: [python3, -m, sglang.launch_server, --model-path, moonshotai/Kimi-K3, --tp, "8",
              --dist-init-addr, "$(LWS_LEADER_ADDRESS):20000", --nnodes, $(LWS_GROUP_SIZE), --node-rank,
              $(LWS_WORKER_INDEX), --kv-cache-dtype, fp8_e4m3, {flag}]
"""
VALUES = """image: {{repository: lmsysorg/sglang}}
extraArgs:
  - --model-path=moonshotai/Kimi-K3
  - --tp=8
  - --kv-cache-dtype=fp8_e4m3
  - {flag}
"""
WORKFLOW = """jobs:
  serve:
    env: {{TP: 8}}
    steps:
      - run: |
          sglang serve --model-path moonshotai/Kimi-K3 --tp 8 --kv-cache-dtype fp8_e4m3 {flag} &
          python3 -m sglang.bench_serving --num-prompts 5
"""
SUBSTITUTED = """services:
  sglang:
    environment:
      - MODEL=moonshotai/Kimi-K3
    command: ["bash", "-c", "exec sglang serve --model-path $$MODEL --tp ${{TP:-8}} --kv-cache-dtype fp8_e4m3 {flag}"]
"""
IMAGE = """FROM lmsysorg/sglang
ENV TP=8
ENTRYPOINT ["python3", "-m", "sglang.launch_server"]
CMD ["--model-path", "moonshotai/Kimi-K3", "--tp", "8", "--kv-cache-dtype", "fp8_e4m3", "{flag}"]
"""
UNIT = """[Service]
Environment="TP=8"
ExecStart=/opt/venv/bin/python -m sglang.launch_server --model-path moonshotai/Kimi-K3 --tp ${{TP}} \\
  --kv-cache-dtype fp8_e4m3 {flag}
"""
MAKE = """TP ?= 8
serve:
\tsglang serve --model-path moonshotai/Kimi-K3 --tp $(TP) --kv-cache-dtype fp8_e4m3 {flag}
"""
FORMS = {
    "script.sh": SCRIPT,
    "docker.sh": DOCKER,
    "config.sh": CONFIG_SCRIPT,
    "deployment.yaml": DEPLOYMENT,
    "pod.yml": BLOCK,
    "compose.yaml": COMPOSE,
    "compose-list.yml": COMPOSE_LIST,
    "README.md": README,
    "args.yaml": ARGS_ALONE,
    "anchors.yaml": ANCHORS,
    "shell.yaml": SHELL_IN_A_LIST,
    "documents.yaml": DOCUMENTS,
    "leader.yaml": LEADER,
    "values.yaml": VALUES,
    "workflow.yml": WORKFLOW,
    "substituted.yaml": SUBSTITUTED,
    "Dockerfile": IMAGE,
    "sglang.service": UNIT,
    "Makefile": MAKE,
}
ONE_WORD = ("deployment.yaml", "compose-list.yml", "args.yaml", "leader.yaml", "values.yaml", "Dockerfile")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a file of flags beside what is written there."""
    (tmp_path / "flags.yaml").write_text("model-path: moonshotai/Kimi-K3\ntp_size: 8\nkv-cache-dtype: fp8_e4m3\n")
    return tmp_path


def checked(folder: Path, name: str, text: str, *options: str) -> int:
    """The exit status."""
    file = folder / name
    file.write_text(text)
    return main(["check", str(file), "--rest-gib", REST, *options])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("flag", "status"), [(GOOD, 0), ("--mamba-full-memory-ratio 0.9", 1)], ids=["right", "wrong"])
def test_every_form(form: str, flag: str, status: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same flags in every form say the same: 74 run with the pin, 51 by the default ratio."""
    flag = flag.replace(" ", "=") if form in ONE_WORD else flag
    assert checked(folder, form, FORMS[form].format(flag=flag), "--wants", "9216:74") == status
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert ("74 requests of L = 9,216 fit." in said) == (status == 0)
    assert (f"51 run at L = 9,216 (state pool binds); set {GOOD}" in said) == (status == 1)


def test_annotations(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As GitHub reads them, with the line of the command, each command of a file for itself."""
    two = SCRIPT.format(flag="--mamba-full-memory-ratio 0.9") + "\n" + DOCKER.format(flag=GOOD)
    assert checked(folder, "two.sh", two, "--wants", "9216:74", "--annotate") == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"::error file={folder}/two.sh,line=4::74 requests of L = 9,216 do not fit: ")
    assert second.startswith(f"::notice file={folder}/two.sh,line=7::74 requests of L = 9,216 fit.")


@pytest.mark.parametrize(
    ("wants", "status", "words"),
    [
        ("64K:26", 0, "26 requests of L = 65,536 fit."),
        ("64K:27", 1, "26 run at L = 65,536 under unified memory; no ratio carries it; at most 26"),
        ("9216:80", 1, "51 run at L = 9,216 under unified memory; set --enable-unified-memory --mamba-full-"),
        ("9216:90", 1, "no ratio carries it"),
    ],
)  # fmt: skip
def test_one_buffer(wants: str, status: int, words: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under unified memory what its buffer runs counts: 17 of 64K run in the static split."""
    text = SCRIPT.format(flag="--mamba-full-memory-ratio 0.9 --enable-unified-memory")
    assert checked(folder, "run.sh", text, "--wants", wants) == status
    assert words in capsys.readouterr().out
    assert checked(folder, "run.sh", text, "--wants", wants, "--wants", "1K:1") == 2


UNKNOWN = {
    "a variable": f"sglang serve {MODEL} --tp $WIDTH\n",
    "a file that is not there": "sglang serve --config other.yaml\n",
    "a model of nobody's": "sglang serve --model-path acme/unheard-of --tp 8\n",
    "a flag of no release": f"sglang serve {MODEL} --tp 8 --mamba-fully-memory-ratio 2\n",
    "an open quote": f"sglang serve {MODEL} --tp '8\n",
}


@pytest.mark.parametrize("why", UNKNOWN)
def test_what_cannot_be_known_is_said(why: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No number rests on a guess."""
    assert checked(folder, "run.sh", UNKNOWN[why], "--wants", "9216:1") == 2
    assert capsys.readouterr().out.count("\n") == 1


def test_rest_is_needed_and_a_log_gives_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without it no split is known; the worked boot log says it and the release."""
    file = folder / "run.sh"
    file.write_text(SCRIPT.format(flag=GOOD))
    assert main(["check", str(file), "--wants", "9216:74"]) == 2
    assert "give --rest-gib or --log" in capsys.readouterr().out
    log = Path(__file__).parent / "golden" / "boot_logs" / "0.5.23_kda_mla_tp8_default.log"
    assert main(["check", str(file), "--wants", "9216:74", "--log", str(log)]) == 0


WRONG = {
    "list.yaml": "- a\n- b\n",
    "broken.yaml": "a: [1\n",
    "tags.yaml": "a: !!python/object/apply:os.system ['false']\n",
    "deep.yaml": "[" * 5000,
    "aliases.yaml": "a: &a [x, x]\n"
    + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefghijk", "bcdefghijkl", strict=True)),
    "none.sh": "echo hello\n",
    "commented.sh": "# sglang serve --model-path m\n",
    "prose.md": "Run `sglang serve --model-path m`.\n",
    "template.yaml": "args:\n{{- range .Values.args }}\n- {{ . }}\n{{- end }}\n",
    "merged.yaml": "a: &a {<<: *a}\n",
    "empty.sh": "",
    "config.sh": "sglang serve --config bad.yaml\n",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_launch_file_is_one_sentence(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hostile YAML too: nothing of it is made, and its work is bounded."""
    (folder / "bad.yaml").write_text("- a\n")
    assert checked(folder, name, WRONG[name], "--wants", "9216:1") == 2
    captured = capsys.readouterr()
    assert (captured.out + captured.err).count("\n") == 1
    assert "Error)" not in captured.err
