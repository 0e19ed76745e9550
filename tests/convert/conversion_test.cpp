#include "host/cli/convert/conversion.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace sluice::cli::convert {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr const char* kDatabase = "database:\n  uri: mysql://u:p@tcp(db:3306)/shop\n  username: u\n  password: p\n";
constexpr const char* kOutbox = "outbox:\n  producerName: shop\n";
constexpr const char* kNats = "publisher:\n  nats:\n    server: nats://localhost:4222\n";
constexpr const char* kSns = "publisher:\n  aws:\n    region: eu-west-1\n";

Conversion convert(const std::string& yaml, const Variables& variables = {}) {
  return convert_worker_file(yaml, "orders", [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string file(const Conversion& conversion, const std::string& path) {
  const auto found = std::find_if(conversion.files.begin(), conversion.files.end(),
                                  [&path](const NewFile& one) { return one.path == path; });
  return found == conversion.files.end() ? "(no " + path + ": " + conversion.complaints + ")" : found->text;
}

std::string host(const Conversion& conversion) { return file(conversion, "host.toml"); }

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

std::string remark(const Conversion& conversion, const std::string& field) {
  const auto found = std::find_if(conversion.remarks.begin(), conversion.remarks.end(),
                                  [&field](const Remark& one) { return one.field == field; });
  return found == conversion.remarks.end() ? "" : std::to_string(found->line) + ": " + found->what;
}

TEST(Conversion, NamesWhatIsMissingAsOutboxWorkerDoes) {
  EXPECT_EQ(convert("").complaints,
            "database: (password: cannot be blank; uri: cannot be blank; username: cannot be blank.); outbox: is "
            "required; publisher: is required.");
  EXPECT_EQ(convert(std::string(kDatabase) + kNats + "outbox:\n  tableName: t\n").complaints,
            "outbox: (producerName: cannot be blank.).");
  EXPECT_EQ(convert(std::string(kDatabase) + kOutbox + "publisher: {nats: {}}\n").complaints,
            "publisher: (nats: (server: cannot be blank.).).");
  EXPECT_TRUE(convert("").files.empty());
}

TEST(Conversion, NamesWhatIsWrongByItsField) {
  const auto complaint = [](const std::string& more) {
    return convert(std::string(kDatabase) + kNats + kOutbox + more).complaints;
  };
  EXPECT_EQ(complaint("  findEventLimit: 10001\n"), "outbox: (findEventLimit: must be no greater than 10000.).");
  EXPECT_EQ(complaint("  findEventLimit: many\n"), "outbox: (findEventLimit: must be a whole number.).");
  EXPECT_EQ(complaint("  pollingInterval: soon\n"), "outbox: (pollingInterval: must be a duration such as 5s.).");
  EXPECT_EQ(complaint("logging: {handler: [text, smoke]}\n"), "logging: (handlers: (1: must be a valid value.).).");
  EXPECT_EQ(complaint("tracking: {enabled: true}\n"), "tracking: (agentAddr: cannot be blank.).");
  EXPECT_EQ(complaint("logging: {handler: rollbar}\n"), "logging: (rollbar: is required.).");
  EXPECT_EQ(
      convert(std::string(kOutbox) + kNats + "database: {uri: 'oracle://x', username: u, password: p}\n").complaints,
      "database: (uri: must be a valid URL that begins with mysql:// or postgres://.).");
}

TEST(Conversion, NeverRepeatsAValue) {
  const Conversion wrong = convert("database:\n  uri: oracle://secret@h\n  username: [secret]\n  password: secret\n");
  EXPECT_EQ(wrong.complaints.find("secret"), std::string::npos) << wrong.complaints;
  const Conversion broken = convert("database:\n  password: \"secret\n  uri: x\n");
  EXPECT_NE(broken.complaints, "");
  EXPECT_EQ(broken.complaints.find("secret"), std::string::npos) << broken.complaints;
  const Conversion good =
      convert(std::string(kOutbox) + kNats +
                  "database: {uri: 'mysql://u:secret@h/d', username: u, password: \"${P:+secret}\"}\n",
              {{"P", "x"}});
  ASSERT_EQ(good.complaints, "");
  for (const Remark& one : good.remarks) {
    EXPECT_EQ(one.what.find("secret"), std::string::npos) << one.what;
  }
}

TEST(Conversion, KeepsTemplatesAsVariables) {
  const Conversion done = convert(
      std::string(kNats) +
      "outbox:\n  producerName: $NAME\n  tableName: ${TABLE:-events}\n  pollingInterval: ${POLL:-1m30s}\n"
      "database:\n  uri: mysql://${U:-root}@tcp(${H:?no host}:3306)/shop\n  username: ${U}\n  password: \"${P}\"\n");
  ASSERT_EQ(done.complaints, "") << "no variable has to be set where it is converted";
  const std::string text = host(done);
  EXPECT_TRUE(has_line(text, "producer = \"${NAME:?must be set}\"")) << text;
  EXPECT_TRUE(has_line(text, "table = \"${TABLE:-events}\"")) << text;
  EXPECT_TRUE(has_line(text, "poll_interval = \"${POLL:-90s}\"")) << text;
  EXPECT_TRUE(has_line(text, "url = \"mysql://${U:-root}@tcp(${H:?no host}:3306)/shop\"")) << text;
  EXPECT_TRUE(has_line(text, "password = \"${P:?must be set}\"")) << text;
}

TEST(Conversion, WritesWhatAVariableStandsForWhereAKeyTakesNone) {
  const std::string yaml =
      std::string(kDatabase) + kNats + "outbox:\n  producerName: shop\n  findEventLimit: ${LIMIT:-250}\n";
  EXPECT_TRUE(has_line(host(convert(yaml)), "fetch_limit = 250"));
  const Conversion set = convert(yaml, {{"LIMIT", "700"}});
  EXPECT_TRUE(has_line(host(set), "fetch_limit = 700"));
  EXPECT_EQ(remark(set, "outbox.findEventLimit").substr(0, 3), "10:");
}

TEST(Conversion, TellsOfVariablesInTheWordsOfLogging) {
  const std::string yaml =
      std::string(kDatabase) + kNats + kOutbox + "logging:\n  level: $LEVEL\n  handler: $HANDLER\n";
  const Conversion unset = convert(yaml);
  ASSERT_EQ(unset.complaints, "") << "no variable has to be set where it is converted";
  EXPECT_EQ(host(unset).find("[log]"), std::string::npos);
  EXPECT_EQ(remark(unset, "logging.level"), "11: its variable is not set here, so that the default is meant");
  const Conversion set = convert(yaml, {{"LEVEL", "Warn"}, {"HANDLER", "json"}});
  EXPECT_TRUE(has_line(host(set), "level = \"warn\"")) << host(set);
  EXPECT_TRUE(has_line(host(set), "handler = [\"json\"]")) << host(set);
  for (const char* field : {"logging.level", "logging.handler"}) {
    EXPECT_NE(remark(set, field).find("written with what its variable stood for"), std::string::npos) << field;
  }
}

TEST(Conversion, TakesATemplateThatHoldsYamlForWhatItStandsFor) {
  const Conversion done = convert(
      std::string(kDatabase) + kOutbox + "publisher:\n  aws:\n    sns:\n      resources:\n        whitelist: ${LIST}\n",
      {{"LIST", "[a, b]"}});
  ASSERT_EQ(done.complaints, "");
  EXPECT_TRUE(has_line(file(done, "jobs.d/orders-sns.toml"), "types = [\"a\", \"b\"]"))
      << file(done, "jobs.d/orders-sns.toml");
  EXPECT_NE(remark(done, "publisher.aws.sns.resources.whitelist"), "");
}

TEST(Conversion, WritesFiltersRetriesAndPace) {
  const Conversion done =
      convert(std::string(kDatabase) +
              "outbox: {producerName: shop, retryCount: 5, retryBackoff: 10s, throughput: 500}\n"
              "publisher:\n  aws:\n    sns:\n      resources:\n        whitelist: [a, b]\n        blacklist: [b]\n"
              "        skipEvents: [gone]\n");
  const std::string job = file(done, "jobs.d/orders-sns.toml");
  EXPECT_TRUE(has_line(job, "source = \"outbox:orders\"")) << job;
  EXPECT_TRUE(has_line(job, "types = [\"a\"]")) << "without what is on both lists: " << job;
  EXPECT_TRUE(has_line(job, "deny_types = [\"b\"]")) << job;
  EXPECT_TRUE(has_line(job, "skip_events = [\"gone\"]")) << job;
  EXPECT_TRUE(has_line(job, "rate_limit = \"500/s per host\"")) << job;
  EXPECT_TRUE(has_line(job, "base = \"20s\"")) << "its first wait was twice the base: " << job;
  EXPECT_TRUE(has_line(job, "region = \"ap-northeast-1\"")) << "its default, which is not ours: " << job;
  EXPECT_TRUE(has_line(host(done), "retry_limit = 5"));
}

TEST(Conversion, SaysWhatWaitsAndWhatTheProbesAnswer) {
  const Conversion done = convert(std::string(kDatabase) + kNats + kOutbox + "  pollingInterval: 1m30s\n");
  EXPECT_TRUE(has_line(file(done, "jobs.d/orders-nats.toml"), "unroutable_wait = \"90s\""));
  EXPECT_NE(remark(done, "database").find("/readyz answers 503"), std::string::npos);
  const auto said = [&done](const std::string& text) {
    return std::any_of(done.remarks.begin(), done.remarks.end(), [&](const Remark& one) {
      return one.field == "publisher.nats" && one.what.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(said("unroutable = \"retry\""));
  EXPECT_TRUE(said("outage = \"retry\""));
  EXPECT_TRUE(said("a subject of no stream is a counted try"));
}

// nats.go passes over blanks, and over what is empty; the plugin refuses them.
TEST(Conversion, ReadsServersAsTheirClientDoes) {
  const Conversion done = convert(std::string(kDatabase) + kOutbox +
                                  "publisher:\n  nats:\n    server: \"nats://a:4222, nats://b:4222,\"\n");
  EXPECT_TRUE(has_line(file(done, "jobs.d/orders-nats.toml"), "servers = [\"nats://a:4222\", \"nats://b:4222\"]"))
      << file(done, "jobs.d/orders-nats.toml");
}

TEST(Conversion, LetsNobodyPublishARowTwice) {
  const Conversion both = convert(std::string(kDatabase) + kOutbox +
                                  "publisher:\n  aws: {region: eu-west-1}\n  nats: {server: 'nats://h'}\n");
  EXPECT_NE(file(both, "jobs.d/orders-sns.toml").find("types = [\"${TYPES_OF_SNS:?"), std::string::npos);
  EXPECT_NE(file(both, "jobs.d/orders-nats.toml").find("types = [\"${TYPES_OF_NATS:?"), std::string::npos);
  EXPECT_NE(remark(both, "publisher"), "");
}

TEST(Conversion, TakesTheTunnelsDialerOutOfTheUri) {
  const Conversion done =
      convert(std::string(kOutbox) + kSns +
              "database:\n  uri: mysql://u:p@mysql+tcp(db:3306)/shop\n  username: u\n  password: p\n"
              "  ssh: {host: bastion, privateKey: /k, port: 2222, username: me}\n");
  EXPECT_TRUE(has_line(host(done), "url = \"mysql://u:p@tcp(db:3306)/shop\"")) << host(done);
  EXPECT_TRUE(has_line(host(done), "[outbox.orders.ssh]")) << host(done);
  EXPECT_TRUE(has_line(host(done), "private_key = \"/k\"")) << host(done);
  EXPECT_TRUE(has_line(host(done), "port = 2222")) << host(done);
}

TEST(Conversion, NamesUnknownFieldsAndWhatTheyMayMean) {
  const Conversion done = convert(std::string(kDatabase) + kNats +
                                  "outbox:\n  producerName: shop\n  throughputs: 5\n  # x\nother: {a: 1}\n");
  EXPECT_NE(remark(done, "outbox.throughputs").find("is outbox.throughput meant?"), std::string::npos);
  EXPECT_NE(remark(done, "other"), "");
}

TEST(Conversion, QuotesWhatTomlNeedsQuoted) {
  const Conversion done = convert(std::string(kOutbox) + kNats +
                                  "database:\n  uri: mysql://h/d\n  username: u\n  password: 'a\"b\\c$${D}'\n");
  EXPECT_TRUE(has_line(host(done), "password = \"a\\\"b\\\\c$${D}\"")) << host(done);
}

// Its characters stand for templates, and may be written by an escape of YAML all the same.
TEST(Conversion, TakesTheCharactersOfAMarkForThemselves) {
  const Conversion done =
      convert(std::string(kOutbox) + kNats +
              "database:\n  uri: mysql://h/d\n  username: u\n  password: \"a\\uE000b\\uE0017\\uE001\"\n");
  EXPECT_TRUE(has_line(host(done),
                       "password = \"a\xEE\x80\x80"
                       "b\xEE\x80\x81"
                       "7\xEE\x80\x81\""))
      << host(done);
}

TEST(Conversion, TakesAVariableInAListForItsElement) {
  const std::string yaml = std::string(kDatabase) + kOutbox +
                           "publisher:\n  aws:\n    sns:\n      resources:\n        whitelist: [\"${A}\", ${B:-b}]\n";
  EXPECT_TRUE(
      has_line(file(convert(yaml, {{"A", "a"}}), "jobs.d/orders-sns.toml"), "types = [\"${A:-}\", \"${B:-b}\"]"));
  EXPECT_EQ(convert(yaml).complaints, "publisher: (aws: (sns: (resources: (whitelist: (0: cannot be blank.).).).).).");
}

TEST(Conversion, SaysWhatAVariableMakesOfTheFile) {
  const std::string yaml = std::string(kDatabase) + kNats + "outbox:\n  producerName: ${NAME}\n";
  EXPECT_EQ(convert(yaml, {{"NAME", "[a"}}).complaints.find("with the variables of this environment: line "), 0U);
  EXPECT_EQ(convert(yaml, {{"NAME", "[a, b]"}}).complaints, "outbox: (producerName: must be a string.).");
  EXPECT_EQ(convert(yaml + "tracking: ${TRACKING}\n", {{"NAME", "n"}, {"TRACKING", "{enabled: true, agentAddr: h}"}})
                .complaints,
            "");
}

TEST(Conversion, EndsAliasesOfAliases) {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char name = 'b'; name < 'j'; ++name) {
    const std::string before(1, static_cast<char>(name - 1));
    bomb += std::string(1, name) + ": &" + name + " [*" + before + ",*" + before + ",*" + before + ",*" + before +
            ",*" + before + ",*" + before + ",*" + before + ",*" + before + "]\n";
  }
  EXPECT_NE(convert(bomb).complaints.find("holds too much"), std::string::npos);
}

TEST(GoDuration, ReadsWhatGoWrites) {
  using std::chrono::milliseconds;
  EXPECT_EQ(parse_go_duration("1m30s"), std::chrono::seconds(90));
  EXPECT_EQ(parse_go_duration("300ms"), milliseconds(300));
  EXPECT_EQ(parse_go_duration("1.5h"), std::chrono::minutes(90));
  EXPECT_EQ(parse_go_duration("1ms500\u00b5s"), std::chrono::microseconds(1500)) << "the micro sign, as Go writes it";
  EXPECT_EQ(parse_go_duration("500\u03bcs"), std::chrono::microseconds(500)) << "the Greek letter";
  EXPECT_EQ(parse_go_duration("0"), config::Duration::zero());
  for (const char* wrong : {"", "5", "s", "-1s", "1d", "1m30", "999999999h"}) {
    EXPECT_EQ(parse_go_duration(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace sluice::cli::convert
