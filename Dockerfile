# memtrend in a container: docs/operations.md says how it is run. No step has logic of its own: each is a
# script of scripts/, which tests/container/ runs where no Docker is.

FROM python:3.12.13-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml requirements.lock ./
COPY scripts/install.py scripts/container_install.py scripts/
RUN ["python3", "scripts/container_install.py", "/opt/memtrend", "dependencies"]
COPY scripts/container_data.sh scripts/
RUN ["sh", "scripts/container_data.sh", "/image/data"]
COPY LICENSE ./
COPY store store/
COPY collectors collectors/
COPY dashboard dashboard/
RUN ["python3", "scripts/container_install.py", "/opt/memtrend", "memtrend"]

FROM python:3.12.13-slim-bookworm
COPY --from=build /opt/memtrend /opt/memtrend
COPY --from=build --chown=10001:10001 /image/data /data
# A number, so that an orchestrator can see that it is not root.
USER 10001:10001
WORKDIR /data
VOLUME /data
# All that is written lies in the volume: the record, the environments of releases, and the cache of uv,
# which makes these by links where both are on one file system. The port is meant to be published on
# loopback, so the pages may write, and answer under the names of loopback alone.
ENV PATH=/opt/memtrend/bin:$PATH \
    HOME=/data \
    USER=memtrend \
    XDG_CACHE_HOME=/data/cache \
    UV_CACHE_DIR=/data/cache/uv \
    MEMTREND_DASHBOARD__HOST=0.0.0.0 \
    MEMTREND_DASHBOARD__HOSTS='["localhost","127.0.0.1"]' \
    MEMTREND_DASHBOARD__WRITES=true
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s --retries=3 \
    CMD ["/opt/memtrend/bin/memtrend", "alive"]
ENTRYPOINT ["/opt/memtrend/bin/dumb-init", "/opt/memtrend/bin/memtrend"]
CMD ["up"]
