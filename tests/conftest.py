"""What all tests share."""

import os

from hypothesis import settings

os.environ["RACKRATE_FACTS"] = ""  # whoever runs the tests may have facts and prices of their own

# The same examples at every run, and no test that fails because a machine was busy.
settings.register_profile("rackrate", deadline=None, derandomize=True)
settings.load_profile("rackrate")
