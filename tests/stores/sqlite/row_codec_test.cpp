#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/stores/sqlite/message_record.hpp"

namespace sluice::queue::sqlite {
namespace {

TEST(RowCodec, AttributesComeBack) {
  const std::string nul("a\0b", 3);
  for (const Attributes& attributes :
       {Attributes{}, Attributes{{"", ""}}, Attributes{{"trace", "abc"}, {"x", ""}, {"größe", "7:1,2"}},
        Attributes{{nul, nul}, {"\xFF\xFE", std::string(100000, ',')}}}) {
    EXPECT_EQ(decode_attributes(encode_attributes(attributes)), attributes);
  }
  EXPECT_EQ(encode_attributes({{"trace", "abc"}}), "5:trace,3:abc,");
  EXPECT_EQ(encode_attributes({}), "");
}

TEST(RowCodec, RefusesWhatItDoesNotWrite) {
  for (const std::string& bytes :
       {std::string("x"), std::string("5:trace,"), std::string("5:trace,3:abc"), std::string("5:trace;3:abc,"),
        std::string("-1:,0:,"), std::string("99999999999999999999:a,0:,"), std::string("18446744073709551615:a,0:,"),
        std::string(":,"), std::string("1"), std::string("1:"), std::string("4:abc,0:,")}) {
    EXPECT_EQ(decode_attributes(bytes), std::nullopt) << bytes;
  }
}

TEST(RowCodec, EveryPrefixOfAttributesIsHandled) {
  const std::string whole = encode_attributes({{"trace", "abc"}, {"x", "y"}});
  int good = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    good += decode_attributes(whole.substr(0, size)) ? 1 : 0;
  }
  EXPECT_EQ(good, 2) << "nothing at all, and the first pair whole";
}

TEST(RowCodec, FailureComesBack) {
  const Failure failure{.error = "mismatch: a,b:c",
                        .handler = "verify-file",
                        .host = "worker-a",
                        .attempts = 4'000'000'000,
                        .failed_at = WallTime(Duration(1'767'323'045'000'000'001))};
  const Failure read = decode_failure(encode_failure(failure));
  EXPECT_EQ(read.error, failure.error);
  EXPECT_EQ(read.handler, failure.handler);
  EXPECT_EQ(read.host, failure.host);
  EXPECT_EQ(read.attempts, failure.attempts);
  EXPECT_EQ(read.failed_at, failure.failed_at);
  EXPECT_TRUE(decode_failure("").empty());
}

TEST(RowCodec, UnreadableFailureSaysSo) {
  EXPECT_THAT(decode_failure("garbage").error, ::testing::HasSubstr("cannot be read"));
  EXPECT_THAT(decode_failure("3:abc,").error, ::testing::HasSubstr("cannot be read"));
}

TEST(RowCodec, LongErrorIsCutBetweenCharacters) {
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::string error(shift, 'x');
    while (error.size() < 2 * kErrorLimit) {
      error += "🙂";
    }
    const std::string read = decode_failure(encode_failure({.error = error, .handler = "h", .host = {}})).error;
    EXPECT_LE(read.size(), kErrorLimit);
    EXPECT_GT(read.size(), kErrorLimit - 4);
    EXPECT_EQ((read.size() - shift) % 4, 0U) << "cut within a character";
    EXPECT_TRUE(error.starts_with(read));
  }
}

}  // namespace
}  // namespace sluice::queue::sqlite
