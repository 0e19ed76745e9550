#include "config/files.hpp"
#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

Parsed<HostConfig> parse(const std::string& text, std::map<std::string, std::string> variables = {}) {
  return parse_host_config(text, "/etc/sluice/host.toml", environment_of(std::move(variables)));
}

TEST(HostConfig, HasTheDocumentedDefaults) {
  const HostConfig host = value_of(parse(""));
  EXPECT_EQ(host.file, "/etc/sluice/host.toml");
  EXPECT_EQ(host.name, "");
  EXPECT_EQ(host.jobs, std::vector<std::string>{"/etc/sluice/jobs.d/*.toml"});
  EXPECT_EQ(host.plugin_dirs, std::vector<std::string>{"/etc/sluice/plugins"});
  EXPECT_EQ(host.drain_timeout, 25s);
  EXPECT_EQ(host.state_dir, "/etc/sluice/var");
  EXPECT_EQ(host.log_level, LogLevel::info);
  EXPECT_EQ(host.log_format, LogFormat::text);
  EXPECT_EQ(host.http_listen, "");
  EXPECT_EQ(host.store.kind, StoreKind::sqlite);
  EXPECT_EQ(host.store.path, "/etc/sluice/var/sluice.db");
  EXPECT_EQ(host.store.region, "");
  EXPECT_EQ(host.store.endpoint, "");
  EXPECT_TRUE(host.queues.empty());
}

TEST(HostConfig, KeepsThePluginFolderThatItNames) {
  HostConfig usual = value_of(parse(""));
  usual.plugin_dirs.emplace_back("/opt/plugins");
  EXPECT_EQ(plugin_folders(usual), std::vector<std::string>{"/opt/plugins"}) << "nobody has made /etc/sluice/plugins";
  const HostConfig named = value_of(parse("[host]\nplugin_dirs = [\"plugins\", \"/opt/plugins\"]\n"));
  EXPECT_EQ(plugin_folders(named), named.plugin_dirs);
}

TEST(HostConfig, ReadsEveryKey) {
  const HostConfig host = value_of(parse(R"(
[host]
name = "worker-a"
jobs = ["jobs.d/*.toml", "/srv/extra.toml", "../more/a?.toml"]
plugin_dirs = ["plugins", "/opt/plugins"]
drain_timeout = "0s"
state_dir = "/var/lib/sluice"
[log]
level = "trace"
format = "json"
[http]
listen = "[::1]:9464"
[store]
kind = "dynamodb"
path = "/var/lib/q.db"
[dynamodb]
region = "eu-west-1"
endpoint = "http://127.0.0.1:8000"
[queues.orders]
table = "dynamo-mq-table"
index = "by-time"
visibility_timeout = "12h"
[queues."a.b"]
)"));
  EXPECT_EQ(host.name, "worker-a");
  EXPECT_EQ(host.jobs, (std::vector<std::string>{"/etc/sluice/jobs.d/*.toml", "/srv/extra.toml", "/etc/more/a?.toml"}));
  EXPECT_EQ(host.plugin_dirs, (std::vector<std::string>{"/etc/sluice/plugins", "/opt/plugins"}));
  EXPECT_EQ(host.drain_timeout, 0s);
  EXPECT_EQ(host.state_dir, "/var/lib/sluice");
  EXPECT_EQ(host.log_level, LogLevel::trace);
  EXPECT_EQ(host.log_format, LogFormat::json);
  EXPECT_EQ(host.http_listen, "[::1]:9464");
  EXPECT_EQ(host.store.kind, StoreKind::dynamodb);
  EXPECT_EQ(host.store.path, "/var/lib/q.db");
  EXPECT_EQ(host.store.region, "eu-west-1");
  EXPECT_EQ(host.store.endpoint, "http://127.0.0.1:8000");
  EXPECT_EQ(host.queues.size(), 2U);
}

TEST(HostConfig, KnowsEveryQueue) {
  const HostConfig host =
      value_of(parse("[queues.orders]\ntable = 'shared'\n[queues.slow]\nvisibility_timeout = '5m'\n"));
  EXPECT_EQ(host.queue("orders").table, "shared");
  EXPECT_EQ(host.queue("orders").visibility_timeout, 30s);
  EXPECT_EQ(host.queue("slow").table, "slow");
  EXPECT_EQ(host.queue("slow").visibility_timeout, 5min);
  EXPECT_EQ(host.queue("other").table, "other");
  EXPECT_EQ(host.queue("other").index, "dynamo-mq-index-queue_type-sent_at");
  EXPECT_EQ(host.queue("other").visibility_timeout, 30s);
}

TEST(HostConfig, KnowsTheStoreOfEveryQueue) {
  const HostConfig host = value_of(parse(R"(
[store]
kind = "dynamodb"
[dynamodb]
region = "eu-west-1"
[stores.local]
kind = "sqlite"
path = "local.db"
[stores.far]
kind = "dynamodb"
region = "us-east-1"
endpoint = "http://127.0.0.1:8000"
[queues.orders]
store = "local"
[queues.mails]
store = "far"
[queues.stock]
)"));
  EXPECT_EQ(host.store_of("orders").kind, StoreKind::sqlite);
  EXPECT_EQ(host.store_of("orders").path, "/etc/sluice/local.db");
  EXPECT_EQ(host.store_of("mails").region, "us-east-1");
  EXPECT_EQ(host.store_of("mails").endpoint, "http://127.0.0.1:8000");
  EXPECT_EQ(host.store_of("stock").region, "eu-west-1");
  EXPECT_EQ(&host.store_of("nobody knows it"), &host.store);
}

TEST(HostConfig, KeepsPathsBesideARelativeFile) {
  const HostConfig host = value_of(parse_host_config("", "host.toml", environment_of({})));
  EXPECT_EQ(host.jobs, std::vector<std::string>{"jobs.d/*.toml"});
  EXPECT_EQ(host.store.path, "var/sluice.db");
}

TEST(HostConfig, ExpandsVariablesInStringsAndArrays) {
  const HostConfig host = value_of(
      parse("[host]\njobs = ['${D}/*.toml']\nname = '${N:-n}'\n[http]\nlisten = '${L:-}'\n", {{"D", "/jobs"}}));
  EXPECT_EQ(host.jobs, std::vector<std::string>{"/jobs/*.toml"});
  EXPECT_EQ(host.name, "n");
  EXPECT_EQ(host.http_listen, "");
}

TEST(HostConfig, TakesEveryAddressToListenOn) {
  for (const char* listen :
       {"127.0.0.1:9464", "0.0.0.0:1", "[::]:65535", "[::1]:0", "localhost:80", "a.b-c.example:80"}) {
    EXPECT_EQ(errors_text(parse("[http]\nlisten = '" + std::string(listen) + "'")), "") << listen;
  }
}

TEST(HostConfig, RefusesEveryOtherAddress) {
  for (const char* listen :
       {"127.0.0.1", ":80", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:080000", "::1:80", "[::1]", "[::g]:80",
        "[]:80", "1.2.3:80", "1.2.3.256:80", "a b:80", "host:", "http://host:80", "host:80/", "-a:80"}) {
    EXPECT_NE(errors_text(parse("[http]\nlisten = '" + std::string(listen) + "'")), "") << listen;
  }
}

TEST(HostConfig, ChecksTheEndpoint) {
  for (const char* endpoint : {"", "http://127.0.0.1:8000", "http://127.0.0.1:8000/",
                               "https://dynamodb.eu-west-1.amazonaws.com", "http://[::1]:8000", "http://[::1]"}) {
    EXPECT_EQ(errors_text(parse("[dynamodb]\nendpoint = '" + std::string(endpoint) + "'")), "") << endpoint;
  }
  for (const char* endpoint :
       {"127.0.0.1:8000", "http://", "http:///", "ftp://a", "http://a/b", "http://a b", "http://a:b", "http://u@a"}) {
    EXPECT_NE(errors_text(parse("[dynamodb]\nendpoint = '" + std::string(endpoint) + "'")), "") << endpoint;
  }
}

TEST(HostConfig, AnswersDeepNestingWithAnError) {
  EXPECT_NE(errors_text(parse("a = " + std::string(10'000, '[') + std::string(10'000, ']'))), "");
  std::string dotted = "[a";
  for (int i = 0; i < 8000; ++i) {
    dotted += ".a";
  }
  EXPECT_NE(errors_text(parse(dotted + "]\nb = 1\n")), "");
  EXPECT_NE(errors_text(parse("a = '" + std::string(20'000, 'x') + "'")).find("longer than"), std::string::npos);
}

TEST(HostConfig, EveryErrorIsOneLine) {
  const std::string errors = errors_text(
      parse("[host]\nname = \"a\\nb\\u001b\"\n\"x\\ny\" = 1\n[queues.\"q\\nr\"]\ntable = 1\n\"t\\n\" = 2\n"));
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 5) << errors;
  EXPECT_EQ(errors.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace sluice::config
