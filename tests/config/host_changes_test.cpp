#include <gtest/gtest.h>

#include "config/config.hpp"
#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

using Keys = std::vector<std::string>;

HostConfig host(const std::string& text) {
  return std::get<HostConfig>(parse_host_config(text, "/etc/sluice/host.toml",
                                                [](const std::string&) { return std::optional<std::string>(); }));
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
