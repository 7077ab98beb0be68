"""Every verb in every form: the same rows, and the keys that readers of the JSON count on."""

import csv
import io
import json
import re
from decimal import Decimal

import pytest
from cli_cases import CARDS, FITS, NO_PLANS, PLANS, REFUSED
from conftest import ROOT
from jsonschema import Draft202012Validator

SCHEMAS = {path.stem: json.loads(path.read_text("utf-8")) for path in (ROOT / "src/rackrate/app/schemas").glob("*.json")}
