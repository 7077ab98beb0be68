"""What all tests share."""

import os

from hypothesis import settings

os.environ["RACKRATE_FACTS"] = ""  # whoever runs the tests may have facts and prices of their own

os.environ["HF_HUB_OFFLINE"] = "1"  # no test asks the Hub but those that bring a Hub of their own
os.environ["HF_HOME"] = "no-such-folder"

# The same examples at every run, and no test that fails because a machine was busy.
settings.register_profile("rackrate", deadline=None, derandomize=True)
settings.load_profile("rackrate")
