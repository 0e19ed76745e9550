#include "base/text/host_and_port.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(HostAndPort, AreFoundInWhateverATextHasOfThem) {
  const auto parts = [](std::string_view text) {
    const auto [host, port] = host_and_port(text);
    return std::string(host) + "|" + std::string(port);
  };
  EXPECT_EQ(parts("db.example.com:5432"), "db.example.com|5432");
  EXPECT_EQ(parts("db"), "db|");
  EXPECT_EQ(parts("db:"), "db|");
  EXPECT_EQ(parts(":5432"), "|5432");
  EXPECT_EQ(parts("[fd00::5]:5432"), "fd00::5|5432");
  EXPECT_EQ(parts("[fd00::5]"), "fd00::5|");
  EXPECT_EQ(parts(""), "|");
}

TEST(HostAndPort, LeaveNoNumberOfAnythingElse) {
  EXPECT_EQ(host_and_port("::1:80").port, ":1:80");
  EXPECT_EQ(host_and_port("a:b:80").port, "b:80");
  EXPECT_EQ(host_and_port("[::1]x:80").port, "]x:80");
  EXPECT_EQ(host_and_port("[::1]80").port, "]80");
  for (const char* text : {"[", "[:", "[::1", "[::1:80"}) {
    EXPECT_EQ(host_and_port(text).port, "") << text;
  }
}

}  // namespace
}  // namespace sluice
