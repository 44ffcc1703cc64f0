"""Options of requests to an OpenAI-compatible endpoint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Options with the defaults of the settings.

    Attributes:
        base_url: The URL before ``/embeddings``.
        api_key: Sent as a bearer token, "" for none.
        dimensions: Dimensions to request, 0 for the model's own.
        batch_size: Maximum number of texts in one request.
        max_concurrent_requests: Requests at the same time. If more than one, one is reserved for
            queries.
        timeout_seconds: For one request, from connecting to the last byte.
        retries: Retries of a request that failed for a transient reason.
        backoff_seconds: Wait before the first retry; it doubles up to 8 s.
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
        """The URL of requests."""
        return f"{self.base_url.rstrip('/')}/embeddings"
