#include "base/text/hex.hpp"

#include <gtest/gtest.h>

#include <array>

namespace sluice {
namespace {

using std::string_literals::operator""s;

TEST(Hex, HasTwoLowerCaseDigitsAByte) {
  EXPECT_EQ(to_hex(""), "");
  EXPECT_EQ(to_hex("\x00\x0f\xf0\xff k"s), "000ff0ff206b");
  EXPECT_EQ(to_hex(std::array<unsigned char, 3>{0x12, 0xab, 0xef}), "12abef");
}

TEST(Hex, ComesBackAsItWas) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes.push_back(static_cast<char>(byte));
  }
  EXPECT_EQ(from_hex(to_hex(bytes)), bytes);
  EXPECT_EQ(from_hex(""), "");
}

TEST(Hex, TakesNothingElse) {
  for (const std::string& text : {"1"s, "123"s, "1g"s, "g1"s, "AB"s, "0x12"s, " 12"s, "12 "s, "\0"s + "1"}) {
    EXPECT_EQ(from_hex(text), std::nullopt) << text;
  }
}

TEST(Hex, GivesTheLowestDigitsOfANumber) {
  EXPECT_EQ(hex_digits(0, 4), "0000");
  EXPECT_EQ(hex_digits(0x12abcdef, 8), "12abcdef");
  EXPECT_EQ(hex_digits(0x12abcdef, 4), "cdef");
  EXPECT_EQ(hex_digits(~std::uint64_t{0}, 16), "ffffffffffffffff");
  EXPECT_EQ(hex_digits(1, 0), "");
}

}  // namespace
}  // namespace sluice
