#include <gtest/gtest.h>

#include "config/config.hpp"
#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

using Keys = std::vector<std::string>;

HostConfig host(const std::string& text) {
  return *parse_host_config(text, "/etc/sluice/host.toml",
                            [](const std::string&) { return std::optional<std::string>(); });
}

TEST(HostChanges, AreNamedAsTheFileHasThem) {
  const HostConfig before = host("[host]\ndrain_timeout = \"5s\"\n[queues.orders]\ntable = \"orders-1\"\n");
  EXPECT_EQ(changed_keys(before, before), Keys());
  EXPECT_EQ(changed_keys(before, host("[host]\ndrain_timeout = \"6s\"\n[log]\nlevel = \"debug\"\n"
                                      "[queues.orders]\ntable = \"orders-2\"\n")),
            (Keys{"host.drain_timeout", "log.level", "queues.orders.table"}));
  EXPECT_EQ(changed_keys(before, host("# a comment\n[host]\ndrain_timeout = \"5000ms\"\n"
                                      "[queues.orders]\ntable = \"orders-1\"\n")),
            Keys())
      << "the same in other words";
}

TEST(HostChanges, NameEveryKeyThatTheFileMayHave) {
  const std::string store = "[store]\nkind = \"dynamodb\"\n";
  const HostConfig before = host(store + "[queues.orders]\nshards = 8\n[queues.rest]\n");
  EXPECT_EQ(changed_keys(before, host(store + "[queues.orders]\nshards = 16\nfence = \"strict\"\n[queues.rest]\n"
                                              "layout = \"dynamomq\"\n")),
            (Keys{"queues.orders.fence", "queues.orders.shards", "queues.rest.layout"}));
}

TEST(HostChanges, AreNoneWhereNumbersAndArraysAreWrittenOtherwise) {
  const auto parsed = [](const std::string& text) { return host_of(text, {{"UNITS", "50"}, {"LEVEL", "info"}}); };
  const HostConfig before = parsed(
      "[host]\njobs = [\"a.toml\", \"${LEVEL}\"]\n[store]\nkind = \"dynamodb\"\n"
      "[cost]\nread_unit = 1\nas_of = 2026-11-01\n[queues.orders]\nmax_read_units = 50\n");
  EXPECT_EQ(changed_keys(before, parsed("[queues]\norders = {max_read_units = \"${UNITS}\"}\n[cost]\nread_unit = 1.0\n"
                                        "as_of = 2026-11-01\n[store]\nkind = \"dynamodb\"\n"
                                        "[host]\njobs = [\"a.toml\", \"info\"]\n")),
            Keys());
  EXPECT_EQ(changed_keys(before, parsed("[host]\njobs = [\"a.toml\"]\n[store]\nkind = \"dynamodb\"\n[cost]\n"
                                        "read_unit = 1.5\nas_of = 2026-11-02\n[queues.orders]\nmax_read_units = 50\n")),
            (Keys{"cost.as_of", "cost.read_unit", "host.jobs"}));
}

TEST(HostChanges, NameWhetherHandlersMakeQueues) {
  const HostConfig before = host("[queues]\ncreate = true\n[queues.orders]\n");
  EXPECT_TRUE(before.create_queues);
  EXPECT_EQ(before.queues.size(), 1U);
  EXPECT_EQ(changed_keys(before, host("[queues.orders]\n")), Keys{"queues.create"});
  const HostConfig named = host("[queues.create]\nvisibility_timeout = \"1m\"\n");
  EXPECT_FALSE(named.create_queues);
  EXPECT_TRUE(named.queues.contains("create")) << "a queue may have that name";
}

TEST(HostChanges, NameStoresThatComeAndGo) {
  const HostConfig before = host("[stores.cloud]\nkind = \"dynamodb\"\nregion = \"eu-west-1\"\n");
  EXPECT_EQ(changed_keys(before, host("")), Keys{"stores.cloud"});
  EXPECT_EQ(changed_keys(before, host("[stores.cloud]\nkind = \"dynamodb\"\nregion = \"eu-west-2\"\n")),
            Keys{"stores.cloud.region"});
  EXPECT_EQ(changed_keys(before, host("[store]\npath = \"other.db\"\n"
                                      "[stores.cloud]\nkind = \"dynamodb\"\nregion = \"eu-west-1\"\n")),
            Keys{"store.path"});
}

}  // namespace
}  // namespace sluice::config
