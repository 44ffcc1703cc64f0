"""Text to vectors.

``open_fastembed`` (in ``.fastembed``) is the real one, ``HashingEmbedder`` (in ``.hashing``) the
test double. Importing this package loads neither fastembed nor ONNX Runtime.
"""
