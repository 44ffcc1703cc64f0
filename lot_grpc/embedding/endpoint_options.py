"""How an OpenAI-compatible endpoint is asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Options with the defaults of the settings.

    Attributes:
        base_url: What comes before ``/embeddings``.
        api_key: Sent as a bearer token, "" for none.
        dimensions: Asked of the model in each request, 0 for its own.
        batch_size: Texts of one request, at most.
        max_concurrent_requests: Requests at the same time. One of them is kept for queries where
            there is more than one.
        timeout_seconds: For one request, from connecting to the last byte.
        retries: Repeats of a request that failed for a passing reason.
        backoff_seconds: Wait before the first repeat; it doubles up to 8 s.
        query_prefix: Put before search texts.
        max_tokens: Tokens that the model reads at once.
    """

    base_url: str = "https://api.openai.com/v1"
    api_key: str = ""
    dimensions: int = 0
    batch_size: int = 64
    max_concurrent_requests: int = 4
    timeout_seconds: float = 30.0
    retries: int = 2
    backoff_seconds: float = 0.5
    query_prefix: str = ""
    max_tokens: int = 8192

    @property
    def url(self) -> str:
        """Where requests go."""
        return f"{self.base_url.rstrip('/')}/embeddings"
