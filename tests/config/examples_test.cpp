#include <boost/json.hpp>

#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

const std::filesystem::path kConfig = std::filesystem::path(SLUICE_SOURCE_DIR) / "config";
const std::filesystem::path kExamples = kConfig / "examples";
const Environment kNothing = environment_of({});

HostConfig load(const std::filesystem::path& file) { return value_of(load_host_config(file.string(), kNothing)); }

std::vector<std::string> job_names(const HostConfig& host) {
  std::vector<std::string> names;
  for (const JobConfig& job : value_of(load_jobs(host))) {
    names.push_back(job.name);
  }
  return names;
}

/// The number behind the first "key: " of a YAML text.
int number_in(const std::string& yaml, const std::string& key) {
  const std::size_t at = yaml.find(key + ": ");
  return at == std::string::npos ? -1 : std::stoi(yaml.substr(at + key.size() + 2));
}

/// The text of a ConfigMap's entry, written as a block ("name: |") indented by four.
std::string block_in(const std::string& yaml, const std::string& name) {
  std::istringstream lines(yaml);
  std::string text;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (inside && !line.empty() && line.rfind("    ", 0) != 0) {
      break;
    }
    if (inside) {
      text += (line.empty() ? "" : line.substr(4)) + "\n";
    }
    inside = inside || line == "  " + name + ": |";
  }
  return text;
}

TEST(Examples, HostFilesLoadWithoutAnyVariableSet) {
  const HostConfig sqlite = load(kExamples / "host.toml");
  EXPECT_EQ(sqlite.store.kind, StoreKind::sqlite);
  EXPECT_EQ(sqlite.queue("files").visibility_timeout, std::chrono::minutes(1));
  const HostConfig dynamodb = load(kExamples / "host-dynamodb.toml");
  EXPECT_EQ(dynamodb.store.kind, StoreKind::dynamodb);
  EXPECT_EQ(dynamodb.store.endpoint, "");
  const std::vector<std::string> jobs{"exec", "log", "nats", "queue", "sns", "verify-file", "webhook"};
  EXPECT_EQ(job_names(sqlite), jobs);
  EXPECT_EQ(job_names(dynamodb), jobs);
}

TEST(Examples, ThereIsAJobForEachShippedPlugin) {
  for (const char* plugin : {"log", "verify-file", "exec", "webhook", "nats", "sns", "queue"}) {
    const std::string file = (kExamples / "jobs.d" / (std::string(plugin) + ".toml")).string();
    EXPECT_EQ(value_of(parse_job_config(file_text(file), file, kNothing)).handler, plugin);
  }
}

TEST(Examples, TheImagesHostFileLoads) {
  const HostConfig host = load(kConfig / "container/host.toml");
  EXPECT_EQ(host.store.kind, StoreKind::sqlite);
  EXPECT_EQ(errors_text(load_host_config((kConfig / "container/host.toml").string(),
                                         environment_of({{"SLUICE_STORE", "dynamodb"}}))),
            "");
}

TEST(Examples, KubernetesConfigurationLoads) {
  const std::string yaml = file_text(kExamples / "kubernetes.yaml");
  const TemporaryFolder folder;
  const HostConfig host = load(folder.write("host.toml", block_in(yaml, "host.toml")));
  folder.write("jobs.d/orders.toml", block_in(yaml, "orders.toml"));
  EXPECT_EQ(job_names(host), std::vector<std::string>{"orders"});
  EXPECT_EQ(host.http_listen, "0.0.0.0:" + std::to_string(number_in(yaml, "containerPort")));
  EXPECT_NE(yaml.find("prometheus.io/port: \"" + std::to_string(number_in(yaml, "containerPort")) + '"'),
            std::string::npos);
}

TEST(Examples, KubernetesWaitsLongerThanTheDrain) {
  const std::string yaml = file_text(kExamples / "kubernetes.yaml");
  const TemporaryFolder folder;
  const HostConfig host = load(folder.write("host.toml", block_in(yaml, "host.toml")));
  EXPECT_GE(std::chrono::seconds(number_in(yaml, "terminationGracePeriodSeconds")),
            host.drain_timeout + std::chrono::seconds(10));
}

TEST(Examples, TheTableIsTheOneTheDefaultsExpect) {
  const boost::json::value table = boost::json::parse(file_text(kExamples / "table.json"));
  const QueueConfig queue = load(kExamples / "host-dynamodb.toml").queue("orders");
  EXPECT_EQ(table.at("TableName").as_string(), queue.table);
  const boost::json::value& index = table.at("GlobalSecondaryIndexes").at(0);
  EXPECT_EQ(index.at("IndexName").as_string(), QueueConfig{}.index);
  EXPECT_EQ(index.at("Projection").at("ProjectionType").as_string(), "ALL");
  EXPECT_EQ(index.at("KeySchema").at(0).at("AttributeName").as_string(), "queue_type");
  EXPECT_EQ(index.at("KeySchema").at(1).at("AttributeName").as_string(), "sent_at");
  EXPECT_EQ(table.at("KeySchema").at(0).at("AttributeName").as_string(), "id");
  EXPECT_EQ(table.at("AttributeDefinitions").as_array().size(), 3U);
}

TEST(Examples, ThePolicyNamesTheTableAndItsIndex) {
  const boost::json::value policy = boost::json::parse(file_text(kExamples / "iam-policy.json"));
  const QueueConfig queue = load(kExamples / "host-dynamodb.toml").queue("orders");
  for (const boost::json::value& statement : policy.at("Statement").as_array()) {
    const std::string resource(statement.at("Resource").as_string());
    EXPECT_TRUE(resource.ends_with(":table/" + queue.table) || resource.ends_with("/index/" + queue.index)) << resource;
    for (const boost::json::value& action : statement.at("Action").as_array()) {
      EXPECT_EQ(action.as_string().find('*'), std::string::npos) << "the least privileges name each action";
    }
  }
}

}  // namespace
}  // namespace sluice::config
