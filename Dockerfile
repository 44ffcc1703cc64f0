# lot-grpc with the embedding model inside: needs no network at run time.
#
#   docker build -t lot-grpc .
#   docker run --rm -p 127.0.0.1:50051:50051 -v lot-data:/data \
#     -e LOT_ALLOW_PLAINTEXT=true -e LOT_ALLOW_ANONYMOUS=true lot-grpc
#
# That is for one machine: without TLS and without keys, published on its loopback only. For others
# leave those two out and give it a certificate and keys (docs/security.md).

FROM python:3.12-slim AS build
WORKDIR /src
RUN python -m venv /opt/lot
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY lot_grpc ./lot_grpc
RUN /opt/lot/bin/pip install --no-cache-dir --disable-pip-version-check \
      --constraint constraints.txt '.[offline]'

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin lot \
 && install --directory --owner=lot --group=lot /data
COPY --from=build /opt/lot /opt/lot

ENV PATH=/opt/lot/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    # The model is inside. For another one: 0, or LOT_EMBEDDING_PATH on a volume.
    HF_HUB_OFFLINE=1 \
    LOT_DATA_DIR=/data \
    LOT_LOG_FORMAT=json \
    # A container's own loopback is out of reach, so it listens on all of its addresses.
    LOT_ADDRESS=0.0.0.0:50051

USER lot
WORKDIR /data
VOLUME /data
EXPOSE 50051
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 CMD ["lot-grpc", "health"]
ENTRYPOINT ["lot-grpc"]
CMD ["serve"]
