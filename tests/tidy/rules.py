"""The tree's own rules, each a function of a tree that returns what breaks it, one line each."""

import os
import re

SOURCE_FOLDERS = ("base", "sdk", "config", "dynamo", "host", "client", "plugins")
ALL_FOLDERS = SOURCE_FOLDERS + ("tests", "bench")

# Who may include whom. sdk is reached as <sluice/...>, the client's public headers as <sluice/client...>; everything else by
# its path from the root.
ARROWS = {
    "base": set(),
    "sdk": {"sdk"},
    "config": {"base"},
    "dynamo": {"base"},
    "host": {"base", "config", "dynamo", "sdk", "client"},
    "client": {"base", "dynamo", "host"},
    "plugins": {"sdk"},
}

# What single plugins may see besides, each with its reason in docs/understand/architecture.md.
PLUGIN_ARROWS = {
    "plugins/sns/": {"dynamo", "base"},
}

# Inside host: what each sub-folder may see of the others.
HOST_ARROWS = {
    "queue": set(),
    "cost": {"queue"},
    "stores": {"queue", "cost"},
    "observe": {"runtime/service.hpp", "stores/core/outcomes.hpp"},
    "fleet": {"queue", "cost"},
    # Of stores, only how the layouts write a record: what a write costs depends on the bytes of an item.
    "operate": {"queue", "cost", "fleet", "observe", "stores/dynamomq/record.hpp", "stores/leased/leased_record.hpp",
                "stores/leased/made_ids.hpp", "stores/table/item_values.hpp"},
    "plugin": {"queue", "stores/core/outcomes.hpp"},
    "isolation": {"queue", "stores/core/outcomes.hpp", "plugin", "observe", "runtime/service.hpp"},
    "validate": {"queue", "stores/core/outcomes.hpp", "plugin", "isolation"},
    "work": {"queue", "cost", "stores/core/outcomes.hpp", "plugin", "isolation", "observe", "runtime/service.hpp"},
    "runtime": {"queue", "cost", "stores", "fleet", "plugin", "isolation", "observe", "work"},
    "cli": {"queue", "cost", "stores", "fleet", "operate", "plugin", "isolation", "observe", "validate", "work", "runtime"},
}

# Inside host/stores: which folders each may see besides its own; all see the files beside them.
STORE_ARROWS = {
    "core": set(),
    "owned": {"core"},
    "sqlite": {"core"},
    "table": {"core"},
    "dynamomq": {"core", "table"},
    "leased": {"core", "owned", "table"},
    "dynamodb": {"table", "dynamomq", "leased"},
    "outbox": {"core", "owned"},
}

# A third-party header and the one place that may include it (path prefixes).
BOUNDARIES = {
    r"curl/": ("dynamo/transport/", "plugins/webhook/"),
    r"openssl/": ("base/text/base64.cpp", "dynamo/signing/", "dynamo/credentials/", "plugins/",
                  "host/stores/outbox/mysql/tls_probe.cpp"),
    r"toml\+\+/|toml\.hpp": ("config/",),
    r"cctz/": ("config/schedule_times.cpp",),
    r"nats/": ("plugins/nats/",),
    r"sqlite3\.h": ("host/stores/sqlite/",),
    r"mysql\.h|mysql/|mariadb/": ("host/stores/outbox/mysql/connection.cpp",),
    r"libssh/": ("host/stores/outbox/tunnel/ssh_tunnel.cpp",),
    r"yaml-cpp/": ("host/cli/convert/yaml_tree.cpp",),
    r"libpq-fe\.h": ("host/stores/outbox/postgres/connection.cpp",),
    r"prometheus/": ("host/observe/",),
    r"httplib\.h": ("host/observe/",),
    r"histedit\.h": ("host/cli/shell/lines.cpp",),
}

BANNED = {
    r"\bdetach\(": "a detached thread has no owner",
    r"\bsleep_for\b|\bsleep_until\b|\busleep\(|\bnanosleep\(": "wait on a condition or step a clock",
    r"\bstd::endl\b": "use '\\n'",
    r"\busing namespace\b": "name what is used",
    r"\bstd::async\b": "use a Service",
    r"\bstd::thread\b(?!::)": "use std::jthread",
    r"\bassert\(": "use SLUICE_ASSERT",
}
RAW_LOCKS = r"\bstd::((recursive_|shared_|timed_)*mutex|lock_guard|unique_lock|shared_lock|scoped_lock)\b"
PRODUCT_SUFFIXES = (".cpp", ".hpp", ".h", ".c")
# Where each room is described, with the lines that it may have.
ROOMS_PAGE = "docs/understand/rooms.md"
MAX_FILE_LINES = {"product": 900, "tests": 800}
MAX_PUBLIC_METHODS = 20
MAX_LAYERS = 7

# What a compiler does not read as code, longest forms first: raw strings, strings, characters, comments.
NOT_CODE = re.compile(r'R"(?P<mark>[^()\s\\"]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\''
                      r"|//[^\n]*|/\*.*?\*/", flags=re.S)


class Tree:
    """The files below a folder."""

    def __init__(self, root):
        self.root = root

    def files(self, folders, suffixes):
        for folder in folders:
            for path, dirs, names in os.walk(os.path.join(self.root, folder)):
                dirs[:] = [d for d in dirs if d not in ("build", "abi-history", "corpus")]
                for name in names:
                    if name.endswith(suffixes):
                        yield os.path.relpath(os.path.join(path, name), self.root)

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def includes(self, path):
        return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', self.read(path), flags=re.M)

    def code(self, path):
        """The text without comments and without what strings hold; every line stays where it is."""
        return NOT_CODE.sub(lambda match: ('""' if match.group(0)[0] in "R\"'" else "") + "\n" * match.group(0).count("\n"),
                            self.read(path))


def folder_of(include):
    if include == "sluice/client.hpp" or include.startswith("sluice/client/"):
        return "client"
    if include.startswith("sluice/"):
        return "sdk"
    head = include.split("/")[0]
    return head if head in ALL_FOLDERS else None


def wrong_arrows(tree):
    for path in tree.files(SOURCE_FOLDERS, (".cpp", ".hpp", ".h", ".c")):
        own = path.split(os.sep)[0]
        if "/template/" in path:
            continue
        besides = next((seen for folder, seen in PLUGIN_ARROWS.items() if path.startswith(folder)), set())
        for include in tree.includes(path):
            target = folder_of(include)
            if target and target != own and target not in ARROWS[own] | besides:
                yield f"{path} includes {include}: {own} may not see {target}"


def wrong_host_arrows(tree):
    for path in tree.files(("host",), (".cpp", ".hpp")):
        parts = path.split(os.sep)
        if len(parts) < 3:
            continue
        allowed = HOST_ARROWS.get(parts[1])
        if allowed is None:
            yield f"{path}: what host/{parts[1]} may see is not said"
            continue
        for include in tree.includes(path):
            if not include.startswith("host/"):
                continue
            rest = include[len("host/"):]
            target = rest.split("/")[0]
            if target != parts[1] and target not in allowed and rest not in allowed:
                yield f"{path} includes {include}"


def wrong_store_arrows(tree):
    """No layout sees another one, and what they share sees none of them."""
    for path in tree.files(("host/stores",), (".cpp", ".hpp")):
        parts = path.split(os.sep)
        own = parts[2] if len(parts) > 3 else None
        if own is not None and own not in STORE_ARROWS:
            yield f"{path}: what host/stores/{own} may see is not said"
            continue
        for include in tree.includes(path):
            target = include.split("/")
            if include.startswith("host/stores/") and len(target) > 3 and target[2] not in STORE_ARROWS.get(own, set()) | {own}:
                yield f"{path} includes {include}"


def wrong_client_arrows(tree):
    """The client sees the queues of the host, and the host's commands the client's public headers."""
    for path in tree.files(("client",), (".cpp", ".hpp")):
        for include in tree.includes(path):
            if include.startswith("host/") and not include.startswith(("host/queue/", "host/stores/")):
                yield f"{path} includes {include}"
    for path in tree.files(("host",), (".cpp", ".hpp")):
        for include in tree.includes(path):
            if folder_of(include) == "client" and not (include.startswith("sluice/") and path.startswith("host/cli/")):
                yield f"{path} includes {include}"
    for path in tree.files(("client/include",), (".hpp",)):
        for include in tree.includes(path):
            if "/" in include and not include.startswith("sluice/client/"):
                yield f"{path} includes {include}"


def strayed_third_party_headers(tree):
    for path in tree.files(SOURCE_FOLDERS, (".cpp", ".hpp", ".h")):
        for include in tree.includes(path):
            for pattern, places in BOUNDARIES.items():
                if re.match(pattern, include) and not path.startswith(places):
                    yield f"{path} includes {include}; only {', '.join(places)} may"


def banned_tokens(tree):
    for path in tree.files(ALL_FOLDERS, (".cpp", ".hpp")):
        # A fixture plugin misbehaves on purpose.
        if path.startswith("tests/fixtures/"):
            continue
        text = tree.code(path)
        for pattern, why in BANNED.items():
            for match in re.finditer(pattern, text):
                # A test may open the namespace that it is all about; product code names what it uses.
                if match.group(0) == "using namespace" and path.startswith(("tests/", "bench/")):
                    continue
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: {match.group(0)}: {why}"


def raw_locks(tree):
    for path in tree.files(("base", "config", "dynamo", "host", "client"), (".cpp", ".hpp")):
        if path != os.path.join("base", "mutex.hpp") and re.search(RAW_LOCKS, tree.code(path)):
            yield path


def god_files(tree):
    for path in tree.files(ALL_FOLDERS, (".cpp", ".hpp", ".h", ".py")):
        limit = MAX_FILE_LINES["tests" if path.startswith(("tests", "bench")) else "product"]
        lines = tree.read(path).count("\n")
        if lines > limit:
            yield f"{path}: {lines} lines, limit {limit}"


def rooms(tree):
    """By folder or file: how many lines docs/understand/rooms.md gives it."""
    rows = re.findall(r"^\| `([^`]+)` \|.*\| ([\d,]+) \|$", tree.read(ROOMS_PAGE), flags=re.M)
    return {room: int(lines.replace(",", "")) for room, lines in rows}


def room_of(path, names):
    return max((name for name in names if path == name or path.startswith(name + "/")), key=len, default=None)


def overgrown_rooms(tree):
    """Product that no room holds, and rooms that hold more than is written there."""
    limits = rooms(tree)
    sizes = dict.fromkeys(limits, 0)
    for path in tree.files(SOURCE_FOLDERS, PRODUCT_SUFFIXES):
        room = room_of(path, limits)
        if room is None:
            yield f"{path} is in no room of {ROOMS_PAGE}"
        else:
            sizes[room] += tree.read(path).count("\n")
    for room, lines in sizes.items():
        if lines == 0:
            yield f"{ROOMS_PAGE}: the room {room} is empty"
        elif lines > limits[room]:
            yield f"{room}: {lines} lines, and {ROOMS_PAGE} gives it {limits[room]}; remove some, or decide on more there"


def bodies(code, pattern):
    """Name and body of each braced thing that the pattern finds the head of."""
    for head in re.finditer(pattern, code):
        depth, at = 1, head.end()
        while at < len(code) and depth:
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        yield head.group("name"), code[head.end():at - 1]


CLASS_HEAD = r"\b(?P<kind>class|struct)\s+(?:SLUICE_\w+(?:\([^)]*\))?\s+)?(?P<name>\w+)(?:\s+final)?\s*(?::[^;{()]*)?\{"


def public_methods(name, body, kind):
    """Names of member functions that everybody may call: no constructors, operators and friends."""
    body = re.sub(r"#[^\n]*", "", body)
    while True:  # what is inside of inner braces
        shorter = re.sub(r"\{[^{}]*\}", ";", body)
        if shorter == body:
            break
        body = shorter
    public, found = kind == "struct", set()
    for piece in re.split(r"(\b(?:public|private|protected)\s*:(?!:))|;", body):
        if piece is None:
            continue
        access = re.fullmatch(r"\s*(public|private|protected)\s*:", piece)
        if access:
            public = access.group(1) == "public"
            continue
        if not public or re.match(r"\s*(friend|using|static_assert|enum|struct|class|typedef)\b", piece):
            continue
        method = re.match(r"[^(=]*?(~?\w+)\s*\(", re.sub(r"template\s*<[^>]*>|\[\[\w+\]\]", "", piece))
        if method and method.group(1) not in (name, "~" + name, "operator") and "operator" not in piece.split("(")[0]:
            if not method.group(1).startswith("SLUICE_"):
                found.add(method.group(1))
    return found


def oversized_classes(tree):
    """A class is in one file, and has so many public methods at most."""
    declared = {}
    for path in tree.files(("base", "config", "dynamo", "host", "client"), (".hpp",)):
        code = tree.code(path)
        for head in re.finditer(CLASS_HEAD, code):
            name, body = next(bodies(code[head.start():], CLASS_HEAD))
            methods = public_methods(name, body, head.group("kind"))
            if len(methods) > MAX_PUBLIC_METHODS:
                yield f"{path}: {name} has {len(methods)} public methods, limit {MAX_PUBLIC_METHODS}"
            declared.setdefault(os.path.dirname(path), set()).add(name)
    defined = {}
    for path in tree.files(("base", "config", "dynamo", "host", "client"), (".cpp",)):
        folder = os.path.dirname(path)
        for definition in re.finditer(r"^(?:\w[\w:&*<>, \[\]]*?\b)?(?<!::)(\w+)::~?\w+\(", tree.code(path), flags=re.M):
            name = definition.group(1)
            if name in declared.get(folder, ()):
                defined.setdefault((folder, name), set()).add(path)
    for (_, name), paths in sorted(defined.items()):
        if len(paths) > 1:
            yield f"{name} is in several files: {', '.join(sorted(paths))}"


def deep_rooms(tree):
    """In each room the longest way from a header by its includes within the room has so many headers at most."""
    limits = rooms(tree)
    includes = {path: tree.includes(path) for path in tree.files(SOURCE_FOLDERS, (".hpp", ".h"))}
    layers = {}

    def layer(path):
        if path not in layers:
            layers[path] = (1, path)
            own = [other for other in includes[path] if other in includes and room_of(other, limits) == room_of(path, limits)]
            deepest = max((layer(other) for other in own if other != path), default=(0, ""))
            layers[path] = (deepest[0] + 1, f"{path} > {deepest[1]}" if deepest[1] else path)
        return layers[path]

    for path in includes:
        depth, way = layer(path)
        if depth > MAX_LAYERS:
            yield f"{depth} layers, limit {MAX_LAYERS}: {way}"


def unguarded_headers(tree):
    for path in tree.files(SOURCE_FOLDERS, (".hpp",)):
        if not re.search(r"^#pragma once$", tree.read(path), flags=re.M):
            yield path


def unknown_guards(tree):
    """Guards in the code that tests/guards/guards.txt does not list, and those it lists that are nowhere."""
    listed = {name for path in tree.files(("tests/guards",), ("guards.txt",))
              for line in tree.read(path).split("\n") if line.strip() and not line.startswith("#")
              for name in line.split("|")[0].strip().split("+")}
    placed = {}
    for path in tree.files(SOURCE_FOLDERS, (".cpp", ".hpp")):
        for name in re.findall(r"\bSLUICE_GUARD\((\w+)\)", re.sub(r"^\s*#define.*", "", tree.code(path), flags=re.M)):
            placed.setdefault(name, path)
    for name in sorted(placed.keys() - listed):
        yield f"{placed[name]}: the guard {name} is not in tests/guards/guards.txt"
    for name in sorted(listed - placed.keys()):
        yield f"tests/guards/guards.txt: the guard {name} is nowhere"


def unlisted_sources(tree):
    """Sources that no CMake file names by their path, nor by their bare name where a function adds the suffix."""
    named, stems, suffixed = set(), set(), set()
    for path in tree.files(ALL_FOLDERS, ("CMakeLists.txt", ".cmake")):
        folder = os.path.dirname(path)
        text = re.sub(r"#[^\n]*", "", tree.read(path))
        for word in re.split(r'[\s()";]+', text):
            word = word.replace("${CMAKE_CURRENT_SOURCE_DIR}", ".").replace("${CMAKE_CURRENT_LIST_DIR}", ".")
            word = re.sub(r"^\$\{PROJECT_SOURCE_DIR\}", os.path.relpath(".", folder or "."), word)
            if re.fullmatch(r"\$\{\w+\}\.(cpp|c)", word):
                suffixed.add(os.path.join(folder, word.rsplit(".", maxsplit=1)[1]))
            elif word.endswith((".cpp", ".c")):
                named.add(os.path.normpath(os.path.join(folder, word)))
            elif re.fullmatch(r"[\w-]+", word):
                stems.add(os.path.join(folder, word))
    for path in tree.files(ALL_FOLDERS, (".cpp", ".c")):
        stem, suffix = os.path.splitext(path)
        by_function = stem in stems and os.path.join(os.path.dirname(path), suffix[1:]) in suffixed
        if path not in named and not by_function:
            yield f"{path} is in no CMake file"
