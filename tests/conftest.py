"""What all tests share."""

from hypothesis import settings

# The same examples at every run, and no test that fails because a machine was busy.
settings.register_profile("rackrate", deadline=None, derandomize=True)
settings.load_profile("rackrate")
