#include "host/queue/wake/datagram.hpp"

#include <gtest/gtest.h>

#include <string>

#include "host/queue/wake/announcement.hpp"

namespace sluice::queue::wake {
namespace {

using namespace std::chrono_literals;

const std::string kSecret = "0123456789abcdef";
const Ring kRing{"orders", WallTime(1'800'000'000'123ms), 0x0102030405060708U};

TEST(Datagram, SaysWhatWasRung) {
  for (const std::string& secret : {std::string(), kSecret}) {
    const auto read = Datagram::read(write_datagram(kRing, secret));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->ring(), kRing);
    EXPECT_EQ(read->is_signed(), !secret.empty());
  }
}

// Hosts and producers of other versions read these.
TEST(Datagram, StaysAsItIs) {
  EXPECT_EQ(write_datagram(kRing, ""), std::string("SLWK\x01\x00\x00\x06\x00\x00\x01\xa3\x18\x5c\x50\x7b"
                                                   "\x01\x02\x03\x04\x05\x06\x07\x08orders",
                                                   30));
  EXPECT_EQ(write_datagram(kRing, kSecret).size(), 62U);
}

TEST(Datagram, ASignatureIsAboutEveryByte) {
  const std::string right = write_datagram(kRing, kSecret);
  EXPECT_TRUE(Datagram::read(right)->signed_with(kSecret));
  EXPECT_FALSE(Datagram::read(right)->signed_with(kSecret + "x"));
  EXPECT_FALSE(Datagram::read(write_datagram(kRing, ""))->signed_with(kSecret));
  for (std::size_t i = 0; i < right.size(); ++i) {
    std::string wrong = right;
    wrong[i] = static_cast<char>(wrong[i] ^ 1);
    const auto read = Datagram::read(wrong);
    EXPECT_FALSE(read && read->signed_with(kSecret)) << i;
  }
}

TEST(Datagram, WhatIsCutLongerOrAnotherVersionIsNone) {
  for (const std::string& secret : {std::string(), kSecret}) {
    const std::string right = write_datagram(kRing, secret);
    for (std::size_t size = 0; size < right.size(); ++size) {
      EXPECT_FALSE(Datagram::read(std::string_view(right).substr(0, size))) << size;
    }
    EXPECT_FALSE(Datagram::read(right + "x"));
    EXPECT_FALSE(Datagram::read(right + std::string(kMostDatagramBytes, 'x')));
    for (const auto& [place, byte] : {std::pair(4, '\x02'), std::pair(5, '\x02'), std::pair(8, '\xff')}) {
      std::string wrong = right;
      wrong[static_cast<std::size_t>(place)] = byte;
      EXPECT_FALSE(Datagram::read(wrong)) << place;
    }
  }
  EXPECT_FALSE(Datagram::read(write_datagram({"", kRing.at, 1}, "")));
}

TEST(Datagram, TheLongestNameFits) {
  const Ring longest{std::string(kMostNameBytes, 'q'), kRing.at, 1};
  const std::string bytes = write_datagram(longest, kSecret);
  EXPECT_LE(bytes.size(), kMostDatagramBytes);
  EXPECT_EQ(Datagram::read(bytes)->ring(), longest);
}

}  // namespace
}  // namespace sluice::queue::wake
