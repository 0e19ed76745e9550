#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

Parsed<JobConfig> parse(const std::string& text, std::map<std::string, std::string> variables = {}) {
  return parse_job_config(text, "/jobs.d/orders.toml", environment_of(std::move(variables)));
}

/// A good job, and more lines of [job].
std::string job_with(const std::string& more) { return "[job]\nqueue = 'orders'\nhandler = 'log'\n" + more; }

TEST(JobConfig, HasTheDocumentedDefaults) {
  const JobConfig job = value_of(parse(job_with("")));
  EXPECT_EQ(job.file, "/jobs.d/orders.toml");
  EXPECT_EQ(job.name, "orders");
  EXPECT_EQ(job.queue, "orders");
  EXPECT_EQ(job.source, Source::standard);
  EXPECT_EQ(job.handler, "log");
  EXPECT_EQ(job.handler_place.line, 3U);
  EXPECT_EQ(job.handler_place.column, 11U);
  EXPECT_EQ(job.concurrency, 8U);
  EXPECT_EQ(job.timeout, 60s);
  EXPECT_EQ(job.rate_limit, 0);
  EXPECT_EQ(job.isolation, Isolation::thread);
  EXPECT_EQ(job.limits, LimitsConfig{});
  EXPECT_EQ(job.retry, RetryConfig{});
  EXPECT_EQ(job.dead_letter, DeadLetterPolicy::move);
  EXPECT_TRUE(job.options.empty());
}

TEST(JobConfig, ReadsEveryKey) {
  const JobConfig job = value_of(parse(R"(
[job]
name = "night"
queue = "orders"
source = "dlq"
handler = "greeter"
concurrency = 1024
timeout = "250ms"
rate_limit = "6000/m"
poll_interval = "1m"
isolation = "process"
[job.limits]
memory = "512MiB"
cpu = "10s"
[job.retry]
max_attempts = 1
backoff = "linear"
base = "0s"
max = "7d"
jitter = "equal"
[job.dead_letter]
policy = "discard"
[job.options]
greeting = "hello"
)"));
  EXPECT_EQ(job.name, "night");
  EXPECT_EQ(job.queue, "orders");
  EXPECT_EQ(job.source, Source::dlq);
  EXPECT_EQ(job.handler, "greeter");
  EXPECT_EQ(job.concurrency, 1024U);
  EXPECT_EQ(job.timeout, 250ms);
  EXPECT_EQ(job.rate_limit, 100);
  EXPECT_EQ(job.poll_interval, 60s);
  EXPECT_EQ(job.isolation, Isolation::process);
  EXPECT_EQ(job.limits, (LimitsConfig{512U << 20U, 10s}));
  EXPECT_EQ(job.retry, (RetryConfig{1, Backoff::linear, 0s, 7 * 24h, Jitter::equal}));
  EXPECT_EQ(job.dead_letter, DeadLetterPolicy::discard);
  EXPECT_EQ(job.options.at("greeting").value, OptionValue(std::string("hello")));
}

TEST(JobConfig, ReadsEveryOptionType) {
  const JobConfig job =
      value_of(parse(job_with("[job.options]\nt = true\ni = -5\nd = 1.5\ns = '${V}'\nl = ['a', '${V}']\n"
                              "e = []\nm = { k = '${V}', 'x y' = '' }\n"),
                     {{"V", "value"}}));
  EXPECT_EQ(job.options.at("t").value, OptionValue(true));
  EXPECT_EQ(job.options.at("i").value, OptionValue(std::int64_t{-5}));
  EXPECT_EQ(job.options.at("d").value, OptionValue(1.5));
  EXPECT_EQ(job.options.at("s").value, OptionValue(std::string("value")));
  EXPECT_EQ(job.options.at("l").value, OptionValue(std::vector<std::string>{"a", "value"}));
  EXPECT_EQ(job.options.at("e").value, OptionValue(std::vector<std::string>{}));
  EXPECT_EQ(job.options.at("m").value, OptionValue(std::map<std::string, std::string>{{"k", "value"}, {"x y", ""}}));
  EXPECT_EQ(job.options.at("i").place.line, 6U);
  EXPECT_EQ(job.options.at("i").place.column, 1U);
}

TEST(JobConfig, ReadsRates) {
  const auto rate = [](const std::string& text) {
    return value_of(parse(job_with("rate_limit = '" + text + "'"))).rate_limit;
  };
  EXPECT_EQ(rate("100/s"), 100);
  EXPECT_EQ(rate("6000/m"), 100);
  EXPECT_EQ(rate("6000/m per host"), 100);
  EXPECT_DOUBLE_EQ(rate("1/h"), 1.0 / 3600);
  EXPECT_EQ(rate("1000000/s"), 1'000'000);
  EXPECT_FALSE(value_of(parse(job_with("rate_limit = '1/s'"))).rate_per_host);
  EXPECT_TRUE(value_of(parse(job_with("rate_limit = '1/s per host'"))).rate_per_host);
  for (const char* text : {"", " per host", "100 per host", "1/s per  host", "1/s per hosts", "100", "/s", "-1/s",
                           "0/s", "1.5/s", "1 /s", "1/ s", "1/d", "1/s ", "1000001/s", "99999999999/h"}) {
    EXPECT_NE(errors_text(parse(job_with("rate_limit = '" + std::string(text) + "'"))), "") << text;
  }
}

TEST(JobConfig, TakesNumbersOutOfVariables) {
  EXPECT_EQ(value_of(parse(job_with("concurrency = '${N:-3}'"))).concurrency, 3U);
  EXPECT_EQ(value_of(parse(job_with("concurrency = '${N}'"), {{"N", "16"}})).concurrency, 16U);
  EXPECT_NE(errors_text(parse(job_with("concurrency = '16'"))), "");
  for (const char* text : {"", " 16", "16 ", "0x10", "1e1", "16.0", "99999999999999999999"}) {
    EXPECT_NE(errors_text(parse(job_with("concurrency = '${N}'"), {{"N", text}})), "") << text;
  }
}

TEST(JobConfig, KeepsWhatFailsInADeadLetterQueue) {
  EXPECT_EQ(value_of(parse(job_with("source = 'dlq'"))).dead_letter, DeadLetterPolicy::keep);
  EXPECT_EQ(value_of(parse(job_with("source = 'dlq'\n[job.dead_letter]\npolicy = 'discard'"))).dead_letter,
            DeadLetterPolicy::discard);
}

TEST(JobConfig, HasIdempotencyKeysWhereItSaysSo) {
  EXPECT_FALSE(value_of(parse(job_with(""))).idempotency);
  const auto read = [](const std::string& text) {
    return value_of(parse(job_with("[job.idempotency]\n" + text))).idempotency;
  };
  using Kind = IdempotencyConfig::Kind;
  EXPECT_EQ(read("key = 'message'"), IdempotencyConfig());
  EXPECT_EQ(read("key = 'attribute:order id'"), (IdempotencyConfig{.kind = Kind::attribute, .path = "order id"}));
  EXPECT_EQ(read("key = 'body:/order/id'"), (IdempotencyConfig{.kind = Kind::body, .path = "/order/id"}));
  EXPECT_EQ(read("key = 'body:'"), (IdempotencyConfig{.kind = Kind::body})) << "the whole document";
  EXPECT_EQ(read("key = 'body:/a~1b/~0'"), (IdempotencyConfig{.kind = Kind::body, .path = "/a~1b/~0"}));
  EXPECT_EQ(read("key = 'message'\nttl = '7d'\nwhile_running = 'reject'\non_duplicate = 'run'\non_missing = 'run'"),
            (IdempotencyConfig{.ttl = std::chrono::hours(168),
                               .while_running = WhileRunning::reject,
                               .on_duplicate = OnDuplicate::run,
                               .on_missing = OnMissingKey::run}));
}

TEST(JobConfig, IsNamedAfterItsFile) {
  const auto name = [](const std::string& file) {
    return value_of(parse_job_config(job_with(""), file, environment_of({}))).name;
  };
  EXPECT_EQ(name("a/b.toml"), "b");
  EXPECT_EQ(name("b.c.toml"), "b.c");
  EXPECT_EQ(name("job"), "job");
  EXPECT_NE(errors_text(parse_job_config(job_with(""), "a b.toml", environment_of({}))), "");
  EXPECT_EQ(errors_text(parse_job_config(job_with("name = 'ab'"), "a b.toml", environment_of({}))), "");
}

TEST(JobConfig, SameJobIgnoresPlacesOnly) {
  const JobConfig job = value_of(parse(job_with("[job.options]\na = 'x'\n")));
  JobConfig moved = value_of(
      parse_job_config("\n\n" + job_with("\n[job.options]\n\na = 'x'\n"), "b/orders.toml", environment_of({})));
  EXPECT_TRUE(job.same_job(moved));
  EXPECT_TRUE(moved.same_job(job));
  const auto differs = [&](auto change) {
    JobConfig changed = job;
    change(changed);
    return !job.same_job(changed) && !changed.same_job(job);
  };
  EXPECT_TRUE(differs([](JobConfig& j) { j.name = "x"; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.queue = "x"; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.source = Source::dlq; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.handler = "x"; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.concurrency = 1; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.timeout = 1s; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.rate_limit = 1; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.rate_per_host = true; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.poll_interval = 2s; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.isolation = Isolation::process; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.limits.memory = 1; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.limits.cpu = 1s; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.retry.max_attempts = 1; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.retry.jitter = Jitter::none; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.dead_letter = DeadLetterPolicy::keep; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.options.at("a").value = std::string("y"); }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.options.at("a").value = true; }));
  EXPECT_TRUE(differs([](JobConfig& j) { j.options.clear(); }));
  EXPECT_TRUE(differs([](JobConfig& j) {
    j.options["b"] = j.options["a"];
    j.options.erase("a");
  }));
}

TEST(JobConfig, SameJobIgnoresInWhichWordsTheSameIsSaid) {
  const auto same = [](const std::string& one, const std::string& other) {
    return value_of(parse(job_with(one))).same_job(value_of(parse(job_with(other))));
  };
  EXPECT_TRUE(same("rate_limit = '1/s'\ntimeout = '60s'\n", "rate_limit = '60/m'\ntimeout = '1m'\n"));
  EXPECT_TRUE(same("", "[job.priorities]\ncritical = 8\n"));
  EXPECT_FALSE(same("rate_limit = '1/s'\n", "rate_limit = '1/s per host'\n"));
  EXPECT_FALSE(same("", "[job.priorities]\ncritical = 9\n"));
}

TEST(JobConfig, APluginIsPinnedByNameAndDigest) {
  const std::string digest(62, 'a');
  const auto pinned = [](const std::string& text) { return parse(job_with("[job.plugin]\n" + text)); };
  const JobConfig job = value_of(pinned("file = 'greeter.so'\nsha256 = '" + digest + "0F'"));
  ASSERT_TRUE(job.plugin);
  EXPECT_EQ(job.plugin->file, "greeter.so");
  EXPECT_EQ(job.plugin->sha256, digest + "0f");
  JobConfig other = job;
  other.plugin->place.line = 99;
  EXPECT_TRUE(job.same_job(other));
  other.plugin->sha256[0] = 'b';
  EXPECT_FALSE(job.same_job(other));
  other.plugin = std::nullopt;
  EXPECT_FALSE(job.same_job(other));
  EXPECT_FALSE(other.same_job(job));
  for (const char* file : {"", ".so", "greeter", "../greeter.so", ".greeter.so"}) {
    EXPECT_NE(errors_text(pinned("file = '" + std::string(file) + "'\nsha256 = '" + digest + "00'")), "") << file;
  }
}

TEST(JobConfig, LimitsNeedAProcessOfTheirOwn) {
  const auto limits = [](const std::string& isolation, const std::string& limit) {
    return errors_text(parse(job_with("isolation = '" + isolation + "'\n[job.limits]\n" + limit)));
  };
  EXPECT_EQ(limits("process", "memory = '16MiB'"), "");
  EXPECT_EQ(limits("process", "cpu = '10ms'"), "");
  EXPECT_NE(limits("thread", "cpu = '1s'").find("isolation = \"process\""), std::string::npos);
  for (const char* wrong : {"memory = '15MiB'", "memory = '512MB'", "memory = 512", "memory = '8589934592GiB'",
                            "cpu = '9ms'", "time = '1s'"}) {
    EXPECT_NE(limits("process", wrong), "") << wrong;
  }
}

TEST(Size, IsReadAndWrittenInBinaryUnits) {
  EXPECT_EQ(parse_size("1KiB"), 1024U);
  EXPECT_EQ(parse_size("3GiB"), 3ULL << 30U);
  for (const char* wrong :
       {"", "1", "KiB", "0KiB", "-1KiB", "1 KiB", "1kib", "1KB", "1.5GiB", "99999999999999999999KiB"}) {
    EXPECT_FALSE(parse_size(wrong)) << wrong;
  }
  EXPECT_EQ(format_size(512ULL << 20U), "512MiB");
  EXPECT_EQ(format_size(1000), "1000 bytes");
}

TEST(JobConfig, TakesBoundaryValues) {
  EXPECT_EQ(errors_text(parse(job_with("concurrency = 1\ntimeout = '1ms'"))), "");
  EXPECT_NE(errors_text(parse(job_with("concurrency = 100001"))), "");
  EXPECT_NE(errors_text(parse(job_with("concurrency = -1"))), "");
  EXPECT_NE(errors_text(parse(job_with("concurrency = 4294967304"))), "");
  EXPECT_NE(errors_text(parse(job_with("timeout = '999us'"))), "");
  EXPECT_EQ(errors_text(parse(job_with("name = '" + std::string(128, 'a') + "'"))), "");
  EXPECT_NE(errors_text(parse(job_with("name = '" + std::string(129, 'a') + "'"))), "");
}

TEST(JobConfig, ReadsOrderAndSeveralQueues) {
  const JobConfig ordered = value_of(parse(job_with("order = 'group'\non_dead_letter = 'hold'\n")));
  EXPECT_EQ(ordered.order, Order::group);
  EXPECT_EQ(ordered.on_dead_letter, OnDeadLetter::hold);
  EXPECT_TRUE(value_of(parse(job_with("fair = true\n"))).fair);
  const JobConfig weighted = value_of(parse(job_with("[job.priorities]\ncritical = 20\nlow = 2\n")));
  EXPECT_EQ(weighted.priorities, (PriorityWeights{.critical = 20, .high = 4, .normal = 2, .low = 2}));
  EXPECT_TRUE(value_of(parse(job_with("[job.priorities]\ncritical = 8\n"))).weighs_priorities);
  EXPECT_FALSE(value_of(parse(job_with(""))).weighs_priorities);
  const JobConfig several = value_of(parse("[job]\nqueues = ['a:6', 'b']\nhandler = 'log'\n"));
  EXPECT_EQ(several.queues, (std::vector<WeightedQueue>{{"a", 6}, {"b", 1}}));
  EXPECT_EQ(several.queue, "a");
  EXPECT_FALSE(several.same_job(ordered));
}

TEST(JobConfig, RefusesOrdersThatDoNotGoTogether) {
  const std::map<std::string, std::string> wrong{
      {job_with("order = 'groups'\n"), "orders.toml:4:9: "},
      {job_with("order = 'group'\nfair = true\n"), "orders.toml:5:1: 'fair' in [job] is for messages without order"},
      {job_with("fair = 1\n"), "orders.toml:4:8: 'fair' in [job] must be true or false"},
      {job_with("on_dead_letter = 'hold'\n"), "orders.toml:4:1: 'on_dead_letter' in [job] needs an order"},
      {job_with("order = 'group'\non_dead_letter = 'hold'\n[job.dead_letter]\npolicy = 'discard'\n"),
       "orders.toml:5:1: 'on_dead_letter' in [job] needs dead letters"},
      {job_with("order = 'queue'\n[job.priorities]\nlow = 3\n"), "[job.priorities] cannot stand beside"},
      {job_with("[job.priorities]\nlow = 0\n"), "orders.toml:5:7: "},
      {job_with("queues = ['a:6']\n"), "orders.toml:2:1: 'queue' in [job] cannot stand beside 'queues'"},
      {"[job]\nqueues = []\nhandler = 'log'\n", "orders.toml:2:10: 'queues' in [job] is empty"},
      {"[job]\nqueues = ['a:6', 'a:1']\nhandler = 'log'\n", "names \"a\" twice"},
      {"[job]\nqueues = ['a:0']\nhandler = 'log'\n", "orders.toml:2:11: "},
      {"[job]\nqueues = ['a b:1']\nhandler = 'log'\n", "orders.toml:2:11: "},
  };
  for (const auto& [text, phrase] : wrong) {
    const auto parsed = parse(text);
    ASSERT_TRUE(parsed.has_error()) << text;
    EXPECT_NE(parsed.error().front().text().find(phrase), std::string::npos) << parsed.error().front().text();
  }
}

TEST(JobConfig, ReadsWhatGoesAroundTheHandler) {
  const std::string text = job_with(
      "[[job.around]]\nhandler = 'timing'\n[[job.around]]\nhandler = 'decrypt'\n[job.around.options]\nkey = '${K}'\n"
      "[job.options]\nlevel = 'info'\n");
  const JobConfig job = value_of(parse(text, {{"K", "secret"}}));
  ASSERT_EQ(job.arounds.size(), 2U);
  EXPECT_EQ(job.arounds[0].handler, "timing");
  EXPECT_EQ(job.arounds[0].handler_place.line, 5U);
  EXPECT_TRUE(job.arounds[0].options.empty());
  EXPECT_EQ(job.arounds[1].handler, "decrypt");
  EXPECT_EQ(job.arounds[1].options.at("key").value, OptionValue(std::string("secret")));
  EXPECT_EQ(job.arounds[1].options.at("key").place.line, 9U);
  EXPECT_EQ(job.options.at("level").value, OptionValue(std::string("info")));

  EXPECT_TRUE(job.same_job(value_of(parse("\n" + text, {{"K", "secret"}})))) << "places apart";
  EXPECT_FALSE(job.same_job(value_of(parse(text, {{"K", "another"}}))));
  JobConfig turned = job;
  std::swap(turned.arounds[0], turned.arounds[1]);
  EXPECT_FALSE(job.same_job(turned));
  turned.arounds.pop_back();
  EXPECT_FALSE(job.same_job(turned));
  EXPECT_FALSE(turned.same_job(job));
}

TEST(JobConfig, RefusesAroundsThatAreNone) {
  std::string many;
  for (int i = 0; i < 9; ++i) {
    many += "[[job.around]]\nhandler = 'timing'\n";
  }
  const std::map<std::string, std::string> wrong{
      {"around = 'timing'\n",
       "orders.toml:4:10: 'around' in [job] must be a list of tables, each written as [[job.around]], not a string"},
      {"around = ['timing']\n",
       "orders.toml:4:11: 'around' in [job] must be a list of tables, each written as [[job.around]], not a string"},
      {"[job.around]\nhandler = 'timing'\n",
       "orders.toml:4:1: 'around' in [job] must be a list of tables, each written as [[job.around]], not a table"},
      {"[[job.around]]\n",
       "orders.toml:4:1: [[job.around]] has no 'handler'; name a plugin's handler that goes around"},
      {"[[job.around]]\nhandler = 'a b'\n", "orders.toml:5:11: 'handler' in [[job.around]] must be "},
      {"[[job.around]]\nhandler = 'a'\noption = 1\n",
       "orders.toml:6:1: unknown key 'option' in [[job.around]]; did you mean 'options'?"},
      {"[[job.around]]\nhandler = 'a'\noptions = 1\n",
       "orders.toml:6:11: 'options' in [[job.around]] must be a table, written as [job.around.options]"},
      {"[[job.around]]\nhandler = 'a'\n[job.around.options]\nx = [1]\n",
       "orders.toml:7:6: 'x' in [job.around.options] must hold strings only, not an integer"},
      {many, "'around' in [job] has 9 entries, and at most 8 can be"},
  };
  for (const auto& [text, phrase] : wrong) {
    const std::string said = errors_text(parse(job_with(text)));
    EXPECT_NE(said.find(phrase), std::string::npos) << text << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << "one error: " << said;
  }
}

}  // namespace
}  // namespace sluice::config
