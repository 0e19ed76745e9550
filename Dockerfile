# syntax=docker/dockerfile:1
# Builds the host and its shipped plugins, then keeps only what running them needs.
#
#   docker build -t sluice .
#   docker run --name sluice --stop-timeout 40 -v sluice-data:/var/lib/sluice \
#     -v ./jobs.d:/etc/sluice/jobs.d:ro -v ./plugins:/etc/sluice/plugins:ro sluice
#
# The host is PID 1: it takes SIGTERM itself, drains, and its exit code is the container's. Give it time to:
# --stop-timeout, or terminationGracePeriodSeconds, above [host] drain_timeout. Commands work inside:
# docker exec sluice sluice stats

FROM debian:bookworm-slim AS build
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends ca-certificates >/dev/null
WORKDIR /src
COPY . .
RUN ./dev build release \
 && cmake --install build/release --prefix /out --strip --component host \
 && cmake --install build/release --prefix /out --strip --component plugins \
 && rm -r /out/lib/systemd

FROM debian:bookworm-slim
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends ca-certificates \
    libcurl4 libssl3 libsqlite3-0 libedit2 libpq5 libprometheus-cpp-core1.0 \
    libcctz2 tzdata zlib1g libmariadb3 libssh-4 libyaml-cpp0.7 libnats3.4 >/dev/null \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --system --gid 10001 sluice \
 && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/sluice --shell /usr/sbin/nologin sluice \
 && mkdir -p /etc/sluice/jobs.d /etc/sluice/plugins \
 && install -d -o sluice -g sluice -m 0700 /var/lib/sluice
COPY --from=build /out/ /usr/local/
COPY config/container/host.toml /etc/sluice/host.toml
USER 10001
WORKDIR /var/lib/sluice
# The embedded store and the crash ledgers. Name it (-v sluice-data:/var/lib/sluice), or it goes with the container.
VOLUME /var/lib/sluice
EXPOSE 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=6 CMD ["/usr/local/bin/sluice", "health"]
ENTRYPOINT ["/usr/local/bin/sluice"]
CMD ["run", "--config", "/etc/sluice/host.toml"]
