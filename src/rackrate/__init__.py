"""rackrate: what GPU to rent, what it will really cost, and whether you got it.

The Python API is ``rackrate.api``. The rooms below are named after the
questions that they answer (``rackrate.memory``, ``rackrate.plan``, ...), so the
functions of the same names do not live here, where a room would replace them.
"""
