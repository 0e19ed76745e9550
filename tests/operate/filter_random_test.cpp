// Filters made by chance: their text is built beside what they must say of one message, and broken text is never more
// than an error with a column inside it.

#include <gtest/gtest.h>

#include <random>

#include "host/operate/filter.hpp"

namespace sluice::operate {
namespace {

constexpr int kRounds = 5'000;

queue::StoredMessage seven() {
  queue::StoredMessage stored;
  stored.message.id = "seven";
  stored.message.body = R"({"n":7,"t":"x"})";
  stored.message.content_type = queue::kJson;
  stored.message.attempt = 7;
  return stored;
}

struct Claimed {
  std::string text;
  bool truth = false;
};

class Author {
 public:
  explicit Author(std::uint64_t seed) : random_(seed) {}

  Claimed write(int depth) {
    switch (depth == 0 ? 0 : below(5)) {
      case 1:
        return joined(depth, " and ", [](bool left, bool right) { return left && right; });
      case 2:
        return joined(depth, " or ", [](bool left, bool right) { return left || right; });
      case 3: {
        const Claimed inner = write(depth - 1);
        return {space("not (") + inner.text + space(")"), !inner.truth};
      }
      default:
        return leaf();
    }
  }

  std::size_t below(std::size_t bound) { return random_() % bound; }

 private:
  std::string space(const std::string& text) { return std::string(below(3), ' ') + text + std::string(below(2), '\t'); }

  template <typename Operation>
  Claimed joined(int depth, const char* word, Operation operation) {
    const Claimed left = write(depth - 1);
    const Claimed right = write(depth - 1);
    return {"(" + left.text + ")" + word + "(" + right.text + ")", operation(left.truth, right.truth)};
  }

  Claimed leaf() {
    const auto number = static_cast<int>(below(15));
    const std::string written = std::to_string(number) + (below(2) == 0 ? "" : ".0");
    const std::string field = below(2) == 0 ? "receive_count" : "data.n";
    switch (below(8)) {
      case 0:
        return {field + space("=") + written, number == 7};
      case 1:
        return {field + space("!=") + written, number != 7};
      case 2:
        return {field + space("<") + written, 7 < number};
      case 3:
        return {written + space(">=") + field, number >= 7};
      case 4:
        return {field + " in (1, " + written + ")", number == 7};
      case 5:
        return {field + " not in (1, " + written + ")", number != 7};
      case 6:
        return {"data.gone" + space("!=") + written, false};
      default:
        return {number % 2 == 0 ? "exists(data.t)" : "exists(data.gone)", number % 2 == 0};
    }
  }

  std::mt19937_64 random_;
};

TEST(RandomFilters, SayWhatTheyWereMadeToSay) {
  Author author(20261121);
  for (int round = 0; round < kRounds; ++round) {
    const Claimed claimed = author.write(static_cast<int>(author.below(5)));
    const auto filter = Filter::parse(claimed.text);
    ASSERT_FALSE(filter.has_error()) << claimed.text << "\n" << filter.error().message;
    ASSERT_EQ(filter->matches(seven(), WallTime{}), claimed.truth) << claimed.text;
  }
}

TEST(RandomFilters, BrokenOnesAreErrorsAndNothingWorse) {
  const std::string bytes = "()[]'\"\\.,=<>!~*&|-+0123456789aeinorst \t\n\xc3\xbc\xff#";
  Author author(42);
  for (int round = 0; round < kRounds; ++round) {
    std::string text = author.write(static_cast<int>(author.below(4))).text;
    for (std::size_t change = author.below(4); change < 4; ++change) {
      const std::size_t at = author.below(text.size() + 1);
      const std::size_t taken = author.below(3);
      text.replace(at, std::min(taken, text.size() - at), 1, bytes[author.below(bytes.size())]);
    }
    const auto filter = Filter::parse(text);
    if (filter.has_error()) {
      ASSERT_GE(filter.error().column, 1U) << text;
      ASSERT_LE(filter.error().column, text.size() + 1) << text;
      ASSERT_EQ(filter.error().message.find('\n'), std::string::npos) << text;
    } else {
      filter->matches(seven(), WallTime{});
    }
  }
}

}  // namespace
}  // namespace sluice::operate
