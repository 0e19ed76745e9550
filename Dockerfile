# syntax=docker/dockerfile:1
# Builds the host and its shipped plugins, then keeps only what running them needs.
#
#   docker build -t sluice .
#   docker run -v ./jobs.d:/etc/sluice/jobs.d:ro -v ./plugins:/etc/sluice/plugins:ro -v sluice-data:/var/lib/sluice sluice
#
# The host is PID 1: it takes SIGTERM itself, drains, and its exit code is the container's. Give it time to:
# `docker stop --time 30`, or terminationGracePeriodSeconds above [host] drain_timeout.

FROM debian:bookworm-slim AS build
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends ca-certificates >/dev/null
WORKDIR /src
COPY . .
RUN ./dev build release \
 && mkdir -p /out/plugins \
 && cp build/release/bin/sluice /out/ && cp build/release/plugins/*.so /out/plugins/ \
 && strip /out/sluice /out/plugins/*.so

FROM debian:bookworm-slim
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends ca-certificates libboost-program-options1.81.0 libboost-json1.81.0 \
    libcurl4 libssl3 libspdlog1.10 libfmt9 libsqlite3-0 libedit2 libprometheus-cpp-core1.0 zlib1g >/dev/null \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --system --gid 10001 sluice \
 && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/sluice --create-home sluice \
 && mkdir -p /etc/sluice/jobs.d /etc/sluice/plugins
COPY --from=build /out/sluice /usr/local/bin/sluice
COPY --from=build /out/plugins/ /usr/local/lib/sluice/plugins/
COPY config/container/host.toml /etc/sluice/host.toml
USER 10001
WORKDIR /var/lib/sluice
VOLUME /var/lib/sluice
EXPOSE 9464
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/sluice"]
CMD ["run", "--config", "/etc/sluice/host.toml"]
