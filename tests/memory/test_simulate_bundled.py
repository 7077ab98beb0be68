"""A bundled model is built as what it is: with exactly as many parameters as its record counts."""

import pytest

pytest.importorskip("torch", reason="the extra `measure` is not installed")
pytest.importorskip("transformers", reason="the extra `measure` is not installed")

from rackrate.app.context import context
from rackrate.memory.simulation.bundled import TYPES, config_of
from rackrate.memory.simulation.records import Job

BOOK = context().book
BUILT = [name for name in BOOK.model_ids if isinstance(config_of(BOOK.model(name)), tuple)]


def test_most_families_of_plain_decoders_can_be_built():
    assert len(BUILT) > 80
    assert {BOOK.model(name).family for name in BUILT} >= set(TYPES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BUILT)
def test_the_model_has_the_parameters_of_its_record(name):
    from rackrate.memory.simulation.language_model import model_of

    model = BOOK.model(name)
    config = config_of(model)
    built = model_of(Job(config=config, trains=True, batch=1, tokens=1))
    assert sum(weight.numel() for weight in built.parameters()) == model.params_total
