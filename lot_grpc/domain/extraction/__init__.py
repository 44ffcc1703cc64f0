"""Learning from episodes: what goes with success, what with failure, what makes it fast.

Pure: texts come as terms, events as steps. ``docs/extraction.md`` describes the method.
"""
