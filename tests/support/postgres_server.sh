#!/bin/sh
# A PostgreSQL server of its own in a folder, for tests and benchmarks:
#   postgres_server.sh FOLDER PORT [option of postgres ...]
# It listens on 127.0.0.1:PORT (user sluice, password secret) and on a Unix socket in FOLDER (no password), and is this
# process: it ends with it. Exit 3: there is no PostgreSQL. Run as root it goes on as postgres or nobody, as it must.
set -eu
folder=$1
port=$2
shift 2

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
[ -n "$bin" ] || bin=$(dirname "$(command -v postgres || echo /none/postgres)")
[ -x "$bin/initdb" ] || { echo "no PostgreSQL server; run ./dev deps" >&2; exit 3; }

as() {
  exec "$@"
}
if [ "$(id -u)" = 0 ]; then
  user=postgres
  getent passwd postgres >/dev/null || user=nobody
  chown "$user" "$folder"
  as() {
    exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups --pdeathsig=KILL "$@"
  }
fi
if [ ! -d "$folder/data" ]; then
  echo secret >"$folder/password"
  chmod 644 "$folder/password"
  (cd "$folder" && as "$bin/initdb" -D "$folder/data" -U sluice --auth-local=trust --auth-host=scram-sha-256 \
    --pwfile="$folder/password" --locale=C.UTF-8 --encoding=UTF8 --no-sync) >"$folder/initdb.log" 2>&1 || {
    cat "$folder/initdb.log" >&2
    exit 1
  }
fi
cd "$folder"
as "$bin/postgres" -D "$folder/data" -k "$folder" -p "$port" -c listen_addresses=127.0.0.1 -c max_connections=200 \
  -c unix_socket_permissions=0777 "$@" >"$folder/server.log" 2>&1
