"""Models on the Hub: a real client against a Hub of our own on loopback; the real one is never asked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.app.hub import TOKEN, Hub
from tests.app.pipeline_folders import SDXL, lay_out
from tests.cli.ask import run
from tests.facts.samples import make

from rackrate.app.checkpoint import hub as door
from rackrate.app.context import facts

constants = pytest.importorskip("huggingface_hub.constants", reason="needs the extra hub")

SAMPLES = Path(make.__file__).parent
ROOT = Path(__file__).parents[2]
RACKRATE = Path(sys.executable).with_name("rackrate")
TINY = {path.name: path.read_bytes() for path in (SAMPLES / "llama-tiny").iterdir()}
SINGLE = {path.name: path.read_bytes() for path in (SAMPLES / "llama-tiny-awq").iterdir()}
GGUF = {"model.Q4_K_M.gguf": (SAMPLES / "llama-tiny.Q4_K_M.gguf").read_bytes(), "README.md": b"#"}
REPOSITORIES = {
    "org/tiny": TINY,
    "org/single": SINGLE,
    "org/gguf": GGUF,
    "org/gated": TINY,
    "org/empty": {"README.md": b"#"},
}
REPOSITORIES["org/two"] = {"a.gguf": b"", "b.gguf": b"", "mmproj-a.gguf": b""}


def elsewhere(hub, home, *args, **env):
    """What ``rackrate`` says in a process of its own, with this Hub as its Hub."""
    known = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
    here = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", "RACKRATE_FACTS": ""}
    return subprocess.run(
        [RACKRATE, *args],
        cwd=ROOT,
        env={**known, **here, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def ask(monkeypatch):
    """What ``rackrate`` says in this process; the client read its settings when it was imported."""

    def answer(hub, *args, token=None):
        monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
        template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", token or "")
        return run(*args)

    return answer


@pytest.fixture
def model(ask):
    def found(hub, name, token=None):
        said = ask(hub, "model", name, "--json", token=token)
        assert said.code == 0, said.err
        return said.document["models"][0]

    return found


@pytest.fixture(scope="module")
def hub():
    with Hub(REPOSITORIES, gated={"org/gated"}) as running:
        yield running


def test_headers_are_read_by_ranges_and_nothing_is_kept(hub, tmp_path):
    hub.asked.clear()
    said = elsewhere(hub, tmp_path / "home", "model", "hub:org/tiny", "--json")
    found = json.loads(said.stdout)["models"][0]
    assert (found["id"], found["origin"], found["params_total"]) == ("org/tiny", "hub", 78_144)
    assert found["stored"]["bytes"] == 156_800
    files = [(path.rpartition("/")[2], wanted) for path, wanted, _ in hub.asked if "/resolve/" in path]
    assert {name for name, _ in files} == set(TINY)
    assert all(wanted.startswith("bytes=0-") for _, wanted in files)
    assert not (tmp_path / "home").exists()


def test_a_single_file_and_an_id_without_the_prefix(hub, model):
    found = model(hub, "org/single")
    assert (found["native_format"], found["params_total"]) == ("awq-int4", 78_144)


def test_a_repository_of_one_gguf_file(hub, model):
    found = model(hub, "hub:org/gguf")
    assert (found["native_format"], found["stored"]["bytes"]) == ("gguf-q4_k_m", 467_712)


def test_no_tensor_is_fetched(tmp_path, model):
    """Files of 40 MB, of which the header and no more than a block behind it is asked for."""
    tensors = {**make.ENDS, **make.norms(0), **make.norms(1), "model.big.weight": ("BF16", (20_000, 1000))}
    make.write_safetensors(tmp_path / "model.safetensors", tensors)
    large = {
        "config.json": json.dumps(make.LLAMA).encode(),
        "model.safetensors": (tmp_path / "model.safetensors").read_bytes(),
    }
    for ranges in (True, False):
        with Hub({"org/large": large}, ranges=ranges) as running:
            found = model(running, "org/large")
            assert found["stored"]["bytes"] > 40_000_000
            assert not ranges or running.sent < 300_000


def test_a_gated_model_needs_the_token_from_its_usual_place(hub, tmp_path, ask, model):
    said = ask(hub, "model", "org/gated")
    assert said.code == 2
    assert "HF_TOKEN" in said.err
    assert model(hub, "org/gated", token=TOKEN)["params_total"] == 78_144
    (tmp_path / "token").write_text(TOKEN)  # where `hf auth login` leaves it
    answered = elsewhere(hub, tmp_path, "model", "org/gated")
    assert answered.returncode == 0
    assert TOKEN not in answered.stdout + answered.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hub:org/nothing", "unknown name"),
        ("org/nothing", "unknown name"),
        ("hub:not a name", "unknown name"),
        ("hub:org/empty", "0 GGUF files and no config.json"),
        ("hub:org/two", "a.gguf, b.gguf"),
    ],
)
def test_what_is_not_there_says_what_to_do(hub, ask, name, said):
    answer = ask(hub, "model", name)
    assert answer.code == 2
    assert said in answer.err
    assert "  next: " in answer.err


def test_a_hub_that_does_not_work_is_told(ask):
    with Hub(REPOSITORIES, broken=True) as running:
        answer = ask(running, "model", "org/tiny")
    assert answer.code == 2
    assert "hub unreachable" in answer.err
    assert "config.json, a folder or a GGUF file" in answer.err
    answer = ask(running, "model", "org/tiny")  # nobody listens there any more
    assert answer.code == 2
    assert "hub unreachable" in answer.err


def test_offline_is_respected(hub, tmp_path):
    hub.asked.clear()
    answer = elsewhere(hub, tmp_path, "model", "hub:org/tiny", HF_HUB_OFFLINE="1")
    assert answer.returncode == 2
    assert "HF_HUB_OFFLINE" in answer.stderr
    assert not hub.asked


def test_a_workload_takes_a_model_of_the_hub(hub, ask):
    said = ask(hub, "fit", "--model", "org/tiny", "--gpu", "a40", "--context", "1024", "--json")
    assert said.document["workload"]["model"] == "org/tiny"


# ---------------------------------------------------------------- without the network


def test_a_snapshot_in_the_cache_needs_no_network(tmp_path, monkeypatch):
    kept = tmp_path / "hub" / "models--org--kept"
    (kept / "snapshots" / "abc123").mkdir(parents=True)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc123")
    for name, content in TINY.items():
        (kept / "snapshots" / "abc123" / name).write_bytes(content)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    found = door.read_hub("org/kept", facts().formats)
    assert found.params_total == 78_144
    (kept / "refs" / "main").write_text("../../etc")
    assert isinstance(door.read_hub("org/kept", facts().formats), tuple)


def test_without_the_extra_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    (found,) = door.read_hub("org/model", facts().formats)
    assert found.observed == "huggingface-hub is not installed"
    assert "pip install 'rackrate[hub]'" in found.action
    assert "GGUF" in found.action


def test_a_tuned_name_that_the_hub_does_not_answer_for_is_told_as_such(ask):
    """`model` shows the shape of nothing else, so the Hub's silence is the finding; `fit` takes the base and says so."""
    name = "meta-llama/Llama-2-7b-chat-hf"
    with Hub({}, broken=True) as running:
        told = ask(running, "model", name, "--json").document["problems"]
        fitted = ask(running, "fit", "--model", name, "--gpu", "a40", "--json").document
    assert [problem["code"] for problem in told] == ["hub_unreachable"]
    assert "did you mean meta-llama/Llama-2-7b-hf?" in told[0]["action"]
    assert fitted["workload"]["model"] == "meta-llama/Llama-2-7b-hf"
    assert [w["code"] for w in fitted["warnings"] if w["code"] == "model_inexact"]


def test_a_pipeline_on_the_hub_is_fitted_from_its_configurations(ask, tmp_path):
    own = lay_out(tmp_path / "own", SDXL)
    files = {path.relative_to(own).as_posix(): path.read_bytes() for path in own.rglob("*.json")}
    said = ("--task", "diffusion", "--precision", "fp16", "--gpu", "rtx4090", "--json")
    with Hub({"org/own": files}) as running:
        found = ask(running, "fit", "--model", "hub:org/own", *said)
    bundled = run("fit", "--model", "stabilityai/stable-diffusion-xl-base-1.0", *said)
    assert found.code == 0, found.err
    assert found.document["peak_bytes"] == bundled.document["peak_bytes"]
