"""The command line, ``raxol-sync``. ``run.main`` is its entry. Floor 5."""
