// How fast does a whole host drain an outbox to NATS JetStream in order, from its start to its end?
//
//   outbox_relay_bench [--rows N] [--only mysql|postgres] [--case TEXT]
//
// MariaDB or PostgreSQL with their default durability, a nats-server with a stream on files, and the built program as
// users run it, `sluice run --until-empty`, all on this machine: a backlog of 200-byte payloads with ten rows a key,
// once with all keys distinct, the first once more with 200,000 sent rows kept, and a tenth of them with one key, to
// JetStream and to a queue of the host's own file; or what of that has TEXT in its name. Afterwards the stream or the
// queue is read: every row once, each key's in order. Budget: 8,000 rows a second in order from MariaDB, 10,000 from
// PostgreSQL and 15,000 with distinct keys; memory below 64 MiB.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/stores/outbox/mysql/mysql_database.hpp"
#include "host/stores/outbox/postgres/postgres_database.hpp"
#include "tests/publishers/jet_stream.hpp"
#include "tests/support/mariadb_server.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/support/postgres_server.hpp"

namespace sluice::bench {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kKept = 200'000;

const SystemClock kClock;

/// A database in which the bench keeps an outbox.
struct Database {
  std::string kind;
  std::string url;
  std::function<std::string(const std::string& statement)> sql;  ///< the first value of the answer
  std::string numbers;                                           ///< a table of n from 1 to %, to be selected from
  std::string payload;                                           ///< 200 bytes of JSON, n at their end
  std::string text_of_n;
  std::string ddl;
};

void wait(Duration span) {
  Mutex mutex;
  Condition never;
  const MutexLock lock(mutex);
  never.wait_until(mutex, kClock.steady_now() + span, [] { return false; });
}

/// Whatever opens a session, tried until the server lets somebody in.
template <typename Open>
auto opened(Open open) {
  for (int attempt = 0; attempt < 500; ++attempt) {
    if (auto session = open()) {
      return std::move(*session);
    }
    wait(std::chrono::milliseconds(20));
  }
  throw std::runtime_error("the server lets nobody in");
}

Deadline in_ten_minutes() { return Deadline::after(kClock, seconds(600)); }

Database mariadb(const test::MariaDbServer& server, SeededRandom& random) {
  namespace mysql = queue::outbox::mysql;
  const queue::outbox::Settings root{.config = {.url = server.url("mysql"), .lease = std::chrono::minutes(10)}};
  const std::shared_ptr<queue::outbox::SqlConnection> session =
      opened([&] { return mysql::connect(root, kClock, in_ten_minutes()); });
  Database database{.kind = "mysql", .url = server.url("bench")};
  database.sql = [session](const std::string& statement) {
    const auto answer = session->run(statement, in_ten_minutes());
    if (!answer) {
      throw std::runtime_error(statement + ": " + answer.error().message());
    }
    return answer->rows.empty() ? std::string() : answer->rows.front()[0].value_or("");
  };
  database.sql("CREATE DATABASE bench");
  database.sql("USE bench");
  database.numbers = "(SELECT seq AS n FROM seq_1_to_%) numbers ORDER BY n";
  database.payload = "CONCAT('\"', LPAD(n, 198, 'x'), '\"')";
  database.text_of_n = "n";
  database.ddl = queue::outbox::make_mysql_database({.name = "bench", .config = {.url = database.url}}, kClock, random)
                     ->ddl(false);
  return database;
}

Database postgres(const test::PostgresServer& server, SeededRandom& random) {
  using Connection = queue::outbox::SqlConnection;
  const std::shared_ptr<Connection> connection = opened([&] {
    return queue::outbox::postgres::connect({.config = {.url = server.url()}}, "",
                                            Deadline::after(kClock, seconds(10)));
  });
  Database database{.kind = "postgres", .url = server.url()};
  database.sql = [connection](const std::string& statement) {
    const auto answer = connection->run(statement, in_ten_minutes());
    if (!answer) {
      throw std::runtime_error(statement + ": " + answer.error().message());
    }
    return answer->rows.empty() ? std::string() : answer->rows.front()[0].value_or("");
  };
  database.numbers = "generate_series(1, %) n";
  database.payload = "to_json(lpad(n::text, 198, 'x'))";
  database.text_of_n = "n::text";
  database.ddl =
      queue::outbox::make_postgres_database({.name = "bench", .config = {.url = database.url}}, kClock, random)
          ->ddl(false);
  return database;
}

void make_table(const Database& database) {
  database.sql("DROP TABLE IF EXISTS outbox CASCADE");
  std::string statement;
  bool quoted = false;
  for (std::size_t i = 0; i < database.ddl.size(); ++i) {
    quoted = database.ddl.compare(i, 2, "$$") == 0 ? !quoted : quoted;
    statement += database.ddl[i];
    if (database.ddl[i] == ';' && !quoted) {
      database.sql(std::exchange(statement, {}));
    }
  }
}

void insert(const Database& database, std::uint64_t rows, const std::string& key, const char* sent) {
  std::string numbers = database.numbers;
  numbers.replace(numbers.find('%'), 1, std::to_string(rows));
  database.sql(
      "INSERT INTO outbox (aggregate_type, aggregate_id, event, payload, sent_at) SELECT 'rn::nats:::orders', " + key +
      ", 'created', " + database.payload + ", " + sent + " FROM " + numbers);
}

/// A folder with what the host reads, gone with the object.
class HostFolder {
 public:
  /// `job`: its handler and options. `host`: of the host file.
  HostFolder(const Database& database, const std::string& job, const std::string& host) {
    std::string folder = (std::filesystem::temp_directory_path() / "sluice-bench-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) {
      throw std::runtime_error("no folder for the host");
    }
    folder_ = folder;
    std::filesystem::create_directory(folder_ / "jobs.d");
    std::ofstream(folder_ / "host.toml") << "[host]\nname = \"bench\"\nstate_dir = \"state\"\nplugin_dirs = [\""
                                         << std::filesystem::path(SLUICE_NATS_PLUGIN).parent_path().string()
                                         << "\"]\n[outbox.orders]\nkind = \"" << database.kind << "\"\nurl = \""
                                         << database.url << "\"\n"
                                         << host;
    std::ofstream(folder_ / "jobs.d" / "relay.toml") << "[job]\nsource = \"outbox:orders\"\nconcurrency = 128\n" << job;
  }
  ~HostFolder() { std::filesystem::remove_all(folder_); }
  HostFolder(const HostFolder&) = delete;
  HostFolder& operator=(const HostFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

struct Run {
  double seconds = 0;
  double processor_seconds = 0;
  double memory_mib = 0;
};

/// The most that a process has had resident since its program was loaded; 0 when it has ended.
double memory_mib(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::string word;
  double kib = 0;
  while (status >> word) {
    if (word == "VmHWM:") {
      status >> kib;
    }
  }
  return kib / 1024;
}

/// `sluice run --until-empty` in that folder, from its start to its end.
Run run_host(const std::filesystem::path& folder) {
  const SteadyTime begun = kClock.steady_now();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::chdir(folder.c_str()) == 0) {
      ::execl(SLUICE_PROGRAM, "sluice", "run", "--until-empty", nullptr);
    }
    ::_exit(127);
  }
  // Of what wait4 tells the memory is that of this process as well, from before the program was loaded.
  int status = 0;
  rusage spent{};
  double memory = 0;
  pid_t ended = child < 0 ? -1 : 0;
  for (; ended == 0; ended = ::wait4(child, &status, WNOHANG, &spent)) {
    const double now = memory_mib(child);  // grows only, but for the moment before the program is loaded
    memory = now > 0 ? now : memory;
    wait(std::chrono::milliseconds(10));
  }
  if (ended != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error("the host did not end well");
  }
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {.seconds = std::chrono::duration<double>(kClock.steady_now() - begun).count(),
          .processor_seconds = seconds_of(spent.ru_utime) + seconds_of(spent.ru_stime),
          .memory_mib = memory};
}

/// Every row once, each subject's in order, and all of them marked.
void check(const Database& database, publishers::JetStream& stream, std::uint64_t rows) {
  std::map<std::string, long long> last;
  std::uint64_t violations = 0;
  const auto stored = stream.messages("ORDERS");
  for (const publishers::StoredMessage& message : stored) {
    const std::string& name = message.headers.at("Nats-Msg-Id");
    const long long id = std::stoll(name.substr(name.rfind('/') + 1));
    violations += id <= last[message.subject] ? 1 : 0;
    last[message.subject] = id;
  }
  const std::string pending = database.sql("SELECT count(*) FROM outbox WHERE sent_at IS NULL");
  if (stored.size() != rows || violations != 0 || pending != "0") {
    throw std::runtime_error("the stream has " + std::to_string(stored.size()) + " of " + std::to_string(rows) +
                             " rows, " + std::to_string(violations) + " out of order; not marked: " + pending);
  }
}

/// Every row once in the queue, in order.
void check_queue(const std::filesystem::path& folder, std::uint64_t rows) {
  const std::filesystem::path file = folder / "messages";
  const std::string command = "cd " + folder.string() + " && " SLUICE_PROGRAM " export --queue mail >" + file.string();
  std::ifstream lines(std::system(command.c_str()) == 0 ? file : std::filesystem::path());
  std::string line;
  std::uint64_t next = 1;
  while (std::getline(lines, line) && line.find("x" + std::to_string(next) + "\"") != std::string::npos) {
    ++next;
  }
  if (next != rows + 1) {
    throw std::runtime_error("row " + std::to_string(next) + " is not where it belongs in the queue");
  }
}

void print(const Database& database, const char* what, std::uint64_t rows, const Run& run) {
  std::printf("%-8s  %-40s %8.0f rows/s  %5.2f s of processor, peak %5.1f MiB in the host\n", database.kind.c_str(),
              what, static_cast<double>(rows) / run.seconds, run.processor_seconds, run.memory_mib);
  std::fflush(stdout);
}

void fill(const Database& database, std::uint64_t rows, const std::string& key, std::uint64_t kept) {
  make_table(database);
  if (kept > 0) {
    insert(database, kept, database.text_of_n, "now()");
  }
  insert(database, rows, key, "NULL");
  database.sql(database.kind == "mysql" ? "ANALYZE TABLE outbox" : "ANALYZE outbox");
}

void drain(const Database& database, const char* what, std::uint64_t rows, const std::string& key, std::uint64_t kept) {
  fill(database, rows, key, kept);
  const auto nats = test::NatsServer::start();
  publishers::JetStream stream(nats->url());
  stream.add_stream("ORDERS", {"orders.>"});
  const HostFolder folder(database,
                          "handler = \"nats\"\n[job.options]\nservers = [\"" + std::string(nats->url()) + "\"]\n", "");
  const Run run = run_host(folder.path());
  check(database, stream, rows);
  print(database, what, rows, run);
}

void drain_to_queue(const Database& database, const char* what, std::uint64_t rows) {
  fill(database, rows, "'hot'", 0);
  const HostFolder folder(database, "handler = \"queue\"\n[job.options]\nqueue = \"mail\"\n", "[queues.mail]\n");
  const Run run = run_host(folder.path());
  check_queue(folder.path(), rows);
  print(database, what, rows, run);
}

void measure(const Database& database, std::uint64_t rows, const std::string& wanted) {
  // Ten rows of a key, far apart.
  const std::uint64_t keys = std::max<std::uint64_t>(rows / 10, 1);
  const std::string ten =
      database.kind == "mysql" ? "n % " + std::to_string(keys) : "(n % " + std::to_string(keys) + ")::text";
  const auto drain_if = [&](const std::string& what, std::uint64_t of, const std::string& key, std::uint64_t kept) {
    if (what.find(wanted) != std::string::npos) {
      drain(database, what.c_str(), of, key, kept);
    }
  };
  drain_if("ten rows a key", rows, ten, 0);
  drain_if("all keys distinct", rows, database.text_of_n, 0);
  drain_if("ten rows a key, 200,000 sent rows kept", rows, ten, kKept);
  drain_if("one key", rows / 10, "'hot'", 0);
  if (std::string("one key to a queue").find(wanted) != std::string::npos) {
    drain_to_queue(database, "one key to a queue", rows / 10);
  }
}

int main_of(const std::vector<std::string>& words) {
  std::uint64_t rows = 100'000;
  std::string only;
  std::string wanted;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == "--rows") {
      rows = std::stoull(words[i + 1]);
    } else if (words[i] == "--only") {
      only = words[i + 1];
    } else if (words[i] == "--case") {
      wanted = words[i + 1];
    }
  }
  if (!test::NatsServer::program()) {
    std::printf("skipped: %s\n", test::NatsServer::absence().c_str());
    return 0;
  }
  SeededRandom random(1);
  if (only != "postgres") {
    // The harness is quick rather than durable; here the server has MariaDB's own defaults.
    if (const auto server = test::MariaDbServer::start(
            {"--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=128M", "--innodb-log-file-size=96M"})) {
      measure(mariadb(*server, random), rows, wanted);
    } else {
      std::printf("skipped: %s\n", test::MariaDbServer::absence().c_str());
    }
  }
  if (only != "mysql") {
    if (const auto server = test::PostgresServer::start({})) {
      measure(postgres(*server, random), rows, wanted);
    } else {
      std::printf("skipped: PostgreSQL is not installed; run ./dev deps\n");
    }
  }
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  try {
    return sluice::bench::main_of({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "outbox_relay_bench: %s\n", error.what());
    return 1;
  }
}
